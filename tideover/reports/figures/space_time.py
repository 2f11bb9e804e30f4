"""The space-time diagram: tasks as lines grouped by host, time to the right, messages as arrows; as SVG.

After L. Lamport, *Time, clocks, and the ordering of events in a distributed system*, CACM 1978, and the figures
of Hwang et al., *High-availability algorithms for distributed stream processing*, ICDE 2005.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tideover.models.evaluation.diagram import Arrow, Diagram, Down, Event
from tideover.reports.figures import style
from tideover.reports.figures.shapes import (
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
    way,
    width_of,
)
from tideover.reports.figures.space_time_choice import MOST_TUPLES, Shown, choose
from tideover.reports.figures.space_time_layout import Layout, layout
from tideover.reports.figures.svg import themed
from tideover.sim.units import S

FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
TOGETHER = 5.0
"""Arrows that follow one another more closely (px) are drawn as one, with their number."""
APART = 17.0
"""Steps that are closer (px) share a mark."""
LISTED = 40
"""Most tuples that the text of one arrow lists."""


@dataclass(frozen=True)
class Look:
    """How one sort of arrow is drawn; ``label``: in the legend, in the words of the trace."""

    label: str
    colour: str
    width: float = 1.2
    dashes: str = ""
    hollow: bool = False


LOOKS = {
    "tuple": Look("tuple", style.INK),
    "again": Look("tuple sent again", style.VERMILION, 2.2),
    "lost": Look("tuple destroyed", style.FAILURE, 1.4, "1.5 2.5"),
    "copied": Look("tuple out of what was kept, or from another replica", style.VERMILION, 1.2, "1 2"),
    "discarded": Look("tuple discarded (known, or to come again)", style.MUTED, 1.0),
    "under way": Look("tuple not processed yet", style.MUTED, 1.0, "1 3"),
    "control": Look("control message in the stream (barrier, end marker)", style.BLUE, 2.4, "8 2"),
    "ack": Look("ack", style.GREEN, 1.1, "5 3", hollow=True),
    "complete": Look("root complete", style.GREEN, 2.0, "9 3", hollow=True),
    "step": Look("step that goes to another", style.BLUE, 1.3, "2 2", hollow=True),
}


@dataclass(frozen=True)
class Highlight:
    """What a picture is about: something strikes ``where`` (before, at, after) a step at ``at`` (ns), and
    what it does to tuples.

    text     what strikes, in words
    effects  of tuples (component and uid): what becomes of each (lost, duplicated)
    """

    at: int | None = None
    where: Literal["before", "at", "after"] = "at"
    text: str = ""
    effects: Mapping[tuple[str, int], str] = field(default_factory=dict)


def space_time(
    diagram: Diagram,
    title: str = "",
    highlight: Highlight | None = None,
    *,
    most: int = MOST_TUPLES,
    inline: bool = False,
) -> str:
    """The picture of a stretch as SVG, the same bytes each time; what it leaves out stands below it.

    ``most``: tuples that are drawn at most, always whole trees. ``inline``: for the inside of a page, which
    may replace colours by its own. A text beside the pointer names each arrow, and each mark.
    """
    light = highlight or Highlight()
    first = {a.whole for a in diagram.arrows if a.whole is not None and a.effect in light.effects}
    shown = choose(diagram, first, most)
    place = layout(diagram, shown.lanes)
    drawn = _Picture(diagram, shown, place, light)
    inside = [*drawn.ground(), *drawn.messages(), *drawn.marks(), *drawn.strike()]
    inside += drawn.below(title)
    width, height = place.width, drawn.height
    body = [box((0, 0), width, height, style.PAPER), *inside]
    alt = f"Space-time diagram{': ' + title if title else ''}; every arrow and mark has a text of its own."
    whole = element(
        "svg",
        *(f"\n{shape}" for shape in body),
        "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_label=alt,
        font_family=FONT,
        **({"class_": "wide"} if inline else {"width": width, "height": height}),
    )
    return themed(whole) if inline else whole + "\n"


class _Picture:
    def __init__(self, diagram: Diagram, shown: Shown, place: Layout, light: Highlight) -> None:
        self.diagram, self.shown, self.place, self.light = diagram, shown, place, light
        self.height = place.bottom
        self._looks: dict[str, None] = {}
        """Sorts of arrows that were drawn."""
        self._letters: dict[str, str] = {}
        self._counted = False
        self._numbers: list[Point] = []
        for event in sorted(shown.events, key=lambda event: event.at):
            if event.kind == "step" and event.what not in self._letters:
                self._letters[event.what] = _letter(len(self._letters))

    # -- hosts, lanes, times when they are down --------------------------------------------------------------

    def ground(self) -> list[str]:
        """Bands of hosts, lanes, the axis."""
        place, shapes = self.place, []
        for number, (host, top, bottom) in enumerate(place.bands):
            shade = style.GRID if number % 2 == 0 else style.PAPER
            shapes.append(box((0, top), place.width, bottom - top, shade, 0.45))
            name = "" if host is None else f"host {host}"
            shapes.append(text((8, top + 13), name, style.MUTED, 9.5))
        for at, label in place.ticks:
            x = place.x(at)
            shapes.append(line((x, place.top), (x, place.bottom), style.GRID, 0.8))
            shapes.append(text((x, place.bottom + 14), label, style.MUTED, 10, "middle"))
        downs: dict[str, list[Down]] = {}
        for down in self.diagram.downs:
            downs.setdefault(down.lane, []).append(down)
        for lane in self.shown.lanes:
            y = place.y[lane.name]
            shapes.append(text((place.left - 10, y + 4), lane.name, style.INK, 11.5, "end", bold=lane.is_task))
            shapes += self._lane(y, downs.get(lane.name, []))
        return shapes

    def _lane(self, y: float, downs: Sequence[Down]) -> list[str]:
        """A line that is broken while its task is down."""
        place, shapes, at = self.place, [], self.place.left
        for down in sorted(downs, key=lambda down: down.since):
            a, b = place.clipped(down.since), place.clipped(down.until)
            if b <= a:
                continue
            fill = style.YELLOW if down.passes else style.FAILURE
            inside = [box((a, y - 8), b - a, 16, fill, 0.35 if down.passes else 0.13, fill)]
            if not down.passes:
                inside += _hatched(a, b, y, 8)
                if a > at:
                    shapes.append(line((at, y), (a, y), style.INK, 1.3))
                at = max(at, b)
            shapes.append(group([down.text], *inside))
        if at < place.right:
            shapes.append(line((at, y), (place.right, y), style.INK, 1.3))
        return shapes

    # -- arrows ----------------------------------------------------------------------------------------------

    def messages(self) -> list[str]:
        """All arrows; those that are alike and close together as one."""
        bundles: dict[tuple[str, ...], list[list[Arrow]]] = {}
        for arrow in self.shown.arrows:
            word = self.light.effects.get(arrow.effect, "") if arrow.effect else ""
            rows = bundles.setdefault((_sort(arrow), arrow.source, arrow.target, word), [[]])
            if rows[-1] and not self._close(rows[-1][-1], arrow):
                rows.append([])
            rows[-1].append(arrow)
        order = list(LOOKS)
        return [
            shape
            for key, rows in sorted(bundles.items(), key=lambda item: -order.index(item[0][0]))
            for arrows in rows
            for shape in self._bundle(key[0], key[3], arrows)
        ]

    def _close(self, one: Arrow, other: Arrow) -> bool:
        ends = zip(self._ends(one), self._ends(other), strict=True)
        return all(abs(a[0] - b[0]) < TOGETHER for a, b in ends)

    def _ends(self, arrow: Arrow) -> tuple[Point, Point]:
        """Where an arrow begins and ends, in the picture."""
        place = self.place
        a, b = place.y[arrow.source], place.y[arrow.target]
        if arrow.copied and arrow.came is not None:
            x = place.clipped(arrow.came)
            return (x, b - 22), (x, b)
        begin = place.stretch.begin if arrow.sent is None else arrow.sent
        if arrow.came is None and arrow.over is None:
            start = place.x(begin)
            return (start, a), (min(start + 9, place.right), a + (b - a) * 0.45)
        last = arrow.came if arrow.came is not None else arrow.over
        assert last is not None
        return place.cut((begin, a), (max(begin, last), b))

    def _points(self, arrow: Arrow) -> tuple[Point, ...]:
        """Its way: around the lanes between, if it would lie on what goes between these."""
        (x, y), (u, z) = self._ends(arrow)
        lanes = round(abs(z - y) / self.place.each)
        if lanes < 2 or abs(u - x) > self.place.each:
            return (x, y), (u, z)
        side = 6.0 + 5 * lanes
        if arrow.kind == "ack" or max(x, u) + side > self.place.right:
            side = -side if min(x, u) - side > self.place.left else side / 3
        return (x, y), ((x + u) / 2 + side, (y + z) / 2), (u, z)

    def _bundle(self, sort: str, word: str, arrows: list[Arrow]) -> list[str]:
        self._looks[sort] = None
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
            if edge[-1][1] == self.place.y[arrows[0].target]:
                inside.append(self._end(sort, look, edge[-2], edge[-1]))
        if len(arrows) > 1:
            self._counted = True
            inside.append(self._number(len(arrows), last, look.colour))
        if word:
            (x, y), up = last[-1], last[0][1] < last[-1][1]
            inside.append(text((x + 6, y + (-7 if up else 14)), word, style.INK, 10, bold=True, on=style.PAPER))
        return [group(_named(arrows, word), *inside), *self._stays(sort, arrows)]

    def _number(self, n: int, points: Sequence[Point], colour: str) -> str:
        """How many arrows one stands for, beside its end, where no other number is."""
        (x, y), (u, z) = points[0], points[-1]
        half = min(self.place.each / 2, abs(z - y) / 2)
        share = half / abs(z - y) if z != y else 0.5
        at = u + (x - u) * share + 4, z + (y - z) * share + 3
        while any(abs(at[0] - px) < 22 and abs(at[1] - py) < 9 for px, py in self._numbers) and at[1] < z + half:
            at = at[0], at[1] + 9
        self._numbers.append(at)
        return text(at, f"×{n}", colour, 8.5, on=style.PAPER)

    def _end(self, sort: str, look: Look, a: Point, b: Point) -> str:
        if sort == "lost":
            return cross(b, 4, look.colour)
        if sort == "discarded":
            return circle(b, 3, style.PAPER, look.colour, 1.2)
        if sort == "under way":
            return ""
        return head(a, b, look.colour, 6 + look.width, style.PAPER if look.hollow else "")

    def _stays(self, sort: str, arrows: list[Arrow]) -> list[str]:
        """From its arrival to the end of its service, or its loss, a tuple is at its task."""
        if arrows[0].kind != "tuple":
            return []
        place, y, shapes = self.place, self.place.y[arrows[0].target], []
        for arrow in arrows:
            if arrow.over is None or arrow.came is None or arrow.came > place.stretch.end:
                continue
            a, b = place.clipped(arrow.came), place.clipped(arrow.over)
            if b - a > 1:
                shapes.append(line((a, y), (b, y), LOOKS[sort].colour, 5, opacity=0.22))
            if arrow.lost and b - a > 2 and place.stretch.has(arrow.over):
                shapes.append(cross((b, y), 4, LOOKS[sort].colour))
        return shapes

    # -- marks -----------------------------------------------------------------------------------------------

    def marks(self) -> list[str]:
        """Steps with their letters, windows, failures."""
        shapes: list[str] = []
        for lane in self.shown.lanes:
            mine = sorted((e for e in self.shown.events if e.lane == lane.name), key=lambda e: e.at)
            y = self.place.y[lane.name]
            for kind in ("window", "detected", "ready", "fault"):
                shapes += [self._mark(e, y) for e in mine if e.kind == kind]
            shapes += self._steps([e for e in mine if e.kind == "step"], y)
        return shapes + self._faults()

    def _mark(self, event: Event, y: float) -> str:
        x = self.place.x(event.at)
        lines = (event.text, _at(event.at))
        if event.kind == "window":
            return group(lines, box((x - 4, y - 4), 8, 8, style.INK, 1, style.PAPER))
        if event.kind == "fault":
            return group(lines, circle((x, y), 9, "none", style.FAILURE, 1.2), cross((x, y), 5, style.FAILURE, 2.6))
        if event.kind == "detected":
            return group(lines, polygon([(x - 5, y - 17), (x + 5, y - 17), (x, y - 8)], style.PAPER, style.FAILURE))
        return group(lines, polygon([(x, y - 6), (x + 9, y), (x, y + 6)], style.INK))

    def _steps(self, events: Sequence[Event], y: float) -> list[str]:
        """Those that are close together share a mark that lists them."""
        clusters: list[list[Event]] = []
        for event in events:
            if clusters and self.place.x(event.at) - self.place.x(clusters[-1][0].at) < APART:
                clusters[-1].append(event)
            else:
                clusters.append([event])
        shapes = []
        for cluster in clusters:
            letters = list(dict.fromkeys(self._letters[event.what] for event in cluster))
            said = "".join(letters[:4]) + ("+" if len(letters) > 4 else "")
            width = max(14.0, width_of(said, 10) + 7)
            x = self.place.x(cluster[0].at)
            left = max(self.place.left, min(x - 7, self.place.width - width))
            up = y - 15
            inside = [
                line((x, y), (x, up + 6), style.INK, 0.8),
                box((left, up - 8), width, 14, style.PAPER, 1, style.INK),
                text((left + width / 2, up + 3), said, style.INK, 10, "middle", bold=True),
            ]
            shapes.append(group([f"{_at(event.at)}  {event.text}" for event in cluster], *inside))
        return shapes

    def _faults(self) -> list[str]:
        """What strikes, and when, above the lanes."""
        shapes, texts = [], {(e.at, e.text): e for e in self.shown.events if e.kind == "fault"}
        for row, ((at, words), event) in enumerate(sorted(texts.items(), key=lambda item: item[0])):
            x, y = self.place.x(at), self.place.top - 6 - 12 * (row % 2)
            low = [self.place.y[e.lane] for e in self.shown.events if e.lane and (e.at, e.text) == (at, words)]
            shapes.append(line((x, y + 2), (x, max(low, default=self.place.bottom)), style.FAILURE, 1, "4 3"))
            late = x + width_of(words, 10.5) > self.place.width - 4
            shapes.append(text((x, y), words, style.FAILURE, 10.5, "end" if late else "start", bold=True))
            del event
        return shapes

    def strike(self) -> list[str]:
        """What the picture is about."""
        light, place = self.light, self.place
        if light.at is None or not place.stretch.has(light.at):
            return []
        x = place.x(light.at) + {"before": -5, "at": 0, "after": 5}[light.where]
        late = x + width_of(light.text, 10.5) > place.width - 4
        return [
            line((x, place.top - 28), (x, place.bottom), style.YELLOW, 6, opacity=0.6),
            line((x, place.top - 28), (x, place.bottom), style.INK, 1),
            text((x, place.top - 32), light.text, style.INK, 10.5, "end" if late else "start", bold=True),
        ]

    # -- below -----------------------------------------------------------------------------------------------

    def below(self, title: str) -> list[str]:
        """The title, the legend, and what was left out."""
        place = self.place
        shapes = [text((8, 17), title, style.INK, 13, bold=True)] if title else []
        samples = [(_sample(LOOKS[sort]), LOOKS[sort].label) for sort in LOOKS if sort in self._looks]
        samples += [(_window_sample(), "window")] * any(e.kind == "window" for e in self.shown.events)
        samples += self._fault_samples()
        y = place.bottom + 40.0
        shapes += (rows := _rows(samples, place.width, y))[0]
        y = rows[1]
        steps = [(_letter_sample(letter), what) for what, letter in self._letters.items()]
        if steps:
            shapes += (rows := _rows(steps, place.width, y))[0]
            y = rows[1]
        for words in self._notes():
            shapes.append(text((8, y), words, style.MUTED, 10))
            y += 14
        self.height = y + 2
        return shapes

    def _fault_samples(self) -> list[tuple[str, str]]:
        kinds = {event.kind: event.text for event in self.shown.events}
        found = [(group([], cross((12, -4), 5, style.FAILURE, 2.6)), "fault")] * ("fault" in kinds)
        if any(not down.passes for down in self.diagram.downs):
            found.append((box((0, -10), 24, 12, style.FAILURE, 0.13, style.FAILURE) + "".join(_hatched(0, 24, -4, 6)), "down"))
        if "detected" in kinds:
            found.append((polygon([(7, -9), (17, -9), (12, 0)], style.PAPER, style.FAILURE), "failure detected"))
        if "ready" in kinds:
            found.append((polygon([(8, -10), (17, -4), (8, 2)], style.INK), "ready again"))
        return found

    def _notes(self) -> Iterable[str]:
        if self.diagram.lump > 1:
            yield f"Each tuple stands for {self.diagram.lump:,}."
        if self._counted:
            yield "×n: n messages so close together that one arrow stands for them."
        if self.shown.left_out:
            yield f"Not all is drawn: {'; '.join(self.shown.left_out)}."


def _sort(arrow: Arrow) -> str:
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


def _named(arrows: Sequence[Arrow], word: str) -> list[str]:
    """The text of arrows that are drawn as one."""
    head_ = [word.upper()] if word else []
    if len(arrows) == 1:
        return [*head_, *arrows[0].text]
    listed = ["; ".join(arrow.text) for arrow in arrows[:LISTED]]
    more = [f"and {len(arrows) - LISTED} more"] if len(arrows) > LISTED else []
    return [*head_, f"{len(arrows)} messages", *listed, *more]


def _letter(number: int) -> str:
    """a … z, A … Z, then numbers."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return letters[number] if number < len(letters) else str(number)


def _at(moment: int) -> str:
    return f"{moment / S:.6f} s"


def _hatched(a: float, b: float, y: float, half: float) -> list[str]:
    """Oblique lines between ``a`` and ``b``."""
    shapes, x = [], a
    while x < b:
        reach = min(2 * half, b - x)
        shapes.append(line((x, y + half), (x + reach, y + half - reach), style.FAILURE, 0.8, opacity=0.7))
        x += 7
    return shapes


def _sample(look: Look) -> str:
    a, b = (0.0, -4.0), (26.0, -4.0)
    end = head(a, b, look.colour, 6 + look.width, style.PAPER if look.hollow else "")
    if look is LOOKS["lost"]:
        end = cross(b, 4, look.colour)
    if look is LOOKS["discarded"]:
        end = circle(b, 3, style.PAPER, look.colour, 1.2)
    if look is LOOKS["under way"]:
        end = ""
    return line(a, b, look.colour, look.width, look.dashes) + end


def _window_sample() -> str:
    return box((8, -8), 8, 8, style.INK, 1, style.PAPER)


def _letter_sample(letter: str) -> str:
    return box((5, -11), 14, 14, style.PAPER, 1, style.INK) + text((12, 0), letter, style.INK, 10, "middle", bold=True)


def _rows(samples: Iterable[tuple[str, str]], width: float, y: float) -> tuple[list[str], float]:
    """Entries of a legend, as many in a row as there is room for; and where the next row would be."""
    shapes, x = [], 8.0
    for sample, label in samples:
        wide = 34 + width_of(label, 10.5) + 20
        if x > 8 and x + wide > width:
            x, y = 8.0, y + 18
        shapes.append(element("g", sample, text((34, 0), label, style.INK, 10.5), transform=f"translate({x:.1f} {y:.1f})"))
        x += wide
    return shapes, y + 20
