"""``tideover interval`` and ``tideover detector``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tideover.cli import output
from tideover.cli.availability import Mtbf, pairs
from tideover.cli.output import BadInput, Json, Out, Settings
from tideover.cli.progress import Bar
from tideover.cli.simulate import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from tideover.models.config import Scenario

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
    from tideover.scenarios.settings import read_settings
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
