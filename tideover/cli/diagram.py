"""``run --diagram``: the space-time diagram of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tideover.cli import output
from tideover.cli.output import BadInput

if TYPE_CHECKING:
    from tideover.models.accounts.space_time import Stretch
    from tideover.models import config
    from tideover.models.results.result import Result

File = Annotated[
    Path | None,
    typer.Option(
        "--diagram",
        metavar="FILE.svg",
        help="Draw who sent what to whom: the run, if it is small, or the stretch around its first failure.",
        show_default=False,
    ),
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Where the diagram begins, as 20s.", show_default=False),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="Where the diagram ends, as 24s.", show_default=False),
]
Components = Annotated[
    str | None,
    typer.Option(
        "--components",
        metavar="A,B,…",
        help="Components that the diagram shows; default: all.",
        show_default=False,
    ),
]


class Asked(NamedTuple):
    """What to draw, and where to write it."""

    file: Path
    stretch: Stretch | None
    components: tuple[str, ...]


def asked(
    scenario: config.Scenario, file: Path | None, begin: str | None, end: str | None, components: str | None
) -> Asked | None:
    """What is asked for; None: no diagram. Raises BadInput before anything is run."""
    if file is None:
        for name, given in (("--from", begin), ("--to", end), ("--components", components)):
            if given is not None:
                raise BadInput(f"{name}: goes with --diagram FILE.svg")
        return None
    if file.suffix.lower() != ".svg":
        raise BadInput(f"--diagram: {file}: the picture is SVG, so the name has to end in .svg")
    ours = output.holds(b'aria-label="Space-time diagram')
    output.may_write(file, "--diagram", ours, "a diagram that tideover drew")
    names = tuple(name.strip() for name in (components or "").split(",") if name.strip())
    for name in names:
        if name not in scenario.topology:
            known = ", ".join(scenario.topology)
            raise BadInput(f"--components: {name!r} is no component of the scenario; it has {known}")
    return Asked(file, _stretch(scenario, begin, end), names)


def _stretch(scenario: config.Scenario, begin: str | None, end: str | None) -> Stretch | None:
    from tideover.models.accounts.space_time import Stretch
    from tideover.sim.units import format_duration

    if begin is None and end is None:
        return None
    duration = scenario.run.duration
    first = 0 if begin is None else output.moment("--from", begin)
    last = duration if end is None else output.moment("--to", end)
    for name, moment in (("--from", first), ("--to", last)):
        if moment > duration:
            raise BadInput(
                f"{name}: {format_duration(moment)} is after the run's end, {format_duration(duration)}"
            )
    if first >= last:
        raise BadInput(f"--from: {format_duration(first)} is not before --to, {format_duration(last)}")
    return Stretch(first, last)


def write(wanted: Asked, result: Result, *, errors: bool) -> None:
    """Draw it, and say where it is."""
    from tideover.reports.diagrams import of_result

    svg = of_result(result, wanted.stretch, wanted.components)
    with output.writing(wanted.file, option="--diagram"):
        wanted.file.write_text(svg, encoding="utf-8")
    output.stream(errors=errors).write(f"Diagram: {wanted.file}\n")
