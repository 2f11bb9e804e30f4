"""The figures of a page, drawn as inline SVG, with captions that say what to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.reports import figures
from tideover.reports.columns import conform
from tideover.reports.figures.svg import to_svg
from tideover.reports.figures.timeline import MOST_COLUMNS, common_span
from tideover.reports.html import Picture
from tideover.reports.words import strategy_name

if TYPE_CHECKING:
    import pandas as pd


def recovery_times(
    recoveries: pd.DataFrame,
    by: Sequence[str] = (),
    published: Mapping[tuple[Any, ...], float] | None = None,
) -> tuple[Picture, ...]:
    """Recovery time by strategy, and by the values of ``by``; none without a failure."""
    if recoveries.empty:
        return ()
    figure = figures.recovery(recoveries, by=by, published=published).figure
    caption = (
        "Each faint dot is one recovery, each large mark the mean with its 95 % bootstrap interval. "
        "Look at the distance between the strategies; where an interval is narrower than its mark, luck "
        "plays no part in it."
    )
    if published:
        caption += " The black ticks are the published figures, and all times are as their logs show them."
    alt = "Recovery time of each strategy as dots with intervals; the table of results has the same figures."
    return (Picture("Recovery time by strategy", caption, to_svg(figure, prefix="recovery", alt=alt)),)


def around_failure(timeline: pd.DataFrame, recoveries: pd.DataFrame) -> tuple[Picture, ...]:
    """Timelines around the failure, three strategies to a picture."""
    names = list(dict.fromkeys(timeline["strategy"]))
    timeline, recoveries = conform("timeline", timeline), conform("recoveries", recoveries)
    span = common_span(timeline, recoveries)
    pictures = -(-len(names) // MOST_COLUMNS)
    found = []
    for start in range(pictures):
        shown = names[start * len(names) // pictures : (start + 1) * len(names) // pictures]
        listed = ", ".join(strategy_name(name) for name in shown)
        alt = f"Throughput, latency and backlog over time around the failure under {listed}."
        svg = to_svg(
            figures.timelines(timeline, recoveries, shown, span_s=span), prefix=f"timeline{start}", alt=alt
        )
        caption = (
            "From top to bottom: what the last stateful bolt processes, how old it is, and how much is "
            "waiting. The vertical line is the failure; the shaded spans are the stages of recovery, "
            "with their lengths above. Look for how long the latency stays up, and how long the backlog "
            "takes to drain."
        )
        if recoveries.empty:
            caption = (
                "From top to bottom: what the last stateful bolt processes, its age, and what is waiting."
            )
        title = f"{'Over time' if recoveries.empty else 'Around the failure'}: {listed}"
        found.append(Picture(title, caption, svg))
    return tuple(found)


def costs(runs: pd.DataFrame) -> tuple[Picture, ...]:
    """What each strategy costs; none if every run failed."""
    if runs["error"].notna().all():
        return ()
    figure = figures.cost(runs)[0].figure
    caption = (
        "Mean per run. What a fast recovery saves in time it costs here: copies of the work (CPU, "
        "hosts), of the stream (network, buffered tuples) or of the state (store)."
    )
    alt = "CPU time, network, store, buffered tuples and hosts of each strategy; also in the table."
    return (Picture("What each strategy costs", caption, to_svg(figure, prefix="cost", alt=alt)),)


def published_beside(pairs: pd.DataFrame) -> tuple[Picture, ...]:
    """Published cells beside the simulated ones; none if no cell was published."""
    if pairs["published_s"].isna().all():
        return ()
    figure = figures.published(pairs)[0].figure
    caption = (
        "Diamonds are the published figures; grey bars are what agrees with them, given that the "
        "study's logs had whole seconds; dots are the simulated means. A dot outside its bar is a "
        "figure that the simulation does not explain. Each strategy has its own scale."
    )
    alt = "Published and simulated recovery times, cell for cell; the table has the same figures."
    svg = to_svg(figure, prefix="published", alt=alt)
    return (Picture("Published and simulated recovery times", caption, svg),)
