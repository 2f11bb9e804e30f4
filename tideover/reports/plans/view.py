"""What the terminal shows of a plan."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from tideover.reports.plans import answer
from tideover.reports.terminal import render
from tideover.scenarios.planning.result import Plan


def plan_view(plan: Plan) -> Group:
    """The answer, why it is that, and what else there is."""
    return Group(
        Text(answer.verdict(plan), style="bold"),
        *(Text(sentence) for sentence in answer.sentences(plan)),
        Text(""),
        *(render(table) for table in answer.tables(plan)),
    )
