"""How every figure looks: colours that colour-blind readers tell apart, plain axes, legible in print.

Ink, grid and paper are colours that the HTML page replaces by its own, so that figures follow light and dark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

from tideover.models.schema.fields import block

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

INK = "#1b2026"
MUTED = "#69707a"
GRID = "#dfe2e6"
PAPER = "#fefefe"
FAILURE = "#b3261e"

# The palette of Okabe and Ito (2008), without black.
ORANGE, SKY, GREEN, YELLOW = "#e69f00", "#56b4e9", "#009e73", "#f0e442"
BLUE, VERMILION, PURPLE, GREY = "#0072b2", "#d55e00", "#cc79a7", "#7f8791"

_STRATEGIES = {
    "source_replay": (VERMILION, "o"),
    "rsm": (BLUE, "s"),
    "active_replication": (GREEN, "^"),
    "none": (GREY, "X"),
    "micro_batch": (PURPLE, "D"),
    "aligned_snapshots": (ORANGE, "v"),
    "storm_checkpoint": (SKY, "P"),
    "estorm": ("#5b4a9e", ">"),
    "passive_standby": ("#1b7f79", "p"),
    "active_standby": ("#7f3106", "h"),
    "upstream_backup": ("#a6761d", "d"),
    "changelog": ("#b2477d", "*"),
    "trident": ("#3f4a5a", "H"),
    "batch_rerun": ("#b8a13a", "<"),
    "hybrid": ("#4c8c2b", "8"),
}
"""Colour and marker of each strategy that comes with Tideover."""
_OTHERS = (("#2f4b7c", "8"), ("#8c6d1f", "p"), ("#6a9a2d", "*"), ("#9c6b98", "d"))
"""Those of strategies from elsewhere, by their place in a figure."""

_STAGES = {
    "detect": "#2d3138",
    "passing": "#c9c2a5",
    "delay": "#f3d9a4",
    "launch": "#b87b00",
    "prepare": "#efb643",
    "restart": "#db9500",
    "write": "#4a9e8c",
    "restore": "#006baa",
    "wait": "#eae7db",
    "replay": "#bb6997",
    "catch_up": "#8dccf1",
    "windows": "#7f3106",
}
"""Stages of the time to recover: seven steps of lightness, so that a grey print tells them apart, in hues of
Okabe and Ito. They are drawn opaque, with an edge.
"""
STAGE_EDGE: Any = {"edgecolor": MUTED, "linewidth": 0.5}

WIDTH_IN = 7.4
"""Width of a figure: the text width of an A4 or letter page."""
PANEL_IN = 3.4
"""Width of a panel; the page puts as many in a row as fit."""
COLUMN_IN = 3.9
"""Width of a figure that stands alone and is to be legible on a telephone."""

Shape = Literal["line", "dashed", "dotted", "dot", "mark", "area", "band"]

_RC: Any = {
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "text.usetex": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so figures are the same everywhere
    "font.size": 9,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.4,
    "svg.fonttype": "path",
    "svg.hashsalt": "tideover",
    "figure.dpi": 110,
}


@dataclass(frozen=True)
class Key:
    """An entry of a legend, drawn by the figure or by its page. ``look``: more of matplotlib's properties."""

    label: str
    colour: str
    shape: Shape = "line"
    look: Mapping[str, Any] = field(default_factory=dict)

    def handle(self) -> Artist:
        """The entry as matplotlib wants it."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        if self.shape == "area":
            return Patch(facecolor=self.colour, label=self.label, **STAGE_EDGE, **self.look)
        if self.shape == "band":
            return Patch(color=self.colour, label=self.label, **self.look)
        return Line2D([], [], **{"color": self.colour, "label": self.label, **LINES[self.shape], **self.look})


DOT: Any = {"marker": "o", "markersize": 3.2, "markerfacecolor": "none", "markeredgewidth": 0.8}
LINES: dict[str, Any] = {
    "line": {},
    "dashed": {"linestyle": (0, (4, 2)), "linewidth": 1.0},
    "dotted": {"linestyle": (0, (1, 1.2)), "linewidth": 1.1},
    "dot": {"linestyle": "none", **DOT},
    "mark": {"linestyle": "none", "marker": "o"},
}


def legend_below(figure: Figure | SubFigure, keys: Iterable[Key], columns: int) -> None:
    """One legend for all axes of a figure."""
    handles = [key.handle() for key in keys]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)


def stage_keys(present: Collection[str]) -> list[Key]:
    """The legend of the stages; of those that not all results have, of the ``present`` ones."""
    return [Key(one.label, stage_colour(one.key), "area") for one in block("recoveries", "stages_s", present)]


def stage_colour(name: str) -> str:
    """The colour of a stage of the time to recover."""
    return _STAGES.get(name, GREY)


def applied() -> AbstractContextManager[None]:
    """The style, for the length of a ``with`` block."""
    import matplotlib

    return matplotlib.rc_context(_RC)


def colours(strategies: list[str]) -> dict[str, str]:
    """A colour for each strategy: its own if it has one, else one by its place in the list."""
    return {name: colour for name, (colour, _) in _assigned(strategies).items()}


def markers(strategies: list[str]) -> dict[str, str]:
    """A marker for each strategy, so that colour is never the only difference."""
    return {name: marker for name, (_, marker) in _assigned(strategies).items()}


def _assigned(names: list[str]) -> dict[str, tuple[str, str]]:
    others = cycle(_OTHERS)
    return {name: _STRATEGIES.get(name) or next(others) for name in dict.fromkeys(names)}


def new_axes(height_in: float, ax: Axes | None = None) -> Axes:
    """``ax`` itself, or new Axes of the usual width; call it within ``applied``."""
    return new_figure(height_in).subplots() if ax is None else ax


def new_figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """A figure that pyplot does not know of, so that nothing has to be closed.

    In a notebook ``ax.figure`` as the last line of a cell shows it.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # A little air above: otherwise a title touches the edge of the picture.
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - 0.06 / height_in))
    return Figure(figsize=(width_in, height_in), layout=layout)
