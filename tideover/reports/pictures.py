"""The figures of a page, drawn as inline SVG, with captions that say what to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.schema.fields import HEADLINE
from tideover.reports import figures, glance
from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.figures.stages import KEYS
from tideover.reports.figures.svg import css, to_svg
from tideover.reports.figures.timeline import common_scale, common_span, legend_keys
from tideover.reports.figures.waterfall import KEYS as WATERFALL_KEYS
from tideover.reports.figures.waterfall import MOST_FAILURES, known_s, of_first_replication
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Picture
from tideover.reports.tables import Record

if TYPE_CHECKING:
    import pandas as pd


def recovery_times(
    recoveries: pd.DataFrame,
    by: Sequence[str] = (),
    published: Mapping[tuple[Any, ...], float] | None = None,
) -> tuple[Picture, ...]:
    """Time to recover by strategy and the values of ``by``. With ``published`` figures state recovery, since
    that is what they measured. No picture without a failure.
    """
    if recoveries.empty:
        return ()
    column, name = ("state_recovery_s", "State recovery") if published else (HEADLINE, "Time to recover")
    figure = figures.recovery(recoveries, column=column, by=by, published=published).figure
    caption = (
        "Each faint dot is one recovery, each large mark the mean with its 95 % bootstrap interval. "
        "Look at the distance between the strategies; where an interval is narrower than its mark, luck "
        "plays no part in it."
    )
    if published:
        caption += " The black ticks are the published figures, and all times are as their logs show them."
    alt = "Recovery time of each strategy as dots with intervals; the table of results has the same figures."
    return (Picture(f"{name} by strategy", caption, to_svg(figure, prefix="recovery", alt=alt)),)


def at_a_glance(records: Sequence[Record]) -> tuple[Picture, ...]:
    """Many strategies in one picture; none for a few, which are seen at a glance anyhow."""
    if len(records) <= glance.MANY:
        return ()
    figure = figures.glance(glance.rows(records)).figure
    caption = (
        "The same load, failures and luck under each, the fastest on top. Bars of one column share "
        "a scale. Latency is the mean outside of recoveries; (n/m): n of m recoveries came to an end, never: "
        "none did. Look from left to right: what is gained in a failure is paid for without one."
    )
    alt = "Each strategy's recovery, losses, latency and costs as bars; the tables have the same figures."
    svg = to_svg(figure, prefix="glance", alt=alt)
    return (Picture("All strategies at a glance", caption, svg),)


def time_to_recover(recoveries: pd.DataFrame) -> tuple[Picture, ...]:
    """The headline by strategy, with its stages stacked; no picture without a failure."""
    if recoveries.empty:
        return ()
    figure = figures.recovery_stages(recoveries, legend=False).figure
    caption = (
        "From the failure until output, state and backlog are as they would have been without failures; mean "
        "of the recoveries, with its 95 % bootstrap interval. Look at which stage takes the time: detection "
        "and restart are the same for strategies that do both alike; a wait is for the source's timeout; and "
        "windows that were spoilt are right again only when they are over."
    )
    alt = "Time to recover of each strategy in stages; the table of results has the same figures."
    svg = to_svg(figure, prefix="stages", alt=alt)
    keys = [*style.stage_keys(recoveries.columns), *KEYS]
    return (Picture("Time to recover by strategy", caption, svg, _legend(keys)),)


def failure_by_failure(recoveries: pd.DataFrame) -> tuple[Picture, ...]:
    """The recovery from each failure of a run, a panel for each strategy; no picture of fewer than two."""
    names = list(dict.fromkeys(recoveries["strategy"]))
    each = [recoveries[recoveries["strategy"] == name] for name in names]
    struck = max((len(of_first_replication(mine)) for mine in each), default=0)
    if struck < 2:
        return ()
    width = style.WIDTH_IN if len(names) == 1 else style.COLUMN_IN
    span = max(map(known_s, each))
    panels = []
    for place, (name, mine) in enumerate(zip(names, each, strict=True)):
        ax = figures.waterfall(mine, span_s=span, width_in=width, legend=False)
        if len(names) > 1:
            ax.set_title(strategy_name(name))
        alt = f"Stages of the recovery from each failure under {strategy_name(name)}; the table has them."
        panels.append(to_svg(ax.figure, prefix=f"waterfall{place}", alt=alt))
    caption = (
        "Each failure of the first replication: when it struck, what it hit, how long the recovery took, "
        "and its stages. A red line is a later failure that struck before the recovery was over, and "
        "prolonged it."
    )
    if struck > MOST_FAILURES:
        caption += f" Of {struck} failures the first {MOST_FAILURES} are drawn; recoveries.parquet has all."
    keys = [*style.stage_keys(conform("recoveries", recoveries).columns), *WATERFALL_KEYS]
    return (Picture("Recovery, failure by failure", caption, "\n".join(panels), _legend(keys)),)


def around_failure(timeline: pd.DataFrame, recoveries: pd.DataFrame) -> tuple[Picture, ...]:
    """Timelines around the failure: a panel for each strategy, all on the same axes."""
    names = list(dict.fromkeys(timeline["strategy"]))
    timeline, recoveries = conform("timeline", timeline), conform("recoveries", recoveries)
    span = common_span(timeline, recoveries)
    scale = common_scale(timeline, recoveries, span)
    panels = []
    for place, name in enumerate(names):
        mine = [frame[frame["strategy"] == name] for frame in (timeline, recoveries)]
        figure = figures.timeline(*mine, span_s=span, scale=scale, legend=False)[0].figure
        alt = f"Throughput, latency and backlog over time around the failure under {strategy_name(name)}."
        panels.append(to_svg(figure, prefix=f"timeline{place}", alt=alt))
    caption = (
        "From top to bottom: what the last stateful bolt processes, how old it is since it was first "
        "emitted, and how much is waiting; bands are the range of the replications. The strip above each "
        "panel has the stages of the recovery, with their mean lengths. Look for how long the latency stays "
        "up, and how long the backlog takes to drain."
    )
    if recoveries.empty:
        caption = (
            "From top to bottom: what the last stateful bolt processes, its age, and what is waiting; bands "
            "are the range of the replications."
        )
    title = "Over time" if recoveries.empty else "Around the failure"
    keys = legend_keys(recoveries)
    return (Picture(title, caption, "\n".join(panels), _legend(keys)),)


def _legend(keys: Sequence[style.Key]) -> tuple[tuple[str, str, str], ...]:
    return tuple((key.label, key.shape, css(key.colour)) for key in keys)


def costs(runs: pd.DataFrame) -> tuple[Picture, ...]:
    """What each strategy costs, one panel for each resource; no picture if every run failed."""
    if runs["error"].notna().all():
        return ()
    panels = []
    for resource, ax in zip(figures.RESOURCES, figures.cost(runs, apart=True), strict=True):
        alt = f"{figures.RESOURCES[resource]} of each strategy; also in the table."
        panels.append(to_svg(ax.figure, prefix=f"cost-{resource}", alt=alt))
    caption = (
        f"Mean per run; ×: relative to {figures.relative_to(runs)}. What a fast recovery saves in time it "
        "costs here: copies of the work (CPU, hosts), of the stream (network, buffered tuples) or of the "
        "state (store)."
    )
    return (Picture("What each strategy costs", caption, "\n".join(panels)),)


def published_and_simulated(pairs: pd.DataFrame) -> tuple[Picture, ...]:
    """Published and simulated cells; no picture if no cell was published."""
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
