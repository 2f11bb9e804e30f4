"""What ``tideover reproduce`` does: published tables beside simulated ones; called by `questions`.

Three sorts of studies: those with a sweep behind the published table (``PAPERS``), those whose cells are
runs of one scenario (``STUDIES``), and those on which something is fitted (``FITTED``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tideover.calibrate import capacities, recoveries
from tideover.calibrate.recoveries import catch_up
from tideover.cli.output import BadInput, Bar, Results
from tideover.cli.sweeps import page_of
from tideover.reports import pages, published
from tideover.reports.calibration import recoveries as reports
from tideover.reports.calibration.recoveries import Aim
from tideover.reports.html import Page, Section
from tideover.reports.tables import Table
from tideover.reports.terminal import reproduce_view

if TYPE_CHECKING:
    from tideover.scenarios.sweeps.dataset import Sweep

Row = dict[str, Any]
BESIDE = "Published beside simulated"
NEAR = 0.1
"""A figure this near to the published one, as a part of it, is met."""
RATE, WINDOW_S = "topology.sentences.rate", 30.0
PAPERS: dict[str, dict[str, Any]] = {name: one["sweep"] for name, one in published.papers().items()}
"""The sweep behind each published table."""


STUDIES: dict[str, tuple[str, Callable[[Sequence[str]], Iterator[Row]]]] = {
    "estorm-overhead": ("overhead", published.overhead),
    "estorm-recovery": ("recovery", published.recovery),
}
"""The table of E-Storm, and what yields its rows with simulated figures."""


class FittedStudy(NamedTuple):
    """A study whose measurements are not part of the package.

    files      what ``--from`` is to give, in words
    has_all    whether it says when failures were noticed, which needs no file; has profiles of capacity, too;
               and its recoveries are those of latencies
    aims       by workload and quantity
    """

    title: str
    source: str
    files: str
    has_all: bool
    aims: Mapping[tuple[str, str], Aim]


OUTAGE, LATENCY, CAPACITY, RECOVERY = "end of the outage", "latency back to normal", "capacity", "recovery"
PROFILED = {"leave_one_out": CAPACITY, "leave_third_out": "recovery in profiling runs"}
"""What is left out of profiling runs, by the kind of its errors."""
FITTED = {
    "demeter": FittedStudy(
        "Failures of Flink jobs",
        'M. Geldenhuys et al., "Demeter", 2024, arXiv 2403.02129; repository dos-group/demeter',
        "its failures (demeter_flink_failures.csv), its profiles (demeter_profile_recoveries.csv), or both",
        True,
        {("", OUTAGE): Aim(2.0, "s"), ("", LATENCY): Aim(0.12), ("", CAPACITY): Aim(0.15)},
    ),
    "khaos": FittedStudy(
        "Recovery of Flink jobs",
        'M. Geldenhuys et al., "Khaos: Dynamically Optimizing Checkpointing for Dependable Distributed '
        'Stream Processing", 2022; repository dos-group/khaos',
        "its recoveries (khaos_flink_recovery_calibration.csv)",
        False,
        {("iot", RECOVERY): Aim(0.10), ("ysb", RECOVERY): Aim(0.07)},
    ),
}


# Studies on which something is fitted: each figure is left out in turn, and predicted.


class Fit(NamedTuple):
    """What one file of measurements comes to: its name, rows of what was left out, and all else."""

    file: str
    rows: list[Row]
    record: Mapping[str, Any]
    sections: Sequence[Section]
    warnings: Sequence[str]


def reproduce_fitted(name: str, files: Sequence[Path], settings: Sequence[str], results: Results) -> None:
    """Fit what is given, leave each figure out in turn, and show how near its prediction comes."""
    study = FITTED[name]
    if not files and not study.has_all:
        raise BadInput(f"--from: is missing; {name} needs {study.files}, which are not part of Tideover")
    if settings and not study.has_all:
        raise BadInput(f"--set: nothing is simulated in {name}, so there is nothing to set")
    fits = [_fitter(name, study, file) for file in files]  # all files are read before anything is written
    results.prepare("reproduce")
    noticed = reports.detection_rows(settings) if study.has_all else []
    found = [fit() for fit in fits]
    rows = [row for fit in found for row in fit.rows]
    warnings = tuple(text for fit in found for text in fit.warnings)
    answer = f"The rest needs measurements that are not part of Tideover: --from with {study.files}."
    if found:
        answer = reports.left_out_verdict(rows)
    tables = [reports.detection_table(noticed)] if noticed else []
    tables += [reports.left_out_table(fit.rows, f"Left out and predicted: {fit.file}") for fit in found]
    page = Page(
        title=study.title,
        kind="published figures, predicted by fits that had not seen them",
        verdict=answer,
        setup=tuple(("File", fit.file) for fit in found),
        sections=(
            Section(BESIDE, tables=tuple(tables), sources=(study.source,)),
            *(section for fit in found for section in fit.sections),
        ),
        warnings=warnings,
        glossary={},
    )
    fitted = {fit.file: fit.record for fit in found}
    results.answer(
        {"schema": 1, "detection": noticed, "left_out": rows, "fits": fitted},
        lambda: reproduce_view(answer, tables, study.source, warnings=warnings),
        lambda: page,
        warnings=warnings,
    )


def _fitter(name: str, study: FittedStudy, file: Path) -> Callable[[], Fit]:
    """Reads a file; what it returns fits to it. Raises BadInput for a file of another study."""
    if capacities.is_one(file):
        if not study.has_all:
            raise BadInput(f"--from: {file}: has capacities, and {name} has none; it needs {study.files}")
        profiles = capacities.read(file)
        return lambda: _fit_capacities(study, profiles)
    heartbeats = tuple(published.group(name, "detection").rows[0][:2]) if study.has_all else None
    measured = recoveries.read(file, heartbeats=heartbeats)
    if measured.latencies != study.has_all:
        lacks = "has no column latency_recovered_at_s" if study.has_all else "has recoveries of latencies"
        raise BadInput(f"--from: {file}: {lacks}; {name} needs {study.files}")
    return lambda: _fit_recoveries(study, measured)


def _fit_recoveries(study: FittedStudy, measured: Any) -> Fit:
    with Bar("fitting") as bar:
        found = recoveries.fit(measured, report=bar)
    quantities = {"outage_end": OUTAGE, "leave_one_out": LATENCY if study.has_all else RECOVERY}
    rows = reports.left_out_rows(found.frames["errors"], quantities, study.aims)
    more: Any = {"profiles": found.profiles, "warnings": found.warnings}
    page = reports.recoveries_page(found.frames, found.provenance, **more)
    return Fit(measured.file, rows, found.record(), page.sections, found.warnings)


def _fit_capacities(study: FittedStudy, measured: Any) -> Fit:
    with Bar("fitting") as bar:
        frames = catch_up.added(capacities.frames(measured), catch_up.fit(measured, report=bar))
    rows = reports.left_out_rows(frames["errors"], PROFILED, study.aims)
    provenance = {"File": measured.file, "SHA-256": measured.sha256}
    record = {"provenance": provenance, **{name: frame.to_dict("records") for name, frame in frames.items()}}
    return Fit(measured.file, rows, record, reports.capacities_page(frames, provenance).sections, ())


def reproduce_study(name: str, settings: Sequence[str], results: Results) -> None:
    """Run a study whose cells are runs of one scenario, a published figure each, and show its rows."""
    (of, simulated), rows = STUDIES[name], list[Row]()
    results.prepare("reproduce")
    table = published.group("estorm", of)
    with Bar() as bar:
        for row in simulated(settings):
            rows.append(row)
            bar("simulating", len(rows), 0)
    near = sum(abs(row["error"]) <= NEAR for row in rows)
    answer = f"{near} of {len(rows)} published figures are met within {NEAR:.0%}."

    def text(name: str, value: Any) -> str:
        if name == "error":
            return f"{100 * value:+.1f} %"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    shown = tuple(tuple(text(*entry) for entry in row.items()) for row in rows)
    beside = Table(table.title, tuple(rows[0]), shown, (), len(rows[0]) - 3)
    page = Page(
        title=table.title,
        kind="a published table beside the simulated one",
        verdict=answer,
        setup=(("Settings", ", ".join(settings) or "those of the study"),),
        sections=(Section(BESIDE, tables=(beside,), sources=(table.source,)),),
        glossary={},
    )
    results.answer(rows, lambda: reproduce_view(answer, [beside], table.source), lambda: page)


def reproduce_sweep(paper: str, found: Sweep, results: Results) -> None:
    """A sweep beside the published table; why they come to that, step by step."""
    answer, why, beside, source, rows, page = (
        _phase_two(found) if paper == "stableford-phase2" else _explained(paper, found)
    )
    results.answer(
        rows,
        lambda: reproduce_view(answer, [beside], source, why=why, warnings=found.warnings),
        page,
        warnings=found.warnings,
        tables=lambda: found.tables,
        parameters=found.parameters,
    )


Shown = tuple[str, Section, Table, str, list[Row], Callable[[], Page]]
"""The answer, why it is so, the table and its source, its rows, and what makes the page."""


def _explained(paper: str, found: Sweep) -> Shown:
    """With findings: the first is the answer, the others say why."""
    if paper == "ksafety":
        points = [found.result(point).scenario for point in found.points["point"]]
        rows = published.ksafety_rows(points, list(found.records()))
        beside, source = published.ksafety_table(rows), published.group("ksafety", "throughput").source
    else:
        paper = "stableford-phase1"
        rows = published.phase_one_rows(found.recoveries, found.runs, found.timeline)
        beside, source = published.phase_one_table(rows), published.PHASE_ONE_SOURCE
    answer, *steps = published.papers()[paper]["findings"]
    why = Section("Why", "why", steps=tuple(steps))

    def page() -> Page:
        made = page_of(found)
        first = Section(BESIDE, "published", tables=(beside,), sources=(source,))
        kind = "a published experiment beside the simulated one"
        return replace(made, kind=kind, verdict=answer, sections=(first, why, *made.sections))

    return answer, why, beside, source, rows, page


def _phase_two(found: Sweep) -> Shown:
    """Recovery times cell by cell; the page is made from the tables themselves."""
    table = published.group("stableford", "recovery")
    cells = published.with_cells(found.recoveries, rate=RATE, window_s=WINDOW_S)
    pairs = published.pair_recoveries(cells, table)
    one_cell = None  # timeline and recoveries of the first rate and failure time, under every strategy
    if len(found.timeline):
        others = [key for key in found.parameters if key != "strategy.kind"]
        first = found.timeline[others].iloc[0]
        frames = (found.timeline, found.recoveries)
        timeline, recovered = (frame[(frame[others] == first).all(axis=1)] for frame in frames)
        one_cell = timeline, recovered
    # The records, each with its published recovery time, the simulated mean, and the error.
    by_cell = {(r["strategy"], r["tuples_per_s"], r["fail_at_s"]): r for r in pairs.to_dict("records")}
    shown = ("published_s", "simulated_s", "error_s", "required", "within")
    records = []
    for point, record in zip(found.points.to_dict("records"), found.records(), strict=True):
        at = record["recoveries"][0]["failed_at_s"] if record["recoveries"] else float("nan")
        cell = (record["strategy"], point[RATE], published.into_window(at, WINDOW_S) if at == at else 0)
        row = by_cell.get(cell, {})
        records.append(record | {"published": {key: row.get(key) for key in shown}})

    def page() -> Page:
        return pages.reproduce_page(
            pairs,
            cells,
            found.runs,
            title=table.title,
            source=table.source,
            parameters=found.parameters,
            timelines=one_cell,
            warnings=found.warnings,
        )

    beside = published.reproduction_table(pairs, table.title)
    answer = pages.agreement_sentence(pairs)
    return answer, pages.WHY_SIXTY, beside, table.source, records, page
