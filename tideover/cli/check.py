"""``tideover check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tideover.cli import output
from tideover.cli.output import Json, Settings
from tideover.cli.progress import Bar
from tideover.cli.simulate import Source


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
    from tideover.scenarios.settings import read_settings
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
