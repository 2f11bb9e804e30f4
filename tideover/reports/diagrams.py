"""The space-time diagram of a result: of which stretch, and as what a page shows."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tideover.models.accounts.space_time import Stretch
from tideover.models.schema.fields import HEADLINE
from tideover.models.simulation import Replication, watch
from tideover.reports.figures.space_time.choice import MOST_TUPLES, only
from tideover.reports.figures.space_time.picture import space_time
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Picture
from tideover.sim.units import S

if TYPE_CHECKING:
    from tideover.models.results.result import Result

BEFORE = 0.1
"""The part of a stretch that is ahead of the failure in it, and that is behind the recovery."""
MOST_NOTED = 100_000
"""Messages of a stretch that nobody has chosen."""


def of_result(
    result: Result,
    stretch: Stretch | None = None,
    components: Collection[str] = (),
    *,
    inline: bool = False,
) -> str:
    """The diagram of a result's first replication as SVG, which is run once more up to the end of the
    ``stretch`` (None: ``usual_stretch``). ``components``: those to be shown; none: all. ``inline``: for the
    inside of a page.
    """
    first = result.replications[0]
    stretch = usual_stretch(result) if stretch is None else stretch
    found = watch(result.scenario, first.number, stretch)
    if components:
        found = only(found, components)
    seed = f"seed {result.scenario.run.seed}"
    many = f", replication {first.number}" if len(result.replications) > 1 else ""
    title = f"{result.scenario.name}: {strategy_name(result.strategy)}, {seed}{many}"
    return space_time(found, title, inline=inline)


def usual_stretch(result: Result) -> Stretch:
    """All of a small run; of a large one the stretch from before the first failure to the end of the recovery
    from it, or, if nothing fails, from the warm-up on. It has no more messages than can be noted.
    """
    run, first = result.scenario.run, result.replications[0]
    messages = _messages(first)
    if messages <= MOST_TUPLES:
        return Stretch(0, run.duration)
    legible = round(run.duration * MOST_TUPLES / 2 / messages)
    if not first.recoveries:
        return _within(run.warmup, legible, run.duration)
    row = min(first.recoveries, key=lambda row: row["failed_at_s"])
    failed = round(row["failed_at_s"] * S)
    over = run.duration if row[HEADLINE] is None else failed + round(row[HEADLINE] * S)
    most = run.duration * MOST_NOTED // messages
    length = min(max(legible, round((over - failed) / (1 - 2 * BEFORE))), most)
    return _within(failed - round(length * BEFORE), length, run.duration)


def _within(begin: int, length: int, duration: int) -> Stretch:
    begin = max(0, min(begin, duration - length))
    return Stretch(begin, min(begin + length, duration))


def _messages(one: Replication) -> int:
    """Tuples that went from task to task."""
    return sum(edge["messages"] for edge in one.edges.values())


def pictured(result: Result) -> tuple[Picture, ...]:
    """What the page of a run shows: none of a large one in which nothing fails."""
    first = result.replications[0]
    if not first.recoveries and _messages(first) > MOST_TUPLES:
        return ()
    what = "Each line is a task over time, each arrow a message; "
    what += "the text of an arrow or a mark, beside the pointer, names the tuple, or the step. "
    what += "Look at what is lost while a task is down, and what comes again afterwards."
    return (Picture("Who sends what to whom", what, of_result(result, inline=True)),)
