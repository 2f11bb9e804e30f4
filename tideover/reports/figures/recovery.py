"""A time of recovery by strategy and further columns: every replication, the mean with its confidence
interval, published values as marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.schema.fields import HEADLINE
from tideover.reports.columns import conform, find
from tideover.reports.figures import style
from tideover.reports.formatting import number, strategy_name, with_ending
from tideover.scenarios.statistics.estimates import BOOTSTRAP_SEED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def recovery(
    recoveries: pd.DataFrame,
    *,
    column: str = HEADLINE,
    by: Sequence[str] = (),
    published: Mapping[tuple[Any, ...], float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One row for each strategy or, with ``by``, for each strategy and combination of these columns' values.

    ``published``: values to mark, keyed by strategy and the values of ``by``: ``{("rsm", 10, 5): 0.0}``. The
    interval is the 95 % bootstrap interval of the mean, with a fixed seed. Where no value is defined, the row
    says why.
    """
    recoveries = conform("recoveries", recoveries)
    rows = list(dict.fromkeys(recoveries[["strategy", *by]].itertuples(index=False, name=None)))
    labels = {row: _label(row, by) for row in rows}
    named = recoveries.assign(
        _row=[labels[row] for row in recoveries[["strategy", *by]].itertuples(index=False, name=None)],
        _value=recoveries[column].to_numpy(dtype=float),
        _unit=recoveries.groupby(["seed", "replication"]).ngroup(),
    )
    with style.applied():
        ax = style.new_axes(0.9 + (0.36 if len(rows) < 8 else 0.26) * len(rows), ax)
        _points(named, list(labels.values()), ax)
        for place, (row, label) in enumerate(labels.items()):
            mine = named[named["_row"] == label]
            values = mine["_value"].dropna()
            if values.empty:
                _undefined(ax, place, column)
            else:
                rightmost = max(values.max(), (published or {}).get(row, 0.0))
                mean = with_ending(f"{number(float(values.mean()))} s", mine["ended"].tolist())
                _write_mean(ax, place, mean, rightmost)
        _mark_published(ax, rows, published or {})
        _finish(ax, list(labels.values()), _axis_label(column))
    return ax


def _axis_label(name: str) -> str:
    column = find("recoveries", name)
    return f"{column.label} ({column.unit})" if column.label else name


def _label(row: tuple[Any, ...], by: Sequence[str]) -> str:
    values = [_with_unit(key, value) for key, value in zip(by, row[1:], strict=True)]
    return ", ".join([strategy_name(row[0]), *values])


def _with_unit(key: str, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if key.endswith("_per_s"):
        return f"{text}/s"
    return f"{text} s" if key.endswith("_s") else text


def _points(data: pd.DataFrame, labels: list[str], ax: Axes) -> None:
    """Every recovery faint, and the mean of each row with its interval."""
    import seaborn as sns

    strategies = list(dict.fromkeys(data["strategy"]))
    common = {"data": data, "x": "_value", "y": "_row", "order": labels, "ax": ax, "legend": False}
    common |= {"hue": "strategy", "hue_order": strategies, "palette": style.colours(strategies)}
    sns.stripplot(**common, size=3.2, alpha=0.35, jitter=False, zorder=2)
    interval: dict[str, Any] = {"errorbar": ("ci", 95), "n_boot": 2000, "seed": BOOTSTRAP_SEED}
    interval["capsize"] = 0.25
    if data.duplicated(["_row", "_unit"]).any():
        interval["units"] = "_unit"  # failures of one replication are not independent
    shapes = {"linestyle": "none", "markers": list(style.markers(strategies).values()), "markersize": 6}
    sns.pointplot(**common, **interval, **shapes, err_kws={"linewidth": 1.6})


def _write_mean(ax: Axes, place: int, mean: str, most: float) -> None:
    right: dict[str, Any] = {"xytext": (11, 0), "textcoords": "offset points"}
    ax.annotate(mean, (most, place), fontsize=8, color=style.INK, va="center", **right)


def _undefined(ax: Axes, place: int, column: str) -> None:
    reason = find("recoveries", column).undefined.split(",")[0]
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
