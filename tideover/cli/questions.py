"""``tideover audit``, ``availability``, ``check``, ``hours``, ``interval``, ``detector`` and ``reproduce``.

Each command reads its options, has a room below find the answer, and gives it to `output.Results`; `app` adds
them to the program. Nothing that draws is imported before a page is made.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tideover.cli import output
from tideover.cli.output import PRINT, SPARK, BadInput, Bar, Printed, Results, Source, Spark, Texts

if TYPE_CHECKING:
    from tideover.models.config import Scenario


def audit(
    target: Annotated[
        str,
        typer.Argument(
            metavar="STRATEGY|SCENARIO|all",
            help="A strategy, which is audited in the scenario `audit`; or a scenario; several with commas "
            "between; `all` strategies.",
        ),
    ],
    settings: Texts = None,
    kinds: str | None = None,
    from_: str | None = None,
    until: str | None = None,
    each: Annotated[int, {"min": 1}] = 2,
    detection: str = "1 s",
    restart: str = "3 s",
    second: bool = True,
    results: Results = PRINT,
    spark: Spark = SPARK,
) -> None:
    """Find out what a strategy guarantees, by failing at each step of its protocol.

    Exits with 1 if one does not keep its word. For example: tideover audit rsm

    --kinds A,B,…: Kinds of faults; default: all that take something.
    --from TIME: Strike steps from then on.
    --until TIME: Strike steps before then.
    --each N: Moments of each step that are struck.
    --detection TIME: How long it takes until a failure is noticed.
    --restart TIME: And to restart what failed.
    --second/--no-second: Let a second fault strike during recoveries.
    """
    from tideover.reports import audits
    from tideover.scenarios.audit import cases
    from tideover.scenarios.audit.audit import audit as audited
    from tideover.scenarios.sweeps.sweep import kept

    where = spark.place()
    try:
        every = cases.targets(target, settings or ())
        names = None if kinds is None else kinds.split(",")
        given: dict[str, Any] = {"kinds": names, "begin": from_, "end": until, "each": each, "second": second}
        given |= {"detection": detection, "restart": restart}
        tried = [cases.asked(scenario, **given) for scenario, _ in every]
    except cases.NotAsked as error:
        raise BadInput(str(error)) from None
    results.prepare("audit")
    with Bar() as bar, kept(results.out, where, lambda what: bar(what, 0, 0)) as doer:
        found = [audited(*one, options, doer, bar) for one, options in zip(every, tried, strict=True)]
    records, single = [one.to_dict() for one in found], len(found) == 1
    results.answer(
        records[0] if single else {"audits": records},
        lambda: audits.audit_view(found[0]) if single else audits.audits_view(found),
        lambda: audits.audit_page(found[0]) if single else audits.audits_page(found),
        whole_lines=True,
    )
    if not all(one.holds for one in found):
        raise typer.Exit(1)


def availability(
    scenario: Source,
    mtbf: Texts = None,
    slo: str | None = None,
    over: str | None = None,
    settings: Texts = None,
    results: Printed = PRINT,
) -> None:
    """Availability over a year, and the error budget that rare failures burn, without waiting for them.

    For example: tideover availability wordcount --mtbf failures.0=30d --slo 99.95% --set run.replications=30

    --slo PART: The availability that is demanded, as 99.95%.
    --over TIME: The period of the error budget, as 30d; default: a year.
    """
    from tideover import api
    from tideover.reports.terminal import availability_view

    part: float | None = None
    if slo is not None:  # 99.95% or 0.9995
        number = slo.strip()
        try:
            part = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
        except ValueError:
            part = math.nan
        if not 0 < part < 1:
            least = "a budget of nothing is not a budget: " if part == 1 else ""
            raise BadInput(f"--slo: {slo!r}: {least}more than 0 and less than 100 % is allowed, as 99.95%")
    if over:
        output.moment("--over", over, 1)
    causes = _causes(mtbf)
    found = api.loaded(scenario, settings or ())
    with Bar() as bar:
        result = api.availability(found, causes, slo=part, over=over, report=bar.runs)
    results.answer(result.to_dict(), lambda: availability_view(result), warnings=result.warnings)


def _causes(mtbf: Sequence[str] | None) -> dict[str, str]:
    """What fails, and the mean time between its failures."""
    causes = {}
    for text in mtbf or ():
        key, _, value = (part.strip() for part in text.partition("="))
        if not key or not value:
            raise BadInput(f"--mtbf: {text!r} is not WHAT=TIME, as host=30d")
        causes[key] = value
    if len(causes) < len(mtbf or ()):
        raise BadInput("--mtbf: the same is given twice; give one mean time between failures for each")
    return causes


def check(
    scenario: Source,
    settings: Texts = None,
    objective: list[str] | None = None,
    replications: Annotated[int | None, {"min": 1}] = None,
    strict: bool = False,
    junit: Path | None = None,
    results: Printed = PRINT,
) -> None:
    """Run a scenario and hold it against its objectives (slo): exits with 1 if one is broken.

    For example: tideover check wordcount --objective 'recovery_p95 <= 60 s' --objective 'lost = 0'

    --objective TEXT: An objective, as 'recovery_p95 <= 20 s', in place of the scenario's slo. Repeatable.
    --replications N: How many runs.
    --strict: An interval with the limit in it counts as broken.
    --junit FILE: Write JUnit's XML there.
    """
    from tideover.reports import checks as told
    from tideover.reports.terminal import check_view
    from tideover.scenarios.objectives import check as checks

    found = output.loaded(scenario, settings, replications)
    asked = checks.asked(found, objective or None, "--objective", scenario)
    if junit is not None:
        ours = b'<testsuite name="tideover check: '
        output.may_write(junit, "--junit", ours, "what tideover check wrote")
    output.announce([found])
    with Bar() as bar:
        answer = checks.check(found, asked, strict=strict, report=bar.runs)
    if junit is not None:
        with output.writing(junit, option="--junit"):
            junit.write_text(told.junit(answer), encoding="utf-8")
    results.answer(answer.to_dict(), lambda: check_view(answer), warnings=answer.remarks)
    if not answer.ok:
        raise typer.Exit(1)


def _reports(name: str) -> ModuleType:
    """Imported where something is shown: `--json` need not wait for it."""
    return import_module(f"tideover.reports.{name}")


LEAST_STEP = "1 min"


def hours(
    scenario: Source,
    at: str | None = None,
    every: str = "2h",
    replications: Annotated[int | None, {"min": 1}] = None,
    settings: Texts = None,
    results: Results = PRINT,
) -> None:
    """Say what a failure costs at each hour of a day, where load follows the time of day.

    For example: tideover hours examples/shop.yaml --every 1h --replications 5

    --at H,H,…: Times of day, as in 4,17:30,18; default: as --every says.
    --every DURATION: Distance of the hours, from 0:00 on.
    --replications: Runs for each hour; short for --set run.replications=…
    """
    from tideover import api
    from tideover.scenarios.hours import at_hours, times_of_day
    from tideover.sim.units import DAY, parse_duration, parse_time_of_day

    if at is None:
        step = output.moment("--every", every)
        if not parse_duration(LEAST_STEP) <= step <= DAY:
            raise BadInput(f"--every: must be {LEAST_STEP} to 1 d, not {every}")
        times = times_of_day(step)
    else:  # a whole number is an hour
        times = [f"{part}:00" if part.isdecimal() else part for part in map(str.strip, at.split(","))]
    try:
        [*map(parse_time_of_day, times)]
    except ValueError as error:
        raise BadInput(f"--at: {error}") from None
    found = output.loaded(scenario, settings, replications)
    results.prepare("hours")
    output.announce(at_hours(found, times).values())
    with Bar() as bar:
        answers = api.hours(found, times, report=bar)

    results.answer(
        answers.to_dict(),
        lambda: _reports("hours").view(answers),
        lambda: _reports("hours").page(answers),
        warnings=answers.warnings,
        tables=lambda: _reports("hours").tables(answers),
        parameters=_reports("hours").PARAMETERS if results.out is not None else None,
    )


def interval(
    scenario: Source,
    mtbf: Texts = None,
    intervals: str | None = None,
    replications: Annotated[int | None, {"min": 2}] = None,
    settings: Texts = None,
    results: Results = PRINT,
) -> None:
    """Find the checkpoint interval that loses the least time, to checkpoints and to failures.

    For example: tideover interval flink-recovery --mtbf failures.0=1d

    --intervals T,T,…: Intervals that are tried, as 30s,1min,2min; default: around the optimum of a formula.
    --replications: Runs for each value and cause; default: run.replications, at least 10.
    """
    from tideover.scenarios.lost_time import interval as best

    values = _durations("--intervals", intervals)
    found = output.loaded(scenario, settings)
    asked = best.ask(found, _causes(mtbf), values, replications)
    _least_lost(lambda bar: best.find(asked, bar), asked.runs, scenario, "interval", results)


def detector(
    scenario: Source,
    pauses: str,
    every: str,
    mtbf: Texts = None,
    timeouts: str | None = None,
    replications: Annotated[int | None, {"min": 2}] = None,
    settings: Texts = None,
    results: Results = PRINT,
) -> None:
    """Find the timeout of a detector: false restarts per day, and what they cost beside late detection.

    For example: tideover detector flink.yaml --pauses '12 s' --every 1h --mtbf failures.0=7d

    --pauses DISTRIBUTION: How long a process pauses, as '12 s' or '{kind: exponential, mean: 3 s}'.
    --every TIME: Mean time from one pause of a process to its next, as 1h.
    --timeouts T,T,…: Timeouts that are tried, as 50s,30s,20s; default: from the interval of heartbeats to
        twice the timeout.
    --replications: Runs for each value and cause; default: run.replications, at least 10.
    """
    from tideover.scenarios.lost_time import detector as best

    values, apart = _durations("--timeouts", timeouts), output.moment("--every", every, 1)
    lengths = best.pauses_of(pauses)
    found = output.loaded(scenario, settings)
    asked = best.ask(found, lengths, apart, _causes(mtbf), values, replications)
    _least_lost(lambda bar: best.find(asked, bar), asked.runs, scenario, "detector", results)


def _least_lost(
    find: Callable[[Bar], Any], runs: Sequence[Scenario], source: str, command: str, results: Results
) -> None:
    """Try all values, and show the time that is lost at each."""
    shown = partial(_reports, "lost_time")
    results.prepare(command)
    output.announce(runs)
    with Bar() as bar:
        found = find(bar)
    view, page = (lambda: shown().view(found, source)), (lambda: shown().page(found, source))
    results.answer(found.to_dict(), view, page, warnings=found.warnings)


def _durations(option: str, text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise BadInput(f"{option}: {text!r}: name at least one time, as 30s")
    return [output.moment(option, part, 1) for part in parts]


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="stableford-phase2, or another study")] = "",
    settings: Texts = None,
    from_: list[Path] | None = None,
    all_: bool = False,
    results: Results = PRINT,
    spark: Spark = SPARK,
) -> None:
    """Set a published table beside the simulated one, with the error of each cell.

    For example: tideover reproduce stableford-phase2 --out report, or
    tideover reproduce --all --out report

    --from CSV: Measurements of demeter or khaos, which are not part of Tideover. Repeatable.
    --all: All studies: what is predicted, fitted, and failed, beside the simplest law of each; two minutes.
    """
    from tideover.cli import reproduce as studies
    from tideover.cli.sweeps import end, simulated
    from tideover.scenarios.sweeps import sweep_file
    from tideover.scenarios.sweeps.dataset import FOLDER

    known = [*studies.PAPERS, *studies.STUDIES, *studies.FITTED]
    if all_:
        if paper or settings:
            raise BadInput(
                f"--all: goes without {'PAPER' if paper else '--set'}: it is all studies as they are"
            )
        _validate(from_ or (), results)
        return
    if not paper:
        raise BadInput(f"PAPER: is missing; name a study, or give --all (known: {', '.join(known)})")
    if paper not in known:
        near = difflib.get_close_matches(paper[:100], known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise BadInput(f"PAPER: {paper!r} is not known; {hint}(known: {', '.join(known)})")
    if paper in studies.FITTED:
        studies.reproduce_fitted(paper, from_ or (), settings or (), results)
        return
    if from_:
        raise BadInput(f"--from: goes with {' and '.join(studies.FITTED)} only; {paper} has its figures")
    if paper in studies.STUDIES:
        studies.reproduce_study(paper, settings or (), results)
        return
    where = spark.place()
    recipe = sweep_file.read(studies.PAPERS[paper], settings or ())
    results.prepare("reproduce")
    found = simulated(recipe, None if results.out is None else results.out / FOLDER, where)
    studies.reproduce_sweep(paper, found, results)
    end(found)


def _validate(files: Sequence[Path], results: Results) -> None:
    """All studies, as tables, as a report, and as the page of the documentation."""
    from tideover.cli import validation
    from tideover.reports import validation as shown
    from tideover.reports.terminal import rendered

    wanted = [source.file for source in validation.STUDIES.values() if source.file]
    for file in files:
        if file.name not in wanted:
            raise BadInput(f"--from: {file}: --all takes {', '.join(wanted)}, each under its name")
        if not file.is_file():
            raise BadInput(f"--from: {file}: there is no such file")
    results.prepare("reproduce")
    with Bar() as bar:
        found = validation.studies(files, lambda done, of: bar("studies", done, of))
    tables = [shown.summary(found), *(study.table for study in found if study.figures)]
    lacks = [study.lacks for study in found if study.lacks]
    results.answer(
        shown.record(found),
        lambda: [shown.answer(found), *rendered(tables), *lacks],
        lambda: shown.page(found),
    )
    if results.out is not None:
        path = results.out / "validation.md"
        with output.writing(path):
            path.write_text(shown.markdown(found), encoding="utf-8")
        results.say(f"Page: {path}")
