"""The pages of ``run``, ``compare`` and ``reproduce``: which tables and figures each one shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tideover import __version__
from tideover.reports import pictures, tables
from tideover.reports.asked import asked, collected_warnings, configuration, scenario_name
from tideover.reports.beside import reproduction_table
from tideover.reports.columns import conform
from tideover.reports.explain import why_sixty
from tideover.reports.html import Page
from tideover.reports.sweeps.points import points
from tideover.reports.sweeps.tables import points_table
from tideover.reports.tables import Record, Table
from tideover.reports.verdict import Verdict, run_sentence, verdict
from tideover.reports.words import strategy_name

if TYPE_CHECKING:
    import pandas as pd


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
    def to_dict(self) -> dict[str, Any]: ...


def run_page(result: Result) -> Page:
    """One scenario under one strategy."""
    record = _record(result)
    recoveries, runs, timeline = (join([result], name) for name in ("recoveries", "runs", "timeline"))
    return _page(
        "one scenario, one strategy",
        [record],
        verdict=run_sentence(recoveries, runs),
        tables=(tables.overview([record], brief=True),),
        details=(tables.overview([record]),),
        pictures=(*pictures.time_to_recover(recoveries), *pictures.around_failure(timeline, recoveries)),
    )


def compare_page(results: Sequence[Result], found: Verdict | None = None) -> Page:
    """The same scenario under several strategies; the first is the reference."""
    records = [_record(result) for result in results]
    recoveries, runs = join(results, "recoveries"), join(results, "runs")
    found = found or verdict(recoveries, runs)
    return _page(
        "the same scenario and failures under several strategies, with the same luck",
        records,
        verdict=found.text,
        tables=(tables.overview(records, brief=True), *tables.pairs_tables(found.pairs)),
        details=(tables.overview(records),),
        pictures=(
            *pictures.time_to_recover(recoveries),
            *pictures.around_failure(join(results, "timeline"), recoveries),
            *pictures.costs(runs),
        ),
    )


def reproduce_page(
    pairs: pd.DataFrame,
    recoveries: pd.DataFrame,
    runs: pd.DataFrame,
    *,
    title: str,
    source: str,
    parameters: Mapping[str, str],
    further: Sequence[Table] = (),
    further_sources: Sequence[str] = (),
    timelines: tuple[pd.DataFrame, pd.DataFrame] | None = None,
    warnings: Sequence[str] = (),
    explanation: Sequence[str] = why_sixty(),
) -> Page:
    """A published table beside the simulated one.

    ``recoveries`` has the columns of ``published.with_cells``, ``pairs`` comes from
    ``published.pair_recoveries``; ``further`` are more tables to set beside it; ``timelines`` are the
    timeline and the recoveries of one cell under each strategy.
    """
    recoveries, runs = conform("recoveries", recoveries), conform("runs", runs)
    records = _sweep_records(runs, recoveries)
    found = points(recoveries, runs, parameters)
    known = pairs[pairs["published_s"].notna()]
    cells = known[[*CELL, "published_s"]].itertuples(index=False, name=None)
    marks = {row[:-1]: float(row[-1]) for row in cells}
    shown = (*pictures.recovery_times(recoveries, CELL[1:], marks), *pictures.costs(runs))
    if timelines is not None:
        shown = (*pictures.around_failure(*timelines), *shown)
    return _page(
        "a published experiment beside the simulated one",
        records,
        verdict=agreement_sentence(pairs),
        published=(reproduction_table(pairs, title), *further),
        published_pictures=pictures.published_beside(pairs),
        sources=(source, *further_sources),
        explanation=tuple(explanation),
        tables=(points_table(found, range(len(found)), "Points of the sweep"),),
        pictures=shown,
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


def _page(kind: str, records: Sequence[Record], **parts: Any) -> Page:
    parts["warnings"] = tuple(dict.fromkeys([*collected_warnings(records), *parts.get("warnings", ())]))
    parts["asked"] = tuple(parts.get("asked") or asked(records))
    names = dict.fromkeys(scenario_name(record) for record in records)
    return Page(
        title=", ".join(names), kind=kind, version=__version__, scenarios=_scenarios(records), **parts
    )


def _record(result: Result) -> dict[str, Any]:
    """The result's record; its scenario as a file would say it, with units, if the result has the scenario
    itself.
    """
    from tideover.models.config import Scenario
    from tideover.scenarios.writer import to_data

    record = result.to_dict()
    scenario = getattr(result, "scenario", None)
    return record | {"configuration": to_data(scenario)} if isinstance(scenario, Scenario) else record


def _scenarios(records: Sequence[Record]) -> tuple[tuple[str, str], ...]:
    shown: dict[str, str] = {}
    for record in records:
        text = json.dumps(configuration(record), indent=2, ensure_ascii=False)
        shown.setdefault(text, record.get("label") or strategy_name(record["strategy"]))
    return tuple((label, text) for text, label in shown.items())


def _sweep_records(runs: pd.DataFrame, recoveries: pd.DataFrame) -> list[dict[str, Any]]:
    """For each point what the page needs of a result record: the scenario, and the failures."""
    records = []
    for point, part in runs.groupby("point", sort=True):
        first = part.iloc[0]
        mine = recoveries[recoveries["point"] == point]
        failures = mine[["kind", "component", "failed_at_s"]].to_dict("records")
        records.append(
            {
                "scenario": _parsed(first["scenario_json"]),
                "strategy": str(first["strategy"]),
                "seed": int(first["seed"]),
                "replications": len(part),
                "warnings": [],
                "recoveries": failures,
                "label": f"point {point}: {strategy_name(str(first['strategy']))}",
            }
        )
    return records


def _parsed(text: Any) -> Any:
    parsed = json.loads(text) if isinstance(text, str) else {}
    return parsed if isinstance(parsed, Mapping) else {}
