"""How the sorts of arrows look: told apart by line and end, so that a grey print will do; and what a picture
is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tideover.models.evaluation.diagram import Arrow
from tideover.reports.figures import style
from tideover.reports.figures.shapes import Point, circle, cross, head


@dataclass(frozen=True)
class Look:
    """How one sort of arrow is drawn; ``label``: in the legend, in the words of the trace; ``end``: head,
    hollow, cross, ring, or nothing.
    """

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
        keys = (key for key in (arrow.effect, arrow.whole) if key is not None and arrow.kind == "tuple")
        return next((self.becomes[key] for key in keys if key in self.becomes), "")
