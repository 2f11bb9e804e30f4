"""``tideover reproduce`` for studies on which something is fitted: what is left out is predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tideover.cli import output
from tideover.cli.output import BadInput
from tideover.cli.progress import Bar

if TYPE_CHECKING:
    from tideover.reports.calibration.left_out import Aim
    from tideover.reports.html import Section
    from tideover.reports.tables import Table

Row = dict[str, Any]


class Fit(NamedTuple):
    """What one file of measurements comes to: its name, rows of what was left out, and all else."""

    file: str
    rows: list[Row]
    record: Mapping[str, Any]
    sections: Sequence[Section]
    warnings: Sequence[str]


class Study(NamedTuple):
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
STUDIES = {
    "demeter": Study(
        "Failures of Flink jobs",
        'M. Geldenhuys et al., "Demeter", 2024, arXiv 2403.02129; repository dos-group/demeter',
        "its failures (demeter_flink_failures.csv), its profiles (demeter_profile_recoveries.csv), or both",
        True,
        True,
        True,
        {("", OUTAGE): (2.0, "s"), ("", LATENCY): (0.12, ""), ("", CAPACITY): (0.15, "")},
    ),
    "khaos": Study(
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


def reproduce(
    name: str, files: Sequence[Path], settings: Sequence[str], out: Path | None, as_json: bool
) -> None:
    """Fit what is given, leave each figure out in turn, and show how near its prediction comes."""
    study = STUDIES[name]
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
    from tideover.reports.calibration import detection

    return detection.rows(settings)


def _heartbeats(name: str) -> tuple[float, float]:
    """Interval and timeout (s) that a study states."""
    from tideover.reports import published

    interval, timeout, *_ = published.group(name, "detection").rows[0]
    return interval, timeout


def _fitter(name: str, study: Study, file: Path) -> Callable[[], Fit]:
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


def _recoveries(study: Study, measured: Any) -> Fit:
    from tideover.calibrate import recoveries
    from tideover.reports.calibration import left_out
    from tideover.reports.calibration.recoveries import recoveries_page

    with Bar("fitting") as bar:
        found = recoveries.fit(measured, report=bar)
    quantities = {"outage_end": OUTAGE, "leave_one_out": LATENCY if study.latencies else RECOVERY}
    rows = left_out.rows(found.frames["errors"], quantities, _aims(study))
    page = recoveries_page(found.frames, found.provenance, profiles=found.profiles, warnings=found.warnings)
    return Fit(measured.file, rows, found.record(), page.sections, found.warnings)


def _capacities(study: Study, measured: Any) -> Fit:
    from tideover.calibrate import capacity_tables
    from tideover.reports.calibration import left_out
    from tideover.reports.calibration.capacities import capacities_page

    frames = capacity_tables.frames(measured)
    rows = left_out.rows(frames["errors"], {"leave_one_out": CAPACITY}, _aims(study))
    provenance = {"File": measured.file, "SHA-256": measured.sha256}
    record = {"provenance": provenance, **{name: frame.to_dict("records") for name, frame in frames.items()}}
    return Fit(measured.file, rows, record, capacities_page(frames, provenance).sections, ())


def _aims(study: Study) -> dict[tuple[str, str], Aim]:
    from tideover.reports.calibration.left_out import Aim

    return {key: Aim(*aim) for key, aim in study.aims.items()}


def _tables(noticed: Sequence[Row], found: Sequence[Fit]) -> list[Table]:
    from tideover.reports.calibration import detection, left_out

    shown = [detection.table(noticed)] if noticed else []
    return [*shown, *(left_out.table(fit.rows, f"Left out and predicted: {fit.file}") for fit in found)]


def _verdict(study: Study, found: Sequence[Fit]) -> str:
    from tideover.reports.calibration import left_out

    if not found:
        return f"The rest needs measurements that are not part of Tideover: --from with {study.files}."
    return left_out.verdict([row for fit in found for row in fit.rows])


def _page(study: Study, noticed: Sequence[Row], found: Sequence[Fit], warnings: Sequence[str]) -> Any:
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
