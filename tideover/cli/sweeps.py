"""``tideover sweep`` and ``tideover plan``; `app` adds them to the program.

`tideover.scenarios.sweeps` and `tideover.scenarios.planning` do the work; `reproduce` uses `simulated`, too.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tideover.cli import output
from tideover.cli.output import PRINT, SPARK, BadInput, Bar, Printed, Results, Spark, SparkOptions, Texts
from tideover.scenarios.spark.settings import Place

if TYPE_CHECKING:
    import pandas as pd

    from tideover.reports.html import Page
    from tideover.scenarios.planning.plan import Plan
    from tideover.scenarios.planning.spec import Spec
    from tideover.scenarios.sweeps.dataset import Sweep
    from tideover.scenarios.sweeps.sweep_file import Recipe


def simulated(
    recipe: Recipe,
    keep: str | Path | None,
    where: Place,
    fail_fast: bool = False,
    retry_failed: bool = False,
    inputs: str | None = None,
) -> Sweep:
    """Do what is missing of a sweep. ``keep``: where its dataset lies, if it is to be kept."""
    from tideover.scenarios.errors import ScenarioError
    from tideover.scenarios.sweeps.files import NoDataset
    from tideover.scenarios.sweeps.sweep import sweep

    if where.elsewhere is not None:
        output.note([f"connecting to {where.elsewhere}"])
    with Bar() as bar:
        try:
            how = {"fail_fast": fail_fast, "retry_failed": retry_failed}
            return sweep(recipe, keep, where=where, inputs=inputs, report=bar, **how)
        except KeyboardInterrupt:
            if keep is not None:
                sys.stderr.write("Interrupted. The same command goes on where it was.\n")
            raise
        except ScenarioError:
            raise  # says itself where
        except NoDataset as error:
            raise BadInput(str(error)) from None
        except ValueError as error:
            raise BadInput(f"--data: {error}") from None


def page_of(found: Sweep, sensitivities: pd.DataFrame | None = None) -> Page:
    from tideover.reports.sweeps.page import sweep_page
    from tideover.reports.sweeps.points import points
    from tideover.reports.tables import point_record

    shown = points(found.points, found.summary, found.parameters)
    first = int(shown.numbers[0])
    record = point_record(first, found.of_point("recoveries", first), found.of_point("runs", first))
    around = (found.timeline, found.recoveries) if len(shown) == 1 and found.manifest.timeline else None
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
    settings: Texts = None,
    results: Printed = PRINT,
    out: Path | None = None,
    data: str | None = None,
    spark: SparkOptions = SPARK,
    fail_fast: bool = False,
    retry_failed: bool = False,
    dry_run: bool = False,
) -> None:
    """Simulate a grid of parameters as Spark jobs. With --out, it goes on where it was interrupted.

    --out DIR: Write report.html and the dataset there; runs that it has are not done again.
    --data URL: Where the dataset lies, if not in --out: a directory, file:, hdfs:, s3a:, …
    --fail-fast/--keep-going: End with the first run that fails, or go on.
    --retry-failed: Do runs again that are there, and failed.
    --dry-run: Say what would be done, why, and how long it takes; write nothing.
    """
    from tideover.reports.sweeps import page as pages
    from tideover.reports.sweeps.points import points
    from tideover.reports.terminal import render
    from tideover.scenarios.runs import fingerprint
    from tideover.scenarios.sweeps import sweep_file
    from tideover.scenarios.sweeps.dataset import FOLDER, Sweep
    from tideover.scenarios.sweeps.files import NoDataset, local_path

    where = spark.place()
    keep = data or (None if out is None else out / FOLDER)
    local = None if keep is None else local_path(keep)
    if dry_run:
        if keep is not None and local is None:
            raise BadInput(f"--data: {data}: --dry-run only looks at directories of this machine")
        recipe = sweep_file.read(spec, settings or ())
        _forecast(recipe, local or Path(".tideover-nothing"), retry_failed, results.json)
        return
    inputs = None if keep is None else fingerprint(spec, settings or ())
    found = None
    if keep is not None and local is not None and inputs is not None:
        # what is there whole, from the same inputs: points need not even be checked
        with suppress(NoDataset):
            there = Sweep.open(keep)
            if there.manifest.inputs == inputs and not (retry_failed and there.failed):
                found = there
    if found is None:
        recipe = sweep_file.read(spec, settings or ())
        Results(out=out).prepare("sweep")
        if data is not None and local is not None:
            with output.writing(local, "to", "--data"):
                local.mkdir(parents=True, exist_ok=True)
        found = simulated(recipe, keep, where, fail_fast, retry_failed, inputs)
    sensitivities = _sensitivities(found, spec, settings)
    if results.json:
        output.warn(found.warnings)
        output.print_json_list(found.records())
    else:
        shown = points(found.points, found.summary, found.parameters)
        output.show(pages.sweep_view(shown, found.warnings, name=found.name, kept=out is not None))
        if sensitivities is not None:
            output.show(render(pages.table(sensitivities)))
    if out is not None:
        page = _write_page(out, found, sensitivities)
        results.say(f"Report: {page}\nDataset: {found.place}")
    end(found)


def _write_page(directory: Path, found: Sweep, sensitivities: pd.DataFrame | None) -> Path:
    """Write a sweep's page to ``--out``, unless it is there as it was made from the same inputs."""
    from tideover.reports.parquet import REPORT, write_all
    from tideover.reports.sweeps.page import finished, stamp, unstamp

    page, inputs = directory / REPORT, found.fingerprint()
    if not finished(directory, inputs, page):
        with Bar(output.MAKING), output.writing(directory, "to"):
            unstamp(directory)
            write_all(directory, tables={}, page=page_of(found, sensitivities))
            stamp(directory, inputs, page)
    return page


def _sensitivities(found: Sweep, spec: str, settings: Texts) -> pd.DataFrame | None:
    """Which factors the time to recover depends on, if the points were chosen to tell that."""
    from tideover.models.schema import HEADLINE
    from tideover.scenarios.statistics.sensitivity import indices, sample_of
    from tideover.scenarios.sweeps import sweep_file
    from tideover.scenarios.sweeps.rows import AT_LEAST

    recipe = sweep_file.read(spec, settings or ())
    if sample_of(recipe) is None:
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


def _forecast(recipe: Recipe, place: Path, retry_failed: bool, as_json: bool) -> None:
    from dataclasses import asdict

    from tideover.reports.sweeps.page import forecast_view
    from tideover.scenarios.sweeps.files import Files
    from tideover.scenarios.sweeps.sweep import forecast

    with Bar() as bar:
        found = forecast(recipe, Files(place), retry_failed, bar)
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
    settings: Texts = None,
    results: Results = PRINT,
    spark: Spark = SPARK,
    dry_run: bool = False,
) -> None:
    """Find the cheapest configuration that meets the objectives. Exits with 1 if there is none.

    For example: tideover plan examples/plan.yaml --out report

    --dry-run: Count candidates and runs, and say how long they take.
    """
    from tideover.reports.plans import plan_page, plan_view, so_far
    from tideover.scenarios.planning import plan as planning
    from tideover.scenarios.planning import spec as specs
    from tideover.scenarios.planning.plan import kept
    from tideover.scenarios.sweeps.engine import terminable

    where = spark.place()
    asked = specs.read(Path(spec), settings or ())
    output.warn(asked.remarks)
    if dry_run:
        _count(asked, results.json)
        return
    results.prepare("plan")

    def tell(found: Plan) -> None:
        sys.stderr.write(f"{so_far(found)}\n")

    most = asked.space.total * asked.effort.most
    try:
        with (
            terminable(),
            Bar() as bar,
            kept(asked.space, results.out, where, lambda what, done: bar(what, done, most)) as engine,
        ):
            found = planning.plan(asked, engine, report=bar, answered=tell)
    except planning.Interrupted as early:
        found = early.plan
    results.answer(found.to_dict(), lambda: plan_view(found), lambda: plan_page(found))
    if results.out is not None and found.scenario is not None:
        found.scenario.to_yaml(results.out / SCENARIO)
        results.say(f"Its scenario: {results.out / SCENARIO}")
    if not found.whole:
        if results.out is not None:
            sys.stderr.write("Interrupted. The same command goes on where it was.\n")
        raise typer.Exit(130)
    if found.best is None:
        raise typer.Exit(1)


def _count(asked: Spec, as_json: bool) -> None:
    from tideover.reports.formatting import in_words
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
        each, whole = in_words(found.run_s), in_words(found.core_s)
        said += (
            f"The whole takes about {whole} of one core, {in_words(found.core_s / cores)} with the "
            f"{cores} of this machine, give or take a factor of two ({each} a run); what is best so far is "
            f"said from {in_words(found.first_s / cores)} on. Starting Spark comes on top."
        )
    output.show(Text(said))
