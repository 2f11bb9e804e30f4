"""``tideover plan``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tideover.cli import output
from tideover.cli.output import Json, Out, Settings
from tideover.cli.progress import Bar
from tideover.cli.spark import Archive, Conf, Master, NoSpark, Remote, place

if TYPE_CHECKING:
    from tideover.scenarios.planning.result import Plan
    from tideover.scenarios.planning.spec import Spec


SCENARIO = "scenario.yaml"
"""The file with the optimum's scenario, or that of the one that misses least."""


def plan(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A plan's file: objectives, prices, choices.")],
    settings: Settings = None,
    as_json: Json = False,
    out: Out = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    archive: Archive = None,
    no_spark: NoSpark = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count candidates and runs, and say how long they take.")
    ] = False,
) -> None:
    """Find the cheapest configuration that meets the objectives. Exits with 1 if there is none.

    For example: tideover plan examples/plan.yaml --out report
    """
    from tideover.reports.plans.answer import so_far
    from tideover.scenarios.planning import plan as planning
    from tideover.scenarios.planning import spec as specs
    from tideover.scenarios.planning.on_engine import kept
    from tideover.scenarios.sweeps.interrupts import terminable

    where = place(master, remote, conf, archive, no_spark)
    asked = specs.read(Path(spec), settings or ())
    output.warn(asked.remarks)
    if dry_run:
        _count(asked, as_json)
        return
    output.prepare(out, "plan")

    def tell(found: Plan) -> None:
        sys.stderr.write(f"{so_far(found)}\n")

    most = asked.space.total * asked.effort.most
    try:
        with (
            terminable(),
            Bar() as bar,
            kept(asked.space, out, where, lambda what, done: bar(what, done, most)) as engine,
        ):
            found = planning.plan(asked, engine, report=bar, answered=tell)
    except planning.Interrupted as early:
        found = early.plan
    _tell(found, as_json, out)
    if not found.whole:
        if out is not None:
            sys.stderr.write("Interrupted. The same command goes on where it was.\n")
        raise typer.Exit(130)
    if found.best is None:
        raise typer.Exit(1)


def _count(asked: Spec, as_json: bool) -> None:
    """What would be tried, and how long that takes."""
    from tideover.scenarios.planning.forecast import forecast

    found = forecast(asked)
    if as_json:
        counted = {"candidates": found.candidates, "runs": found.most_runs, "expected_runs": found.runs}
        times = {"seconds_per_run": found.run_s, "core_s": found.core_s, "first_core_s": found.first_s}
        output.print_json(counted | times)
        return
    from rich.text import Text

    said = f"{found.candidates:,} candidates, {found.most_runs:,} runs if all took {asked.effort.most} "
    said += f"replications; about {found.runs:,} are made as a rule. "
    if found.run_s is None or found.core_s is None or found.first_s is None:
        said += "None of those that were looked at can be built."
    else:
        cores = os.cpu_count() or 1
        each, whole = output.in_words(found.run_s), output.in_words(found.core_s)
        said += (
            f"The whole takes about {whole} of one core, {output.in_words(found.core_s / cores)} with the "
        )
        said += (
            f"{cores} of this machine, give or take a factor of two ({each} a run); what is best so far is "
        )
        said += f"said from {output.in_words(found.first_s / cores)} on. Starting Spark comes on top."
    output.show(Text(said))


def _tell(found: Plan, as_json: bool, out: Path | None) -> None:
    if as_json:
        output.print_json(found.to_dict())
    else:
        from tideover.reports.plans.view import plan_view

        output.show(plan_view(found))
    if out is not None:
        from tideover.reports.plans.page import plan_page

        output.write(out, {}, lambda: plan_page(found), found.to_dict(), errors=as_json)
        if found.scenario is not None:
            found.scenario.to_yaml(out / SCENARIO)
            output.stream(errors=as_json).write(f"Its scenario: {out / SCENARIO}\n")
