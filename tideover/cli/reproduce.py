"""``tideover reproduce``: published tables beside simulated ones."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tideover.cli import output
from tideover.cli.output import (
    Archive,
    BadInput,
    Bar,
    Conf,
    Json,
    Master,
    NoSpark,
    Out,
    Remote,
    Settings,
    place,
)
from tideover.cli.sweeps import end, page_of, simulated

if TYPE_CHECKING:
    import pandas as pd

    from tideover.reports.calibration.recoveries import Aim
    from tideover.reports.html import Page, Section
    from tideover.reports.tables import Table
    from tideover.scenarios.sweeps.dataset import Sweep


# ``tideover reproduce`` for studies on which something is fitted: what is left out is predicted.

Row = dict[str, Any]


class Fit(NamedTuple):
    """What one file of measurements comes to: its name, rows of what was left out, and all else."""

    file: str
    rows: list[Row]
    record: Mapping[str, Any]
    sections: Sequence[Section]
    warnings: Sequence[str]


class FittedStudy(NamedTuple):
    """A study whose measurements are not part of the package.

    title      of its page
    source     where it was published
    files      what is to be given by ``--from``, in words
    detects    whether it says when failures were noticed, which needs no file
    latencies  whether its recoveries are those of latencies
    profiles   whether it has profiles of capacity, too
    aims       by workload and quantity
    """

    title: str
    source: str
    files: str
    detects: bool
    latencies: bool
    profiles: bool
    aims: Mapping[tuple[str, str], tuple[float, str]]


OUTAGE, LATENCY, CAPACITY, RECOVERY = "end of the outage", "latency back to normal", "capacity", "recovery"
FITTED = {
    "demeter": FittedStudy(
        "Failures of Flink jobs",
        'M. Geldenhuys et al., "Demeter", 2024, arXiv 2403.02129; repository dos-group/demeter',
        "its failures (demeter_flink_failures.csv), its profiles (demeter_profile_recoveries.csv), or both",
        True,
        True,
        True,
        {("", OUTAGE): (2.0, "s"), ("", LATENCY): (0.12, ""), ("", CAPACITY): (0.15, "")},
    ),
    "khaos": FittedStudy(
        "Recovery of Flink jobs",
        'M. Geldenhuys et al., "Khaos: Dynamically Optimizing Checkpointing for Dependable Distributed '
        'Stream Processing", 2022; repository dos-group/khaos',
        "its recoveries (khaos_flink_recovery_calibration.csv)",
        False,
        False,
        False,
        {("iot", RECOVERY): (0.10, ""), ("ysb", RECOVERY): (0.07, "")},
    ),
}
"""By the name under which each is reproduced."""


def reproduce_fitted(
    name: str, files: Sequence[Path], settings: Sequence[str], out: Path | None, as_json: bool
) -> None:
    """Fit what is given, leave each figure out in turn, and show how near its prediction comes."""
    study = FITTED[name]
    if not files and not study.detects:
        raise BadInput(f"--from: is missing; {name} needs {study.files}, which are not part of Tideover")
    if settings and not study.detects:
        raise BadInput(f"--set: nothing is simulated in {name}, so there is nothing to set")
    fits = [_fitter(name, study, file) for file in files]  # all files are read before anything is written
    output.prepare(out, "reproduce")
    noticed = _detection(settings) if study.detects else []
    found = [fit() for fit in fits]
    record = {
        "schema": 1,
        "detection": noticed,
        "left_out": [row for fit in found for row in fit.rows],
        "fits": {fit.file: fit.record for fit in found},
    }
    warnings = [text for fit in found for text in fit.warnings]
    if as_json:
        output.warn(warnings)
        output.print_json(record)
    else:
        from tideover.reports.terminal import reproduce_view

        answer = _verdict(study, found)
        output.show(reproduce_view(answer, _tables(noticed, found), study.source, warnings=warnings))
    if out is not None:
        page = partial(_page, study, noticed, found, warnings)
        output.write(out, {}, page, record, errors=as_json)


def _detection(settings: Sequence[str]) -> list[Row]:
    from tideover.reports.calibration import recoveries as detection

    return detection.detection_rows(settings)


def _heartbeats(name: str) -> tuple[float, float]:
    """Interval and timeout (s) that a study states."""
    from tideover.reports import published

    interval, timeout, *_ = published.group(name, "detection").rows[0]
    return interval, timeout


def _fitter(name: str, study: FittedStudy, file: Path) -> Callable[[], Fit]:
    """Reads a file; what it returns fits to it. Raises BadInput for a file of another study."""
    from tideover.calibrate import capacities, recoveries

    if capacities.is_one(file):
        if not study.profiles:
            raise BadInput(f"--from: {file}: has capacities, and {name} has none; it needs {study.files}")
        profiles = capacities.read(file)
        return lambda: _capacities(study, profiles)
    measured = recoveries.read(file, heartbeats=_heartbeats(name) if study.detects else None)
    if measured.latencies != study.latencies:
        lacks = "has no column latency_recovered_at_s" if study.latencies else "has recoveries of latencies"
        raise BadInput(f"--from: {file}: {lacks}; {name} needs {study.files}")
    return lambda: _recoveries(study, measured)


def _recoveries(study: FittedStudy, measured: Any) -> Fit:
    from tideover.calibrate import recoveries
    from tideover.reports.calibration import recoveries as left_out
    from tideover.reports.calibration.recoveries import recoveries_page

    with Bar("fitting") as bar:
        found = recoveries.fit(measured, report=bar)
    quantities = {"outage_end": OUTAGE, "leave_one_out": LATENCY if study.latencies else RECOVERY}
    rows = left_out.left_out_rows(found.frames["errors"], quantities, _aims(study))
    page = recoveries_page(found.frames, found.provenance, profiles=found.profiles, warnings=found.warnings)
    return Fit(measured.file, rows, found.record(), page.sections, found.warnings)


def _capacities(study: FittedStudy, measured: Any) -> Fit:
    from tideover.calibrate import capacities
    from tideover.reports.calibration import recoveries as left_out
    from tideover.reports.calibration.recoveries import capacities_page

    frames = capacities.frames(measured)
    rows = left_out.left_out_rows(frames["errors"], {"leave_one_out": CAPACITY}, _aims(study))
    provenance = {"File": measured.file, "SHA-256": measured.sha256}
    record = {"provenance": provenance, **{name: frame.to_dict("records") for name, frame in frames.items()}}
    return Fit(measured.file, rows, record, capacities_page(frames, provenance).sections, ())


def _aims(study: FittedStudy) -> dict[tuple[str, str], Aim]:
    from tideover.reports.calibration.recoveries import Aim

    return {key: Aim(*aim) for key, aim in study.aims.items()}


def _tables(noticed: Sequence[Row], found: Sequence[Fit]) -> list[Table]:
    from tideover.reports.calibration import recoveries as detection
    from tideover.reports.calibration import recoveries as left_out

    shown = [detection.detection_table(noticed)] if noticed else []
    return [
        *shown,
        *(left_out.left_out_table(fit.rows, f"Left out and predicted: {fit.file}") for fit in found),
    ]


def _verdict(study: FittedStudy, found: Sequence[Fit]) -> str:
    from tideover.reports.calibration import recoveries as left_out

    if not found:
        return f"The rest needs measurements that are not part of Tideover: --from with {study.files}."
    return left_out.left_out_verdict([row for fit in found for row in fit.rows])


def _page(study: FittedStudy, noticed: Sequence[Row], found: Sequence[Fit], warnings: Sequence[str]) -> Any:
    from tideover.reports.html import Page, Section

    shown = tuple(_tables(noticed, found))
    first = Section("Published beside simulated", tables=shown, sources=(study.source,))
    return Page(
        title=study.title,
        kind="published figures, predicted by fits that had not seen them",
        verdict=_verdict(study, found),
        setup=tuple(("File", fit.file) for fit in found),
        sections=(first, *(section for fit in found for section in fit.sections)),
        warnings=tuple(warnings),
        glossary={},
    )


# ``tideover reproduce`` for studies whose cells are runs of one scenario, a published figure each.


class Study(NamedTuple):
    """``table``: name of the published table of E-Storm; ``rows``: yields its rows with simulated figures."""

    table: str
    rows: Callable[[Sequence[str]], Iterator[Row]]


def _overhead(settings: Sequence[str]) -> Iterator[Row]:
    from tideover.reports.published import overhead

    return overhead(settings)


def _recovery(settings: Sequence[str]) -> Iterator[Row]:
    from tideover.reports.published import recovery

    return recovery(settings)


NEAR = 0.1
"""A figure this near to the published one, as a part of it, is met."""
STUDIES = {"estorm-overhead": Study("overhead", _overhead), "estorm-recovery": Study("recovery", _recovery)}
"""By the name under which each is reproduced."""


def reproduce_study(name: str, settings: Sequence[str], out: Path | None, as_json: bool) -> None:
    """Run a study, and show its rows."""
    from tideover.reports.html import Page, Section
    from tideover.reports.published import group
    from tideover.reports.tables import Table
    from tideover.reports.terminal import reproduce_view

    study = STUDIES[name]
    output.prepare(out, "reproduce")
    table, rows = group("estorm", study.table), []
    with Bar() as bar:
        for row in study.rows(settings):
            rows.append(row)
            bar("simulating", len(rows), 0)
    shown = tuple(tuple(map(_text, row.items())) for row in rows)
    beside = Table(table.title, tuple(rows[0]), shown, (), len(rows[0]) - 3)
    if as_json:
        output.print_json(rows)
    else:
        output.show(reproduce_view(_near(rows), [beside], table.source))
    if out is not None:
        page = Page(
            title=table.title,
            kind="a published table beside the simulated one",
            verdict=_near(rows),
            setup=(("Settings", ", ".join(settings) or "those of the study"),),
            sections=(Section("Published beside simulated", tables=(beside,), sources=(table.source,)),),
            glossary={},
        )
        output.write(out, {}, lambda: page, rows, errors=as_json)


def _near(rows: Sequence[Row]) -> str:
    """How many figures are met."""
    near = sum(abs(row["error"]) <= NEAR for row in rows)
    return f"{near} of {len(rows)} published figures are met within {NEAR:.0%}."


def _text(entry: tuple[str, Any]) -> str:
    name, value = entry
    if name == "error":
        return f"{100 * value:+.1f} %"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ``tideover reproduce``: published tables beside simulated ones.


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

    known = [*PAPERS, *STUDIES, *FITTED]
    if paper not in known:
        near = difflib.get_close_matches(paper[:100], known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise BadInput(f"PAPER: {paper!r} is not known; {hint}(known: {', '.join(known)})")
    if paper in FITTED:
        reproduce_fitted(paper, files or (), settings or (), out, as_json)
        return
    if files:
        raise BadInput(f"--from: goes with {' and '.join(FITTED)} only; {paper} has its figures")
    if paper in STUDIES:
        reproduce_study(paper, settings or (), out, as_json)
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
    from tideover.reports import published
    from tideover.reports import published as ksafety

    points = [found.result(point).scenario for point in found.points["point"]]
    rows = ksafety.ksafety_rows(points, list(found.records()))
    source = published.group("ksafety", "throughput").source
    _explained(found, rows, ksafety.ksafety_table(rows), ksafety.KSAFETY_FINDINGS, source, out, as_json)


def _phase_one(found: Sweep, out: Path | None, as_json: bool) -> None:
    from tideover.reports import published

    rows = published.phase_one_rows(found.recoveries, found.runs, found.timeline)
    _explained(
        found,
        rows,
        published.phase_one_table(rows),
        published.PHASE_ONE_FINDINGS,
        published.SOURCE,
        out,
        as_json,
    )


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
    from tideover.reports.published import reproduction_table
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
