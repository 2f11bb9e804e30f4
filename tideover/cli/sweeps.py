"""``tideover sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tideover.cli import output
from tideover.cli.output import BadInput, Json, Settings
from tideover.cli.progress import Bar
from tideover.cli.spark import Archive, Conf, Master, NoSpark, Package, Remote, place
from tideover.cli.sweeping import end, page_of, simulated

if TYPE_CHECKING:
    import pandas as pd

    from tideover.scenarios.sweeps.dataset import Sweep
    from tideover.scenarios.sweeps.recipe import Recipe

LISTED = 200
"""Points that ``--dry-run`` lists in full."""

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Write report.html and the dataset there; runs that it has are not done again.",
        show_default=False,
    ),
]


def sweep(
    spec: Annotated[
        str, typer.Argument(metavar="SWEEP", help="A sweep file, or the name of a built-in sweep.")
    ],
    settings: Settings = None,
    as_json: Json = False,
    out: Out = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the dataset lies, if not in --out: a directory, file:, hdfs:, s3a:, …",
            show_default=False,
        ),
    ] = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    archive: Archive = None,
    package: Package = None,
    no_spark: NoSpark = False,
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
    from tideover.scenarios.inputs import fingerprint
    from tideover.scenarios.sweeps import sweep_file
    from tideover.scenarios.sweeps.completing import Options

    where = place(master, remote, conf, archive, no_spark)
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
    from tideover.models.schema.fields import HEADLINE
    from tideover.scenarios.statistics.sensitivity import indices, tells
    from tideover.scenarios.sweeps import sweep_file
    from tideover.scenarios.sweeps.summary import AT_LEAST

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
    from tideover.scenarios.sweeps.files import local_path
    from tideover.scenarios.sweeps.manifest import NoDataset

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
    from tideover.reports.sweeps import sensitivities as factors
    from tideover.reports.sweeps.points import points
    from tideover.reports.sweeps.view import sweep_view
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

    from tideover.reports.sweeps.forecast import forecast_view
    from tideover.scenarios.sweeps.dataset import FOLDER
    from tideover.scenarios.sweeps.files import LocalFiles, local_path
    from tideover.scenarios.sweeps.forecast import forecast

    directory = local_path(data or (Path(".tideover-nothing") if out is None else out / FOLDER))
    if directory is None:
        raise BadInput(f"--data: {data}: --dry-run only looks at directories of this machine")
    with Bar() as bar:
        found = forecast(recipe, LocalFiles(directory), options, bar)
    if as_json:
        listed = [{"point": number, "swept": recipe.values(number)} for number in range(recipe.total)]
        output.print_json(asdict(found) | {"points": listed})
        return
    output.show(*forecast_view(found, recipe, LISTED))
    output.warn(found.remarks)
