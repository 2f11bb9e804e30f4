"""What stands below a space-time diagram: the legend, and what is not drawn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from tideover.models.accounts.trace import DETECTED, READY
from tideover.models.evaluation.diagram import Diagram
from tideover.reports.figures import style
from tideover.reports.figures.shapes import Point, box, element, line, text, width_of
from tideover.reports.figures.space_time.choice import Shown
from tideover.reports.figures.space_time.looks import LOOKS
from tideover.reports.figures.space_time.marks import hatched, sign

Sample = tuple[str, str]
"""A piece of what is drawn, beside (0, 0), and what it is called."""
LEFT, SIZE = 8.0, 10.5


def legend(
    diagram: Diagram, shown: Shown, sorts: Collection[str], letters: Mapping[str, str], width: float, y: float
) -> tuple[list[str], float]:
    """Entries for all that is drawn, from ``y`` down; returns where they end, too."""
    signs = [(_arrow(sort), LOOKS[sort].label) for sort in LOOKS if sort in sorts]
    signs += _events(diagram, {event.kind for event in shown.events})
    shapes, y = _rows(signs, width, y)
    if letters:
        more, y = _rows([(_lettered(letter), what) for what, letter in letters.items()], width, y)
        shapes += more
    return shapes, y


def notes(diagram: Diagram, shown: Shown, counted: bool) -> Iterator[str]:
    """What a reader has to know besides."""
    if diagram.lump > 1:
        yield f"Each tuple stands for {diagram.lump:,}."
    if counted:
        yield "×n: n messages so close together that one arrow stands for them."
    if shown.left_out:
        yield f"Not all is drawn: {'; '.join(shown.left_out)}."
    if shown.rest:
        yield "Grey bars below a line: how many tuples are sent or come there that are not drawn."


def _arrow(sort: str) -> str:
    look = LOOKS[sort]
    a: Point = (0.0, -4.0)
    b: Point = (26.0, -4.0)
    return line(a, b, look.colour, look.width, look.dashes) + look.tip(a, b)


def _events(diagram: Diagram, kinds: Collection[str]) -> Iterator[Sample]:
    if "window" in kinds:
        yield sign("window", 12, -4), "window"
    if "fault" in kinds:
        yield sign("fault", 12, -4), "fault"
    if any(not down.passes for down in diagram.downs):
        yield (
            box((0, -10), 24, 12, style.FAILURE, 0.13, style.FAILURE) + "".join(hatched(0, 24, -4, 6)),
            "down",
        )
    if any(down.passes for down in diagram.downs):
        yield box((0, -10), 24, 12, style.YELLOW, 0.35, style.YELLOW), "passes by itself"
    if "detected" in kinds:
        yield sign("detected", 12, 8), DETECTED
    if "ready" in kinds:
        yield sign("ready", 8, -4), READY


def _lettered(letter: str) -> str:
    square = box((5, -11), 14, 14, style.PAPER, 1, style.INK)
    return square + text((12, 0), letter, style.INK, 10, "middle", bold=True)


def _rows(samples: Iterable[Sample], width: float, y: float) -> tuple[list[str], float]:
    """As many in a row as there is room for; and where the next row would be."""
    shapes, x = [], LEFT
    for sample, label in samples:
        wide = 54 + width_of(label, SIZE)
        if x > LEFT and x + wide > width:
            x, y = LEFT, y + 18
        words = text((34, 0), label, style.INK, SIZE)
        shapes.append(element("g", sample, words, transform=f"translate({x:.1f} {y:.1f})"))
        x += wide
    return shapes, y + 20
