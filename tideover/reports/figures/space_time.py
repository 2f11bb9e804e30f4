"""The space-time diagram: tasks as lines grouped by host, time to the right, messages as arrows; as SVG.

After L. Lamport, *Time, clocks, and the ordering of events in a distributed system*, CACM 1978, and the
figures of J.-H. Hwang et al., *High-availability algorithms for distributed stream processing*, ICDE 2005.
Called by the pages of runs and audits, by `tideover run --diagram` and by `tideover explore`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from tideover.models.accounts.trace import DETECTED, READY, Stretch, moment_text
from tideover.models.evaluation.diagram import Arrow, Diagram, Down, Event, Lane, Whole
from tideover.reports.figures import style
from tideover.reports.figures.style import (
    Point,
    box,
    circle,
    cross,
    element,
    group,
    head,
    line,
    polygon,
    text,
    themed,
    way,
    width_of,
)
from tideover.sim.units import S

# How the sorts of arrows look: told apart by line and end, so that a grey print will do.


@dataclass(frozen=True)
class Look:
    """How one sort of arrow is drawn; ``end``: head, hollow, cross, ring, or nothing."""

    label: str
    colour: str
    width: float = 1.2
    dashes: str = ""
    end: str = "head"

    def tip(self, a: Point, b: Point) -> str:
        """The end of an arrow that comes from ``a``, at ``b``."""
        if self.end == "cross":
            return cross(b, 4, self.colour)
        if self.end == "ring":
            return circle(b, 3, style.PAPER, self.colour, 1.2)
        if not self.end:
            return ""
        return head(a, b, self.colour, 6 + self.width, style.PAPER if self.end == "hollow" else "")


LOOKS = {
    "tuple": Look("tuple", style.INK),
    "again": Look("tuple sent again", style.VERMILION, 2.2),
    "lost": Look("tuple destroyed", style.FAILURE, 1.4, "1.5 2.5", "cross"),
    "copied": Look("tuple out of what was kept, or from another replica", style.VERMILION, 1.2, "1 2"),
    "discarded": Look("tuple discarded (known, or to come again)", style.MUTED, 1.0, "", "ring"),
    "under way": Look("tuple not processed yet", style.MUTED, 1.0, "1 3", ""),
    "control": Look("control message in the stream (barrier, end marker)", style.BLUE, 2.4, "8 2"),
    "ack": Look("ack", style.GREEN, 1.1, "5 3", "hollow"),
    "complete": Look("root complete", style.GREEN, 2.0, "9 3", "hollow"),
    "step": Look("step that goes to another", style.BLUE, 1.3, "2 2", "hollow"),
}
"""In the order of the legend; what comes first is drawn on top."""


def sort_of(arrow: Arrow) -> str:
    """Which of these looks an arrow has."""
    if arrow.kind != "tuple":
        return arrow.kind
    if arrow.copied:
        return "copied"
    if arrow.lost:
        return "lost"
    if arrow.fate == "discarded":
        return "discarded"
    if arrow.over is None and arrow.came is None:
        return "under way"
    return "again" if arrow.again else "tuple"


@dataclass(frozen=True)
class Highlight:
    """What a picture is about: something strikes ``where`` (before, at, after) a step at ``at`` (ns), and
    what it does to tuples.

    text     what strikes, in words
    becomes  what becomes of single tuples (component and uid), and of whole roots ("" and the root): lost,
             duplicated
    """

    at: int | None = None
    where: Literal["before", "at", "after"] = "at"
    text: str = ""
    becomes: Mapping[tuple[str, int], str] = field(default_factory=dict)

    def of(self, arrow: Arrow) -> str:
        """What becomes of the tuple of an arrow; empty: nothing that is to be shown."""
        if arrow.kind != "tuple":
            return ""
        keys = (key for key in (arrow.effect, arrow.whole) if key is not None)
        return next((self.becomes[key] for key in keys if key in self.becomes), "")


# Where lanes and moments are in a space-time diagram (px).

WIDTH = 1000.0
TOP = 70.0
"""Above the lanes are the title, and what strikes."""
TICKS = 9
_HEIGHTS = ((4, 84.0), (6, 66.0), (10, 48.0), (16, 38.0))
"""Height of a lane, if there are at most so many."""
_LEAST = 30.0


@dataclass(frozen=True)
class Layout:
    """Lanes from top to bottom, time from left to right.

    each   height of a lane
    y      of each lane
    bands  host, top and bottom of neighbouring lanes of one host
    ticks  moments (ns) and what is written there
    """

    stretch: Stretch
    width: float
    left: float
    right: float
    top: float
    bottom: float
    each: float
    y: dict[str, float]
    bands: tuple[tuple[int | None, float, float], ...]
    ticks: tuple[tuple[int, str], ...]

    def x(self, moment: float) -> float:
        """Of a moment (ns) in the stretch."""
        begin, end = self.stretch
        return self.left + (self.right - self.left) * (moment - begin) / max(1, end - begin)

    def clipped(self, moment: int) -> float:
        """The same of any moment: the edge that is nearer for those outside."""
        return self.x(min(max(moment, self.stretch.begin), self.stretch.end))

    def cut(self, a: tuple[int, float], b: tuple[int, float]) -> tuple[Point, Point]:
        """The part of the way between two points (ns, px) that lies in the stretch."""
        (t, y), (u, z) = a, b

        def at(moment: int) -> Point:
            inside = min(max(moment, self.stretch.begin), self.stretch.end)
            share = 0.0 if u == t else (min(max(inside, t), u) - t) / (u - t)
            return self.x(inside), y + (z - y) * share

        return at(t), ((self.x(u), z) if self.stretch.begin <= u <= self.stretch.end else at(u))


def layout(diagram: Diagram, lanes: Sequence[Lane]) -> Layout:
    """Lanes by host, hosts and what is without one in the order of their first lanes."""
    hosts: dict[object, list[Lane]] = {}
    for lane in lanes:
        hosts.setdefault(lane.host if lane.host is not None else lane.name, []).append(lane)
    each = next((height for most, height in _HEIGHTS if len(lanes) <= most), _LEAST)
    ordered = sorted(hosts.values(), key=lambda group: group[0].host is None)
    y, bands, at = {}, [], TOP
    for shared in ordered:
        top = at
        for lane in shared:
            y[lane.name] = at + each * 0.6
            at += each
        bands.append((shared[0].host, top, at))
    left = 24 + max([56.0, *(width_of(lane.name, 12) for lane in lanes)])
    ticks = tuple(_ticks(*diagram.stretch))
    return Layout(diagram.stretch, WIDTH, left, WIDTH - 22, TOP, at, each, y, tuple(bands), ticks)


def _ticks(begin: int, end: int) -> list[tuple[int, str]]:
    """Round moments, which are 1, 2 or 5 times a power of ten apart.

    >>> _ticks(0, 4_000_000_000)[:3]
    [(0, '0.0 s'), (500000000, '0.5 s'), (1000000000, '1.0 s')]
    """
    least = max(1.0, max(1, end - begin) / TICKS)
    power = 10 ** math.floor(math.log10(least))
    step = next(round(factor * power) for factor in (1, 2, 5, 10) if factor * power >= least)
    places = max(0, -math.floor(math.log10(step / S)))
    first = -(-begin // step) * step
    return [(at, f"{at / S:.{places}f} s") for at in range(first, end + 1, step)]


# What of a stretch is drawn: all of it where that is legible, else whole trees of some roots; and what is
# said of the rest.

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
    kept = [arrow for arrow in tuples if arrow.whole in wholes]
    total = len({arrow.whole for arrow in tuples})
    left_out: list[str] = []
    if len(wholes) < total:
        left_out.append(
            f"{len(kept):,} of {len(tuples):,} tuples drawn: all those of {len(wholes):,} of {total:,} roots "
            "and windows"
        )

    def limited(things: list[Thing], of: int, most: int, name: str) -> list[Thing]:
        """So many of them, spread evenly, in their order; ``of``: how many there are in all."""
        places = sorted(place for place, _ in zip(_evenly(len(things)), range(most), strict=False))
        if len(places) < of:
            left_out.append(f"{len(places):,} of {of:,} {name}")
        return [things[place] for place in places]

    for kind, name in (("ack", "acks"), ("complete", "complete roots")):
        mine = [arrow for arrow in inside if arrow.kind == kind]
        of_kept = [a for a in mine if len(wholes) == total or a.whole in wholes]
        kept += limited(of_kept, len(mine), most, name)
    others = [arrow for arrow in inside if arrow.kind in ("control", "step")]
    kept += limited(others, len(others), MOST_STEPS, "control messages")
    lanes = _lanes(diagram, kept, struck)
    if len(lanes) < len(diagram.lanes):
        left_out.append(f"{len(lanes)} of {len(diagram.lanes)} tasks and roles")
    names = {lane.name for lane in lanes}
    events = limited(list(diagram.events), len(diagram.events), MOST_STEPS, "steps and other events")
    rest = tuple(
        (lane, moment)
        for arrow in tuples
        if arrow.whole not in wholes
        for lane, moment in ((arrow.source, arrow.sent), (arrow.target, arrow.came))
        if moment is not None and begin <= moment <= end
    )
    return Shown(
        lanes,
        tuple(a for a in kept if {a.source, a.target} <= names),
        tuple(e for e in events if e.lane is None or e.lane in names),
        tuple(left_out),
        rest,
    )


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
    ranks = {whole: 0 if whole in first else 1 if whole in concerned else 2 for whole in every}
    for rank in range(3):
        wanted = [whole for whole in every if ranks[whole] == rank]
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
        needed = lanes | touched[whole]
        if found and (sizes[whole] > left or len(needed) > MOST_LANES):
            missed += 1
            if missed > 50:
                break
            continue
        found.add(whole)
        lanes, left = needed, left - sizes[whole]
    return found


def _lanes(diagram: Diagram, arrows: Iterable[Arrow], struck: Sequence[str]) -> tuple[Lane, ...]:
    if len(diagram.lanes) <= ALL_LANES:
        return diagram.lanes
    names = {name for arrow in arrows for name in (arrow.source, arrow.target)}
    for name in (*struck, *(event.lane for event in diagram.events if event.lane is not None)):
        if name in names or len(names) < MOST_LANES:
            names.add(name)
    return tuple(lane for lane in diagram.lanes if lane.name in names)


# The arrows of a space-time diagram.

CLOSE = 5.0
"""Arrows that follow one another more closely (px) are drawn as one, with their number."""
LISTED = 40
"""Most messages that the text of one arrow lists."""
STUB = (9.0, 0.45)
"""Of a tuple that arrives nowhere: how far an arrow goes (px; of the way to the lane)."""


class Arrows:
    """Draws messages.

    sorts    those that were drawn
    counted  whether one arrow stands for several messages somewhere
    """

    def __init__(self, place: Layout, light: Highlight) -> None:
        self._place, self._light = place, light
        self.sorts: set[str] = set()
        self.counted = False
        self._numbers: list[Point] = []
        self._said: set[tuple[str, Whole | None]] = set()
        """What becomes of which root, where it is written already."""
        self._words: list[tuple[float, float, float]] = []
        """Where words stand: from where to where, and how high."""

    def drawn(self, arrows: Iterable[Arrow]) -> list[str]:
        """All of them; those that are alike and close together as one."""
        alike: dict[tuple[str, str, str, str], list[list[Arrow]]] = {}
        for arrow in arrows:
            word = self._light.of(arrow)
            bundles = alike.setdefault((sort_of(arrow), arrow.source, arrow.target, word), [])
            if bundles and self._close(bundles[-1][-1], arrow):
                bundles[-1].append(arrow)
            else:
                bundles.append([arrow])
        order = list(LOOKS)
        shapes: list[str] = []
        for (sort, _, _, word), bundles in sorted(alike.items(), key=lambda item: -order.index(item[0][0])):
            for bundle in bundles:
                shapes += self._bundle(sort, word, bundle)
        return shapes

    def _close(self, one: Arrow, other: Arrow) -> bool:
        ends = zip(self._ends(one), self._ends(other), strict=True)
        return all(abs(a[0] - b[0]) < CLOSE for a, b in ends)

    def _ends(self, arrow: Arrow) -> tuple[Point, Point]:
        """Where an arrow begins and ends, in the picture."""
        place = self._place
        a, b = place.y[arrow.source], place.y[arrow.target]
        if arrow.copied and arrow.came is not None:
            x = place.clipped(arrow.came)
            return (x, b - place.each / 4), (x, b)
        begin = place.stretch.begin if arrow.sent is None else arrow.sent
        last = arrow.came if arrow.came is not None else arrow.over
        if last is None:
            start = place.clipped(begin)
            return (start, a), (min(start + STUB[0], place.right), a + (b - a) * STUB[1])
        return place.cut((begin, a), (max(begin, last), b))

    def _points(self, arrow: Arrow) -> tuple[Point, ...]:
        """Its way: around the lanes between, if it would lie on what goes between these."""
        (x, y), (u, z) = self._ends(arrow)
        lanes = round(abs(z - y) / self._place.each)
        if lanes < 2 or abs(u - x) > self._place.each:
            return (x, y), (u, z)
        side = 6.0 + 5 * lanes
        if arrow.kind == "ack" or max(x, u) + side > self._place.right:
            side = -side if min(x, u) - side > self._place.left else side / 3
        return (x, y), ((x + u) / 2 + side, (y + z) / 2), (u, z)

    def _bundle(self, sort: str, word: str, arrows: list[Arrow]) -> list[str]:
        self.sorts.add(sort)
        look, first, last = LOOKS[sort], self._points(arrows[0]), self._points(arrows[-1])
        edges = [first] if last[0][0] - first[0][0] < 1 and last[-1][0] - first[-1][0] < 1 else [first, last]
        inside = [way(first, style.INK, 7, opacity=0)]  # nobody sees it, but a pointer finds it
        if len(edges) > 1:
            corners = [first[0], first[-1], last[-1], last[0]]
            inside.append(polygon(corners, look.colour, opacity=0.25))
        for edge in edges:
            if word:
                inside.append(way(edge, style.YELLOW, 7, opacity=0.9))
            inside.append(way(edge, look.colour, look.width, look.dashes))
            if edge[-1][1] == self._place.y[arrows[0].target]:
                inside.append(look.tip(edge[-2], edge[-1]))
        if len(arrows) > 1:
            self.counted = True
            inside.append(self._number(len(arrows), last, look.colour))
        if word and (word, arrows[0].whole) not in self._said:
            self._said.add((word, arrows[0].whole))
            (x, y), down, width = last[-1], last[0][1] < last[-1][1], 7.0 * len(word)
            x, y = x + 6, y + (-7 if down else 14)
            # unless something stands there already: its arrow is yellow all the same
            if not any(a < x + width and x < b and abs(y - up) < 11 for a, b, up in self._words):
                self._words.append((x, x + width, y))
                inside.append(text((x, y), word, style.INK, 10, bold=True, on=style.PAPER))
        return [group(_named(arrows, word), *inside), *self._stays(sort, arrows)]

    def _number(self, n: int, points: Sequence[Point], colour: str) -> str:
        """How many arrows one stands for, beside its end, where no other number is."""
        (x, y), (u, z) = points[0], points[-1]
        half = min(self._place.each / 2, abs(z - y) / 2)
        share = half / abs(z - y) if z != y else 0.5
        at = u + (x - u) * share + 4, z + (y - z) * share + 3
        while at[1] < z + half and any(
            abs(at[0] - px) < 22 and abs(at[1] - py) < 9 for px, py in self._numbers
        ):
            at = at[0], at[1] + 9
        self._numbers.append(at)
        return text(at, f"×{n}", colour, 8.5, on=style.PAPER)

    def _stays(self, sort: str, arrows: list[Arrow]) -> list[str]:
        """From its arrival to the end of its service, or its loss, a tuple is at its task."""
        if arrows[0].kind != "tuple":
            return []
        place, y = self._place, self._place.y[arrows[0].target]
        shapes: list[str] = []
        for arrow in arrows:
            if arrow.over is None or arrow.came is None or arrow.came > place.stretch.end:
                continue
            a, b = place.clipped(arrow.came), place.clipped(arrow.over)
            if b - a > 1:
                shapes.append(line((a, y), (b, y), LOOKS[sort].colour, 5, opacity=0.22))
            if arrow.lost and b - a > 2 and place.stretch.has(arrow.over):
                shapes.append(cross((b, y), 4, LOOKS[sort].colour))
        return shapes


def _named(arrows: Sequence[Arrow], word: str) -> list[str]:
    """The text of arrows that are drawn as one."""
    said = [word.upper()] if word else []
    if len(arrows) == 1:
        return [*said, *arrows[0].text]
    listed = ["; ".join(arrow.text) for arrow in arrows[:LISTED]]
    more = [f"and {len(arrows) - LISTED} more"] if len(arrows) > LISTED else []
    return [*said, f"{len(arrows)} messages", *listed, *more]


# Hosts, lanes and the axis of a space-time diagram, and the marks on lanes: steps, windows, failures.

BAR = 4.0
"""Width (px) of a bar for what is not drawn."""
APART = 17.0
"""Steps that are closer (px) share a mark."""
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SIDES = {"before": -5.0, "at": 0.0, "after": 5.0}
"""How far from its moment (px) something stands that strikes before or after a step of that moment."""


class Marks:
    """Draws all but arrows. ``letters``: of each step that there is, by its words."""

    def __init__(self, diagram: Diagram, shown: Shown, place: Layout) -> None:
        self._shown, self._place = shown, place
        self._downs: dict[str, list[Down]] = {}
        for down in sorted(diagram.downs, key=lambda down: down.since):
            self._downs.setdefault(down.lane, []).append(down)
        steps = sorted((e for e in shown.events if e.kind == "step"), key=lambda event: event.at)
        sorts = dict.fromkeys(event.what for event in steps)
        self.letters = {what: LETTERS[n : n + 1] or str(n) for n, what in enumerate(sorts)}

    def ground(self) -> list[str]:
        """Bands of hosts, lanes, the axis."""
        place, shapes = self._place, []
        for number, (host, top, bottom) in enumerate(place.bands):
            shade = style.GRID if number % 2 == 0 else style.PAPER
            shapes.append(box((0, top), place.width, bottom - top, shade, 0.45))
            if host is not None:
                shapes.append(text((8, top + 13), f"host {host}", style.MUTED, 9.5))
        for at, label in place.ticks:
            x = place.x(at)
            shapes.append(line((x, place.top), (x, place.bottom), style.GRID, 0.8))
            shapes.append(text((x, place.bottom + 14), label, style.MUTED, 10, "middle"))
        for lane in self._shown.lanes:
            before = place.left - 10, place.y[lane.name] + 4
            shapes.append(text(before, lane.name, style.INK, 11.5, "end", bold=lane.is_task))
            shapes += self._lane(lane.name)
        return shapes + self._rest()

    def _rest(self) -> list[str]:
        """Bars below the lanes, so that what is left out does not look like silence: as long as many tuples
        are sent or come there at that time.
        """
        place = self._place
        counts = Counter((lane, int((place.x(at) - place.left) // BAR)) for lane, at in self._shown.rest)
        most, height = max(counts.values(), default=1), place.each * 0.3
        shapes = []
        for (lane, column), count in counts.items():
            if lane in place.y:
                at = place.left + column * BAR, place.y[lane] + 2
                shapes.append(box(at, BAR - 1, height * count / most, style.MUTED, 0.4))
        return shapes

    def _lane(self, name: str) -> list[str]:
        """A line that is broken while its task is down."""
        place, y, shapes, at = self._place, self._place.y[name], [], self._place.left
        for down in self._downs.get(name, ()):
            a, b = place.clipped(down.since), place.clipped(down.until)
            if b <= a:
                continue
            fill = style.YELLOW if down.passes else style.FAILURE
            inside = [box((a, y - 8), b - a, 16, fill, 0.35 if down.passes else 0.13, fill)]
            if not down.passes:
                inside += hatched(a, b, y, 8)
                if a > at:
                    shapes.append(line((at, y), (a, y), style.INK, 1.3))
                at = max(at, b)
            shapes.append(group([down.text], *inside))
        if at < place.right:
            shapes.append(line((at, y), (place.right, y), style.INK, 1.3))
        return shapes

    def marks(self) -> list[str]:
        """Steps with their letters, windows, failures."""
        shapes: list[str] = []
        for lane in self._shown.lanes:
            mine = sorted((e for e in self._shown.events if e.lane == lane.name), key=lambda e: e.at)
            y = self._place.y[lane.name]
            for kind in ("window", "detected", "ready", "fault"):
                for e in mine:
                    if e.kind == kind:
                        mark = sign(kind, self._place.x(e.at), y)
                        shapes.append(group((e.text, moment_text(e.at)), mark))
            shapes += self._steps([e for e in mine if e.kind == "step"], y)
        return shapes + self._faults()

    def _steps(self, events: Sequence[Event], y: float) -> list[str]:
        """Those that are close together share a mark that lists them."""
        clusters: list[list[Event]] = []
        for event in events:
            if clusters and self._place.x(event.at) - self._place.x(clusters[-1][0].at) < APART:
                clusters[-1].append(event)
            else:
                clusters.append([event])
        shapes = []
        for cluster in clusters:
            letters = list(dict.fromkeys(self.letters[event.what] for event in cluster))
            said = "".join(letters[:4]) + ("+" if len(letters) > 4 else "")
            width, up, x = max(14.0, width_of(said, 10) + 7), y - 15, self._place.x(cluster[0].at)
            left = max(self._place.left, min(x - 7, self._place.width - width))
            inside = [
                line((x, y), (x, up + 6), style.INK, 0.8),
                box((left, up - 8), width, 14, style.PAPER, 1, style.INK),
                text((left + width / 2, up + 3), said, style.INK, 10, "middle", bold=True),
            ]
            shapes.append(group([f"{moment_text(e.at)}  {e.text}" for e in cluster], *inside))
        return shapes

    def _faults(self) -> list[str]:
        """What strikes, and when, above the lanes."""
        place, shapes = self._place, []
        struck: dict[tuple[int, str], list[float]] = {}
        for event in self._shown.events:
            if event.kind == "fault":
                y = place.bottom if event.lane is None else place.y[event.lane]
                struck.setdefault((event.at, event.text), []).append(y)
        for row, ((at, words), reached) in enumerate(sorted(struck.items())):
            x, y = place.x(at), place.top - 6 - 12 * (row % 2)
            shapes.append(line((x, y + 2), (x, max(reached)), style.FAILURE, 1, "4 3"))
            shapes.append(self._beside(x, y, words, style.FAILURE))
        return shapes

    def strike(self, light: Highlight) -> list[str]:
        """What the picture is about."""
        place = self._place
        if light.at is None or not place.stretch.has(light.at):
            return []
        x, top = place.x(light.at) + SIDES[light.where], place.top - 28
        return [
            line((x, top), (x, place.bottom), style.YELLOW, 6, opacity=0.6),
            line((x, top), (x, place.bottom), style.INK, 1),
            self._beside(x, top - 4, light.text, style.INK),
        ]

    def _beside(self, x: float, y: float, words: str, colour: str) -> str:
        """Words from ``x`` on, or up to it where the picture ends."""
        late = x + width_of(words, 10.5) > self._place.width - 4
        return text((x, y), words, colour, 10.5, "end" if late else "start", bold=True)


def sign(kind: str, x: float, y: float) -> str:
    """The mark of a window, or of a moment of a failure."""
    if kind == "window":
        return box((x - 4, y - 4), 8, 8, style.INK, 1, style.PAPER)
    if kind == "fault":
        return circle((x, y), 9, "none", style.FAILURE, 1.2) + cross((x, y), 5, style.FAILURE, 2.6)
    if kind == "detected":
        return polygon([(x - 5, y - 17), (x + 5, y - 17), (x, y - 8)], style.PAPER, style.FAILURE)
    return polygon([(x, y - 6), (x + 9, y), (x, y + 6)], style.INK)


def hatched(a: float, b: float, y: float, half: float) -> list[str]:
    """Oblique lines between ``a`` and ``b``."""
    shapes, x = [], a
    while x < b:
        reach = min(2 * half, b - x)
        shapes.append(line((x, y + half), (x + reach, y + half - reach), style.FAILURE, 0.8, opacity=0.7))
        x += 7
    return shapes


# What stands below a space-time diagram: the legend, and what is not drawn.

LEFT, SIZE = 8.0, 10.5


def legend(
    diagram: Diagram, shown: Shown, sorts: Collection[str], letters: Mapping[str, str], width: float, y: float
) -> tuple[list[str], float]:
    """Entries for all that is drawn, from ``y`` down, as many in a row as there is room for; returns where
    they end, too.
    """
    kinds = {event.kind for event in shown.events}
    signs = []
    for sort, look in LOOKS.items():
        if sort in sorts:
            a, b = (0.0, -4.0), (26.0, -4.0)
            signs.append((line(a, b, look.colour, look.width, look.dashes) + look.tip(a, b), look.label))
    signs += [(sign(kind, 12, -4), kind) for kind in ("window", "fault") if kind in kinds]
    if any(not down.passes for down in diagram.downs):
        ground = box((0, -10), 24, 12, style.FAILURE, 0.13, style.FAILURE)
        signs.append((ground + "".join(hatched(0, 24, -4, 6)), "down"))
    if any(down.passes for down in diagram.downs):
        signs.append((box((0, -10), 24, 12, style.YELLOW, 0.35, style.YELLOW), "passes by itself"))
    if "detected" in kinds:
        signs.append((sign("detected", 12, 8), DETECTED))
    if "ready" in kinds:
        signs.append((sign("ready", 8, -4), READY))
    square = box((5, -11), 14, 14, style.PAPER, 1, style.INK)
    lettered = [
        (square + text((12, 0), letter, style.INK, 10, "middle", bold=True), what)
        for what, letter in letters.items()
    ]
    shapes = []
    for samples in (signs, lettered) if letters else (signs,):
        x = LEFT
        for sample, label in samples:
            wide = 54 + width_of(label, SIZE)
            if x > LEFT and x + wide > width:
                x, y = LEFT, y + 18
            words = text((34, 0), label, style.INK, SIZE)
            shapes.append(element("g", sample, words, transform=f"translate({x:.1f} {y:.1f})"))
            x += wide
        y += 20
    return shapes, y


def notes(diagram: Diagram, shown: Shown, counted: bool) -> Iterator[str]:
    """What else a reader has to know."""
    if diagram.lump > 1:
        yield f"Each tuple stands for {diagram.lump:,}."
    if counted:
        yield "×n: n messages so close together that one arrow stands for them."
    if shown.left_out:
        yield f"Not all is drawn: {'; '.join(shown.left_out)}."
    if shown.rest:
        yield "Grey bars below a line: how many tuples are sent or come there that are not drawn."


# The whole picture.

FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"


def space_time(
    diagram: Diagram,
    title: str = "",
    highlight: Highlight | None = None,
    *,
    most: int = MOST_TUPLES,
    inline: bool = False,
) -> str:
    """The picture of a stretch as SVG, the same bytes each time; what it leaves out stands below it.

    ``highlight``: what it is about. ``most``: tuples that are drawn at most, always whole trees. ``inline``:
    for the inside of a page, which may replace colours by its own. A text beside the pointer names each
    arrow, and each mark.
    """
    light = highlight or Highlight()
    first = {a.whole for a in diagram.arrows if a.whole is not None and light.of(a)}
    shown = choose(diagram, first, most)
    place = layout(diagram, shown.lanes)
    arrows, marks = Arrows(place, light), Marks(diagram, shown, place)
    inside = [*marks.ground(), *marks.strike(light), *arrows.drawn(shown.arrows), *marks.marks()]
    if title:
        inside.append(text((8, 17), title, style.INK, 13, bold=True))
    entries, y = legend(diagram, shown, arrows.sorts, marks.letters, place.width, place.bottom + 40)
    inside += entries
    for words in notes(diagram, shown, arrows.counted):
        inside.append(text((8, y), words, style.MUTED, 10))
        y += 14
    height = y + 2
    about = f": {title}" if title else ""
    whole = element(
        "svg",
        *(f"\n{shape}" for shape in (box((0, 0), place.width, height, style.PAPER), *inside)),
        "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {place.width:.0f} {height:.0f}",
        role="img",
        aria_label=f"Space-time diagram{about}; each arrow and each mark has a text of its own.",
        font_family=FONT,
        **({"class_": "wide"} if inline else {"width": place.width, "height": height}),
    )
    return themed(whole) if inline else whole + "\n"
