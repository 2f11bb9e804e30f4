"""``tideover availability``."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from tideover.cli import output
from tideover.cli.output import BadInput, Json, Settings
from tideover.cli.progress import Bar
from tideover.cli.simulate import Source

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
