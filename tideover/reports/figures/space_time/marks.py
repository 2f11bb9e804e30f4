"""Hosts, lanes and the axis of a space-time diagram, and the marks on lanes: steps, windows, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tideover.models.accounts.trace import moment_text
from tideover.models.evaluation.diagram import Diagram, Down, Event
from tideover.reports.figures import style
from tideover.reports.figures.shapes import box, circle, cross, group, line, polygon, text, width_of
from tideover.reports.figures.space_time.choice import Shown
from tideover.reports.figures.space_time.layout import Layout
from tideover.reports.figures.space_time.looks import Highlight

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
        self.letters = {what: _letter(n) for n, what in enumerate(dict.fromkeys(e.what for e in steps))}

    # -- hosts, lanes, times when they are down --------------------------------------------------------------

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
        return [
            box(
                (place.left + column * BAR, place.y[lane] + 2),
                BAR - 1,
                height * count / most,
                style.MUTED,
                0.4,
            )
            for (lane, column), count in counts.items()
            if lane in place.y
        ]

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

    # -- marks -----------------------------------------------------------------------------------------------

    def marks(self) -> list[str]:
        """Steps with their letters, windows, failures."""
        shapes: list[str] = []
        for lane in self._shown.lanes:
            mine = sorted((e for e in self._shown.events if e.lane == lane.name), key=lambda e: e.at)
            y = self._place.y[lane.name]
            for kind in ("window", "detected", "ready", "fault"):
                shapes += [self._mark(e, y) for e in mine if e.kind == kind]
            shapes += self._steps([e for e in mine if e.kind == "step"], y)
        return shapes + self._faults()

    def _mark(self, event: Event, y: float) -> str:
        x = self._place.x(event.at)
        return group((event.text, moment_text(event.at)), sign(event.kind, x, y))

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


def _letter(number: int) -> str:
    """Of the steps' sorts, one after the other; then numbers."""
    return LETTERS[number] if number < len(LETTERS) else str(number)
