"""The arrows of a space-time diagram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tideover.models.evaluation.diagram import Arrow, Whole
from tideover.reports.figures import style
from tideover.reports.figures.shapes import Point, cross, group, line, polygon, text, way
from tideover.reports.figures.space_time.layout import Layout
from tideover.reports.figures.space_time.looks import LOOKS, Highlight, sort_of

TOGETHER = 5.0
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
        bundles: dict[tuple[str, str, str, str], list[list[Arrow]]] = {}
        for arrow in arrows:
            word = self._light.of(arrow)
            rows = bundles.setdefault((sort_of(arrow), arrow.source, arrow.target, word), [[]])
            if rows[-1] and not self._close(rows[-1][-1], arrow):
                rows.append([])
            rows[-1].append(arrow)
        order = list(LOOKS)
        return [
            shape
            for (sort, _, _, word), rows in sorted(bundles.items(), key=lambda item: -order.index(item[0][0]))
            for together in rows
            for shape in self._bundle(sort, word, together)
        ]

    def _close(self, one: Arrow, other: Arrow) -> bool:
        ends = zip(self._ends(one), self._ends(other), strict=True)
        return all(abs(a[0] - b[0]) < TOGETHER for a, b in ends)

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
            (x, y), down = last[-1], last[0][1] < last[-1][1]
            inside += self._word((x + 6, y + (-7 if down else 14)), word)
        return [group(_named(arrows, word), *inside), *self._stays(sort, arrows)]

    def _word(self, at: Point, word: str) -> list[str]:
        """What becomes of tuples, unless something stands there already: yellow they are all the same."""
        (x, y), width = at, 7.0 * len(word)
        if any(a < x + width and x < b and abs(y - height) < 11 for a, b, height in self._words):
            return []
        self._words.append((x, x + width, y))
        return [text(at, word, style.INK, 10, bold=True, on=style.PAPER)]

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
