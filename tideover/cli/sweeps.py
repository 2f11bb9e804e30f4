"""``tideover sweep`` and ``tideover plan``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tideover.cli import output
from tideover.cli.output import USUAL, BadInput, Bar, Json, Out, Settings, Spark, SparkOrPackage, option
from tideover.scenarios.spark.settings import Place

if TYPE_CHECKING:
    import pandas as pd

    from tideover.reports.html import Page
    from tideover.scenarios.planning.plan import Plan
    from tideover.scenarios.planning.spec import Spec
    from tideover.scenarios.sweeps.dataset import Sweep
    from tideover.scenarios.sweeps.sweep import Options
    from tideover.scenarios.sweeps.sweep_file import Recipe


def simulated(
    command: str,
    recipe: Recipe,
    out: Path | None,
    where: Place,
    *,
    data: str | None = None,
    options: Options | None = None,
    inputs: str | None = None,
) -> Sweep:
    """Do what is missing of a sweep. ``data``: where its dataset lies, if not in ``out``."""
    from tideover.scenarios.errors import ScenarioError
    from tideover.scenarios.sweeps.dataset import FOLDER
    from tideover.scenarios.sweeps.files import NoDataset, local_path
    from tideover.scenarios.sweeps.sweep import Options, sweep

    output.prepare(out, command)
    if where.elsewhere is not None:
        output.note([f"connecting to {where.elsewhere}"])
    keep = data or (None if out is None else out / FOLDER)
    if data is not None and (place := local_path(data)) is not None:
        with output.writing(place, "to", "--data"):
            place.mkdir(parents=True, exist_ok=True)
    with Bar() as bar:
        try:
            return sweep(recipe, keep, where=where, options=options or Options(), inputs=inputs, report=bar)
        except KeyboardInterrupt:
            if keep is not None:
                sys.stderr.write("Interrupted. The same command goes on where it was.\n")
            raise
        except ScenarioError:
            raise  # says itself where
        except NoDataset as error:
            raise output.BadInput(str(error)) from None
        except ValueError as error:
            raise output.BadInput(f"--data: {error}") from None


def page_of(found: Sweep, sensitivities: pd.DataFrame | None = None) -> Page:
    """The page of a sweep, from its summary."""
    from tideover.reports.sweeps.page import sweep_page
    from tideover.reports.sweeps.points import points
    from tideover.reports.tables import point_record

    shown = points(found.points, found.summary, found.parameters)
    first = int(shown.numbers[0])
    record = point_record(first, found.of_point("recoveries", first), found.of_point("runs", first))
    around = None
    if len(shown) == 1 and found.manifest.timeline:
        around = (found.timeline, found.recoveries)
    return sweep_page(
        shown,
        record,
        name=found.name,
        around=around,
        differences=found.differences,
        sensitivities=sensitivities,
        warnings=found.warnings,
    )


def end(found: Sweep) -> None:
    """Exit with 1 if a run failed."""
    if found.failed:
        number, _, error = found.failed[0]
        more = f"{len(found.failed)} of {found.manifest.runs} runs failed; the first: point {number}, {error}"
        sys.stderr.write(f"tideover: {more}\n")
        raise typer.Exit(1)


LISTED = 200
"""Points that ``--dry-run`` lists in full."""


def sweep(
    spec: Annotated[
        str, typer.Argument(metavar="SWEEP", help="A sweep file, or the name of a built-in sweep.")
    ],
    settings: Settings = None,
    as_json: Json = False,
    out: Annotated[
        Path | None,
        option(
            "Write report.html and the dataset there; runs that it has are not done again.",
            "--out",
            metavar="DIR",
        ),
    ] = None,
    data: Annotated[
        str | None,
        option("Where the dataset lies, if not in --out: a directory, file:, hdfs:, s3a:, …", metavar="URL"),
    ] = None,
    spark: SparkOrPackage = USUAL,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast/--keep-going", help="End with the first run that fails, or go on.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Do runs again that are there, and failed.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would be done, why, and how long it takes; write nothing."),
    ] = False,
) -> None:
    """Simulate a grid of parameters as Spark jobs. With --out, it goes on where it was interrupted."""
    from tideover.scenarios.runs import fingerprint
    from tideover.scenarios.sweeps import sweep_file
    from tideover.scenarios.sweeps.sweep import Options

    where = spark.place()
    options = Options(fail_fast, retry_failed)
    if dry_run:
        _forecast(sweep_file.read(spec, settings or ()), out, data, options, as_json)
        return
    inputs = None if out is None and data is None else fingerprint(spec, settings or ())
    found = _finished(out, data, inputs, options)
    if found is None:
        recipe = sweep_file.read(spec, settings or ())
        found = simulated("sweep", recipe, out, where, data=data, options=options, inputs=inputs)
    _show(found, out, as_json, _sensitivities(found, spec, settings))
    end(found)


def _sensitivities(found: Sweep, spec: str, settings: Settings) -> pd.DataFrame | None:
    """Which factors the time to recover depends on, if the points were chosen to tell that."""
    from tideover.models.schema import HEADLINE
    from tideover.scenarios.statistics.sensitivity import indices, tells
    from tideover.scenarios.sweeps import sweep_file
    from tideover.scenarios.sweeps.rows import AT_LEAST

    recipe = sweep_file.read(spec, settings or ())
    if not tells(recipe):
        return None
    late = found.summary.loc[found.summary["metric"] == HEADLINE, "undefined"].gt(0).sum()
    rows = found.summary[found.summary["metric"] == AT_LEAST]
    if late:
        counts = "a run that ended first counts with the time until then"
        output.note([f"in {late:,} of {recipe.total:,} points not every run recovers; {counts}"])
    try:
        return indices(recipe, dict(zip(rows["point"], rows["mean"], strict=True)))
    except ValueError as error:
        output.note([f"nothing is said of sensitivities: {error}"])
        return None


def _finished(out: Path | None, data: str | None, inputs: str | None, options: Any) -> Sweep | None:
    """What is there already, if it was made from the same inputs, whole: points need not even be checked."""
    from tideover.scenarios.sweeps.dataset import FOLDER, Sweep
    from tideover.scenarios.sweeps.files import NoDataset, local_path

    place = data or (None if out is None else out / FOLDER)
    if place is None or inputs is None or local_path(place) is None:
        return None
    try:
        found = Sweep.open(place)
        again = found.manifest.inputs != inputs or (options.retry_failed and bool(found.failed))
        return None if again else found
    except NoDataset:
        return None


def _show(found: Sweep, out: Path | None, as_json: bool, sensitivities: pd.DataFrame | None) -> None:
    """Print it, and write the page if that is not there already."""
    from tideover.reports.sweeps import page as factors
    from tideover.reports.sweeps.page import sweep_view
    from tideover.reports.sweeps.points import points
    from tideover.reports.terminal import render

    if as_json:
        output.warn(found.warnings)
        output.print_json_list(found.records())
    else:
        shown = points(found.points, found.summary, found.parameters)
        output.show(sweep_view(shown, found.warnings, name=found.name, kept=out is not None))
        if sensitivities is not None:
            output.show(render(factors.table(sensitivities)))
    if out is not None:
        page = output.write_page(out, lambda: page_of(found, sensitivities), found.fingerprint())
        output.stream(errors=as_json).write(f"Report: {page}\nDataset: {found.place}\n")


def _forecast(recipe: Recipe, out: Path | None, data: str | None, options: Any, as_json: bool) -> None:
    """What would be done."""
    from dataclasses import asdict

    from tideover.reports.sweeps.page import forecast_view
    from tideover.scenarios.sweeps.dataset import FOLDER
    from tideover.scenarios.sweeps.files import Files, local_path
    from tideover.scenarios.sweeps.sweep import forecast

    directory = local_path(data or (Path(".tideover-nothing") if out is None else out / FOLDER))
    if directory is None:
        raise BadInput(f"--data: {data}: --dry-run only looks at directories of this machine")
    with Bar() as bar:
        found = forecast(recipe, Files(directory), options, bar)
    if as_json:
        listed = [{"point": number, "swept": recipe.values(number)} for number in range(recipe.total)]
        output.print_json(asdict(found) | {"points": listed})
        return
    output.show(*forecast_view(found, recipe, LISTED))
    output.warn(found.remarks)


SCENARIO = "scenario.yaml"
"""The file with the optimum's scenario, or that of the one that misses least."""


def plan(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A plan's file: objectives, prices, choices.")],
    settings: Settings = None,
    as_json: Json = False,
    out: Out = None,
    spark: Spark = USUAL,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count candidates and runs, and say how long they take.")
    ] = False,
) -> None:
    """Find the cheapest configuration that meets the objectives. Exits with 1 if there is none.

    For example: tideover plan examples/plan.yaml --out report
    """
    from tideover.reports.plans import so_far
    from tideover.scenarios.planning import plan as planning
    from tideover.scenarios.planning import spec as specs
    from tideover.scenarios.planning.plan import kept
    from tideover.scenarios.sweeps.engine import terminable

    where = spark.place()
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
    from tideover.scenarios.planning.plan import forecast

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
            f"{cores} of this machine, give or take a factor of two ({each} a run); what is best so far is "
            f"said from {output.in_words(found.first_s / cores)} on. Starting Spark comes on top."
        )
    output.show(Text(said))


def _tell(found: Plan, as_json: bool, out: Path | None) -> None:
    from tideover.reports.plans import plan_page, plan_view

    record = found.to_dict()
    output.answer(record, lambda: plan_view(found), lambda: plan_page(found), as_json=as_json, out=out)
    if out is not None and found.scenario is not None:
        found.scenario.to_yaml(out / SCENARIO)
        output.stream(errors=as_json).write(f"Its scenario: {out / SCENARIO}\n")
