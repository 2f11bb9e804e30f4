"""A time of recovery by strategy and further columns: every replication, the mean with its confidence
interval, published values as marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.reports.columns import conform, undefined_reason
from tideover.reports.estimates import BOOTSTRAP_SEED
from tideover.reports.figures import style
from tideover.reports.words import number, strategy_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LABELS = {
    "time_to_recover_s": "time to recover (s)",
    "state_recovery_s": "state recovery (s)",
    "catch_up_s": "catch-up time of the backlog (s)",
    "throughput_90_s": "time until throughput is back at 90 % (s)",
    "output_gap_s": "longest output gap (s)",
}


def recovery(
    recoveries: pd.DataFrame,
    *,
    column: str = "time_to_recover_s",
    by: Sequence[str] = (),
    published: Mapping[tuple[Any, ...], float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One row a strategy or, with ``by``, one a strategy and combination of these columns.

    ``published``: values to mark, keyed by strategy and the values of ``by``: ``{("rsm", 10, 5): 0.0}``. The
    interval is the 95 % bootstrap interval of the mean, with a fixed seed. A row without a defined value says
    so.
    """
    recoveries = conform("recoveries", recoveries)
    keys = ["strategy", *by]
    rows = list(dict.fromkeys(recoveries[keys].itertuples(index=False, name=None)))
    labels = [_label(row, by) for row in rows]
    with style.applied():
        ax = style.new_axes(0.9 + (0.36 if len(rows) < 8 else 0.26) * len(rows), ax)
        _points(recoveries, keys, labels, column, ax)
        for place, row in enumerate(rows):
            values = _values(recoveries, keys, row, column)
            if values.empty:
                _undefined(ax, place, column)
            else:
                _write_mean(
                    ax, place, float(values.mean()), max(values.max(), (published or {}).get(row, 0.0))
                )
        _mark_published(ax, rows, published or {})
        _finish(ax, labels, _LABELS.get(column, column))
    return ax


def _label(row: tuple[Any, ...], by: Sequence[str]) -> str:
    values = [_with_unit(key, value) for key, value in zip(by, row[1:], strict=True)]
    return ", ".join([strategy_name(row[0]), *values])


def _with_unit(key: str, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if key.endswith("_per_s"):
        return f"{text}/s"
    return f"{text} s" if key.endswith("_s") else text


def _values(recoveries: pd.DataFrame, keys: list[str], row: tuple[Any, ...], column: str) -> pd.Series[float]:
    mine = recoveries
    for key, value in zip(keys, row, strict=True):
        mine = mine[mine[key] == value]
    return mine[column].astype(float).dropna()


def _points(recoveries: pd.DataFrame, keys: list[str], labels: list[str], column: str, ax: Axes) -> None:
    import seaborn as sns

    data = recoveries.assign(
        _row=[_label(row, keys[1:]) for row in recoveries[keys].itertuples(index=False, name=None)],
        _value=recoveries[column].to_numpy(dtype=float),
    )
    strategies = list(dict.fromkeys(data["strategy"]))
    palette = style.colours(strategies)
    common = {"data": data, "x": "_value", "y": "_row", "order": labels, "ax": ax, "legend": False}
    common |= {"hue": "strategy", "hue_order": strategies, "palette": palette}
    sns.stripplot(**common, size=3.2, alpha=0.35, jitter=False, zorder=2)
    interval = {"errorbar": ("ci", 95), "n_boot": 2000, "seed": BOOTSTRAP_SEED}
    shapes = [style.markers(strategies)[name] for name in strategies]
    sns.pointplot(
        **common,
        **interval,
        linestyle="none",
        markers=shapes,
        markersize=6,
        err_kws={"linewidth": 1.6},
        capsize=0.25,
    )


def _write_mean(ax: Axes, place: int, mean: float, most: float) -> None:
    beside: dict[str, Any] = {"xytext": (11, 0), "textcoords": "offset points"}
    ax.annotate(f"{number(mean)} s", (most, place), fontsize=8, color=style.INK, va="center", **beside)


def _undefined(ax: Axes, place: int, column: str) -> None:
    reason = undefined_reason(column).split(",")[0]
    text = f"– undefined: {reason}" if reason else "– undefined"
    ax.text(
        0.012, place, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8, color=style.MUTED
    )


def _mark_published(
    ax: Axes, rows: list[tuple[Any, ...]], published: Mapping[tuple[Any, ...], float]
) -> None:
    known = [(published[row], place) for place, row in enumerate(rows) if row in published]
    if not known:
        return
    xs, ys = zip(*known, strict=True)
    ax.scatter(xs, ys, marker="|", s=260, linewidths=1.6, color=style.INK, zorder=4, label="published")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)


def _finish(ax: Axes, labels: list[str], quantity: str) -> None:
    ax.set(xlabel=quantity, ylabel="", ylim=(len(labels) - 0.5, -0.5))
    ax.set_yticks(range(len(labels)), labels)
    high = max(ax.get_xlim()[1], 1.0)
    ax.set_xlim(-0.02 * high, 1.1 * high)
    ax.grid(axis="x")
    ax.tick_params(axis="y", length=0)
