"""The space-time diagram: tasks as lines grouped by host, time to the right, messages as arrows; as SVG.

After L. Lamport, *Time, clocks, and the ordering of events in a distributed system*, CACM 1978, and the
figures of J.-H. Hwang et al., *High-availability algorithms for distributed stream processing*, ICDE 2005.
Called by the pages of runs and audits, by `tideover run --diagram` and by `tideover explore`. A sort of arrow
is a row of ``LOOKS``; what is drawn of too much, ``choose`` decides.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar

from tideover.models.accounts.trace import DETECTED, READY, Stretch, moment_text
from tideover.models.evaluation.diagram import Arrow, Diagram, Down, Event, Lane, Whole
from tideover.reports.figures import shapes as svg
from tideover.reports.figures import style
from tideover.sim.units import S


class Look(NamedTuple):
    """How one sort of arrow is drawn: told apart by line and end, so that a grey print will do.

    ``end``: head, hollow, cross, ring, or nothing.
    """

    label: str
    colour: str
    width: float = 1.2
    dashes: str = ""
    end: str = "head"

    def tip(self, a: svg.Point, b: svg.Point) -> str:
        """The end of an arrow that comes from ``a``, at ``b``."""
        if self.end == "cross":
            return svg.cross(b, 4, self.colour)
        if self.end == "ring":
            return svg.circle(b, 3, style.PAPER, self.colour, 1.2)
        if not self.end:
            return ""
        return svg.head(a, b, self.colour, 6 + self.width, style.PAPER if self.end == "hollow" else "")


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
_HEIGHTS = ((4, 84.0), (6, 66.0), (10, 48.0), (16, 38.0), (math.inf, 30.0))
"""Height of a lane, if there are at most so many."""


@dataclass(frozen=True)
class Layout:
    """Lanes from top to bottom, time from left to right.

    each   height of a lane
    y      of each lane
    bands  host, top and bottom of neighbouring lanes of one host
    """

    stretch: Stretch
    left: float
    bottom: float
    each: float
    y: dict[str, float]
    bands: tuple[tuple[int | None, float, float], ...]
    right: float = WIDTH - 22
    top: float = TOP

    def x(self, moment: float) -> float:
        """Of a moment (ns) in the stretch."""
        begin, end = self.stretch
        return self.left + (self.right - self.left) * (moment - begin) / max(1, end - begin)

    def clipped(self, moment: int) -> float:
        """The same of any moment: the edge that is nearer for those outside."""
        return self.x(min(max(moment, self.stretch.begin), self.stretch.end))

    def ends(self, arrow: Arrow) -> tuple[svg.Point, svg.Point]:
        """Where an arrow begins and ends: the part of its way that lies in the stretch."""
        a, b = self.y[arrow.source], self.y[arrow.target]
        if arrow.copied and arrow.came is not None:
            x = self.clipped(arrow.came)
            return (x, b - self.each / 4), (x, b)
        sent = self.stretch.begin if arrow.sent is None else arrow.sent
        last = arrow.came if arrow.came is not None else arrow.over
        if last is None:
            start = self.clipped(sent)
            return (start, a), (min(start + STUB[0], self.right), a + (b - a) * STUB[1])
        last = max(sent, last)

        def at(moment: int) -> svg.Point:
            inside = min(max(moment, self.stretch.begin), self.stretch.end)
            share = 0.0 if last == sent else (min(max(inside, sent), last) - sent) / (last - sent)
            return self.x(inside), a + (b - a) * share

        return at(sent), ((self.x(last), b) if self.stretch.begin <= last <= self.stretch.end else at(last))


def layout(diagram: Diagram, lanes: Sequence[Lane]) -> Layout:
    """Lanes by host, hosts and what is without one in the order of their first lanes."""
    hosts: dict[object, list[Lane]] = {}
    for lane in lanes:
        hosts.setdefault(lane.host if lane.host is not None else lane.name, []).append(lane)
    each = next(height for most, height in _HEIGHTS if len(lanes) <= most)
    y, bands, at = {}, [], TOP
    for shared in sorted(hosts.values(), key=lambda shared: shared[0].host is None):
        top = at
        for lane in shared:
            y[lane.name] = at + each * 0.6
            at += each
        bands.append((shared[0].host, top, at))
    left = 24 + max([56.0, *(svg.width_of(lane.name, 12) for lane in lanes)])
    return Layout(diagram.stretch, left, at, each, y, tuple(bands))


def ticks(begin: int, end: int) -> list[tuple[int, str]]:
    """Round moments (ns), which are 1, 2 or 5 times a power of ten apart, and what is written there.

    >>> ticks(0, 4_000_000_000)[:3]
    [(0, '0.0 s'), (500000000, '0.5 s'), (1000000000, '1.0 s')]
    """
    least = max(1.0, max(1, end - begin) / TICKS)
    power = 10 ** math.floor(math.log10(least))
    step = next(round(factor * power) for factor in (1, 2, 5, 10) if factor * power >= least)
    places = max(0, -math.floor(math.log10(step / S)))
    return [(at, f"{at / S:.{places}f} s") for at in range(-(-begin // step) * step, end + 1, step)]


# What of a stretch is drawn: all of it where that is legible, else whole trees of some roots; and what is
# said of the rest.

MOST_TUPLES = 240
"""Most tuples in one picture; more are no longer told apart, on a page or a slide."""
MOST_LANES = 24
ALL_LANES = 12
"""So many tasks are shown even if nothing happens to some."""
MOST_STEPS = 160
"""Most steps and control messages."""
MOST_MISSED = 50
"""So many trees that do not fit are passed over for smaller ones."""

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
    hit = {down.lane for down in diagram.downs} | {e.lane for e in diagram.events if e.kind == "fault"}
    struck = [lane.name for lane in diagram.lanes if lane.name in hit]
    wholes = _accepted(tuples, first, struck, most)
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
    names = {lane.name for lane in diagram.lanes}
    if len(names) > ALL_LANES:
        names = {name for arrow in kept for name in (arrow.source, arrow.target)}
        for name in (*struck, *(event.lane for event in diagram.events if event.lane is not None)):
            if len(names) < MOST_LANES:
                names.add(name)
    lanes = tuple(lane for lane in diagram.lanes if lane.name in names)
    if len(lanes) < len(diagram.lanes):
        left_out.append(f"{len(lanes)} of {len(diagram.lanes)} tasks and roles")
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
    tuples: Sequence[Arrow], first: Collection[Whole], struck: Sequence[str], most: int
) -> set[Whole | None]:
    """As many roots and windows as are legible together, in the order in which they are wanted: the first,
    and others that fit.
    """
    sizes = Counter(arrow.whole for arrow in tuples)
    touched: dict[Whole | None, set[str]] = defaultdict(set)
    for arrow in tuples:
        touched[arrow.whole] |= {arrow.source, arrow.target}
    if len(tuples) <= most and len(set().union(*touched.values())) <= MOST_LANES:
        return set(sizes)
    concerned = {a.whole for a in tuples if a.lost or a.again}
    ranks: tuple[list[Whole], ...] = ([], [], [])
    for whole in sizes:
        if whole is not None:
            ranks[0 if whole in first else 1 if whole in concerned else 2].append(whole)
    lanes, found, left, missed = set(struck[: MOST_LANES // 2]), set[Whole | None](), most, 0
    for whole in (rank[place] for rank in ranks for place in _evenly(len(rank))):
        needed = lanes | touched[whole]
        if found and (sizes[whole] > left or len(needed) > MOST_LANES):
            missed += 1
            if missed > MOST_MISSED:
                break
            continue
        found.add(whole)
        lanes, left = needed, left - sizes[whole]
    return found


# The picture: hosts, lanes and the axis, arrows, and the marks on lanes: steps, windows, failures.

CLOSE = 5.0
"""Arrows that follow one another more closely (px) are drawn as one, with their number."""
LISTED = 40
"""Most messages that the text of one arrow lists."""
STUB = (9.0, 0.45)
"""Of a tuple that arrives nowhere: how far an arrow goes (px; of the way to the lane)."""
BAR = 4.0
"""Width (px) of a bar for what is not drawn."""
APART = 17.0
"""Steps that are closer (px) share a mark."""
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SIDES = {"before": -5.0, "at": 0.0, "after": 5.0}
"""How far from its moment (px) something stands that strikes before or after a step of that moment."""


class _Drawing:
    """The shapes of a picture; when all are drawn, it knows what the legend has to explain.

    sorts    the sorts of arrows that were drawn
    counted  whether one arrow stands for several messages somewhere
    letters  of each step that there is, by its words
    """

    def __init__(self, diagram: Diagram, shown: Shown, light: Highlight) -> None:
        self.diagram, self.shown, self.light = diagram, shown, light
        self.place = layout(diagram, shown.lanes)
        self.sorts: set[str] = set()
        self.counted = False
        steps = sorted((e for e in shown.events if e.kind == "step"), key=lambda event: event.at)
        sorts = dict.fromkeys(event.what for event in steps)
        self.letters = {what: LETTERS[n : n + 1] or str(n) for n, what in enumerate(sorts)}
        self._numbers: list[svg.Point] = []
        self._said: set[tuple[str, Whole | None]] = set()
        """What becomes of which root, where it is written already."""
        self._words: list[tuple[float, float, float]] = []
        """Where words stand: from where to where, and how high."""

    def ground(self) -> Iterator[str]:
        """Bands of hosts, the axis, lanes; and bars below these, so that what is left out does not look like
        silence: as long as many tuples are sent or come there at that time.
        """
        place = self.place
        for number, (host, top, bottom) in enumerate(place.bands):
            shade = style.GRID if number % 2 == 0 else style.PAPER
            yield svg.box((0, top), WIDTH, bottom - top, shade, 0.45)
            if host is not None:
                yield svg.text((8, top + 13), f"host {host}", style.MUTED, 9.5)
        for at, label in ticks(*place.stretch):
            x = place.x(at)
            yield svg.line((x, place.top), (x, place.bottom), style.GRID, 0.8)
            yield svg.text((x, place.bottom + 14), label, style.MUTED, 10, "middle")
        downs = sorted(self.diagram.downs, key=lambda down: down.since)
        for lane in self.shown.lanes:
            y = place.y[lane.name]
            yield svg.text((place.left - 10, y + 4), lane.name, style.INK, 11.5, "end", bold=lane.is_task)
            yield from self._lane(y, [down for down in downs if down.lane == lane.name])
        rest = ((lane, int((place.x(at) - place.left) // BAR)) for lane, at in self.shown.rest)
        counts = Counter(rest)
        most = max(counts.values(), default=1)
        for (name, column), count in counts.items():
            if name in place.y:
                corner = place.left + column * BAR, place.y[name] + 2
                yield svg.box(corner, BAR - 1, place.each * 0.3 * count / most, style.MUTED, 0.4)

    def _lane(self, y: float, downs: Iterable[Down]) -> Iterator[str]:
        """A line that is broken while its task is down."""
        place = self.place
        at = place.left
        for down in downs:
            a, b = place.clipped(down.since), place.clipped(down.until)
            if b <= a:
                continue
            fill = style.YELLOW if down.passes else style.FAILURE
            inside = [svg.box((a, y - 8), b - a, 16, fill, 0.35 if down.passes else 0.13, fill)]
            if not down.passes:
                inside += hatched(a, b, y, 8)
                if a > at:
                    yield svg.line((at, y), (a, y), style.INK, 1.3)
                at = max(at, b)
            yield svg.group([down.text], *inside)
        if at < place.right:
            yield svg.line((at, y), (place.right, y), style.INK, 1.3)

    def strike(self) -> Iterator[str]:
        """What the picture is about."""
        place, light = self.place, self.light
        if light.at is not None and place.stretch.has(light.at):
            x, top = place.x(light.at) + SIDES[light.where], place.top - 28
            yield svg.line((x, top), (x, place.bottom), style.YELLOW, 6, opacity=0.6)
            yield svg.line((x, top), (x, place.bottom), style.INK, 1)
            yield _beside(x, top - 4, light.text, style.INK)

    def arrows(self) -> Iterator[str]:
        """All messages; those that are alike and close together as one."""
        alike: dict[tuple[str, str, str, str], list[list[Arrow]]] = {}
        for arrow in self.shown.arrows:
            key = (sort_of(arrow), arrow.source, arrow.target, self.light.of(arrow))
            bundles = alike.setdefault(key, [])
            if bundles:
                ends = zip(self.place.ends(bundles[-1][-1]), self.place.ends(arrow), strict=True)
                if all(abs(a[0] - b[0]) < CLOSE for a, b in ends):
                    bundles[-1].append(arrow)
                    continue
            bundles.append([arrow])
        order = list(LOOKS)
        for (sort, _, _, word), bundles in sorted(alike.items(), key=lambda item: -order.index(item[0][0])):
            self.sorts.add(sort)
            for bundle in bundles:
                yield self._bundle(LOOKS[sort], word, bundle)
                yield from self._stays(LOOKS[sort], bundle)

    def _way(self, arrow: Arrow) -> tuple[svg.Point, ...]:
        """From end to end; around the lanes between, if it would lie on what goes between these."""
        place = self.place
        (x, y), (u, z) = place.ends(arrow)
        lanes = round(abs(z - y) / place.each)
        if lanes < 2 or abs(u - x) > place.each:
            return (x, y), (u, z)
        side = 6.0 + 5 * lanes
        if arrow.kind == "ack" or max(x, u) + side > place.right:
            side = -side if min(x, u) - side > place.left else side / 3
        return (x, y), ((x + u) / 2 + side, (y + z) / 2), (u, z)

    def _bundle(self, look: Look, word: str, arrows: list[Arrow]) -> str:
        first, last = self._way(arrows[0]), self._way(arrows[-1])
        edges = [first] if last[0][0] - first[0][0] < 1 and last[-1][0] - first[-1][0] < 1 else [first, last]
        inside = [svg.way(first, style.INK, 7, opacity=0)]  # nobody sees it, but a pointer finds it
        if len(edges) > 1:
            inside.append(svg.polygon([first[0], first[-1], last[-1], last[0]], look.colour, opacity=0.25))
        for edge in edges:
            if word:
                inside.append(svg.way(edge, style.YELLOW, 7, opacity=0.9))
            inside.append(svg.way(edge, look.colour, look.width, look.dashes))
            if edge[-1][1] == self.place.y[arrows[0].target]:
                inside.append(look.tip(edge[-2], edge[-1]))
        said = [word.upper()] if word else []
        if len(arrows) == 1:
            said += arrows[0].text
        else:
            self.counted = True
            inside.append(self._number(len(arrows), last, look.colour))
            said += [f"{len(arrows)} messages", *("; ".join(arrow.text) for arrow in arrows[:LISTED])]
            said += [f"and {len(arrows) - LISTED} more"] if len(arrows) > LISTED else []
        if word and (word, arrows[0].whole) not in self._said:
            self._said.add((word, arrows[0].whole))
            (x, y), down, width = last[-1], last[0][1] < last[-1][1], 7.0 * len(word)
            x, y = x + 6, y + (-7 if down else 14)
            # unless something stands there already: its arrow is yellow all the same
            if not any(a < x + width and x < b and abs(y - up) < 11 for a, b, up in self._words):
                self._words.append((x, x + width, y))
                inside.append(svg.text((x, y), word, style.INK, 10, bold=True, on=style.PAPER))
        return svg.group(said, *inside)

    def _number(self, n: int, points: Sequence[svg.Point], colour: str) -> str:
        """How many arrows one stands for, beside its end, where no other number is."""
        (x, y), (u, z) = points[0], points[-1]
        half = min(self.place.each / 2, abs(z - y) / 2)
        share = half / abs(z - y) if z != y else 0.5
        left, up = u + (x - u) * share + 4, z + (y - z) * share + 3
        while up < z + half and any(abs(left - a) < 22 and abs(up - b) < 9 for a, b in self._numbers):
            up += 9
        self._numbers.append((left, up))
        return svg.text((left, up), f"×{n}", colour, 8.5, on=style.PAPER)

    def _stays(self, look: Look, arrows: Iterable[Arrow]) -> Iterator[str]:
        """From its arrival to the end of its service, or its loss, a tuple is at its task."""
        place = self.place
        for arrow in arrows:
            came, over = arrow.came, arrow.over
            if arrow.kind != "tuple" or over is None or came is None or came > place.stretch.end:
                continue
            a, b, y = place.clipped(came), place.clipped(over), place.y[arrow.target]
            if b - a > 1:
                yield svg.line((a, y), (b, y), look.colour, 5, opacity=0.22)
            if arrow.lost and b - a > 2 and place.stretch.has(over):
                yield svg.cross((b, y), 4, look.colour)

    def marks(self) -> Iterator[str]:
        """Steps with their letters, windows, failures; and above the lanes what strikes, and when."""
        place = self.place
        for lane in self.shown.lanes:
            mine = sorted((e for e in self.shown.events if e.lane == lane.name), key=lambda e: e.at)
            y = place.y[lane.name]
            for kind in ("window", "detected", "ready", "fault"):
                for e in mine:
                    if e.kind == kind:
                        yield svg.group((e.text, moment_text(e.at)), sign(kind, place.x(e.at), y))
            yield from self._steps([e for e in mine if e.kind == "step"], y)
        struck: dict[tuple[int, str], list[float]] = {}
        for event in self.shown.events:
            if event.kind == "fault":
                y = place.bottom if event.lane is None else place.y[event.lane]
                struck.setdefault((event.at, event.text), []).append(y)
        for row, ((at, words), reached) in enumerate(sorted(struck.items())):
            x, y = place.x(at), place.top - 6 - 12 * (row % 2)
            yield svg.line((x, y + 2), (x, max(reached)), style.FAILURE, 1, "4 3")
            yield _beside(x, y, words, style.FAILURE)

    def _steps(self, events: Iterable[Event], y: float) -> Iterator[str]:
        """Those that are close together share a mark that lists them."""
        clusters: list[list[Event]] = []
        for event in events:
            if clusters and self.place.x(event.at) - self.place.x(clusters[-1][0].at) < APART:
                clusters[-1].append(event)
            else:
                clusters.append([event])
        for cluster in clusters:
            letters = list(dict.fromkeys(self.letters[event.what] for event in cluster))
            said = "".join(letters[:4]) + ("+" if len(letters) > 4 else "")
            width, up, x = max(14.0, svg.width_of(said, 10) + 7), y - 15, self.place.x(cluster[0].at)
            left = max(self.place.left, min(x - 7, WIDTH - width))
            yield svg.group(
                [f"{moment_text(e.at)}  {e.text}" for e in cluster],
                svg.line((x, y), (x, up + 6), style.INK, 0.8),
                svg.box((left, up - 8), width, 14, style.PAPER, 1, style.INK),
                svg.text((left + width / 2, up + 3), said, style.INK, 10, "middle", bold=True),
            )


def _beside(x: float, y: float, words: str, colour: str) -> str:
    """Words from ``x`` on, or up to it where the picture ends."""
    late = x + svg.width_of(words, 10.5) > WIDTH - 4
    return svg.text((x, y), words, colour, 10.5, "end" if late else "start", bold=True)


def sign(kind: str, x: float, y: float) -> str:
    """The mark of a window, or of a moment of a failure."""
    if kind == "window":
        return svg.box((x - 4, y - 4), 8, 8, style.INK, 1, style.PAPER)
    if kind == "fault":
        return svg.circle((x, y), 9, "none", style.FAILURE, 1.2) + svg.cross((x, y), 5, style.FAILURE, 2.6)
    if kind == "detected":
        return svg.polygon([(x - 5, y - 17), (x + 5, y - 17), (x, y - 8)], style.PAPER, style.FAILURE)
    return svg.polygon([(x, y - 6), (x + 9, y), (x, y + 6)], style.INK)


def hatched(a: float, b: float, y: float, half: float) -> list[str]:
    """Oblique lines between ``a`` and ``b``."""
    shapes, x = [], a
    while x < b:
        reach = min(2 * half, b - x)
        shapes.append(svg.line((x, y + half), (x + reach, y + half - reach), style.FAILURE, 0.8, opacity=0.7))
        x += 7
    return shapes


# What stands below the lanes: the legend, and what is not drawn; and the whole.

LEFT, SIZE = 8.0, 10.5
FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"


def legend(drawn: _Drawing, y: float) -> tuple[list[str], float]:
    """Entries for all that is drawn, from ``y`` down, as many in a row as there is room for; returns where
    they end, too.
    """
    kinds = {event.kind for event in drawn.shown.events}
    passes = {down.passes for down in drawn.diagram.downs}
    signs = []
    for sort, look in LOOKS.items():
        if sort in drawn.sorts:
            a, b = (0.0, -4.0), (26.0, -4.0)
            signs.append((svg.line(a, b, look.colour, look.width, look.dashes) + look.tip(a, b), look.label))
    signs += [(sign(kind, 12, -4), kind) for kind in ("window", "fault") if kind in kinds]
    if False in passes:
        ground = svg.box((0, -10), 24, 12, style.FAILURE, 0.13, style.FAILURE)
        signs.append((ground + "".join(hatched(0, 24, -4, 6)), "down"))
    if True in passes:
        signs.append((svg.box((0, -10), 24, 12, style.YELLOW, 0.35, style.YELLOW), "passes by itself"))
    if "detected" in kinds:
        signs.append((sign("detected", 12, 8), DETECTED))
    if "ready" in kinds:
        signs.append((sign("ready", 8, -4), READY))
    square = svg.box((5, -11), 14, 14, style.PAPER, 1, style.INK)
    lettered = [
        (square + svg.text((12, 0), letter, style.INK, 10, "middle", bold=True), what)
        for what, letter in drawn.letters.items()
    ]
    shapes = []
    for samples in (signs, lettered) if lettered else (signs,):
        x = LEFT
        for sample, label in samples:
            wide = 54 + svg.width_of(label, SIZE)
            if x > LEFT and x + wide > WIDTH:
                x, y = LEFT, y + 18
            words = svg.text((34, 0), label, style.INK, SIZE)
            shapes.append(svg.element("g", sample, words, transform=f"translate({x:.1f} {y:.1f})"))
            x += wide
        y += 20
    return shapes, y


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
    shown = choose(diagram, {a.whole for a in diagram.arrows if a.whole is not None and light.of(a)}, most)
    drawn = _Drawing(diagram, shown, light)
    inside = [*drawn.ground(), *drawn.strike(), *drawn.arrows(), *drawn.marks()]
    if title:
        inside.append(svg.text((8, 17), title, style.INK, 13, bold=True))
    entries, y = legend(drawn, drawn.place.bottom + 40)
    inside += entries
    said = {
        f"Each tuple stands for {diagram.lump:,}.": diagram.lump > 1,
        "×n: n messages so close together that one arrow stands for them.": drawn.counted,
        f"Not all is drawn: {'; '.join(shown.left_out)}.": shown.left_out,
        "Grey bars below a line: how many tuples are sent or come there that are not drawn.": shown.rest,
    }
    for words in (words for words, true in said.items() if true):
        inside.append(svg.text((8, y), words, style.MUTED, 10))
        y += 14
    height = y + 2
    about = f": {title}" if title else ""
    whole = svg.element(
        "svg",
        *(f"\n{shape}" for shape in (svg.box((0, 0), WIDTH, height, style.PAPER), *inside)),
        "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        role="img",
        aria_label=f"Space-time diagram{about}; each arrow and each mark has a text of its own.",
        font_family=FONT,
        **({"class_": "wide"} if inline else {"width": WIDTH, "height": height}),
    )
    return style.themed(whole) if inline else whole + "\n"
