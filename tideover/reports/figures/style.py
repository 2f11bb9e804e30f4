"""What figures share: colours, legends, axes, rows, SVG, small multiples.

Called by the figures of this folder and by the pages that show them. What all figures have in common is
changed here; colours of strategies and stages, and matplotlib's settings, in ``looks.toml``.
"""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from itertools import cycle, product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from tideover.models.schema import block
from tideover.reports.formatting import plain, size, strategy_name
from tideover.reports.html import Picture

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure


# Colours that colour-blind readers tell apart. Ink, grid and paper are colours that the HTML page replaces by
# its own, so that figures follow light and dark.

INK = "#1b2026"
MUTED = "#69707a"
GRID = "#dfe2e6"
PAPER = "#fefefe"
FAILURE = "#b3261e"

# The palette of Okabe and Ito (2008), without black.
ORANGE = "#e69f00"
SKY = "#56b4e9"
GREEN = "#009e73"
YELLOW = "#f0e442"
BLUE = "#0072b2"
VERMILION = "#d55e00"
PURPLE = "#cc79a7"
GREY = "#7f8791"

_NAMED = {name.lower(): colour for name, colour in globals().items() if str(colour).startswith("#")}


def _looks(part: str) -> dict[str, Any]:
    """A part of ``looks.toml``, with colours in the place of their names."""
    text = files("tideover.reports.figures").joinpath("looks.toml").read_text(encoding="utf-8")

    def resolved(value: Any) -> Any:
        known = isinstance(value, str) and value in _NAMED
        return _NAMED[value] if known else [*map(resolved, value)] if isinstance(value, list) else value

    return {key: resolved(value) for key, value in tomllib.loads(text)[part].items()}


_STRATEGIES, STAGES = _looks("strategies"), _looks("stages")
_OTHERS, _RC = _looks("others")["looks"], cast("Any", _looks("matplotlib"))
STAGE_EDGE: Any = {"edgecolor": MUTED, "linewidth": 0.5}

WIDTH_IN = 7.4
"""Width of a figure: the text width of an A4 or letter page."""
PANEL_IN = 3.4
"""Width of a panel; the page puts as many in a row as fit."""
COLUMN_IN = 3.9
"""Width of a figure that stands alone and is to be legible on a telephone."""

Shape = Literal["line", "dashed", "dotted", "dot", "mark", "area", "band"]

# Key and legends, figures and axes.


@dataclass(frozen=True)
class Key:
    """An entry of a legend, drawn by the figure or by its page. ``look``: more of matplotlib's properties."""

    label: str
    colour: str
    shape: Shape = "line"
    look: Mapping[str, Any] = field(default_factory=dict)


DOT: Any = {"marker": "o", "markersize": 3.2, "markerfacecolor": "none", "markeredgewidth": 0.8}
LINES: dict[str, Any] = {
    "line": {},
    "dashed": {"linestyle": (0, (4, 2)), "linewidth": 1.0},
    "dotted": {"linestyle": (0, (1, 1.2)), "linewidth": 1.1},
    "dot": {"linestyle": "none", **DOT},
    "mark": {"linestyle": "none", "marker": "o"},
}
POINTS: Any = {"textcoords": "offset points"}


def legend_below(figure: Figure | SubFigure, keys: Iterable[Key], columns: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Artist] = []
    for key in keys:
        look: dict[str, Any] = {"color": key.colour, "label": key.label, **key.look}
        if key.shape == "area":
            handles.append(Patch(facecolor=look.pop("color"), **STAGE_EDGE, **look))
        elif key.shape == "band":
            handles.append(Patch(**look))
        else:
            handles.append(Line2D([], [], **LINES[key.shape] | look))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)


def stage_keys(present: Collection[str]) -> list[Key]:
    """The legend of the stages; of those that not all results have, of the ``present`` ones."""
    return [
        Key(one.label, STAGES.get(one.key, GREY), "area") for one in block("recoveries", "stages_s", present)
    ]


def applied() -> AbstractContextManager[None]:
    """The style, for the length of a ``with`` block."""
    import matplotlib

    return matplotlib.rc_context(_RC)


def colours(strategies: Sequence[str], part: int = 0) -> dict[str, str]:
    """A colour for each strategy: its own if it has one, else one by its place in the list."""
    others = cycle(_OTHERS)
    return {name: (_STRATEGIES.get(name) or next(others))[part] for name in dict.fromkeys(strategies)}


def markers(strategies: Sequence[str]) -> dict[str, str]:
    """A marker for each strategy, so that colour is never the only difference."""
    return colours(strategies, part=1)


def new_axes(height_in: float, width_in: float = WIDTH_IN) -> Axes:
    """New Axes of this size; call it within ``applied``."""
    return new_figure(height_in, width_in).subplots()


def new_figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """A figure that pyplot does not know of, so that nothing has to be closed.

    In a notebook ``ax.figure`` as the last line of a cell shows it.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # A little air above: otherwise a title touches the edge of the picture.
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - 0.06 / height_in))
    return Figure(figsize=(width_in, height_in), layout=layout)


def grid(
    count: int, across: int, height_in: float, share_x: bool = False, share_y: bool = False
) -> list[Axes]:
    """So many new Axes, ``across`` in a row, that share scales or not."""
    figure = new_figure(height_in)
    drawn = figure.subplots(-(-count // across), across, squeeze=False, sharex=share_x, sharey=share_y)
    for ax in drawn.flat[count:]:
        ax.set_axis_off()
    return list(drawn.flat[:count])


def name_rows(ax: Axes, labels: Sequence[str]) -> None:
    """A row for each label, from the top down, without ticks."""
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_yticks(range(len(labels)), labels)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")


def bare(ax: Axes) -> None:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


BAR = 0.34
"""Height of the bar of a row that is 1 high."""


def stage_bars(
    ax: Axes, rows: Iterable[tuple[Mapping[Any, Any], str, bool]], middle: float, foot: float
) -> list[float]:
    """A bar for each row: its stages one after the other, by their lengths (s) by column; returns how far to
    the right each reaches.

    Stages that take no time or did not come to their end (NaN) are left out. Above the bar, where it takes no
    width, is what the row is; dots say that one is not over. ``middle`` of the bar and ``foot`` of the words:
    where in the row, which is 1 high.
    """
    ends = []
    for place, (lengths_s, words, over) in enumerate(rows):
        end = 0.0
        for stage in block("recoveries", "stages_s", lengths_s):
            length = lengths_s[stage.name]
            if length > 0:
                look = {"color": STAGES.get(stage.key, GREY), **STAGE_EDGE}
                (bar,) = ax.barh(place + middle, length, left=end, height=BAR, **look)
                bar.set_label(f"stage: {stage.key}")
                end += length
        ax.text(0.0, place + foot, words, transform=ax.get_yaxis_transform(), va="bottom", fontsize=8.5)
        if not over:
            ax.annotate("…", (end, place + middle), xytext=(3, 0), va="center", **POINTS)
        ends.append(end)
    return ends


def time_from_failure(ax: Axes, rows: int, most_s: float, top: float) -> None:
    """Axes of bars of stages, of which the longest ends at ``most_s``."""
    ax.set(xlabel="time from the failure (s)", ylim=(rows - 0.45, top), yticks=[])
    ax.set_xlim(0, 1.04 * most_s if most_s > 0 else 1.0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")


# A figure as SVG for the inside of an HTML page: no external reference, the same bytes each time.

_VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", PAPER: "paper", BLUE: "blue", FAILURE: "failure"}
"""Colours that the page may replace, and the CSS variables that do so."""
_DROPPED = re.compile(
    r"""<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>|\s+xmlns(?::\w+)?=(?:"[^"]*"|'[^']*')""",
    re.DOTALL,
)
_COLOUR = re.compile("|".join(map(re.escape, _VARIABLES)), re.IGNORECASE)
_STYLE = re.compile(r'style="[^"]*"')
WIDE_PT = 360
"""Beyond this width (pt) letters would be too small on a telephone, and the page scrolls instead."""


class Panel(NamedTuple):
    """One of several figures that are one picture. ``prefix``: of its ids; ``what`` it shows, in words."""

    drawn: Axes
    prefix: str
    what: str


def picture(
    name: str,
    drawn: str | Axes | Sequence[Axes | Panel],
    /,
    keys: Iterable[Key] = (),
    also: Iterable[str] = (),
    **words: Any,
) -> Picture:
    """The figure of these Axes, or an SVG, as a page shows it, with its texts in ``captions.toml``.

    ``keys``: the legend that the page has to draw; ``also``: further sentences; ``words``: for the braces.
    """
    texts = {"prefix": name, **_captions()["also"], **_captions()[name]}
    panels: list[str] = [drawn] if isinstance(drawn, str) else []
    several: list[Any] = [*drawn] if isinstance(drawn, Sequence) else [drawn]
    for one in [] if isinstance(drawn, str) else several:
        if isinstance(one, Panel):
            alt = texts["alt"].format(**words, panel=one.what)
            panels.append(to_svg(one.drawn.figure, prefix=one.prefix, alt=alt))
        elif not panels:  # Axes of one figure
            prefix, alt = (texts[key].format(**words) for key in ("prefix", "alt"))
            panels.append(to_svg(one.figure, prefix=prefix, alt=alt))
    shown = ["caption", *also] if "caption" in texts else also
    caption = " ".join(texts[key].format(**words) for key in shown)
    legend = tuple((key.label, key.shape, css(key.colour)) for key in keys)
    return Picture(texts["title"].format(**words), caption, "\n".join(panels), legend)


@cache
def _captions() -> dict[str, dict[str, str]]:
    return tomllib.loads(files("tideover.reports").joinpath("captions.toml").read_text(encoding="utf-8"))


def to_svg(figure: Figure | SubFigure, *, prefix: str, alt: str) -> str:
    """Inline SVG of the figure, which a screen reader reads as ``alt``.

    Letters are outlines, so it looks the same without the font, and no text of the figure can act as markup.
    ``prefix`` begins every id, so that two figures of one page never share an id.
    """
    target = io.StringIO()
    with applied():
        cast("Figure", figure).savefig(target, format="svg", metadata={"Date": None})
    text = _DROPPED.sub("", target.getvalue()).strip()
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = text.replace("url(#", f"url(#{prefix}-").replace('xlink:href="#', f'href="#{prefix}-')
    head, close, rest = themed(text).partition(">")
    box = re.search(r'viewBox="0 0 ([\d.]+) ', head)
    wide = ' class="wide"' if box is not None and float(box[1]) > WIDE_PT else ""
    head = re.sub(r'\s(?:width|height|version)="[^"]*"', "", head, count=3)
    head = head.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"{wide}', 1)
    return "\n".join(line.rstrip() for line in (head + close + rest).splitlines())


def themed(svg: str) -> str:
    """The same picture, whose page may replace colours by its own."""
    return _STYLE.sub(lambda style: _COLOUR.sub(lambda colour: css(colour[0].lower()), style[0]), svg)


def css(colour: str) -> str:
    """A colour as the page writes it: by its variable, if it may replace it."""
    return f"var(--{_VARIABLES[colour]}, {colour})" if colour in _VARIABLES else colour


# Shades for how busy something is, and for how much flows: one hue each that gets darker, so that a grey
# print shows the same.

_STEPS = ("#eef3f8", "#d3e1ee", "#a9c6df", "#74a5cc", "#3f7fb2", "#1d5788", "#0b2f52")
"""Lightness falls in even steps; the last is kept for what can hardly do more."""
_TRAFFIC = ("#f6ead2", "#ecd09a", "#dcae58", "#b57e1f", "#84540f", "#4f2f06")
"""The same in another hue: these are parts of the greatest rate, not of the time."""
FULL = 0.97
"""A resource this busy has no time left."""


def shade(busy: float) -> str:
    """Colour of a part of the time (ratio)."""
    if busy >= FULL:
        return _STEPS[-1]
    return _STEPS[min(int(max(busy, 0.0) / FULL * (len(_STEPS) - 1)), len(_STEPS) - 2)]


def traffic_shade(rate: float, most: float) -> str:
    """Colour of a rate, greater than 0, where the greatest is ``most``."""
    return _TRAFFIC[min(int(rate / most * len(_TRAFFIC)), len(_TRAFFIC) - 1)]


def text_on(shade: str) -> str:
    """A colour that can be read on one of these shades."""
    return "#14181d" if shade in (*_STEPS[:4], *_TRAFFIC[:3]) else "#ffffff"


def legend() -> list[Key]:
    """Each shade of how busy something is."""
    edges = [FULL * step / (len(_STEPS) - 1) for step in range(len(_STEPS) - 1)]
    names = [f"{low:.0%} to {high:.0%}" for low, high in zip(edges, [*edges[1:], FULL], strict=True)]
    names.append(f"{FULL:.0%} and more")
    return [Key(name, colour, "area") for name, colour in zip(names, _STEPS, strict=True)]


def traffic_legend(most: float) -> list[Key]:
    """Each shade of bytes per second, the greatest of which is ``most``."""
    ends = [size(most * step / len(_TRAFFIC)) for step in range(1, len(_TRAFFIC) + 1)]
    return [Key(f"to {end}/s", colour, "area") for end, colour in zip(ends, _TRAFFIC, strict=True)]


# What figures over the keys of a sweep share: small multiples with common axes, and axes by factors.
#
# Such a figure draws ``cells``, a table with a row for each combination of values: numbers or texts in the
# columns of the keys, ``mean``, ``low`` and ``high`` (95 % interval; NaN: none), and ``late`` (greater than 0
# where something did not recover within its run: there the mean is the least that it can be, and has a hollow
# triangle). ``about`` says what axes and legends call the keys.

QUANTITY = "time to recover (s)"
ACROSS = 3
"""Panels in a row, if one key alone has panels."""
LOG_FROM = 30.0
"""An axis may be logarithmic if its greatest value is so many times its least."""
MARKERS = "os^Dv<>P"
_BESIDE: Any = {"rotation": -90, "ha": "left", "va": "center", "fontsize": 9.5, "fontweight": "bold"}

Floats = npt.NDArray[np.float64]


def panels(
    cells: pd.DataFrame, columns: str | None, rows: str | None, height_in: float, share_x: bool = True
) -> list[tuple[Axes, pd.DataFrame]]:
    """An Axes for each value of ``columns`` and ``rows``, and the part of the table that goes there; the
    value stands above, that of ``rows`` to the right if there are both. Scales are common, that of x if it is
    to be. ``height_in``: of one panel.
    """
    keys = [key for key in (rows, columns) if key is not None]
    values = [list(dict.fromkeys(cells[key])) for key in keys]
    every = list(product(*values))
    across = len(values[1]) if len(keys) == 2 else min(ACROSS, len(every))
    height = min(-(-len(every) // across) * height_in, 9.0)
    axes = grid(len(every), across, height, share_x, share_y=True)
    found = []
    for place, (ax, one) in enumerate(zip(axes, every, strict=True)):
        mine = np.ones(len(cells), bool)
        for key, value in zip(keys, one, strict=True):
            mine &= (cells[key] == value).to_numpy()
        if one and (len(keys) == 1 or place < across):
            ax.set_title(str(one[-1]))
        if len(keys) == 2 and place % across == across - 1:
            ax.text(1.03, 0.5, str(one[0]), transform=ax.transAxes, **_BESIDE)
        found.append((ax, cells[mine]))
    return found


def outer(drawn: Sequence[Axes]) -> None:
    """Labels at the left and at the bottom only, of Axes of one grid."""
    places = [place for ax in drawn if (place := ax.get_subplotspec()) is not None]
    for ax in drawn:
        place = ax.get_subplotspec()
        if place is None:
            continue
        if place.colspan.start:
            ax.set_ylabel("")
        if any(o.colspan == place.colspan and o.rowspan.start == place.rowspan.stop for o in places):
            ax.set_xlabel("")
        else:
            ax.tick_params(axis="x", labelbottom=True)


def each_line(
    cells: pd.DataFrame, lines: str | None, every: Sequence[str]
) -> Iterator[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """Label, rows, and colour and marker of each line; ``every``: the lines of all panels."""
    if lines is None:
        yield "", cells, {"color": BLUE, "marker": "o"}
        return
    for (name, colour), marker in zip(colours_of(every).items(), cycle(MARKERS), strict=False):
        yield name, cells[cells[lines] == name], {"color": colour, "marker": marker}


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name; that of its strategy, if it is one's."""
    kinds = kinds_of(names)
    palette = colours(kinds)
    return {name: palette[kind] for name, kind in zip(names, kinds, strict=True)}


def kinds_of(names: Sequence[str]) -> list[str]:
    """The names of strategies as a scenario has them; others as they are."""
    from tideover.models.strategies.base import STRATEGIES

    kinds = {strategy_name(kind): kind for kind in STRATEGIES}
    return [kinds.get(name, name) for name in names]


def axis(ax: Axes, numbers: Floats, which: str = "x", factors: bool = False) -> None:
    """Numbers on the axis; logarithmic if they grow by factors, or are said to."""
    from matplotlib.ticker import LogLocator, NullLocator

    one = ax.xaxis if which == "x" else ax.yaxis
    if factors or is_wide(numbers):
        getattr(ax, f"set_{which}scale")("log")
        short = np.ptp(np.log10(numbers)) < 2.5
        one.set_major_locator(LogLocator(10.0, (1.0, 2.0, 5.0) if short else (1.0,)))
        one.set_minor_locator(NullLocator())
    plain_ticks(one)


def plain_ticks(axis: Axis) -> None:
    """Thousands as k, millions as M."""
    axis.set_major_formatter(lambda value, _: plain(value))


def is_wide(numbers: Floats) -> bool:
    """Whether the numbers span a wide range, and most of them are near the least."""
    low, high = float(numbers.min()), float(numbers.max())
    return low > 0 and high > LOG_FROM * low and float(np.median(numbers)) < (low + high) / 4


def at_least(ax: Axes, xs: Floats, means: Floats, colour: str) -> None:
    """Marks at means of which only the least is known that they can be."""
    look: dict[str, Any] = {"color": colour, "mfc": PAPER, "ms": 6, "rasterized": len(xs) > 200}
    ax.plot(xs, means, "^", zorder=4, **look)


def ends(mean: Any, low: Any, high: Any) -> Any:
    """Intervals as an error bar wants them; without length where there is none (NaN)."""
    return np.nan_to_num(np.array([mean - low, high - mean]))


def ring(ax: Axes, xs: Any, ys: Any, size: float, label: str, **look: Any) -> None:
    """A ring around the marks of what was chosen."""
    edge: dict[str, Any] = {"facecolors": "none", "edgecolors": VERMILION, "linewidths": 1.6}
    ax.scatter(xs, ys, s=size, label=label, **edge, **look)
