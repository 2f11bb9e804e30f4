"""The pages of ``run``, ``compare`` and ``reproduce``: which tables and figures they have."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.accounts.trace import Stretch
from tideover.models.evaluation.bottleneck import Load
from tideover.models.schema import HEADLINE
from tideover.models.simulation import Replication, watch
from tideover.reports import figures, tables
from tideover.reports.columns import conform
from tideover.reports.conclusions import Verdict, of_record, run_sentence, verdict
from tideover.reports.figures import style
from tideover.reports.figures.cluster import MOST_HOSTS, MOST_WRITTEN
from tideover.reports.figures.space_time import MOST_TUPLES, only, space_time
from tideover.reports.figures.strategies import KEYS
from tideover.reports.figures.style import css, to_svg
from tideover.reports.figures.timeline import (
    MOST_FAILURES,
    common_scale,
    common_span,
    known_s,
    legend_keys,
    of_first_replication,
)
from tideover.reports.figures.timeline import (
    WATERFALL_KEYS as WATERFALL_KEYS,
)
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Grid, Page, Picture, Section
from tideover.reports.published import reproduction_table, why_sixty
from tideover.reports.sweeps.points import points, points_table
from tideover.reports.tables import Record, Table, collected_warnings, point_record, scenario_name, setup
from tideover.scenarios.sweeps.rows import summarise
from tideover.sim.units import S, parse_duration

if TYPE_CHECKING:
    import pandas as pd

    from tideover.models.results import Result


BEFORE = 0.1
"""The part of a stretch that is ahead of the failure in it, and that is behind the recovery."""
MOST_NOTED = 100_000
"""Messages of a stretch that nobody has chosen."""


def of_result(
    result: Result,
    stretch: Stretch | None = None,
    components: Collection[str] = (),
    *,
    inline: bool = False,
) -> str:
    """The diagram of a result's first replication as SVG, which is run once more up to the end of the
    ``stretch`` (None: ``usual_stretch``). ``components``: those to be shown; none: all. ``inline``: for the
    inside of a page.
    """
    first = result.replications[0]
    stretch = usual_stretch(result) if stretch is None else stretch
    found = watch(result.scenario, first.number, stretch)
    if components:
        found = only(found, components)
    seed = f"seed {result.scenario.run.seed}"
    many = f", replication {first.number}" if len(result.replications) > 1 else ""
    title = f"{result.scenario.name}: {strategy_name(result.strategy)}, {seed}{many}"
    return space_time(found, title, inline=inline)


def usual_stretch(result: Result) -> Stretch:
    """All of a small run; of a large one the stretch from before the first failure to the end of the recovery
    from it, or, if nothing fails, from the warm-up on. It has no more messages than can be noted.
    """
    run, first = result.scenario.run, result.replications[0]
    messages = _messages(first)
    if messages <= MOST_TUPLES:
        return Stretch(0, run.duration)
    legible = round(run.duration * MOST_TUPLES / 2 / messages)
    if not first.recoveries:
        return _within(run.warmup, legible, run.duration)
    row = min(first.recoveries, key=lambda row: row["failed_at_s"])
    failed = round(row["failed_at_s"] * S)
    over = run.duration if row[HEADLINE] is None else failed + round(row[HEADLINE] * S)
    most = run.duration * MOST_NOTED // messages
    length = min(max(legible, round((over - failed) / (1 - 2 * BEFORE))), most)
    return _within(failed - round(length * BEFORE), length, run.duration)


def _within(begin: int, length: int, duration: int) -> Stretch:
    begin = max(0, min(begin, duration - length))
    return Stretch(begin, min(begin + length, duration))


def _messages(one: Replication) -> int:
    """Tuples that went from task to task."""
    return sum(edge["messages"] for edge in one.edges.values())


def pictured(result: Result) -> tuple[Picture, ...]:
    """What the page of a run shows: none of a large one in which nothing fails."""
    first = result.replications[0]
    if not first.recoveries and _messages(first) > MOST_TUPLES:
        return ()
    what = "Each line is a task over time, each arrow a message; "
    what += "the text of an arrow or a mark, beside the pointer, names the tuple, or the step. "
    what += "Look at what is lost while a task is down, and what comes again afterwards."
    return (Picture("Who sends what to whom", what, of_result(result, inline=True)),)


_BOXES = (
    "Each box is a host with what its tasks share and the tasks on it; the darker, the busier (mean after "
    "the warm-up)."
)
Legend = tuple[tuple[str, str, str], ...]
_MANY = f"Of many hosts the {MOST_HOSTS} with the busiest resources are drawn."


def cluster(usage: pd.DataFrame, recoveries: pd.DataFrame, record: Mapping[str, Any]) -> tuple[Picture, ...]:
    """What flows, who runs where and how busy all is, then over time; none where tasks share nothing."""
    if usage.empty:
        return ()
    after = parse_duration(str(record["scenario"]["run"]["warmup"])) / S
    return (
        _topology(usage, record, after),
        _hosts(usage, record, after),
        *_traffic(usage, record),
        _over_time(usage, recoveries, record, after),
    )


def at_capacity(loads: Sequence[Load], strategy: str, rate: str, racks: int) -> tuple[Picture, ...]:
    """Who runs where and how busy all is at the greatest ``rate`` (in words) that is sustained under a
    strategy; none where tasks share nothing.
    """
    import pandas as pd

    name = strategy_name(strategy)
    if all(load.kind == "task" for load in loads):
        return ()
    rows = [{"begin_s": 0.0, "end_s": 1.0, "resource": load.name, **load._asdict()} for load in loads]
    return (
        _picture(
            f"Who runs where, at {rate} tuples/s: {name}",
            f"{_BOXES} What is full sets the limit; what is dark comes next. {_MANY}",
            figures.hosts(pd.DataFrame(rows).drop(columns="name"), racks=racks).figure,
            f"capacity-{strategy}",
            f"Hosts under {name}, each with its cores, cards and tasks, and how busy they are at {rate} "
            "tuples/s.",
            _areas(style.legend()),
        ),
    )


def _topology(usage: pd.DataFrame, record: Mapping[str, Any], after: float) -> Picture:
    name = strategy_name(record["strategy"])
    return _picture(
        f"What flows: {name}",
        "Each box is a component, as dark as its busiest task is busy (mean after the warm-up); the wider an "
        "arrow, the more bytes flow there (mean over the whole run, without acks, checkpoints and copies).",
        figures.topology(record["flows"], usage, after_s=after).figure,
        f"cluster-{record['strategy']}-topology",
        f"The topology under {name}: how busy components are, and what flows; the table has the figures.",
        _areas(style.legend()),
    )


def _hosts(usage: pd.DataFrame, record: Mapping[str, Any], after: float) -> Picture:
    name, long = strategy_name(record["strategy"]), record["scenario"].get("hosts")
    racks = int(long["racks"]) if isinstance(long, Mapping) else 1
    return _picture(
        f"Who runs where: {name}",
        f"{_BOXES} What is full carries no more; look for what is full while its neighbours idle. {_MANY}",
        figures.hosts(usage, racks=racks, after_s=after).figure,
        f"cluster-{record['strategy']}-hosts",
        f"Hosts under {name}, each with its cores, cards and tasks, and how busy they are.",
        _areas(style.legend()),
    )


def _traffic(usage: pd.DataFrame, record: Mapping[str, Any]) -> tuple[Picture, ...]:
    """No picture if nothing flows between hosts."""
    pairs = record["between_hosts"]
    if not pairs:
        return ()
    name = strategy_name(record["strategy"])
    ends = {pair[end] for pair in pairs for end in ("from_host", "to_host")}
    hosts = sorted(ends | {int(host) for host in usage["host"].dropna().unique()})
    caption = (
        "From the host of the row to that of the column, bytes per second (mean over the whole run). A dark "
        "row is a host that sends much, a dark column one that receives much; what stays on a host needs no "
        "card, and is not here."
    )
    if len(hosts) <= MOST_WRITTEN:
        caption += " In bold what each sends and receives in all."
    return (
        _picture(
            f"What flows between hosts: {name}",
            caption,
            figures.traffic(pairs, hosts).figure,
            f"cluster-{record['strategy']}-traffic",
            f"Bytes per second from each host to each other one under {name}; result.json has the figures.",
            _areas(style.traffic_legend(max(pair["bytes_per_s"] for pair in pairs))),
        ),
    )


def _over_time(
    usage: pd.DataFrame, recoveries: pd.DataFrame, record: Mapping[str, Any], after: float
) -> Picture:
    name = strategy_name(record["strategy"])
    failures = tuple(sorted(set(recoveries["failed_at_s"].astype(float))))[:12]
    return _picture(
        f"How busy, over time: {name}",
        "The busiest resources, the busiest first; red lines are failures. After a failure look at what gets "
        "full while the backlog is worked off: it sets how long that takes.",
        figures.usage_over_time(usage, failures, after_s=after).figure,
        f"cluster-{record['strategy']}-time",
        f"How busy the busiest resources are over time under {name}.",
        _areas(style.legend()),
    )


def _picture(
    title: str,
    caption: str,
    figure: Any,
    prefix: str,
    alt: str,
    legend: tuple[tuple[str, str, str], ...] = (),
) -> Picture:
    return Picture(title, caption, to_svg(figure, prefix=prefix, alt=alt), legend)


def _areas(words: Iterable[tuple[str, str]]) -> Legend:
    """A legend of coloured areas."""
    return tuple((text, "area", colour) for text, colour in words)


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
    return (_picture(f"{name} by strategy", caption, figure, "recovery", alt),)


def at_a_glance(records: Sequence[Record]) -> tuple[Picture, ...]:
    """Many strategies in one picture; none for a few, which are seen at a glance anyhow."""
    if len(records) <= tables.MANY:
        return ()
    figure = figures.glance(tables.rows(records)).figure
    caption = (
        "The same load, failures and luck under each, the fastest on top. Bars of one column share "
        "a scale. Latency is the mean outside of recoveries; (n/m): n of m recoveries came to an end, never: "
        "none did. Look from left to right: what is gained in a failure is paid for without one."
    )
    alt = "Each strategy's recovery, losses, latency and costs as bars; the tables have the same figures."
    return (_picture("All strategies at a glance", caption, figure, "glance", alt),)


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
    legend = _legend([*style.stage_keys(recoveries.columns), *KEYS])
    return (_picture("Time to recover by strategy", caption, figure, "stages", alt, legend),)


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
    return (Picture(title, caption, "\n".join(panels), _legend(legend_keys(recoveries))),)


def _legend(keys: Sequence[style.Key]) -> Legend:
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
    return (_picture("Published and simulated recovery times", caption, figure, "published", alt),)


WHY_SIXTY = Section("Why source replay takes this long", "why", steps=why_sixty())
CELL = ("strategy", "tuples_per_s", "fail_at_s")
"""What identifies a published recovery."""


def run_page(result: Result, diagram: Sequence[Picture] = ()) -> Page:
    """One scenario under one strategy. ``diagram``: its space-time diagram."""
    record = result.to_dict()
    recoveries, timeline = (join([result], name) for name in ("recoveries", "timeline"))
    drawn = (
        *time_to_recover(recoveries),
        *failure_by_failure(recoveries),
        *around_failure(timeline, recoveries),
        *diagram,
    )
    return _page(
        "one scenario, one strategy",
        run_sentence(of_record(record)),
        [record],
        figures_section(*drawn),
        cluster_section([result]),
        results_section(tables.overview([record], brief=True), tables.blocked_table(record)),
        _details([record]),
    )


def compare_page(results: Sequence[Result], found: Verdict | None = None) -> Page:
    """The same scenario under several strategies; the first is the reference."""
    records = [result.to_dict() for result in results]
    recoveries, runs, timeline = (join(results, name) for name in ("recoveries", "runs", "timeline"))
    found = found or verdict(recoveries, runs)
    drawn = (
        *at_a_glance(records),
        *time_to_recover(recoveries),
        *failure_by_failure(recoveries),
        *around_failure(timeline, recoveries),
    )
    return _page(
        "the same scenario and failures under several strategies, with the same luck",
        found.text,
        records,
        figures_section(*drawn, *costs(runs)),
        cluster_section(results),
        results_section(
            tables.overview(records, brief=True),
            tables.pairs_table(found.pairs, found.lossy),
            *map(tables.blocked_table, records),
        ),
        _details(records),
    )


def figures_section(*drawn: Picture) -> Section:
    """What a page shows as pictures."""
    return Section("Figures", "figures", pictures=drawn)


def cluster_section(results: Sequence[Result]) -> Section:
    """Hosts, what runs on them and how busy it is; nothing where tasks share nothing."""
    shared = [(result, record) for result in results if "bottleneck" in (record := result.to_dict())]
    return Section(
        "The cluster",
        "cluster",
        sentences=tuple(f"{strategy_name(each['strategy'])}: {each['bottleneck']}." for _, each in shared),
        tables=tuple(tables.flows_table(each) for _, each in shared),
        pictures=tuple(p for one, each in shared for p in cluster(one.usage, one.recoveries, each)),
    )


def results_section(*shown: Table, grid: Grid | None = None) -> Section:
    """What a page shows as tables."""
    return Section("Results", "results", tables=shown, grid=grid)


def _details(records: Sequence[Record]) -> Section:
    return Section("All figures in numbers", "details", tables=(tables.overview(records),), untitled=True)


def reproduce_page(
    pairs: pd.DataFrame,
    recoveries: pd.DataFrame,
    runs: pd.DataFrame,
    *,
    title: str,
    source: str,
    parameters: Mapping[str, str],
    timelines: tuple[pd.DataFrame, pd.DataFrame] | None = None,
    warnings: Sequence[str] = (),
    why: Section = WHY_SIXTY,
) -> Page:
    """A published table and the simulated one, cell by cell.

    ``recoveries`` has the columns of ``published.with_cells``, ``pairs`` comes from
    ``published.pair_recoveries``; ``timelines``: timeline and recoveries of one cell under each strategy.
    """
    recoveries, runs = conform("recoveries", recoveries), conform("runs", runs)
    found = points(*summarise(recoveries, runs, parameters), parameters)
    records = [point_record(int(point), recoveries, runs) for point in found.numbers]
    known = pairs[pairs["published_s"].notna()]
    cells = known[[*CELL, "published_s"]].itertuples(index=False, name=None)
    marks = {row[:-1]: float(row[-1]) for row in cells}
    published = Section(
        "Published beside simulated",
        "published",
        tables=(reproduction_table(pairs, title),),
        pictures=published_and_simulated(pairs),
        sources=(source,),
    )
    around = () if timelines is None else around_failure(*timelines)
    times = recovery_times(recoveries, CELL[1:], marks)
    return _page(
        "a published experiment beside the simulated one",
        agreement_sentence(pairs),
        records,
        published,
        why,
        figures_section(*around, *times, *costs(runs)),
        results_section(points_table(found, range(len(found)), "Points of the sweep")),
        warnings=warnings,
    )


def agreement_sentence(pairs: pd.DataFrame) -> str:
    """In how many published cells the simulated mean agrees; the cells that do not are named."""
    known = pairs[pairs["published_s"].notna()]
    judged = known[known["within"].notna()]
    wrong = judged[~judged["within"].astype(bool)]
    text = f"{len(judged) - len(wrong)} of {len(known)} published recovery times are met"
    if len(judged) < len(known):
        text += f", {len(known) - len(judged)} were not simulated or have no recovery time"
    missed = [
        f"{strategy_name(row['strategy'])} at {row['tuples_per_s']:g} tuples/s, {row['fail_at_s']:g} s "
        f"(published {row['published_s']:g} s, simulated {row['simulated_s']:.2f} s)"
        for row in wrong.to_dict("records")
    ]
    return f"{text}; not met: {'; '.join(missed)}." if missed else f"{text}."


def join(results: Iterable[Result], table: str) -> pd.DataFrame:
    """One table of several results, one after the other."""
    import pandas as pd

    frames = [conform(table, getattr(result, table)) for result in results]
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else frames[0]


def _page(
    kind: str, verdict: str, records: Sequence[Record], *sections: Section, warnings: Sequence[str] = ()
) -> Page:
    return Page(
        title=", ".join(dict.fromkeys(scenario_name(record) for record in records)),
        kind=kind,
        verdict=verdict,
        setup=tuple(setup(records)),
        sections=sections,
        warnings=tuple(dict.fromkeys([*collected_warnings(records), *warnings])),
        scenarios=_scenarios(records),
    )


def _scenarios(records: Sequence[Record]) -> tuple[tuple[str, str], ...]:
    shown: dict[str, str] = {}
    for record in records:
        text = json.dumps(record["scenario"], indent=2, ensure_ascii=False)
        point = f"point {record['point']}: " if "point" in record else ""
        shown.setdefault(text, point + strategy_name(record["strategy"]))
    return tuple((label, text) for text, label in shown.items())
