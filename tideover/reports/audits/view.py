"""What the terminal shows of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from rich.console import Group
from rich.text import Text

from tideover.reports.audits import answer
from tideover.reports.terminal import render
from tideover.scenarios.audit.audit import Audit


def audits_view(audits: Sequence[Audit]) -> list[Group | Text]:
    """Several audits: how many keep their word, a table, and the smallest example of each that does not."""
    shown: list[Group | Text] = [
        Group(Text(answer.verdicts(audits), style="bold"), Text(""), render(answer.overview(audits)))
    ]
    if any(audit.examples for audit in audits):
        shown.append(Text("Each one's smallest example, drawn: --out DIR."))
    for audit in audits:
        if audit.holds:
            continue
        shown.append(Text(answer.verdict(audit), style="bold"))
        for example, text in islice(answer.steps(audit), 1):
            shown.append(Text(f"   {text}"))
            shown.append(Text(f"   {audit.replay(example.case)}", style="dim"))
    return shown


def audit_view(audit: Audit) -> list[Group | Text]:
    """The answer, what each kind of fault leaves, the smallest examples, each with the command that shows it
    again.
    """
    shown: list[Group | Text] = [
        Group(
            Text(answer.verdict(audit), style="bold"),
            *(Text(sentence) for sentence in answer.sentences(audit)),
            Text(""),
            render(answer.kinds_table(audit)),
        )
    ]
    for number, (example, text) in enumerate(answer.steps(audit), 1):
        shown.append(Text(f"{number}. {text}"))
        shown.append(Text(f"   {audit.replay(example.case)}\n", style="dim"))
    more = len(audit.examples) - answer.MOST_EXAMPLES
    if more > 0:
        shown.append(Text(f"{more} more; --json and --out have all."))
    return shown
