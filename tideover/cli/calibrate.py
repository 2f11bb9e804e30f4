"""``tideover calibrate``: from measurements to profiles."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tideover.cli import output
from tideover.cli.output import BadInput, Bar, Json, Out, option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tideover.calibrate.recoveries.measurements import Measurements
    from tideover.reports.html import Page


def calibrate(
    source: Annotated[
        Path | None,
        option(
            "Fit to recoveries that were measured elsewhere, without running Spark.", "--from", metavar="CSV"
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer runs: eight minutes instead of half an hour.")
    ] = False,
    out: Out = None,
    seed: Annotated[int, typer.Option(min=0, help="Chooses the luck of the fit.")] = 1,
    as_json: Json = False,
) -> None:
    """Fit the simulator to measurements, and write profiles that any scenario can use.

    Without --from it measures here: it runs small PySpark pipelines and kills their processes. What is done
    is kept in DIR, and not done again when the same command is given again.

    For example: tideover calibrate --quick --out measured, or
    tideover calibrate --from recoveries.csv --out fitted
    """
    if source is not None and quick:
        raise BadInput("--quick: goes without --from, which runs nothing")
    if source is not None:
        from tideover.calibrate import capacities

        if capacities.is_one(source):
            _capacities(source, out, as_json)
        else:
            _recoveries(source, out, seed, as_json)
    elif out is None:
        raise BadInput("--out: is missing; name a directory for the measurements, or give --from CSV")
    else:
        _real(out, quick, seed, as_json)


def _real(out: Path, quick: bool, seed: int, as_json: bool) -> None:
    """Real runs, really killed: profiles, and how far their predictions are off."""
    from tideover.scenarios.spark.settings import ABSENT, has_spark

    if not has_spark():
        raise BadInput(f"calibrate: it measures on Spark, unless --from gives measurements. {ABSENT}")
    from tideover.calibrate import calibration
    from tideover.calibrate.real import campaign
    from tideover.calibrate.real import plan as plans
    from tideover.reports.calibration.page import calibration_page, calibration_view

    output.prepare(out, "calibrate")
    plan = (plans.quick if quick else plans.full)(seed)
    with Bar("calibrating") as bar:
        try:
            tables = campaign.run(plan, out, lambda done, what: bar(what, 95 * done, 100))
            found = calibration.analyse(tables, lambda done, what: bar(what, 95 + 5 * done, 100))
        except campaign.NotPossible as problem:
            raise BadInput(f"calibrate: {problem}") from None
    frames, warnings = found.frames, found.warnings
    _answer(
        found.record(),
        lambda: calibration_view(frames, warnings),
        lambda: calibration_page(frames, found.provenance, title=plan.name, warnings=warnings),
        frames,
        out,
        as_json,
        warnings=warnings,
        profiles=found.profiles,
    )


def _recoveries(source: Path, out: Path | None, seed: int, as_json: bool) -> None:
    """Somebody else's recoveries: a profile a workload, a table on the terminal, a report."""
    from tideover.calibrate import recoveries
    from tideover.reports.calibration.recoveries import recoveries_page, recoveries_view

    measured = recoveries.read(source)  # before anything is written
    output.prepare(out, "calibrate --from")
    with Bar("fitting") as bar:
        found = recoveries.fit(measured, seed=seed, report=bar)
    frames, warnings, profiles = found.frames, found.warnings, found.profiles
    _answer(
        found.record(),
        lambda: recoveries_view(frames, warnings),
        lambda: recoveries_page(
            frames, found.provenance, title=source.stem, profiles=profiles, warnings=warnings
        ),
        frames,
        out,
        as_json,
        warnings=warnings,
        profiles=profiles,
    )
    if out is not None:
        output.stream(errors=as_json).write(f"Try: {_to_try(measured, out)}\n")


def _capacities(source: Path, out: Path | None, as_json: bool) -> None:
    """Somebody else's capacities: a law a workload, a table on the terminal, a report."""
    from tideover.calibrate import capacities
    from tideover.reports.calibration.recoveries import capacities_page, capacities_view

    measured = capacities.read(source)  # before anything is written
    output.prepare(out, "calibrate --from")
    frames = capacities.frames(measured)
    provenance = {"File": measured.file, "SHA-256": measured.sha256}
    tables = {name: frame.to_dict("records") for name, frame in frames.items() if name != "capacities"}
    _answer(
        {"schema": 1, "provenance": provenance, **tables},
        lambda: capacities_view(frames),
        lambda: capacities_page(frames, provenance, title=source.stem),
        frames,
        out,
        as_json,
    )


def _answer(
    record: Mapping[str, Any],
    view: Callable[[], RenderableType],
    page: Callable[[], Page],
    frames: Mapping[str, Any],
    out: Path | None,
    as_json: bool,
    *,
    warnings: Sequence[str] = (),
    profiles: Mapping[str, str] | None = None,
) -> None:
    """Print a calibration, and write it and its profiles."""
    output.answer(record, view, page, as_json=as_json, out=out, warnings=warnings, tables=lambda: frames)
    for name, text in (profiles or {}).items():
        if out is None:
            return
        path = out / f"{name}.yaml"
        with output.writing(path):
            path.write_text(text, encoding="utf-8")
        output.stream(errors=as_json).write(f"Profile: {path}\n")


def _to_try(measured: Measurements, out: Path) -> str:
    """A command that predicts what was measured of the first workload, at its highest rate.

    The run is made longer if two intervals and three times the longest recovery do not fit into it.
    """
    from tideover.scenarios.loader import load
    from tideover.sim.units import S, format_duration

    name, points = next(iter(measured.workloads.items()))
    scenario = load("flink-recovery")
    interval = round(float(points.interval.max()) * S)
    struck = max(fault.latest or 0 for fault in scenario.failures)
    needed = 2 * interval + 3 * round(float(points.recovery.max())) * S + struck
    settings = [
        f"profile={out / name}.yaml",
        f"rate={float(points.rate.max()):.15g}/s",
        f"checkpoint_interval={format_duration(interval).replace(' ', '')}",
    ]
    if needed > scenario.run.duration:
        settings.append(f"run.duration={needed // S}s")
    return shlex.join(["tideover", "run", "flink-recovery", *(a for s in settings for a in ("--set", s))])
