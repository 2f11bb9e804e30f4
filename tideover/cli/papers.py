"""``tideover reproduce``: published tables beside simulated ones."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tideover.cli import fitted, output, studies
from tideover.cli.output import BadInput, Json, Out, Settings
from tideover.cli.spark import Archive, Conf, Master, NoSpark, Remote, place
from tideover.cli.sweeping import end, page_of, simulated

if TYPE_CHECKING:
    import pandas as pd

    from tideover.reports.html import Page
    from tideover.reports.tables import Table
    from tideover.scenarios.sweeps.dataset import Sweep


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
    archive: Archive = None,
    no_spark: NoSpark = False,
) -> None:
    """Set a published table beside the simulated one, with the error of each cell.

    For example: tideover reproduce stableford-phase2 --out report
    """
    from tideover.scenarios.sweeps import sweep_file

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
    where = place(master, remote, conf, archive, no_spark)
    recipe = sweep_file.read(PAPERS[paper], settings or ())
    found = simulated("reproduce", recipe, out, where)
    shown = {"ksafety": _ksafety, "stableford-phase1": _phase_one, "stableford-phase1-queues": _phase_one}
    shown.get(paper, _stableford)(found, out, as_json)
    end(found)


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


def _ksafety(found: Sweep, out: Path | None, as_json: bool) -> None:
    from tideover.reports import ksafety, published

    points = [found.result(point).scenario for point in found.points["point"]]
    rows = ksafety.rows(points, list(found.records()))
    source = published.group("ksafety", "throughput").source
    _explained(found, rows, ksafety.table(rows), ksafety.FINDINGS, source, out, as_json)


def _phase_one(found: Sweep, out: Path | None, as_json: bool) -> None:
    from tideover.reports import phase_one

    rows = phase_one.rows(found.recoveries, found.runs, found.timeline)
    _explained(found, rows, phase_one.table(rows), phase_one.FINDINGS, phase_one.SOURCE, out, as_json)


def _explained(
    found: Sweep,
    rows: list[dict[str, Any]],
    beside: Table,
    findings: Sequence[str],
    source: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """A table beside the published figures; the first finding is the answer, the others say why."""
    from dataclasses import replace

    from tideover.reports.html import Section
    from tideover.reports.terminal import reproduce_view

    answer, why = findings[0], Section("Why", "why", steps=tuple(findings[1:]))

    def page() -> Page:
        made = page_of(found)
        first = Section("Published beside simulated", "published", tables=(beside,), sources=(source,))
        kind = "a published experiment beside the simulated one"
        return replace(made, kind=kind, verdict=answer, sections=(first, why, *made.sections))

    if as_json:
        output.warn(found.warnings)
        output.print_json(rows)
    else:
        output.show(reproduce_view(answer, [beside], source, why=why, warnings=found.warnings))
    if out is not None:
        output.write(out, found.tables, page, rows, parameters=found.parameters, errors=as_json)


def _stableford(found: Sweep, out: Path | None, as_json: bool) -> None:
    from tideover.reports import pages, published
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
        answer = pages.agreement_sentence(pairs)
        output.show(
            reproduce_view(answer, [beside], table.source, why=pages.WHY_SIXTY, warnings=found.warnings)
        )
    if out is None:
        return
    page = partial(
        pages.reproduce_page,
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
    from tideover.reports.published import into_window

    rows = {(r["strategy"], r["tuples_per_s"], r["fail_at_s"]): r for r in pairs.to_dict("records")}
    shown = ("published_s", "simulated_s", "error_s", "required", "within")
    records = []
    for point, record in zip(found.points.to_dict("records"), found.records(), strict=True):
        at = record["recoveries"][0]["failed_at_s"] if record["recoveries"] else float("nan")
        cell = (record["strategy"], point[RATE], into_window(at, WINDOW_S) if at == at else 0)
        row = rows.get(cell, {})
        records.append(record | {"published": {key: row.get(key) for key in shown}})
    return records
