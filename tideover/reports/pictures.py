"""The figures of a page, drawn as inline SVG, with captions that say what to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.schema.fields import HEADLINE
from tideover.reports import figures
from tideover.reports.columns import conform
from tideover.reports.figures import shades, style
from tideover.reports.figures.hosts import MOST_HOSTS
from tideover.reports.figures.stages import KEYS
from tideover.reports.figures.svg import css, to_svg
from tideover.reports.figures.timeline import common_scale, common_span, legend_keys
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Picture
from tideover.sim.units import S, parse_duration

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


def cluster(usage: pd.DataFrame, recoveries: pd.DataFrame, record: Mapping[str, Any]) -> tuple[Picture, ...]:
    """Who runs where and how busy all is, then over time; none where tasks share nothing."""
    if usage.empty:
        return ()
    name = strategy_name(record["strategy"])
    long = record["scenario"].get("hosts")
    racks = int(long["racks"]) if isinstance(long, Mapping) else 1
    after = parse_duration(str(record["scenario"]["run"]["warmup"])) / S
    failures = tuple(sorted(set(recoveries["failed_at_s"].astype(float))))[:12]
    prefix = f"cluster-{record['strategy']}"
    alt = f"Hosts under {name}, each with its cores, cards and tasks, and how busy they are."
    boxes = to_svg(figures.hosts(usage, racks=racks, after_s=after).figure, prefix=f"{prefix}-hosts", alt=alt)
    alt = f"How busy the busiest resources are over time under {name}."
    lines = figures.usage_over_time(usage, failures, after_s=after).figure
    legend = tuple((words, "area", colour) for words, colour in shades.legend())
    return (
        Picture(
            f"Who runs where: {name}",
            "Each box is a host with what its tasks share and the tasks on it; the darker, the busier (mean "
            "after the warm-up). What is full carries no more; look for what is full while its neighbours "
            f"idle. Of many hosts the {MOST_HOSTS} with the busiest resources are drawn.",
            boxes,
            legend,
        ),
        Picture(
            f"How busy, over time: {name}",
            "The busiest resources, the busiest first; red lines are failures. After a failure look at what "
            "gets full while the backlog is worked off: it sets how long that takes.",
            to_svg(lines, prefix=f"{prefix}-time", alt=alt),
            legend,
        ),
    )


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
