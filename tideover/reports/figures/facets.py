"""What figures over the keys of a sweep share: small multiples with common axes, and axes by factors.

Such a figure draws a table with a row for each combination of values: numbers or texts in the columns of the
keys, ``mean``, ``low`` and ``high`` (95 % interval; NaN: none), and ``late`` (greater than 0 where something
did not recover within its run: there the mean is the least that it can be, and has a hollow triangle).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.reports.figures import style
from tideover.reports.formatting import plain, strategy_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

QUANTITY = "time to recover (s)"
ACROSS = 3
"""Panels in a row, if one key alone has panels."""
LOG_FROM = 30.0
"""An axis may be logarithmic if its greatest value is so many times its least."""
MARKERS = "os^Dv<>P"

Floats = npt.NDArray[np.float64]


def panels(
    cells: pd.DataFrame,
    columns: str | None,
    rows: str | None,
    height_in: float,
    axes: Sequence[Axes] | None = None,
    share_x: bool = True,
) -> list[tuple[Axes, pd.DataFrame]]:
    """An Axes for each value of ``columns`` and ``rows``, and the part of the table that goes there; the
    value stands above, that of ``rows`` to the right if there are both. Scales are common, that of x if it is
    to be. ``height_in``: of one panel; ``axes``: those to be drawn on.
    """
    keys = [key for key in (rows, columns) if key is not None]
    values = [list(dict.fromkeys(cells[key])) for key in keys]
    every = list(product(*values))
    across = len(values[1]) if len(keys) == 2 else min(ACROSS, len(every))
    drawn = list(axes) if axes is not None else _grid(len(every), across, height_in, share_x)
    found = []
    for place, (ax, one) in enumerate(zip(drawn, every, strict=True)):
        mine = np.ones(len(cells), bool)
        for key, value in zip(keys, one, strict=True):
            mine &= (cells[key] == value).to_numpy()
        if one and (len(keys) == 1 or place < across):
            ax.set_title(str(one[-1]))
        if len(keys) == 2 and place % across == across - 1:
            beside: Any = {
                "rotation": -90,
                "ha": "left",
                "va": "center",
                "fontsize": 9.5,
                "fontweight": "bold",
            }
            ax.text(1.03, 0.5, str(one[0]), transform=ax.transAxes, **beside)
        found.append((ax, cells[mine]))
    return found


def _grid(count: int, across: int, height_in: float, share_x: bool) -> list[Axes]:
    down = -(-count // across)
    figure = style.new_figure(min(down * height_in, 9.0))
    drawn = figure.subplots(down, across, squeeze=False, sharex=share_x, sharey=True)
    for ax in drawn.flat[count:]:
        ax.set_axis_off()
    return list(drawn.flat[:count])


def outer(drawn: Sequence[Axes]) -> None:
    """Labels at the left and at the bottom only, of Axes of one grid."""
    for ax in drawn:
        place = ax.get_subplotspec()
        if place is None:
            continue
        if place.colspan.start:
            ax.set_ylabel("")
        covered = (other.get_subplotspec() for other in drawn)
        below = any(
            o is not None and o.colspan == place.colspan and o.rowspan.start == place.rowspan.stop
            for o in covered
        )
        if below:
            ax.set_xlabel("")
        else:
            ax.tick_params(axis="x", labelbottom=True)


def each_line(
    cells: pd.DataFrame, lines: str | None, every: Sequence[str]
) -> Iterator[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """Label, rows, and colour and marker of each line; ``every``: the lines of all panels."""
    if lines is None:
        yield "", cells, {"color": style.BLUE, "marker": "o"}
        return
    colours = colours_of(every)
    for place, name in enumerate(every):
        look = {"color": colours[name], "marker": MARKERS[place % len(MARKERS)]}
        yield name, cells[cells[lines] == name], look


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name; that of its strategy, if it is one's."""
    kinds = kinds_of(names)
    palette = style.colours(kinds)
    return dict(zip(names, (palette[kind] for kind in kinds), strict=True))


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
    one.set_major_formatter(lambda value, _: plain(value))


def is_wide(numbers: Floats) -> bool:
    """Whether the numbers span a wide range, and most of them are near the least."""
    low, high = float(numbers.min()), float(numbers.max())
    return low > 0 and high > LOG_FROM * low and float(np.median(numbers)) < (low + high) / 4


def at_least(ax: Axes, xs: Floats, means: Floats, colour: str) -> None:
    """Marks at means of which only the least is known that they can be."""
    look: dict[str, Any] = {"color": colour, "mfc": style.PAPER, "ms": 6, "rasterized": len(xs) > 200}
    ax.plot(xs, means, "^", zorder=4, **look)


def named(about: Mapping[str, str], key: str) -> str:
    """What a reader calls a key."""
    return about.get(key, key)
