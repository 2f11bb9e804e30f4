"""The pages of ``run``, ``compare`` and ``reproduce``: which tables and figures each one shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tideover.reports import cluster_pictures, cluster_tables, pictures, tables
from tideover.reports.columns import conform
from tideover.reports.explain import why_sixty
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Grid, Page, Picture, Section
from tideover.reports.outcomes import of_record
from tideover.reports.published_tables import reproduction_table
from tideover.reports.scenario_summary import collected_warnings, point_record, scenario_name, setup
from tideover.reports.sweeps.points import points
from tideover.reports.sweeps.tables import points_table
from tideover.reports.tables import Record, Table
from tideover.reports.verdict import Verdict, run_sentence, verdict
from tideover.scenarios.sweeps.summary import summarise

if TYPE_CHECKING:
    import pandas as pd


WHY_SIXTY = Section("Why source replay takes this long", "why", steps=why_sixty())
CELL = ("strategy", "tuples_per_s", "fail_at_s")
"""What identifies a published recovery."""


class Result(Protocol):
    """What reports read of a result."""

    @property
    def recoveries(self) -> pd.DataFrame: ...
    @property
    def runs(self) -> pd.DataFrame: ...
    @property
    def timeline(self) -> pd.DataFrame: ...
    @property
    def usage(self) -> pd.DataFrame: ...
    def to_dict(self) -> dict[str, Any]: ...


def run_page(result: Result, diagram: Sequence[Picture] = ()) -> Page:
    """One scenario under one strategy. ``diagram``: its space-time diagram."""
    record = result.to_dict()
    recoveries, timeline = (join([result], name) for name in ("recoveries", "timeline"))
    drawn = (
        *pictures.time_to_recover(recoveries),
        *pictures.failure_by_failure(recoveries),
        *pictures.around_failure(timeline, recoveries),
        *diagram,
    )
    return _page(
        "one scenario, one strategy",
        run_sentence(of_record(record)),
        [record],
        figures_section(*drawn),
        cluster_section([result]),
        results_section(tables.overview([record], brief=True), cluster_tables.blocked_table(record)),
        _details([record]),
    )


def compare_page(results: Sequence[Result], found: Verdict | None = None) -> Page:
    """The same scenario under several strategies; the first is the reference."""
    records = [result.to_dict() for result in results]
    recoveries, runs, timeline = (join(results, name) for name in ("recoveries", "runs", "timeline"))
    found = found or verdict(recoveries, runs)
    drawn = (
        *pictures.at_a_glance(records),
        *pictures.time_to_recover(recoveries),
        *pictures.failure_by_failure(recoveries),
        *pictures.around_failure(timeline, recoveries),
    )
    return _page(
        "the same scenario and failures under several strategies, with the same luck",
        found.text,
        records,
        figures_section(*drawn, *pictures.costs(runs)),
        cluster_section(results),
        results_section(
            tables.overview(records, brief=True),
            tables.pairs_table(found.pairs, found.lossy),
            *map(cluster_tables.blocked_table, records),
        ),
        _details(records),
    )


def figures_section(*drawn: Picture) -> Section:
    """What a page shows as pictures."""
    return Section("Figures", "figures", pictures=drawn)


def cluster_section(results: Sequence[Result]) -> Section:
    """Hosts, what runs on them and how busy it is; nothing where tasks share nothing."""
    sentences: list[str] = []
    drawn: list[Picture] = []
    flows: list[Table] = []
    for result in results:
        record = result.to_dict()
        if "bottleneck" in record:
            sentences.append(f"{strategy_name(record['strategy'])}: {record['bottleneck']}.")
            drawn += cluster_pictures.cluster(result.usage, result.recoveries, record)
            flows.append(cluster_tables.flows_table(record))
    said, shown = tuple(sentences), tuple(drawn)
    return Section("The cluster", "cluster", sentences=said, tables=tuple(flows), pictures=shown)


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
        pictures=pictures.published_and_simulated(pairs),
        sources=(source,),
    )
    around = () if timelines is None else pictures.around_failure(*timelines)
    times = pictures.recovery_times(recoveries, CELL[1:], marks)
    return _page(
        "a published experiment beside the simulated one",
        agreement_sentence(pairs),
        records,
        published,
        why,
        figures_section(*around, *times, *pictures.costs(runs)),
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
