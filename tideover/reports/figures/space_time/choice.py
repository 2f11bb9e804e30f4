"""What of a stretch is drawn: all of it where that is legible, else whole trees of some roots; and what is
said of the rest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tideover.models.evaluation.diagram import Arrow, Diagram, Event, Lane, Whole

MOST_TUPLES = 240
"""Most tuples in one picture; more are no longer told apart, on a page or a slide."""
MOST_LANES = 24
ALL_LANES = 12
"""So many tasks are shown even if nothing happens to some."""
MOST_STEPS = 160
"""Most steps and control messages."""

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Shown:
    """What is drawn, and (``left_out``) sentences on what is not.

    rest    where and when (ns) tuples were sent, and came, that are not drawn
    """

    lanes: tuple[Lane, ...]
    arrows: tuple[Arrow, ...]
    events: tuple[Event, ...]
    left_out: tuple[str, ...]
    rest: tuple[tuple[str, int], ...] = ()


def only(diagram: Diagram, components: Collection[str]) -> Diagram:
    """The part of a diagram that concerns these components, and what they exchange with roles."""
    lanes = tuple(lane for lane in diagram.lanes if lane.component in components or not lane.is_task)
    names = {lane.name for lane in lanes}
    return replace(
        diagram,
        lanes=lanes,
        arrows=tuple(a for a in diagram.arrows if {a.source, a.target} <= names),
        events=tuple(e for e in diagram.events if e.lane is None or e.lane in names),
        downs=tuple(d for d in diagram.downs if d.lane in names),
    )


def choose(diagram: Diagram, first: Collection[Whole] = (), most: int = MOST_TUPLES) -> Shown:
    """What to draw of a diagram. If it has too many tuples, these are roots and windows with all of their
    tuples: those named ``first``, then those of which something is lost or sent again, then others, each
    sort spread over the stretch.
    """
    begin, end = diagram.stretch
    inside = [a for a in diagram.arrows if _visible(a, begin, end)]
    tuples = [arrow for arrow in inside if arrow.kind == "tuple"]
    struck = _struck(diagram)
    wholes = _accepted(tuples, list(_in_turn(tuples, first)), struck, most)
    said: list[str] = []
    kept = [arrow for arrow in tuples if arrow.whole in wholes]
    total = len({arrow.whole for arrow in tuples})
    if len(wholes) < total:
        said.append(
            f"{len(kept):,} of {len(tuples):,} tuples drawn: all those of {len(wholes):,} of {total:,} roots "
            "and windows"
        )
    for kind, name in (("ack", "acks"), ("complete", "complete roots")):
        mine = [arrow for arrow in inside if arrow.kind == kind]
        shown = _spread([a for a in mine if len(wholes) == total or a.whole in wholes], most)
        if len(shown) < len(mine):
            said.append(f"{len(shown):,} of {len(mine):,} {name}")
        kept += shown
    rest = [arrow for arrow in inside if arrow.kind in ("control", "step")]
    kept += _said(rest, MOST_STEPS, "control messages", said)
    lanes = _lanes(diagram, kept, struck, said)
    names = {lane.name for lane in lanes}
    events = _said(list(diagram.events), MOST_STEPS, "steps and other events", said)
    return Shown(
        lanes,
        tuple(a for a in kept if {a.source, a.target} <= names),
        tuple(e for e in events if e.lane is None or e.lane in names),
        tuple(said),
        tuple(_ends([arrow for arrow in tuples if arrow.whole not in wholes], begin, end)),
    )


def _ends(arrows: Iterable[Arrow], begin: int, end: int) -> Iterator[tuple[str, int]]:
    for arrow in arrows:
        for lane, moment in ((arrow.source, arrow.sent), (arrow.target, arrow.came)):
            if moment is not None and begin <= moment <= end:
                yield lane, moment


def _visible(arrow: Arrow, begin: int, end: int) -> bool:
    """Whether something of an arrow lies in the stretch."""
    first = begin if arrow.sent is None else arrow.sent
    if arrow.copied and arrow.came is not None:
        first = arrow.came
    last = arrow.came if arrow.came is not None else arrow.over
    return first <= end and (last is None or last >= begin)


def _struck(diagram: Diagram) -> list[str]:
    """Lanes that something strikes, in order."""
    order = {lane.name: place for place, lane in enumerate(diagram.lanes)}
    names = {down.lane for down in diagram.downs}
    names |= {event.lane for event in diagram.events if event.kind == "fault" and event.lane is not None}
    return sorted(names, key=lambda name: order[name])


def _in_turn(tuples: Sequence[Arrow], first: Collection[Whole]) -> Iterator[Whole]:
    """Roots and windows, in the order in which they are wanted."""
    concerned = {a.whole for a in tuples if a.lost or a.again}
    every = dict.fromkeys(a.whole for a in tuples if a.whole is not None)
    for wanted in (
        [whole for whole in every if whole in first],
        [whole for whole in every if whole in concerned and whole not in first],
        [whole for whole in every if whole not in concerned and whole not in first],
    ):
        yield from (wanted[place] for place in _evenly(len(wanted)))


def _evenly(n: int) -> Iterator[int]:
    """0 … n-1 such that the first of them, however many, are spread evenly.

    >>> list(_evenly(5))
    [0, 4, 2, 1, 3]
    """
    bits = max(0, n - 1).bit_length()
    for i in range(1 << bits):
        place = int(f"{i:0{bits}b}"[::-1], 2) if bits else 0
        if place < n:
            yield place


def _accepted(
    tuples: Sequence[Arrow], wanted: Sequence[Whole], struck: Sequence[str], most: int
) -> set[Whole | None]:
    """As many of those that are wanted as are legible together: the first, and others that fit."""
    sizes = Counter(arrow.whole for arrow in tuples)
    if len(tuples) <= most and len({x for a in tuples for x in (a.source, a.target)}) <= MOST_LANES:
        return set(sizes)
    touched: dict[Whole | None, set[str]] = defaultdict(set)
    for arrow in tuples:
        touched[arrow.whole] |= {arrow.source, arrow.target}
    lanes, found, left, missed = set(struck[: MOST_LANES // 2]), set[Whole | None](), most, 0
    for whole in wanted:
        together = lanes | touched[whole]
        if found and (sizes[whole] > left or len(together) > MOST_LANES):
            missed += 1
            if missed > 50:
                break
            continue
        found.add(whole)
        lanes, left = together, left - sizes[whole]
    return found


def _lanes(
    diagram: Diagram, arrows: Iterable[Arrow], struck: Sequence[str], said: list[str]
) -> tuple[Lane, ...]:
    if len(diagram.lanes) <= ALL_LANES:
        return diagram.lanes
    names = {name for arrow in arrows for name in (arrow.source, arrow.target)}
    for name in (*struck, *(event.lane for event in diagram.events if event.lane is not None)):
        if name in names or len(names) < MOST_LANES:
            names.add(name)
    found = tuple(lane for lane in diagram.lanes if lane.name in names)
    if len(found) < len(diagram.lanes):
        said.append(f"{len(found)} of {len(diagram.lanes)} tasks and roles")
    return found


def _spread(things: list[Thing], most: int) -> list[Thing]:
    """So many of them, spread evenly, in their order."""
    if len(things) <= most:
        return things
    places = [place for place, _ in zip(_evenly(len(things)), range(most), strict=False)]
    return [things[place] for place in sorted(places)]


def _said(things: list[Thing], most: int, name: str, said: list[str]) -> list[Thing]:
    """The same, and it is said what is left out."""
    shown = _spread(things, most)
    if len(shown) < len(things):
        said.append(f"{len(shown):,} of {len(things):,} {name}")
    return shown
