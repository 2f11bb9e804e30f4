"""Pages, sentences, tables and pictures of audits.

Called by `tideover audit`; what is tried, and what counts as harm, is in `tideover.scenarios.audit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

from rich.console import Group
from rich.text import Text

from tideover.models.accounts.trace import Stretch
from tideover.models.coarsening import coarseness
from tideover.models.evaluation.diagram import diagram
from tideover.reports import wording
from tideover.reports.figures.space_time import Highlight, space_time
from tideover.reports.figures.style import picture
from tideover.reports.formatting import UNDEFINED, strategy_name
from tideover.reports.html import Page, Picture, Section
from tideover.reports.tables import Table
from tideover.reports.terminal import render
from tideover.scenarios.audit.audit import Audit
from tideover.scenarios.audit.cases import guarantee, holds
from tideover.scenarios.audit.examples import MOST_EXAMPLES, Example, struck, told
from tideover.scenarios.errors import listed
from tideover.scenarios.part_builder import to_data
from tideover.sim.registry import kind_of
from tideover.sim.units import S

# What an audit has found, in sentences and tables, for the terminal and for the page.


def verdict(audit: Audit) -> str:
    """Observed and claimed, in a sentence."""
    return wording.text("audit_verdict", audit, strategy_name(kind_of(audit.scenario.strategy)))


def verdicts(audits: Sequence[Audit]) -> str:
    return f"{sum(audit.holds for audit in audits)} of {len(audits)} keep their word."


def sentences(audit: Audit) -> list[str]:
    """What was tried, and what breaks without a failure, or with two."""
    return wording.sentences("audit_sentences", audit, told)


def kinds_table(audit: Audit) -> Table:
    def spoilt(kind: str, word: str) -> str:
        return str(sum(each.harm.split(", ").count(word) for each in audit.by_kind(kind)))

    columns: dict[str, Callable[[str], str]] = {
        "One fault": lambda kind: kind,
        "observed": lambda kind: guarantee(audit.by_kind(kind)),
        "claimed": lambda kind: audit.claimed if kind in audit.survives else UNDEFINED,
        "runs": lambda kind: str(len(audit.by_kind(kind))),
        "lose": lambda kind: spoilt(kind, "lost"),
        "duplicate": lambda kind: spoilt(kind, "duplicated"),
        "wrong windows": lambda kind: str(sum(bool(e.wrong or e.missing) for e in audit.by_kind(kind))),
    }
    notes = []
    if set(audit.kinds) != set(audit.survives):
        notes.append(f"{UNDEFINED} : the strategy claims nothing of these.")
    if not audit.scenario.strategy.stateless_too:
        notes.append("What it claims does not hold of tasks without state, by its own account.")
    return Table.of("Guarantees", audit.kinds, columns, notes, text_columns=3)


def overview(audits: Sequence[Audit]) -> Table:
    def survived(audit: Audit) -> str:
        kinds = [kind for kind in audit.kinds if holds(audit.claimed, guarantee(audit.by_kind(kind)))]
        return "all" if kinds == audit.kinds else listed(kinds) if kinds else "none"

    def smallest(audit: Audit) -> str:
        first = next(iter(audit.examples), None)
        return UNDEFINED if first is None else f"{first.harm}: {first.case.kinds or 'no failure'}"

    columns: dict[str, Callable[[Audit], str]] = {
        "Strategy": lambda audit: strategy_name(kind_of(audit.scenario.strategy)),
        "claimed": lambda audit: audit.claimed,
        "observed": lambda audit: audit.observed,
        "after two": lambda audit: audit.after_two or UNDEFINED,
        "faults survived": survived,
        "runs": lambda audit: str(len(audit.singles) + len(audit.doubles)),
        "smallest example": smallest,
    }
    kinds = listed(dict.fromkeys(kind for audit in audits for kind in audit.kinds))
    note = (
        f"Faults: {kinds}; survived: after one of them the strategy keeps what it claims of any. After two: "
        "one task crashes, and another during its recovery, of which nothing is claimed (–: not tried)."
    )
    return Table.of("Audits", audits, columns, (note,), text_columns=7)


def steps(audit: Audit) -> Iterator[tuple[Example, str, str]]:
    """The smallest examples: what is wrong, when, which tuples, in lines; and the command that shows it
    again.
    """
    for example in audit.examples[:MOST_EXAMPLES]:
        lines = [f"{example.harm}: {example.text}"]
        lines += [f"  {each}" for each in example.tuples]
        if example.of:
            lines.append(f"  so it is {example.step}")
        elif example.alike:
            lines.append(f"  {example.alike} more runs break there in this way")
        yield example, "\n".join(lines), audit.replay(example.case)


# The smallest examples of an audit, drawn.

MOST_DRAWN = 60
"""So many tuples at most: those that it is about, and a few of the others."""


def pictured(audit: Audit, example: Example) -> Picture:
    """The stretch around the strikes of an example, with what is lost or counted twice marked."""
    case = example.case
    first, last = case.strikes[0], case.strikes[-1]
    downtime = max(fault.lasts for fault in case.faults)
    around = max(S, downtime // 2)
    end = min(audit.scenario.run.duration, last.at + downtime + around)
    world = struck(audit.scenario, case, Stretch(max(0, first.at - around), end))
    world.balance()
    becomes = {("", root): "lost" for root in world.ledger.lost.tolist()}
    becomes |= {("", root): "counted twice" for root in world.ledger.duplicated_roots().tolist()}
    victim = case.victims[-1]
    strike = f"{victim.kind} of {victim.name}, {last.text}"
    sides: dict[str, Literal["before", "after"]] = {"before": "before", "after": "after"}
    about = Highlight(last.at, sides.get(last.side, "at"), strike, becomes)
    svg = space_time(diagram(world, coarseness(audit.scenario)), "", about, most=MOST_DRAWN, inline=True)
    return picture("example", svg, text=example.text)


def _answered(answer: str, said: Iterable[str], table: Table) -> Group:
    return Group(Text(answer, style="bold"), *map(Text, said), Text(""), render(table))


def audits_view(audits: Sequence[Audit]) -> list[Group | Text]:
    """What the terminal shows of several audits: how many keep their word, a table, and the smallest example
    of each that does not.
    """
    shown: list[Group | Text] = [_answered(verdicts(audits), (), overview(audits))]
    if any(audit.examples for audit in audits):
        shown.append(Text("Each one's smallest example, drawn: --out DIR."))
    for audit in audits:
        if not audit.holds:
            shown.append(Text(verdict(audit), style="bold"))
            for _, text, replay in islice(steps(audit), 1):
                shown += [Text(f"   {text}"), Text(f"   {replay}", style="dim")]
    return shown


def audit_view(audit: Audit) -> list[Group | Text]:
    """What the terminal shows of one: the answer, what each kind of fault leaves, the smallest examples."""
    shown: list[Group | Text] = [_answered(verdict(audit), sentences(audit), kinds_table(audit))]
    for number, (_, text, replay) in enumerate(steps(audit), 1):
        shown += [Text(f"{number}. {text}"), Text(f"   {replay}\n", style="dim")]
    more = len(audit.examples) - MOST_EXAMPLES
    return [*shown, *([Text(f"{more} more; --json and --out have all.")] if more > 0 else [])]


def _example(audit: Audit, title: str, anchor: str, found: tuple[Example, str, str], *before: str) -> Section:
    """An example on a page, with its picture if anything fails in it."""
    example, *told = found
    pictures = (pictured(audit, example),) if example.case.faults else ()
    return Section(title, anchor, sentences=(*before, *told), pictures=pictures)


def audits_page(audits: Sequence[Audit]) -> Page:
    """Several audits: what each came to, and the smallest example of each."""
    kinds = [kind_of(audit.scenario.strategy) for audit in audits]
    examples = [
        _example(audit, strategy_name(kind), kind, first, verdict(audit))
        for audit, kind in zip(audits, kinds, strict=True)
        for first in islice(steps(audit), 1)
    ]
    return Page(
        title="Audits",
        kind="what strategies guarantee, by failing at each step of their protocols",
        verdict=verdicts(audits),
        setup=(("Faults", ", ".join(dict.fromkeys(kind for audit in audits for kind in audit.kinds))),),
        sections=(Section("Answer", "answer", tables=(overview(audits),)), *examples),
        scenarios=tuple((kind, to_data(audit.scenario)) for kind, audit in zip(kinds, audits, strict=True)),
        glossary={},
    )


def audit_page(audit: Audit) -> Page:
    answer = Section("Answer", "answer", sentences=tuple(sentences(audit)), tables=(kinds_table(audit),))
    examples = [
        _example(audit, f"Example {number}", f"example-{number}", found)
        for number, found in enumerate(steps(audit), 1)
    ]
    return Page(
        title=f"Audit: {audit.scenario.name}",
        kind="what a strategy guarantees, by failing at each step of its protocol",
        verdict=verdict(audit),
        setup=(("Faults", ", ".join(audit.kinds)), ("Claimed", audit.claimed), ("Observed", audit.observed)),
        sections=(answer, *examples),
        scenarios=((audit.scenario.name, to_data(audit.scenario)),),
        glossary={},
    )
