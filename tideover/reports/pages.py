"""The pages of ``run``, ``compare`` and ``reproduce``: which tables and figures they have.

Called by the command line, and by other pages that show some of the same pictures. What is said of a picture
is in ``captions.toml``; a figure more is a function here that draws it, and its table there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.accounts.trace import Stretch
from tideover.models.evaluation.bottleneck import Load
from tideover.models.results import Result
from tideover.models.schema import HEADLINE
from tideover.models.simulation import Replication, watch
from tideover.reports import figures, tables, wording
from tideover.reports.columns import conform
from tideover.reports.conclusions import Verdict, of_record, run_sentence, verdict
from tideover.reports.figures import strategies, style
from tideover.reports.figures.cluster import MOST_HOSTS, MOST_WRITTEN
from tideover.reports.figures.space_time import MOST_TUPLES, only, space_time
from tideover.reports.figures.style import Panel, picture
from tideover.reports.figures.timeline import (
    MOST_FAILURES,
    WATERFALL_KEYS,
    by_strategy,
    known_s,
    legend_keys,
    of_first_replication,
    view_of,
)
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Page, Picture, Section
from tideover.reports.published import papers, reproduction_table
from tideover.reports.sweeps.points import points, points_table
from tideover.reports.tables import Record, collected_warnings, point_record, scenario_name, setup
from tideover.scenarios.sweeps.rows import summarise
from tideover.sim.units import S, parse_duration

if TYPE_CHECKING:
    import pandas as pd

# The space-time diagram of a run.

BEFORE = 0.1
"""The part of a stretch that is ahead of the failure in it, and that is behind the recovery."""
MOST_NOTED = 100_000
"""Messages of a stretch that nobody has chosen."""


def of_result(
    result: Result, stretch: Stretch | None = None, components: Collection[str] = (), *, inline: bool = False
) -> str:
    """The diagram of a result's first replication as SVG, which is run once more up to the end of the
    ``stretch`` (None: ``usual_stretch``). ``components``: those to be shown; none: all. ``inline``: for the
    inside of a page.
    """
    first = result.replications[0]
    found = watch(result.scenario, first.number, usual_stretch(result) if stretch is None else stretch)
    if components:
        found = only(found, components)
    many = f", replication {first.number}" if len(result.replications) > 1 else ""
    seed = f"seed {result.scenario.run.seed}{many}"
    title = f"{result.scenario.name}: {strategy_name(result.strategy)}, {seed}"
    return space_time(found, title, inline=inline)


def usual_stretch(result: Result) -> Stretch:
    """All of a small run; of a large one the stretch from before the first failure to the end of the recovery
    from it, or, if nothing fails, from the warm-up on. It has no more messages than can be noted.
    """
    run, first = result.scenario.run, result.replications[0]
    messages = _messages(first)
    if messages <= MOST_TUPLES:
        return Stretch(0, run.duration)
    begin, length = run.warmup, round(run.duration * MOST_TUPLES / 2 / messages)
    if first.recoveries:
        row = min(first.recoveries, key=lambda row: row["failed_at_s"])
        failed = round(row["failed_at_s"] * S)
        over = run.duration if row[HEADLINE] is None else failed + round(row[HEADLINE] * S)
        most = run.duration * MOST_NOTED // messages
        length = min(max(length, round((over - failed) / (1 - 2 * BEFORE))), most)
        begin = failed - round(length * BEFORE)
    begin = max(0, min(begin, run.duration - length))
    return Stretch(begin, min(begin + length, run.duration))


def _messages(one: Replication) -> int:
    """Tuples that went from task to task."""
    return sum(edge["messages"] for edge in one.edges.values())


def pictured(result: Result) -> tuple[Picture, ...]:
    """What the page of a run shows: none of a large one in which nothing fails."""
    first = result.replications[0]
    if not first.recoveries and _messages(first) > MOST_TUPLES:
        return ()
    return (picture("diagram", of_result(result, inline=True)),)


# The pictures of what runs on a cluster.


def cluster(usage: pd.DataFrame, recoveries: pd.DataFrame, record: Mapping[str, Any]) -> Iterable[Picture]:
    """What flows, who runs where and how busy all is, then over time; none where tasks share nothing."""
    if usage.empty:
        return
    busy, pairs, scenario = style.legend(), record["between_hosts"], record["scenario"]
    words = {"name": strategy_name(record["strategy"]), "kind": record["strategy"]}
    after = parse_duration(str(scenario["run"]["warmup"])) / S
    yield picture("topology", figures.topology(record["flows"], usage, after_s=after), busy, **words)
    racks = int(scenario["hosts"]["racks"]) if isinstance(scenario.get("hosts"), Mapping) else 1
    boxes = figures.hosts(usage, racks=racks, after_s=after)
    yield picture("hosts", boxes, busy, **words, most=MOST_HOSTS)
    if pairs:
        ends = {pair[end] for pair in pairs for end in ("from_host", "to_host")}
        hosts = sorted(ends | {int(host) for host in usage["host"].dropna().unique()})
        shades = style.traffic_legend(max(pair["bytes_per_s"] for pair in pairs))
        sums = ["sums"] if len(hosts) <= MOST_WRITTEN else []
        yield picture("traffic", figures.traffic(pairs, hosts), shades, sums, **words)
    failures = tuple(sorted(set(recoveries["failed_at_s"].astype(float))))[:12]
    yield picture("busy", figures.usage_over_time(usage, failures, after_s=after), busy, **words)


def at_capacity(loads: Sequence[Load], strategy: str, rate: str, racks: int) -> tuple[Picture, ...]:
    """Who runs where and how busy all is at the greatest ``rate`` (in words) that is sustained under a
    strategy; none where tasks share nothing.
    """
    import pandas as pd

    if all(load.kind == "task" for load in loads):
        return ()
    rows = [{"begin_s": 0.0, "end_s": 1.0, "resource": load.name, **load._asdict()} for load in loads]
    boxes = figures.hosts(pd.DataFrame(rows).drop(columns="name"), racks=racks)
    words = {"name": strategy_name(strategy), "kind": strategy, "rate": rate}
    return (picture("hosts-at-capacity", boxes, style.legend(), most=MOST_HOSTS, **words),)


# The pictures of recoveries and costs.


def at_a_glance(records: Sequence[Record]) -> tuple[Picture, ...]:
    """Many strategies in one picture; none for a few, which are seen at a glance anyhow."""
    if len(records) <= tables.MANY:
        return ()
    return (picture("glance", figures.glance(tables.rows(records))),)


def time_to_recover(recoveries: pd.DataFrame) -> tuple[Picture, ...]:
    """The headline by strategy, with its stages stacked; no picture without a failure."""
    if recoveries.empty:
        return ()
    keys = [*style.stage_keys(recoveries.columns), *strategies.KEYS]
    return (picture("stages", figures.recovery_stages(recoveries, legend=False), keys),)


def failure_by_failure(recoveries: pd.DataFrame) -> tuple[Picture, ...]:
    """The recovery from each failure of a run, a panel for each strategy; no picture of fewer than two."""
    each = {name: recoveries[recoveries["strategy"] == name] for name in recoveries["strategy"].unique()}
    struck = max((len(of_first_replication(mine)) for mine in each.values()), default=0)
    if struck < 2:
        return ()
    width = style.WIDTH_IN if len(each) == 1 else style.COLUMN_IN
    span = max(map(known_s, each.values()))
    panels = []
    for place, (name, mine) in enumerate(each.items()):
        ax = figures.waterfall(mine, span_s=span, width_in=width, legend=False)
        if len(each) > 1:
            ax.set_title(strategy_name(name))
        panels.append(Panel(ax, f"waterfall{place}", strategy_name(name)))
    keys = [*style.stage_keys(conform("recoveries", recoveries).columns), *WATERFALL_KEYS]
    many = ["many"] if struck > MOST_FAILURES else []
    return (picture("waterfall", panels, keys, many, struck=struck, most=MOST_FAILURES),)


def around_failure(ticks: pd.DataFrame, recoveries: pd.DataFrame) -> tuple[Picture, ...]:
    """Timelines around the failure: a panel for each strategy, all on the same axes."""
    ticks, recoveries = conform("timeline", ticks), conform("recoveries", recoveries)
    seen, panels = view_of(ticks, recoveries), []
    for place, (mine, failed) in enumerate(by_strategy(ticks, recoveries)):
        drawn = figures.timeline(mine, failed, seen=seen, legend=False)
        panels.append(Panel(drawn[0], f"timeline{place}", strategy_name(mine["strategy"].iloc[0])))
    name = "timeline-without-failure" if recoveries.empty else "timeline"
    return (picture(name, panels, legend_keys(recoveries)),)


def costs(runs: pd.DataFrame) -> tuple[Picture, ...]:
    """What each strategy costs, one panel for each resource; no picture if every run failed."""
    if runs["error"].notna().all():
        return ()
    drawn = zip(figures.RESOURCES.items(), figures.cost(runs, apart=True), strict=True)
    panels = [Panel(ax, f"cost-{resource}", label) for (resource, label), ax in drawn]
    return (picture("costs", panels, reference=figures.relative_to(runs)),)


# Pages of a run, and of a comparison.


def run_page(result: Result, diagram: Sequence[Picture] = ()) -> Page:
    """One scenario under one strategy. ``diagram``: its space-time diagram."""
    record = result.to_dict()
    recoveries, ticks = (join([result], name) for name in ("recoveries", "timeline"))
    drawn = (*time_to_recover(recoveries), *failure_by_failure(recoveries))
    shown = (tables.overview([record], brief=True), tables.blocked_table(record))
    return _page(
        "one scenario, one strategy",
        run_sentence(of_record(record)),
        [record],
        Section("Figures", "figures", pictures=(*drawn, *around_failure(ticks, recoveries), *diagram)),
        cluster_section([result]),
        Section("Results", "results", tables=shown),
        _details([record]),
    )


def compare_page(results: Sequence[Result], found: Verdict | None = None) -> Page:
    """The same scenario under several strategies; the first is the reference."""
    records = [result.to_dict() for result in results]
    recoveries, runs, ticks = (join(results, name) for name in ("recoveries", "runs", "timeline"))
    found = found or verdict(recoveries, runs)
    drawn = (*at_a_glance(records), *time_to_recover(recoveries), *failure_by_failure(recoveries))
    compared = tables.overview(records, brief=True), tables.pairs_table(found.pairs, found.lossy)
    return _page(
        "the same scenario and failures under several strategies, with the same luck",
        found.text,
        records,
        Section("Figures", "figures", pictures=(*drawn, *around_failure(ticks, recoveries), *costs(runs))),
        cluster_section(results),
        Section("Results", "results", tables=(*compared, *map(tables.blocked_table, records))),
        _details(records),
    )


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


def _details(records: Sequence[Record]) -> Section:
    return Section("All figures in numbers", "details", tables=(tables.overview(records),), untitled=True)


def join(results: Iterable[Result], table: str) -> pd.DataFrame:
    import pandas as pd

    frames = [conform(table, getattr(result, table)) for result in results]
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else frames[0]


def _page(
    kind: str, verdict: str, records: Sequence[Record], *sections: Section, warnings: Sequence[str] = ()
) -> Page:
    shown: dict[str, tuple[str, Any]] = {}  # each once
    for record in records:
        point = f"point {record['point']}: " if "point" in record else ""
        label, data = point + strategy_name(record["strategy"]), record["scenario"]
        shown.setdefault(json.dumps(data), (label, data))
    return Page(
        title=", ".join(dict.fromkeys(scenario_name(record) for record in records)),
        kind=kind,
        verdict=verdict,
        setup=tuple(setup(records)),
        sections=sections,
        warnings=tuple(dict.fromkeys([*collected_warnings(records), *warnings])),
        scenarios=tuple(shown.values()),
    )


# The page of a published table beside the simulated one.

WHY_SIXTY = Section(
    "Why source replay takes this long", "why", steps=tuple(papers()["stableford-phase2"]["findings"])
)
CELL = ("strategy", "tuples_per_s", "fail_at_s")
"""What identifies a published recovery."""


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
    State recovery is drawn where figures of it are published, since that is what they measured.
    """
    recoveries, runs = conform("recoveries", recoveries), conform("runs", runs)
    found = points(*summarise(recoveries, runs, parameters), parameters)
    records = [point_record(int(point), recoveries, runs) for point in found.numbers]
    known = pairs[pairs["published_s"].notna()]
    cells = known[[*CELL, "published_s"]].itertuples(index=False, name=None)
    marks = {row[:-1]: float(row[-1]) for row in cells}
    drawn = [] if timelines is None else [*around_failure(*timelines)]
    if not recoveries.empty:
        column, name = ("state_recovery_s", "recovery-and-published") if marks else (HEADLINE, "recovery")
        times = figures.recovery(recoveries, column=column, by=CELL[1:], published=marks)
        drawn.append(picture(name, times))
    every = points_table(found, range(len(found)), "Points of the sweep")
    published = Section(
        "Published beside simulated",
        "published",
        tables=(reproduction_table(pairs, title),),
        pictures=() if known.empty else (picture("published", figures.published(pairs)),),
        sources=(source,),
    )
    return _page(
        "a published experiment beside the simulated one",
        agreement_sentence(pairs),
        records,
        published,
        why,
        Section("Figures", "figures", pictures=(*drawn, *costs(runs))),
        Section("Results", "results", tables=(every,)),
        warnings=warnings,
    )


def agreement_sentence(pairs: pd.DataFrame) -> str:
    """In how many published cells the simulated mean agrees; the cells that do not are named."""
    known = pairs[pairs["published_s"].notna()]
    judged = known[known["within"].notna()]
    wrong = judged[~judged["within"].astype(bool)]
    return wording.text("agreement", len(known), len(judged), wrong.to_dict("records"))
