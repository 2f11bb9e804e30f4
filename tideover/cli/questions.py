"""``tideover audit``, ``availability``, ``check``, ``hours``, ``interval`` and ``detector``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from tideover.cli.run import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from tideover.models.config import Scenario
    from tideover.scenarios.audit.audit import Audit
    from tideover.scenarios.hours import Hours


# ``tideover audit``.


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
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Strike steps from then on.", show_default=False),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Strike steps before then.", show_default=False),
    ] = None,
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
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    archive: Archive = None,
    no_spark: NoSpark = False,
) -> None:
    """Find out what a strategy guarantees, by failing at each step of its protocol.

    Exits with 1 if one does not keep its word. For example: tideover audit rsm
    """
    from tideover.scenarios.audit import cases
    from tideover.scenarios.audit.audit import audit as audited
    from tideover.scenarios.sweeps.sweep import kept

    where = place(master, remote, conf, archive, no_spark)
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
    _tell(found, as_json, out)
    if not all(one.holds for one in found):
        raise typer.Exit(1)


def _tell(found: list[Audit], as_json: bool, out: Path | None) -> None:
    records = [one.to_dict() for one in found]
    record = records[0] if len(found) == 1 else {"audits": records}
    if as_json:
        output.print_json(record)
    else:
        from tideover.reports.audits import audit_view, audits_view

        for shown in audit_view(found[0]) if len(found) == 1 else audits_view(found):
            output.show(shown, whole_lines=True)
    if out is not None:
        from tideover.reports.audits import audit_page, audits_page

        page = partial(audit_page, found[0]) if len(found) == 1 else partial(audits_page, found)
        output.write(out, {}, page, record, errors=as_json)


# ``tideover availability``.

Mtbf = Annotated[
    list[str] | None,
    typer.Option(
        "--mtbf",
        metavar="WHAT=TIME",
        help="Mean time between failures of each host, rack, worker or task, as host=30d, or of one of the "
        "scenario's failures, as failures.0=90d. Repeatable.",
        show_default=False,
    ),
]


def availability(
    scenario: Source,
    mtbf: Mtbf = None,
    slo: Annotated[
        str | None,
        typer.Option(
            metavar="PART", help="The availability that is demanded, as 99.95%.", show_default=False
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="The period of the error budget, as 30d; default: a year.",
            show_default=False,
        ),
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Availability over a year, and the error budget that rare failures burn, without waiting for them.

    For example: tideover availability wordcount --mtbf failures.0=30d --slo 99.95% --set run.replications=30
    """
    from tideover import api

    objective, period = _part(slo), _period(over)
    causes = pairs(mtbf)
    found = api.loaded(scenario, settings or ())
    with Bar() as bar:
        result = api.availability(found, causes, slo=objective, over=period, report=bar.runs)
    if as_json:
        output.warn(result.warnings)
        output.print_json(result.to_dict())
        return
    from tideover.reports.terminal import availability_view

    output.show(availability_view(result))


def pairs(mtbf: list[str] | None) -> dict[str, str]:
    """What fails, and the mean time between its failures."""
    causes = dict(_pair(text) for text in mtbf or ())
    if len(causes) < len(mtbf or ()):
        raise BadInput("--mtbf: the same is given twice; give one mean time between failures for each")
    return causes


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise BadInput(f"--mtbf: {text!r} is not WHAT=TIME, as host=30d")
    return key.strip(), value.strip()


def _part(text: str | None) -> float | None:
    """``99.95%`` or ``0.9995``."""
    if text is None:
        return None
    number = text.strip()
    try:
        value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        least = "a budget of nothing is not a budget: " if value == 1 else ""
        raise BadInput(f"--slo: {text!r}: {least}more than 0 and less than 100 % is allowed, as 99.95%")
    return value


def _period(text: str | None) -> str | None:
    """A period that is not nothing."""
    return text if text is None or output.duration("--over", text) else None


# ``tideover check``.


def check(
    scenario: Source,
    settings: Settings = None,
    objectives: Annotated[
        list[str] | None,
        typer.Option(
            "--objective",
            metavar="TEXT",
            help="An objective, as 'recovery_p95 <= 20 s', in place of the scenario's slo. Repeatable.",
            show_default=False,
        ),
    ] = None,
    replications: Annotated[
        int | None,
        typer.Option("--replications", metavar="N", min=1, help="How many runs.", show_default=False),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="An interval with the limit in it counts as broken.")
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Write JUnit's XML there.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a scenario and hold it against its objectives (slo): exits with 1 if one is broken.

    For example: tideover check wordcount --objective 'recovery_p95 <= 60 s' --objective 'lost = 0'
    """
    from tideover import api
    from tideover.scenarios.loader import unused
    from tideover.scenarios.objectives import check as checks
    from tideover.scenarios.precedence import read_settings
    from tideover.sim.registry import kind_of

    more = [] if replications is None else [f"run.replications={replications}"]
    given = read_settings([*(settings or ()), *more])
    found = api.loaded(scenario, given)
    asked = checks.asked(found, objectives or None, "--objective", scenario)
    if junit is not None:
        ours = output.holds(b'<testsuite name="tideover check: ')
        output.may_write(junit, "--junit", ours, "what tideover check wrote")
    output.note(unused(scenario, kind_of(found.strategy), given))
    output.announce([found])
    with Bar() as bar:
        answer = checks.check(found, asked, strict=strict, report=bar.runs)
    if junit is not None:
        from tideover.reports.checks import junit as xml

        with output.writing(junit, option="--junit"):
            junit.write_text(xml(answer), encoding="utf-8")
    if as_json:
        output.warn(answer.remarks)
        output.print_json(answer.to_dict())
    else:
        from tideover.reports.terminal import check_view

        output.show(check_view(answer))
    if not answer.ok:
        raise typer.Exit(1)


# ``tideover hours``.

LEAST_STEP = "1 min"


def hours(
    scenario: Source,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="H,H,…",
            help="Times of day, as in 4,17:30,18; default: as --every says.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="Distance of the hours, from 0:00 on.")
    ] = "2h",
    replications: Annotated[
        int | None,
        typer.Option(
            min=1, help="Runs for each hour; short for --set run.replications=…", show_default=False
        ),
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Say what a failure costs at each hour of a day, where load follows the time of day.

    For example: tideover hours examples/shop.yaml --every 1h --replications 5
    """
    from tideover import api
    from tideover.scenarios.hours import at_hours, times_of_day
    from tideover.scenarios.loader import unused
    from tideover.scenarios.precedence import read_settings
    from tideover.sim.registry import kind_of

    given = [*(settings or ()), *([f"run.replications={replications}"] if replications else [])]
    times = times_of_day(_step(every)) if at is None else _times(at)
    chosen = read_settings(given)
    found = api.loaded(scenario, chosen)
    output.note(unused(scenario, kind_of(found.strategy), chosen))
    output.prepare(out, "hours")
    output.announce(at_hours(found, times).values())
    with Bar() as bar:
        answers = api.hours(found, times, report=bar)
    if as_json:
        output.warn(answers.warnings)
        output.print_json(answers.to_dict())
    else:
        from tideover.reports.hours import view

        output.show(view(answers))
    if out is not None:
        _write(answers, out, as_json)


def _write(answers: Hours, out: output.Path, as_json: bool) -> None:
    from tideover.reports.hours import PARAMETERS, page, tables

    made = partial(page, answers)
    output.write(out, tables(answers), made, answers.to_dict(), parameters=PARAMETERS, errors=as_json)


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


# ``tideover interval`` and ``tideover detector``.

Replications = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Runs for each value and cause; default: run.replications, at least 10.",
        show_default=False,
    ),
]


def interval(
    scenario: Source,
    mtbf: Mtbf = None,
    intervals: Annotated[
        str | None,
        typer.Option(
            metavar="T,T,…",
            help="Intervals that are tried, as 30s,1min,2min; default: around the optimum of a formula.",
            show_default=False,
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

    values = _listed("--intervals", intervals)
    found = _loaded(scenario, settings)
    asked = best.ask(found, pairs(mtbf), values, replications)
    _find(lambda bar: best.find(asked, bar), asked.runs, scenario, "interval", as_json, out)


def detector(
    scenario: Source,
    pauses: Annotated[
        str,
        typer.Option(
            metavar="DISTRIBUTION",
            help="How long a process pauses, as '12 s' or '{kind: exponential, mean: 3 s}'.",
            show_default=False,
        ),
    ],
    every: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Mean time from one pause of a process to its next, as 1h.",
            show_default=False,
        ),
    ],
    mtbf: Mtbf = None,
    timeouts: Annotated[
        str | None,
        typer.Option(
            metavar="T,T,…",
            help="Timeouts that are tried, as 50s,30s,20s; default: from the interval of heartbeats to twice "
            "the timeout.",
            show_default=False,
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

    values, apart = _listed("--timeouts", timeouts), output.duration("--every", every)
    lengths = best.pauses_of(pauses)
    found = _loaded(scenario, settings)
    asked = best.ask(found, lengths, apart, pairs(mtbf), values, replications)
    _find(lambda bar: best.find(asked, bar), asked.runs, scenario, "detector", as_json, out)


def _loaded(scenario: str, settings: list[str] | None) -> Scenario:
    from tideover import api
    from tideover.scenarios.loader import unused
    from tideover.scenarios.precedence import read_settings
    from tideover.sim.registry import kind_of

    chosen = read_settings(settings or ())
    found = api.loaded(scenario, chosen)
    output.note(unused(scenario, kind_of(found.strategy), chosen))
    return found


def _find(
    find: Callable[[Bar], Any],
    runs: Sequence[Scenario],
    source: str,
    command: str,
    as_json: bool,
    out: output.Path | None,
) -> None:
    output.prepare(out, command)
    output.announce(runs)
    with Bar() as bar:
        found = find(bar)
    if as_json:
        output.warn(found.warnings)
        output.print_json(found.to_dict())
    else:
        from tideover.reports.lost_time import view

        output.show(view(found, source))
    if out is not None:
        from tideover.reports.lost_time import page

        output.write(out, {}, lambda: page(found, source), found.to_dict(), errors=as_json)


def _listed(option: str, text: str | None) -> list[int] | None:
    """The times that an option lists (ns)."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise BadInput(f"{option}: {text!r}: name at least one time, as 30s")
    return [output.duration(option, part) for part in parts]
