"""``tideover calibrate``: from measurements to profiles.

`app` adds it to the program; `tideover.calibrate` makes fits, `tideover.reports.calibration` shows them.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

from tideover.cli import output
from tideover.cli.output import PRINT, BadInput, Bar, Printed, Results

if TYPE_CHECKING:
    from tideover.calibrate.real.plan import Jvm
    from tideover.calibrate.recoveries.measurements import Points


def calibrate(
    from_: Path | None = None,
    engine: str | None = None,
    quick: bool = False,
    stock_jvm: bool = False,
    pace: Annotated[int, {"min": 1, "max": 10}] = 1,
    out: Path | None = None,
    seed: Annotated[int, {"min": 0}] = 1,
    results: Printed = PRINT,
) -> None:
    """Fit the simulator to measurements, and write profiles that any scenario can use.

    Without --from it measures here: it runs small pipelines on PySpark, or a job on Flink, and kills their
    processes. What is done is kept in DIR, and not done again when the same command is given again.

    For example: tideover calibrate --quick --out measured,
    tideover calibrate --engine flink --quick --out measured, or
    tideover calibrate --from recoveries.csv --out fitted, or
    tideover calibrate --from logs/

    --from PATH: Fit to recoveries that were measured elsewhere (a CSV), or read what an engine's own logs say
    (a file, or a folder of them), without running Spark.
    --engine ENGINE: What is measured: spark (the default) or flink.
    --quick: Fewer runs: eight minutes instead of half an hour.
    --stock-jvm: Leave Java as it comes; else it is set so that batches take as long at any time.
    --pace N: For a machine N times as slow: triggers, windows and pauses last N times as long, at an Nth of
    the rates.
    --out DIR: Write report.html, the result (JSON) and its tables (Parquet), if it has any, there.
    --seed: Chooses the luck of the fit, and the moments of Flink's kills.
    """
    results = results._replace(out=out)
    sparks = {"--stock-jvm": stock_jvm, "--pace": pace != 1}
    for option, given in {"--quick": quick, **sparks, "--engine": engine is not None}.items():
        if from_ is not None and given:
            raise BadInput(f"{option}: goes without --from, which runs nothing")
    if engine not in (None, "spark", "flink"):
        raise BadInput(f"--engine: {engine!r} is not known; spark and flink are")
    for option, given in sparks.items():
        if given and engine == "flink":
            raise BadInput(f"{option}: goes with the engine spark only")
    if from_ is not None:
        from tideover.calibrate import capacities, logs

        if logs.is_log(from_):
            _logs(from_, results)
        elif capacities.is_one(from_):
            _capacities(from_, results, seed)
        else:
            _recoveries(from_, results, seed)
    elif out is None:
        raise BadInput("--out: is missing; name a directory for the measurements, or give --from PATH")
    else:
        _real(results, out, quick, seed, engine or "spark", "stock" if stock_jvm else "shipped", pace)


def _real(results: Results, out: Path, quick: bool, seed: int, engine: str, jvm: Jvm, pace: int) -> None:
    """Real runs, really killed: profiles, and how far their predictions are off."""
    from tideover.calibrate.real import sessions
    from tideover.calibrate.real.processes import NotPossible
    from tideover.reports.calibration.page import calibration_page, calibration_view
    from tideover.scenarios.sweeps.engine import terminable

    try:
        asked = _flink(quick, seed) if engine == "flink" else _spark(quick, seed, jvm, pace)
        plan, measured, analyse = asked
        results.prepare("calibrate")
        with Bar("calibrating") as bar, terminable():
            tables = sessions.run(measured, plan, out, lambda done, what: bar(what, 95 * done, 100))
            found = analyse(tables, lambda done, what: bar(what, 95 + 5 * done, 100))
    except NotPossible as problem:
        raise BadInput(f"calibrate: {problem}") from None
    shown = calibration_view, lambda *of, profiles, **more: calibration_page(*of, **more)
    _answer(results, found, found.record(), plan.name, *shown)


def _spark(quick: bool, seed: int, jvm: Jvm, pace: int) -> tuple[Any, Any, Any]:
    """What is measured on PySpark: the plan, the engine, and what makes a calibration of it."""
    from tideover.scenarios.spark.settings import ABSENT, has_spark

    if not has_spark():
        raise BadInput(f"calibrate: it measures on Spark, unless --from gives measurements. {ABSENT}")
    from tideover.calibrate import calibration
    from tideover.calibrate.real import plan, supervisor

    measured = (plan.quick if quick else plan.full)(seed).with_jvm(jvm).at_pace(pace)
    return measured, supervisor.ENGINE, calibration.analyse


def _flink(quick: bool, seed: int) -> tuple[Any, Any, Any]:
    """The same on Flink."""
    from tideover.calibrate.flink import analysis, cluster, plan, supervisor

    cluster.jars()
    return (plan.quick if quick else plan.full)(seed), supervisor.ENGINE, analysis.analyse


def _recoveries(source: Path, results: Results, seed: int) -> None:
    """Somebody else's recoveries: a profile a workload, a table on the terminal, a report."""
    from tideover.calibrate import recoveries
    from tideover.reports.calibration.recoveries import recoveries_page, recoveries_view

    measured = recoveries.read(source)  # before anything is written
    results.prepare("calibrate --from")
    with Bar("fitting") as bar:
        found = recoveries.fit(measured, seed=seed, report=bar)
    _answer(results, found, found.record(), source.stem, recoveries_view, recoveries_page)
    if results.out is not None:
        results.say(f"Try: {_to_try(*next(iter(measured.workloads.items())), results.out)}")


def _capacities(source: Path, results: Results, seed: int) -> None:
    """Somebody else's capacities: a law a workload, a table on the terminal, a report. Where processes
    failed during the runs, the capacity with which jobs catch up, too, and a profile of it.
    """
    from tideover.calibrate import capacities, profile
    from tideover.calibrate.recoveries import catch_up
    from tideover.reports.calibration.recoveries import capacities_page, capacities_view

    measured = capacities.read(source)  # before anything is written
    results.prepare("calibrate --from")
    frames = capacities.frames(measured)
    with Bar("fitting") as bar:
        found = catch_up.fit(measured, seed, bar)
    frames, warnings = catch_up.added(frames, found), tuple(catch_up.warned(measured))
    profiles = {
        name: profile.text(catch_up.as_profile(name, one, measured, seed), width=120)
        for name, one in found.items()
    }
    provenance = {"File": measured.file, "SHA-256": measured.sha256}
    tables = {name: frame.to_dict("records") for name, frame in frames.items() if name != "capacities"}
    told = SimpleNamespace(frames=frames, provenance=provenance, profiles=profiles, warnings=warnings)
    record = {"schema": 1, "provenance": provenance, **tables}
    _answer(results, told, record, source.stem, capacities_view, capacities_page)
    if results.out is not None and found:
        name, one = next(iter(found.items()))
        results.say(f"Try: {_to_try(name, one.profiled.points, results.out)}")


def _logs(source: Path, results: Results) -> None:
    """What an engine's own logs say of its recoveries."""
    from tideover.calibrate import logs
    from tideover.reports.calibration.logs import logs_page, logs_view

    with Bar("reading") as bar:
        found = logs.read(source, bar)  # before anything is written
    results.prepare("calibrate --from")
    _answer(results, found, found.record(), source.resolve().name, logs_view, logs_page)


def _answer(results: Results, found: Any, record: Any, title: str, view: Any, page: Any) -> None:
    """Show what came of measurements, by a ``view`` for the terminal and a page, and write profiles."""
    frames, profiles, warnings = found.frames, found.profiles, found.warnings
    results.answer(
        record,
        lambda: view(frames, warnings),
        lambda: page(frames, found.provenance, title=title, profiles=profiles, warnings=warnings),
        warnings=warnings,
        tables=lambda: frames,
    )
    if results.out is None:
        return
    for name, text in profiles.items():
        path = results.out / f"{name}.yaml"
        with output.writing(path):
            path.write_text(text, encoding="utf-8")
        results.say(f"Profile: {path}")


def _to_try(name: str, points: Points, out: Path) -> str:
    """A command that predicts what was measured of a workload, at its highest rate, in a long run."""
    from tideover.scenarios.loader import load
    from tideover.sim.units import S, format_duration

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
