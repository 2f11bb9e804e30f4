"""``tideover hours``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tideover.cli import output
from tideover.cli.output import BadInput, Json, Out, Settings
from tideover.cli.progress import Bar
from tideover.cli.simulate import Source

if TYPE_CHECKING:
    from tideover.scenarios.hours import Hours

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
    from tideover.scenarios.settings import read_settings
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
    from tideover.sim.time_of_day import parse_time_of_day

    times = [f"{part}:00" if part.isdecimal() else part for part in map(str.strip, text.split(","))]
    for time in times:
        try:
            parse_time_of_day(time)
        except ValueError as error:
            raise BadInput(f"--at: {error}") from None
    return times
