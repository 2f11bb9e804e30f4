"""The smallest examples of an audit, drawn."""

from __future__ import annotations

from typing import Literal

from tideover.models.accounts.space_time import Stretch
from tideover.models.coarsening import coarseness
from tideover.models.evaluation.diagram import diagram
from tideover.reports.figures.space_time.looks import Highlight
from tideover.reports.figures.space_time.picture import space_time
from tideover.reports.html import Picture
from tideover.scenarios.audit.audit import Audit
from tideover.scenarios.audit.examples import Example, struck
from tideover.sim.units import S

MOST_DRAWN = 60
"""So many tuples at most: those that it is about, and a few of the others."""
_SIDES: dict[str, Literal["before", "at", "after"]] = {"before": "before", "after": "after"}


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
    about = Highlight(last.at, _SIDES.get(last.side, "at"), strike, becomes)
    svg = space_time(diagram(world, coarseness(audit.scenario)), "", about, most=MOST_DRAWN, inline=True)
    return Picture("What happens", f"{example.text}. Marked: what is lost, or counted twice.", svg)
