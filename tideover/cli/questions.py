"""``tideover audit``, ``availability``, ``check``, ``hours``, ``interval``, ``detector`` and ``reproduce``.

Each command reads its options, has a room below find the answer, and gives it to `output.answer`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tideover.cli import output
from tideover.cli.output import USUAL, BadInput, Bar, Json, Out, Settings, Source, Spark, option

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
    settings: Settings = None,
    kinds: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Kinds of faults; default: all that take something."),
    ] = None,
    since: Annotated[str | None, option("Strike steps from then on.", "--from", metavar="TIME")] = None,
    until: Annotated[str | None, option("Strike steps before then.", "--until", metavar="TIME")] = None,
    each: Annotated[int, typer.Option(metavar="N", min=1, help="Moments of each step that are struck.")] = 2,
    detection: Annotated[
        str, typer.Option(metavar="TIME", help="How long it takes until a failure is noticed.")
    ] = "1 s",
    restart: Annotated[str, typer.Option(metavar="TIME", help="And to restart what failed.")] = "3 s",
    second: Annotated[
        bool, typer.Option("--second/--no-second", help="Let a second fault strike during recoveries.")
    ] = True,
    as_json: Json = False,
    out: Out = None,
    spark: Spark = USUAL,
) -> None:
    """Find out what a strategy guarantees, by failing at each step of its protocol.

    Exits with 1 if one does not keep its word. For example: tideover audit rsm
    """
    from tideover.reports import audits
    from tideover.scenarios.audit import cases
    from tideover.scenarios.audit.audit import audit as audited
    from tideover.scenarios.sweeps.sweep import kept

    where = spark.place()
    try:
        every = cases.targets(target, settings or ())
        tried = [
            cases.asked(
                scenario,
                kinds=None if kinds is None else kinds.split(","),
                begin=since,
                end=until,
                each=each,
                detection=detection,
                restart=restart,
                second=second,
            )
            for scenario, _ in every
        ]
    except cases.NotAsked as error:
        raise BadInput(str(error)) from None
    output.prepare(out, "audit")
    with Bar() as bar, kept(out, where, lambda what: bar(what, 0, 0)) as doer:
        found = [audited(*one, options, doer, bar) for one, options in zip(every, tried, strict=True)]
    records, single = [one.to_dict() for one in found], len(found) == 1
    output.answer(
        records[0] if single else {"audits": records},
        lambda: audits.audit_view(found[0]) if single else audits.audits_view(found),
        lambda: audits.audit_page(found[0]) if single else audits.audits_page(found),
        as_json=as_json,
        out=out,
        whole_lines=True,
    )
    if not all(one.holds for one in found):
        raise typer.Exit(1)


Mtbf = Annotated[
    list[str] | None,
    option(
        "Mean time between failures of each host, rack, worker or task, as host=30d, or of one of the "
        "scenario's failures, as failures.0=90d. Repeatable.",
        "--mtbf",
        metavar="WHAT=TIME",
    ),
]


def availability(
    scenario: Source,
    mtbf: Mtbf = None,
    slo: Annotated[
        str | None, option("The availability that is demanded, as 99.95%.", metavar="PART")
    ] = None,
    over: Annotated[
        str | None, option("The period of the error budget, as 30d; default: a year.", metavar="TIME")
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Availability over a year, and the error budget that rare failures burn, without waiting for them.

    For example: tideover availability wordcount --mtbf failures.0=30d --slo 99.95% --set run.replications=30
    """
    from tideover import api
    from tideover.reports.terminal import availability_view

    objective = None if slo is None else _part(slo)
    if over:
        output.duration("--over", over)
    causes = _causes(mtbf)
    found = api.loaded(scenario, settings or ())
    with Bar() as bar:
        result = api.availability(found, causes, slo=objective, over=over, report=bar.runs)
    output.answer(
        result.to_dict(),
        lambda: availability_view(result),
        None,
        as_json=as_json,
        out=None,
        warnings=result.warnings,
    )


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


def _part(text: str) -> float:
    """``99.95%`` or ``0.9995``."""
    number = text.strip()
    try:
        value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        least = "a budget of nothing is not a budget: " if value == 1 else ""
        raise BadInput(f"--slo: {text!r}: {least}more than 0 and less than 100 % is allowed, as 99.95%")
    return value


def check(
    scenario: Source,
    settings: Settings = None,
    objectives: Annotated[
        list[str] | None,
        option(
            "An objective, as 'recovery_p95 <= 20 s', in place of the scenario's slo. Repeatable.",
            "--objective",
            metavar="TEXT",
        ),
    ] = None,
    replications: Annotated[
        int | None, option("How many runs.", "--replications", metavar="N", min=1)
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="An interval with the limit in it counts as broken.")
    ] = False,
    junit: Annotated[Path | None, option("Write JUnit's XML there.", "--junit", metavar="FILE")] = None,
    as_json: Json = False,
) -> None:
    """Run a scenario and hold it against its objectives (slo): exits with 1 if one is broken.

    For example: tideover check wordcount --objective 'recovery_p95 <= 60 s' --objective 'lost = 0'
    """
    from tideover.reports import checks as told
    from tideover.reports.terminal import check_view
    from tideover.scenarios.objectives import check as checks

    found, unused = output.loaded(scenario, settings, replications)
    asked = checks.asked(found, objectives or None, "--objective", scenario)
    if junit is not None:
        ours = output.holds(b'<testsuite name="tideover check: ')
        output.may_write(junit, "--junit", ours, "what tideover check wrote")
    output.note(unused)
    output.announce([found])
    with Bar() as bar:
        answer = checks.check(found, asked, strict=strict, report=bar.runs)
    if junit is not None:
        with output.writing(junit, option="--junit"):
            junit.write_text(told.junit(answer), encoding="utf-8")
    output.answer(
        answer.to_dict(),
        lambda: check_view(answer),
        None,
        as_json=as_json,
        out=None,
        warnings=answer.remarks,
    )
    if not answer.ok:
        raise typer.Exit(1)


LEAST_STEP = "1 min"


def hours(
    scenario: Source,
    at: Annotated[
        str | None,
        option("Times of day, as in 4,17:30,18; default: as --every says.", metavar="H,H,…"),
    ] = None,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="Distance of the hours, from 0:00 on.")
    ] = "2h",
    replications: Annotated[
        int | None, option("Runs for each hour; short for --set run.replications=…", min=1)
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Say what a failure costs at each hour of a day, where load follows the time of day.

    For example: tideover hours examples/shop.yaml --every 1h --replications 5
    """
    from tideover import api
    from tideover.reports import hours as reports
    from tideover.scenarios.hours import at_hours, times_of_day

    times = times_of_day(_step(every)) if at is None else _times(at)
    found, unused = output.loaded(scenario, settings, replications)
    output.note(unused)
    output.prepare(out, "hours")
    output.announce(at_hours(found, times).values())
    with Bar() as bar:
        answers = api.hours(found, times, report=bar)
    output.answer(
        answers.to_dict(),
        lambda: reports.view(answers),
        lambda: reports.page(answers),
        as_json=as_json,
        out=out,
        warnings=answers.warnings,
        tables=lambda: reports.tables(answers),
        parameters=reports.PARAMETERS,
    )


def _step(text: str) -> int:
    from tideover.sim.units import DAY, parse_duration

    step = output.moment("--every", text)
    if not parse_duration(LEAST_STEP) <= step <= DAY:
        raise BadInput(f"--every: must be {LEAST_STEP} to 1 d, not {text}")
    return step


def _times(text: str) -> list[str]:
    """The times of day that are named; a whole number is an hour."""
    from tideover.sim.units import parse_time_of_day

    times = [f"{part}:00" if part.isdecimal() else part for part in map(str.strip, text.split(","))]
    for time in times:
        try:
            parse_time_of_day(time)
        except ValueError as error:
            raise BadInput(f"--at: {error}") from None
    return times


Replications = Annotated[
    int | None, option("Runs for each value and cause; default: run.replications, at least 10.", min=2)
]


def interval(
    scenario: Source,
    mtbf: Mtbf = None,
    intervals: Annotated[
        str | None,
        option(
            "Intervals that are tried, as 30s,1min,2min; default: around the optimum of a formula.",
            metavar="T,T,…",
        ),
    ] = None,
    replications: Replications = None,
    settings: Settings = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Find the checkpoint interval that loses the least time, to checkpoints and to failures.

    For example: tideover interval flink-recovery --mtbf failures.0=1d
    """
    from tideover.scenarios.lost_time import interval as best

    values = _durations("--intervals", intervals)
    found, unused = output.loaded(scenario, settings)
    output.note(unused)
    asked = best.ask(found, _causes(mtbf), values, replications)
    _least_lost(lambda bar: best.find(asked, bar), asked.runs, scenario, "interval", as_json, out)


def detector(
    scenario: Source,
    pauses: Annotated[
        str,
        option(
            "How long a process pauses, as '12 s' or '{kind: exponential, mean: 3 s}'.",
            metavar="DISTRIBUTION",
        ),
    ],
    every: Annotated[
        str, option("Mean time from one pause of a process to its next, as 1h.", metavar="TIME")
    ],
    mtbf: Mtbf = None,
    timeouts: Annotated[
        str | None,
        option(
            "Timeouts that are tried, as 50s,30s,20s; default: from the interval of heartbeats to twice "
            "the timeout.",
            metavar="T,T,…",
        ),
    ] = None,
    replications: Replications = None,
    settings: Settings = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Find the timeout of a detector: false restarts per day, and what they cost beside late detection.

    For example: tideover detector flink.yaml --pauses '12 s' --every 1h --mtbf failures.0=7d
    """
    from tideover.scenarios.lost_time import detector as best

    values, apart = _durations("--timeouts", timeouts), output.duration("--every", every)
    lengths = best.pauses_of(pauses)
    found, unused = output.loaded(scenario, settings)
    output.note(unused)
    asked = best.ask(found, lengths, apart, _causes(mtbf), values, replications)
    _least_lost(lambda bar: best.find(asked, bar), asked.runs, scenario, "detector", as_json, out)


def _least_lost(
    find: Callable[[Bar], Any],
    runs: Sequence[Scenario],
    source: str,
    command: str,
    as_json: bool,
    out: Path | None,
) -> None:
    """Try all values, and show the time that is lost at each."""

    def shown() -> ModuleType:  # draws, which takes a second to import, and `--json` needs none of it
        from tideover.reports import lost_time

        return lost_time

    output.prepare(out, command)
    output.announce(runs)
    with Bar() as bar:
        found = find(bar)
    output.answer(
        found.to_dict(),
        lambda: shown().view(found, source),
        lambda: shown().page(found, source),
        as_json=as_json,
        out=out,
        warnings=found.warnings,
    )


def _durations(option: str, text: str | None) -> list[int] | None:
    """The times that an option lists (ns)."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise BadInput(f"{option}: {text!r}: name at least one time, as 30s")
    return [output.duration(option, part) for part in parts]


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="stableford-phase2, or another study")],
    settings: Settings = None,
    files: Annotated[
        list[Path] | None,
        option(
            "Measurements of demeter or khaos, which are not part of Tideover. Repeatable.",
            "--from",
            metavar="CSV",
        ),
    ] = None,
    as_json: Json = False,
    out: Out = None,
    spark: Spark = USUAL,
) -> None:
    """Set a published table beside the simulated one, with the error of each cell.

    For example: tideover reproduce stableford-phase2 --out report
    """
    from tideover.cli import reproduce as studies
    from tideover.cli.sweeps import end, simulated
    from tideover.scenarios.sweeps import sweep_file

    known = [*studies.PAPERS, *studies.STUDIES, *studies.FITTED]
    if paper not in known:
        near = difflib.get_close_matches(paper[:100], known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise BadInput(f"PAPER: {paper!r} is not known; {hint}(known: {', '.join(known)})")
    if paper in studies.FITTED:
        studies.reproduce_fitted(paper, files or (), settings or (), out, as_json)
        return
    if files:
        raise BadInput(f"--from: goes with {' and '.join(studies.FITTED)} only; {paper} has its figures")
    if paper in studies.STUDIES:
        studies.reproduce_study(paper, settings or (), out, as_json)
        return
    where = spark.place()
    recipe = sweep_file.read(studies.PAPERS[paper], settings or ())
    found = simulated("reproduce", recipe, out, where)
    studies.reproduce_sweep(paper, found, out, as_json)
    end(found)
