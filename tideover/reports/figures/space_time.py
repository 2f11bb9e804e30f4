"""The space-time diagram: tasks as lines grouped by host, time to the right, messages as arrows; as SVG.

After L. Lamport, *Time, clocks, and the ordering of events in a distributed system*, CACM 1978, and the
figures of J.-H. Hwang et al., *High-availability algorithms for distributed stream processing*, ICDE 2005.
Called by the pages of runs and audits, by `tideover run --diagram` and by `tideover explore`. A sort of arrow
is a row of ``LOOKS``; what is drawn of too much, ``choose`` decides; how shapes look is in
``templates/space_time.svg.j2``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from typing import Any, Literal, NamedTuple, TypeVar

from tideover.models.accounts.trace import DETECTED, READY, Stretch, moment_text
from tideover.models.evaluation.diagram import Arrow, Diagram, Down, Event, Lane, Whole
from tideover.reports import wording
from tideover.reports.figures import style
from tideover.sim.units import S

Point = tuple[float, float]
Way = tuple[Point, ...]
Entry = tuple[str, Any, str, float, float]
"""Of the legend: a sort of sample, of what, what it is, and where."""


class Look(NamedTuple):
    """How one sort of arrow is drawn: told apart by line and end, so that a grey print will do.

    ``end``: head, hollow, cross, ring, or nothing.
    """

    label: str
    colour: str
    width: float = 1.2
    dashes: str = ""
    end: str = "head"


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
        begin, end = self.stretch
        return self.left + (self.right - self.left) * (moment - begin) / max(1, end - begin)

    def clipped(self, moment: int) -> float:
        """The same of any moment: the edge that is nearer for those outside."""
        return self.x(min(max(moment, self.stretch.begin), self.stretch.end))

    def ends(self, arrow: Arrow) -> tuple[Point, Point]:
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

        def at(moment: int) -> Point:
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
    left = 24 + max([56.0, *(width_of(lane.name, 12) for lane in lanes)])
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


class Bundle(NamedTuple):
    """Messages that are alike and close together, drawn as one: the first's way, the last's if that is
    another, and the ``area`` between. ``y``: of the lane that they lead to; ``stays``: from where to where
    each tuple is at its task, whether that can be seen, and whether it is lost there.
    """

    look: Look
    title: list[str]
    ways: list[Way]
    area: list[Point]
    y: float
    word: str
    word_at: Point | None
    number: int
    count_at: Point | None
    stays: list[tuple[Point, Point, bool, bool]]


class _Arrows:
    """Puts all messages in their places; numbers and words stand where no others do."""

    def __init__(self, place: Layout, light: Highlight) -> None:
        self._place, self._light = place, light
        self._numbers: list[Point] = []
        self._said: set[tuple[str, Whole | None]] = set()
        """What becomes of which root, where it is written already."""
        self._words: list[tuple[float, float, float]] = []
        """Where words stand: from where to where, and how high."""

    def bundles(self, arrows: Iterable[Arrow]) -> dict[str, list[Bundle]]:
        """By sort, in the order in which they are drawn."""
        alike: dict[tuple[str, str, str, str], list[list[Arrow]]] = {}
        for arrow in arrows:
            key = (sort_of(arrow), arrow.source, arrow.target, self._light.of(arrow))
            bundles = alike.setdefault(key, [])
            if bundles:
                ends = zip(self._place.ends(bundles[-1][-1]), self._place.ends(arrow), strict=True)
                if all(abs(a[0] - b[0]) < CLOSE for a, b in ends):
                    bundles[-1].append(arrow)
                    continue
            bundles.append([arrow])
        order, found = list(LOOKS), dict[str, list[Bundle]]()
        for (sort, _, _, word), bundles in sorted(alike.items(), key=lambda item: -order.index(item[0][0])):
            found.setdefault(sort, []).extend(self._bundle(LOOKS[sort], word, bundle) for bundle in bundles)
        return found

    def _way(self, arrow: Arrow) -> Way:
        """From end to end; around the lanes between, if it would lie on what goes between these."""
        place = self._place
        (x, y), (u, z) = place.ends(arrow)
        lanes = round(abs(z - y) / place.each)
        if lanes < 2 or abs(u - x) > place.each:
            return (x, y), (u, z)
        side = 6.0 + 5 * lanes
        if arrow.kind == "ack" or max(x, u) + side > place.right:
            side = -side if min(x, u) - side > place.left else side / 3
        return (x, y), ((x + u) / 2 + side, (y + z) / 2), (u, z)

    def _bundle(self, look: Look, word: str, arrows: list[Arrow]) -> Bundle:
        first, last, place = self._way(arrows[0]), self._way(arrows[-1]), self._place
        one = last[0][0] - first[0][0] < 1 and last[-1][0] - first[-1][0] < 1
        title, count_at, word_at = [word.upper()] if word else [], None, None
        if len(arrows) == 1:
            title += arrows[0].text
        else:
            count_at = self._number(last)
            title += [f"{len(arrows)} messages", *("; ".join(arrow.text) for arrow in arrows[:LISTED])]
            title += [f"and {len(arrows) - LISTED} more"] if len(arrows) > LISTED else []
        if word and (word, arrows[0].whole) not in self._said:
            self._said.add((word, arrows[0].whole))
            (x, y), down, width = last[-1], last[0][1] < last[-1][1], 7.0 * len(word)
            x, y = x + 6, y + (-7 if down else 14)
            # unless something stands there already: its arrow is yellow all the same
            if not any(a < x + width and x < b and abs(y - up) < 11 for a, b, up in self._words):
                self._words.append((x, x + width, y))
                word_at = x, y
        y, stays = place.y[arrows[0].target], []
        for arrow in arrows:
            came, over = arrow.came, arrow.over
            if arrow.kind == "tuple" and over is not None and came is not None and came <= place.stretch.end:
                a, b = place.clipped(came), place.clipped(over)
                lost = arrow.lost and b - a > 2 and place.stretch.has(over)
                stays.append(((a, y), (b, y), b - a > 1, lost))
        ways = [first] if one else [first, last]
        area = [] if one else [first[0], first[-1], last[-1], last[0]]
        return Bundle(look, title, ways, area, y, word, word_at, len(arrows), count_at, stays)

    def _number(self, points: Way) -> Point:
        """Where it says how many arrows one stands for: beside its end, where no other number is."""
        (x, y), (u, z) = points[0], points[-1]
        half = min(self._place.each / 2, abs(z - y) / 2)
        share = half / abs(z - y) if z != y else 0.5
        left, up = u + (x - u) * share + 4, z + (y - z) * share + 3
        while up < z + half and any(abs(left - a) < 22 and abs(up - b) < 9 for a, b in self._numbers):
            up += 9
        self._numbers.append((left, up))
        return left, up


def _lane(lane: Lane, diagram: Diagram, shown: Shown, place: Layout, letters: Mapping[str, str]) -> Any:
    """A lane: the parts of its line, which is broken while its task is down; the marks on it, windows and
    failures; and its steps, of which those that are close together share a mark that lists them.
    """
    at, parts = place.left, list[tuple[float, float, Down | None]]()
    for down in sorted((down for down in diagram.downs if down.lane == lane.name), key=lambda d: d.since):
        a, b = place.clipped(down.since), place.clipped(down.until)
        if b > a:
            if not down.passes:
                parts += [(at, a, None)] if a > at else []
                at = max(at, b)
            parts.append((a, b, down))
    parts += [(at, place.right, None)] if at < place.right else []
    events = sorted((e for e in shown.events if e.lane == lane.name), key=lambda event: event.at)
    kinds = ("window", "detected", "ready", "fault")
    signs = [
        (kind, place.x(e.at), (e.text, moment_text(e.at))) for kind in kinds for e in events if e.kind == kind
    ]
    clusters: list[list[Event]] = []
    for event in (event for event in events if event.kind == "step"):
        if clusters and place.x(event.at) - place.x(clusters[-1][0].at) < APART:
            clusters[-1].append(event)
        else:
            clusters.append([event])
    steps = []
    for cluster in clusters:
        mine = list(dict.fromkeys(letters[event.what] for event in cluster))
        said = "".join(mine[:4]) + ("+" if len(mine) > 4 else "")
        width, x = max(14.0, width_of(said, 10) + 7), place.x(cluster[0].at)
        left = max(place.left, min(x - 7, WIDTH - width))
        steps.append((x, left, width, said, [f"{moment_text(e.at)}  {e.text}" for e in cluster]))
    known = {"name": lane.name, "is_task": lane.is_task, "y": place.y[lane.name]}
    return known | {"parts": parts, "signs": signs, "steps": steps}


# What stands below the lanes: the legend, and what is not drawn; and the whole.

LEFT, SIZE = 8.0, 10.5


def legend(
    diagram: Diagram, shown: Shown, sorts: Collection[str], letters: Mapping[str, str], y: float
) -> tuple[list[Entry], float]:
    """Entries for all that is drawn, from ``y`` down, as many in a row as there is room for; returns where
    they end, too.
    """
    kinds = {event.kind for event in shown.events}
    passes = {down.passes for down in diagram.downs}
    every = [("arrow", look, look.label) for sort, look in LOOKS.items() if sort in sorts]
    marks: list[tuple[str, Any, str]] = [
        *((kind, (12, -4), kind) for kind in ("window", "fault") if kind in kinds),
        *(("away", one, "passes by itself" if one else "down") for one in (False, True) if one in passes),
        *([("detected", (12, 8), DETECTED)] if "detected" in kinds else []),
        *([("ready", (8, -4), READY)] if "ready" in kinds else []),
    ]
    lettered = [("letter", letter, what) for what, letter in letters.items()]
    found = []
    for samples in ([*every, *marks], lettered) if lettered else ([*every, *marks],):
        x = LEFT
        for kind, of, label in samples:
            wide = 54 + width_of(label, SIZE)
            if x > LEFT and x + wide > WIDTH:
                x, y = LEFT, y + 18
            found.append((kind, of, label, x, y))
            x += wide
        y += 20
    return found, y


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
    place = layout(diagram, shown.lanes)
    steps = sorted((e for e in shown.events if e.kind == "step"), key=lambda event: event.at)
    letters = {
        what: LETTERS[n : n + 1] or str(n) for n, what in enumerate(dict.fromkeys(e.what for e in steps))
    }
    counts = Counter((lane, int((place.x(at) - place.left) // BAR)) for lane, at in shown.rest)
    highest = place.each * 0.3
    struck: dict[tuple[int, str], list[float]] = {}
    for event in shown.events:
        if event.kind == "fault":
            y = place.bottom if event.lane is None else place.y[event.lane]
            struck.setdefault((event.at, event.text), []).append(y)
    bundles = _Arrows(place, light).bundles(shown.arrows)
    every = [bundle for mine in bundles.values() for bundle in mine]
    entries, y = legend(diagram, shown, bundles, letters, place.bottom + 40)
    said = {
        f"Each tuple stands for {diagram.lump:,}.": diagram.lump > 1,
        "×n: n messages so close together that one arrow stands for them.": any(b.number > 1 for b in every),
        f"Not all is drawn: {'; '.join(shown.left_out)}.": shown.left_out,
        "Grey bars below a line: how many tuples are sent or come there that are not drawn.": shown.rest,
    }
    notes = [words for words, true in said.items() if true]
    strike = None
    if light.at is not None and place.stretch.has(light.at):
        strike = place.x(light.at) + SIDES[light.where]
    about = f"Space-time diagram{f': {title}' if title else ''}"
    whole = _template().render(
        about=f"{about}; each arrow and each mark has a text of its own.",
        bundles=every,
        faults=[
            (place.x(at), place.top - 6 - 12 * (row % 2), max(reached), words)
            for row, ((at, words), reached) in enumerate(sorted(struck.items()))
        ],
        height=y + 14 * len(notes) + 2,
        inline=inline,
        lanes=[_lane(lane, diagram, shown, place, letters) for lane in shown.lanes],
        legend=entries,
        notes=[(words, y + 14 * row) for row, words in enumerate(notes)],
        place=place,
        rest=[
            ((place.left + column * BAR, place.y[name] + 2), BAR - 1, highest * count / max(counts.values()))
            for (name, column), count in counts.items()
            if name in place.y
        ],
        strike=strike,
        strikes=light.text,
        ticks=ticks(*place.stretch),
        title=title,
    )
    return style.themed(whole) if inline else whole + "\n"


@cache
def _template() -> Any:
    filters = {
        "a": lambda number: f"{round(number, 2) + 0:g}",
        "e": lambda words: escape(words, quote=False),
        "q": escape,
    }
    known = {"c": style, "width": WIDTH, "head": head, "hatches": hatches, "width_of": width_of}
    return wording.template("space_time.svg.j2", filters, known, **wording.BLOCKS)


def width_of(words: str, size: float) -> float:
    """About how wide words are."""
    return 0.58 * size * len(words)


def hatches(a: float, b: float) -> Iterator[float]:
    """Where oblique lines begin between ``a`` and ``b``."""
    while a < b:
        yield a
        a += 7


def head(a: Point, b: Point, size: float) -> list[Point]:
    """The corners of the head of an arrow from ``a`` to ``b``."""
    length = math.hypot(b[0] - a[0], b[1] - a[1]) or 1.0
    ux, uy = (b[0] - a[0]) / length, (b[1] - a[1]) / length
    back, half = (b[0] - ux * size, b[1] - uy * size), size * 0.42
    return [b, (back[0] - uy * half, back[1] + ux * half), (back[0] + uy * half, back[1] - ux * half)]
