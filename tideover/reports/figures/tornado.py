"""Sensitivities of a figure to factors, the one that matters most on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.figures import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def tornado(sensitivities: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Bars for each factor, sorted by what is known of it.

    ``sensitivities`` has ``factor`` and either Sobol's indices, ``first_order`` and ``total`` with the ends
    of their intervals (``first_order_low`` and so on; NaN: none), the parts of the variance that a factor has
    alone, and with all others; or those of Morris, ``mu_star``, the mean size of elementary effects, and
    ``sigma``, their standard deviation, great where a factor's effect depends on others.
    """
    sobol = "total" in sensitivities.columns
    shown = ("total", "first_order") if sobol else ("mu_star", "sigma")
    labels = (
        ("total, with others", "first order, alone") if sobol else ("mean effect μ*", "spread of effects σ")
    )
    ordered = sensitivities.sort_values(shown[0], ascending=False, kind="stable").reset_index(drop=True)
    with style.applied():
        ax = style.new_axes(1.0 + 0.42 * len(ordered), ax)
        for side, (name, label) in enumerate(zip(shown, labels, strict=True)):
            colour = (style.SKY, style.BLUE)[side]
            at = np.arange(len(ordered)) + (-0.19, 0.19)[side]
            values = ordered[name].to_numpy(dtype=float)
            ax.barh(at, values, height=0.36, color=colour, label=label)
            _interval(ax, ordered, name, at, values)
        ax.set(xlabel="part of the variance" if sobol else "effect on the figure, over its range")
        ax.set_ylim(len(ordered) - 0.5, -0.5)
        ax.set_yticks(range(len(ordered)), list(ordered["factor"]))
        ax.axvline(0, color=style.INK, linewidth=0.9)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x")
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return ax


def _interval(ax: Axes, ordered: pd.DataFrame, name: str, at: Any, values: Any) -> None:
    if f"{name}_low" not in ordered.columns:
        return
    low, high = (ordered[f"{name}_{end}"].to_numpy(dtype=float) for end in ("low", "high"))
    ends = np.nan_to_num(np.array([values - low, high - values])).clip(0)
    ax.errorbar(values, at, xerr=ends, fmt="none", ecolor=style.INK, elinewidth=0.9, capsize=2.5)
