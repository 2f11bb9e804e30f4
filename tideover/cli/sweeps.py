"""``tideover sweep`` and ``tideover reproduce``."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tideover.cli import fitted, output, studies
from tideover.cli.output import BadInput, Json, Out, Settings
from tideover.cli.progress import Bar
from tideover.cli.spark import Conf, Master, NoSpark, Place, Remote, place

if TYPE_CHECKING:
    import pandas as pd

    from tideover.reports.html import Page
    from tideover.reports.sweeps.finished import Finished
    from tideover.reports.sweeps.points import Points
    from tideover.scenarios.sweep import Sweep
    from tideover.scenarios.sweeps.grid import Grid

LISTED = 200
"""Points that ``--dry-run`` lists in full."""


def sweep(
    spec: Annotated[
        str, typer.Argument(metavar="SWEEP", help="A sweep file, or the name of a built-in sweep.")
    ],
    settings: Settings = None,
    as_json: Json = False,
    out: Out = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    no_spark: NoSpark = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the points and count the runs; simulate nothing.")
    ] = False,
) -> None:
    """Simulate a grid of parameters as a Spark job. With --out, it goes on where it was interrupted."""
    from tideover.reports.sweeps.finished import finished, stamp, unstamp
    from tideover.reports.sweeps.points import points as summarised
    from tideover.scenarios.inputs import fingerprint
    from tideover.scenarios.sweeps import grid
    from tideover.scenarios.sweeps.summary import summarise

    where = place(master, remote, conf, no_spark)
    inputs = None if out is None or dry_run else fingerprint(spec, settings or ())
    if out is not None and inputs is not None and (before := finished(out, inputs)) is not None:
        _show_again(out, before, as_json)
        return
    with Bar() as bar:
        asked = grid.read(spec, settings or (), lambda done, total: bar("checking points", done, total))
    if dry_run:
        _list(asked, as_json)
        return
    found = _simulated("sweep", asked, out, where)
    points = summarised(*summarise(found.recoveries, found.runs, found.parameters), found.parameters)
    records = found.to_list() if as_json or out is not None else []
    if as_json:
        output.warn(found.warnings)
        output.print_json(records)
    else:
        from tideover.reports.sweeps.view import sweep_view

        output.show(sweep_view(points, found.warnings, kept=out is not None))
    if out is not None:
        page = _page(found, points)
        unstamp(out)
        paths = output.write(out, found.tables, page, records, parameters=found.parameters, errors=as_json)
        if inputs is not None and not found.failed:
            stamp(out, inputs, paths, found.parameters, found.warnings)
    _end(found)


def _show_again(out: Path, before: Finished, as_json: bool) -> None:
    """What the sweep printed when it wrote this report: nothing that it depends on has changed."""
    from tideover.reports.output import RESULT
    from tideover.reports.parquet import read_tables
    from tideover.reports.sweeps.points import points
    from tideover.reports.sweeps.view import sweep_view
    from tideover.scenarios.sweeps.summary import summarise

    if as_json:
        output.warn(before.warnings)
        output.print_text((out / RESULT).read_text("utf-8"))
    else:
        tables = read_tables(out)
        shown = summarise(tables["recoveries"], tables["runs"], before.parameters)
        found = points(*shown, before.parameters)
        output.show(sweep_view(found, before.warnings, kept=True))
    output.tell([out / name for name in before.outputs], errors=as_json)


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="stableford-phase2, or another study")],
    settings: Settings = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="CSV",
            help="Measurements of demeter or khaos, which are not part of Tideover. Repeatable.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    out: Out = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    no_spark: NoSpark = False,
) -> None:
    """Set a published table beside the simulated one, with the error of each cell.

    For example: tideover reproduce stableford-phase2 --out report
    """
    from tideover.scenarios.sweeps import grid

    known = [*PAPERS, *studies.STUDIES, *fitted.STUDIES]
    if paper not in known:
        near = difflib.get_close_matches(paper[:100], known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise BadInput(f"PAPER: {paper!r} is not known; {hint}(known: {', '.join(known)})")
    if paper in fitted.STUDIES:
        fitted.reproduce(paper, files or (), settings or (), out, as_json)
        return
    if files:
        raise BadInput(f"--from: goes with {' and '.join(fitted.STUDIES)} only; {paper} has its figures")
    if paper in studies.STUDIES:
        studies.reproduce(paper, settings or (), out, as_json)
        return
    where = place(master, remote, conf, no_spark)
    found = _simulated("reproduce", grid.read(PAPERS[paper], settings or ()), out, where)
    shown = {"ksafety": _ksafety, "stableford-phase1": _phase_one, "stableford-phase1-queues": _phase_one}
    shown.get(paper, _stableford)(found, out, as_json)
    _end(found)


PAPERS: dict[str, dict[str, Any]] = {
    "ksafety": {
        "name": "k-safety",
        "scenario": "ksafety-throughput",
        "grid": {
            "strategy.kind": ["none", "active_replication", "source_replay"],
            "hosts.machines.node.count": [4, 8],
        },
        "replications": 1,
    },
    "stableford-phase1": {
        "name": "Stableford, phase 1",
        "scenario": "stableford-phase1",
        "grid": {
            "strategy.kind": ["source_replay", "rsm"],
            "hosts": [3, 4],
            "detector.nimbus_task_timeout": ["30 s", "120 s"],
            "strategies.rsm.replay_cost": ["1 ms", "3.1 ms", "6.2 ms"],
        },
        "replications": 3,
    },
    "stableford-phase1-queues": {
        "name": "Stableford, phase 1, bounded queues",
        "scenario": "stableford-phase1",
        "set": {"queues.send": 1024},
        "grid": {
            "strategy.kind": ["source_replay", "rsm"],
            "hosts": [4],
            "detector.nimbus_task_timeout": ["30 s"],
            "strategies.rsm.replay_cost": ["3.1 ms"],
            "queues.length": [1024, 4096, 16384],
        },
        "replications": 3,
    },
    "stableford-phase2": {
        "name": "Stableford, phase 2",
        "scenario": "stableford-phase2",
        "grid": {
            "strategy.kind": ["source_replay", "rsm", "active_replication"],
            "topology.sentences.rate": ["10/s", "20/s"],
            "failures.0.at": ["65 s", "75 s", "90 s"],
        },
        "replications": 10,
    },
}
"""The sweep behind each published table. Phase 1: without a free worker and with one, with the race of the
two timeouts and without it, replays as fast as in phase 2, three times as fast, and half as fast; the last
queue length is never reached. Phase 2: failures 5, 15 and 30 s into a window.
"""

RATE, WINDOW_S = "topology.sentences.rate", 30.0


def _simulated(command: str, points: Grid, out: Path | None, where: Place) -> Sweep:
    from tideover.api import KEPT
    from tideover.scenarios.sweep import sweep

    output.prepare(out, command)
    if where.elsewhere is not None:
        output.note([f"connecting to {where.elsewhere}"])
    keep = None if out is None else out / KEPT
    with Bar() as bar:
        try:
            return sweep(
                points, master=where.master, remote=where.remote, conf=where.conf, keep=keep, report=bar
            )
        except KeyboardInterrupt:
            if keep is not None:
                sys.stderr.write("Interrupted. The same command goes on where it was.\n")
            raise


def _page(found: Sweep, summarised: Points | None = None) -> Page:
    """The page of a sweep; its points are summarised if they are not yet."""
    from tideover.reports.scenario_summary import point_record
    from tideover.reports.sweeps.page import sweep_page
    from tideover.reports.sweeps.points import points
    from tideover.scenarios.sweeps.summary import summarise

    recoveries, runs = found.recoveries, found.runs
    shown = summarised or points(*summarise(recoveries, runs, found.parameters), found.parameters)
    record = point_record(found.grid.points[0].number, recoveries, runs)
    timeline = found.tables.get("timeline")
    around = None if timeline is None else (timeline, recoveries)
    return sweep_page(shown, record, around=around, warnings=found.warnings)


def _end(found: Sweep) -> None:
    """Exit with 1 if a run failed."""
    if found.failed:
        number, _, error = found.failed[0]
        more = f"{len(found.failed)} of {found.grid.runs} runs failed; the first: point {number}, {error}"
        sys.stderr.write(f"tideover: {more}\n")
        raise typer.Exit(1)


def _list(points: Grid, as_json: bool) -> None:
    """What would be simulated."""
    if as_json:
        listed = [{"point": p.number, "swept": dict(p.values)} for p in points.points]
        output.print_json({"points": listed, "runs": points.runs})
        return
    from rich.text import Text

    from tideover.reports.sweeps.points import explained, short_names
    from tideover.reports.tables import Table
    from tideover.reports.terminal import render
    from tideover.scenarios.swept import text

    rows = tuple(
        (str(p.number), *(text(p.values[k]) for k in points.parameters), str(p.scenario.run.replications))
        for p in points.points[:LISTED]
    )
    rest = len(points.points) - LISTED
    more = f"and {rest:,} more\n" if rest > 0 else ""
    total = f"{more}{len(points.points):,} points, {points.runs:,} runs; nothing was simulated"
    short = short_names(list(points.parameters))
    columns = ("point", *short.values(), "runs")
    notes = tuple(filter(None, ["; ".join(explained(short))]))
    output.show(render(Table("", columns, rows, notes, text_columns=len(columns) - 1)), Text(total))
    output.warn(points.warnings)


def _ksafety(found: Sweep, out: Path | None, as_json: bool) -> None:
    from tideover.reports import ksafety, published
    from tideover.reports.terminal import reproduce_view

    rows = ksafety.rows([point.scenario for point in found.grid.points], found.to_list())
    if as_json:
        output.warn(found.warnings)
        output.print_json(rows)
    else:
        source = published.group("ksafety", "throughput").source
        output.show(reproduce_view([ksafety.table(rows)], (), source, found.warnings), *ksafety.FINDINGS)
    if out is not None:
        page = _page(found)
        output.write(out, found.tables, page, rows, parameters=found.parameters, errors=as_json)


def _phase_one(found: Sweep, out: Path | None, as_json: bool) -> None:
    from tideover.reports import phase_one
    from tideover.reports.terminal import reproduce_view

    rows = phase_one.rows(found.recoveries, found.runs, found.timeline)
    if as_json:
        output.warn(found.warnings)
        output.print_json(rows)
    else:
        beside = phase_one.table(rows)
        output.show(reproduce_view([beside], (), phase_one.SOURCE, found.warnings), *phase_one.FINDINGS)
    if out is not None:
        page = _page(found)
        output.write(out, found.tables, page, rows, parameters=found.parameters, errors=as_json)


def _stableford(found: Sweep, out: Path | None, as_json: bool) -> None:
    from tideover.reports import pages, published
    from tideover.reports.explain import why_sixty
    from tideover.reports.published_tables import reproduction_table
    from tideover.reports.terminal import reproduce_view

    table = published.group("stableford", "recovery")
    cells = published.with_cells(found.recoveries, rate=RATE, window_s=WINDOW_S)
    pairs = published.pair_recoveries(cells, table)
    records = _with_published(found, pairs)
    if as_json:
        output.warn(found.warnings)
        output.print_json(records)
    else:
        beside = reproduction_table(pairs, table.title)
        output.show(reproduce_view([beside], why_sixty(), table.source, found.warnings))
        output.show(pages.agreement_sentence(pairs))
    if out is None:
        return
    page = pages.reproduce_page(
        pairs,
        cells,
        found.runs,
        title=table.title,
        source=table.source,
        parameters=found.parameters,
        timelines=_one_cell(found),
        warnings=found.warnings,
    )
    output.write(out, found.tables, page, records, parameters=found.parameters, errors=as_json)


def _one_cell(found: Sweep) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Timeline and recoveries of the first rate and failure time, under every strategy."""
    if not len(found.timeline):
        return None
    others = [key for key in found.parameters if key != "strategy.kind"]
    first = found.timeline[others].iloc[0]
    timeline, recoveries = (
        frame[(frame[others] == first).all(axis=1)] for frame in (found.timeline, found.recoveries)
    )
    return timeline, recoveries


def _with_published(found: Sweep, pairs: pd.DataFrame) -> list[dict[str, Any]]:
    """The records, each with its published recovery time, the simulated mean, and the error."""
    from tideover.reports.published import into_window, per_second

    rows = {(r["strategy"], r["tuples_per_s"], r["fail_at_s"]): r for r in pairs.to_dict("records")}
    shown = ("published_s", "simulated_s", "error_s", "required", "within")
    records = []
    for point, record in zip(found.grid.points, found.to_list(), strict=True):
        at = record["recoveries"][0]["failed_at_s"] if record["recoveries"] else float("nan")
        cell = (
            record["strategy"],
            per_second(point.values[RATE]),
            into_window(at, WINDOW_S) if at == at else 0,
        )
        row = rows.get(cell, {})
        records.append(record | {"published": {key: row.get(key) for key in shown}})
    return records
