"""The pictures of a calibration: figures with their captions, as inline SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.reports import figures
from tideover.reports.calibration.tables import episode_name
from tideover.reports.figures.svg import to_svg
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Picture

if TYPE_CHECKING:
    import pandas as pd


def scatter(pairs: pd.DataFrame) -> tuple[Picture, ...]:
    """Predicted over measured, from ``predictions.judged``; no picture if nothing can be drawn."""
    drawable = (pairs["measured"] > 0) & (pairs["predicted"] > 0)
    if not drawable.any():
        return ()
    figure = figures.predictions(pairs)[0].figure
    caption = (
        "Each mark is one episode of a real run; on the line the prediction is exact. Look at the filled "
        "marks: the fit has not seen them. A bar that misses the line is an interval that does not hold what "
        "was measured; such predictions, and those off by more than 30 %, have a ring."
    )
    left_out = int((~drawable & pairs["error"].notna()).sum())
    if left_out:
        caption += f" Not drawn, for want of a figure on one side, but in the table: {left_out}."
    alt = "Predicted over measured figures, by measure and strategy; the tables have the same figures."
    return (Picture("Measured and predicted", caption, to_svg(figure, prefix="predictions", alt=alt)),)


_OVER = {
    "rate_per_s": ("the input rate", "A slope means that the cost of a row is wrong."),
    "keys": ("the number of keys", "A slope means that the cost of state is wrong."),
    "moment_s": (
        "the moment of the fault within its batch",
        "A slope means that the model takes the loss of a batch under way too lightly or too seriously.",
    ),
}


def residuals(pairs: pd.DataFrame) -> tuple[Picture, ...]:
    """Errors over rate, keys and moment; only where there is something to compare."""
    import numpy as np

    found = []
    for over, (title, hint) in _OVER.items():
        known = pairs[np.isfinite(pairs["error"]) & pairs[over].notna()]
        if known[over].nunique() < 2:
            continue
        figure = figures.residuals(known, over)[0].figure
        caption = f"Above zero the prediction is too long, below too short. {hint}"
        alt = f"Errors of prediction in percent over {title}, by measure; the tables have the same figures."
        svg = to_svg(figure, prefix=f"residuals-{over.replace('_', '-')}", alt=alt)
        found.append(Picture(f"Residuals over {title}", caption, svg))
    return tuple(found)


def backlogs(timelines: pd.DataFrame, pairs: pd.DataFrame) -> tuple[Picture, ...]:
    """For each strategy and fault the episode with the median error; then those with the greatest errors."""
    typical, worst = chosen(timelines, pairs)
    if typical.empty:
        return ()
    what = "Rows that have come in and are not in the sink's results yet, from the fault on."
    title, which = "Real and simulated backlog", "One episode of each"
    if worst.empty:
        return (_backlogs(title, f"{what} {which}: {_named(typical)}.", typical, "typical"),)
    which = "Of the held-out episodes those with the median error"
    most = f"{what} The episodes with the greatest error: {_named(worst)}."
    return (
        _backlogs(f"{title}: typical episodes", f"{what} {which}: {_named(typical)}.", typical, "typical"),
        _backlogs(f"{title}: worst episodes", most, worst, "worst"),
    )


def _backlogs(title: str, caption: str, part: pd.DataFrame, key: str) -> Picture:
    figure = figures.backlogs(part)[0].figure
    return Picture(title, caption, to_svg(figure, prefix=f"backlog-{key}", alt=title))


def chosen(timelines: pd.DataFrame, pairs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The timelines of one typical episode for each strategy and fault, and those of the worst ones.

    An episode's error is the mean of its absolute errors; held-out episodes go first. A worst episode is
    left out if it is also the typical one.
    """
    import numpy as np

    keys = ["session", "episode"]
    errors = pairs.assign(_error=np.minimum(pairs["error"].abs(), 1e9)).groupby(keys)["_error"].mean()
    unseen = set(pairs[pairs["held_out"]][keys].itertuples(index=False, name=None))
    typical: list[Any] = []
    worst: list[Any] = []
    for _, part in timelines.groupby(["fault", "strategy"], sort=False):
        episodes = list(dict.fromkeys(part[keys].itertuples(index=False, name=None)))
        candidates = [one for one in episodes if one in unseen] or episodes
        ranked = sorted(candidates, key=lambda one: (np.nan_to_num(errors.get(one, np.nan), nan=1e9), one))
        typical.append(ranked[(len(ranked) - 1) // 2])
        if ranked[-1] != typical[-1]:
            worst.append(ranked[-1])
    named = [tuple(row) for row in timelines[keys].itertuples(index=False, name=None)]
    return tuple(timelines[[row in found for row in named]] for found in (set(typical), set(worst)))  # type: ignore[return-value]


def _named(timelines: pd.DataFrame) -> str:
    episodes = timelines.drop_duplicates(["session", "episode"]).to_dict("records")
    return ", ".join(f"{strategy_name(row['strategy'])} {episode_name(row)}" for row in episodes)
