"""The space-time diagram: tasks as lines grouped by host, time to the right, messages as arrows; as SVG.

After L. Lamport, *Time, clocks, and the ordering of events in a distributed system*, CACM 1978, and the
figures of J.-H. Hwang et al., *High-availability algorithms for distributed stream processing*, ICDE 2005.
"""

from __future__ import annotations

from tideover.models.evaluation.diagram import Diagram
from tideover.reports.figures import style
from tideover.reports.figures.shapes import box, element, text
from tideover.reports.figures.space_time.arrows import Arrows
from tideover.reports.figures.space_time.choice import MOST_TUPLES, choose
from tideover.reports.figures.space_time.layout import layout
from tideover.reports.figures.space_time.legend import legend, notes
from tideover.reports.figures.space_time.looks import Highlight
from tideover.reports.figures.space_time.marks import Marks
from tideover.reports.figures.svg import themed

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
