"""What commands share that do a sweep: where it is kept, how it is shown, and how it ends."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tideover.cli import output
from tideover.cli.progress import Bar
from tideover.scenarios.spark.place import Place

if TYPE_CHECKING:
    import pandas as pd

    from tideover.reports.html import Page
    from tideover.scenarios.sweeps.completing import Options
    from tideover.scenarios.sweeps.dataset import Sweep
    from tideover.scenarios.sweeps.recipe import Recipe


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
    from tideover.scenarios.sweeps.completing import Options
    from tideover.scenarios.sweeps.dataset import FOLDER
    from tideover.scenarios.sweeps.files import local_path
    from tideover.scenarios.sweeps.manifest import NoDataset
    from tideover.scenarios.sweeps.sweep import sweep

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
    from tideover.reports.scenario_summary import point_record
    from tideover.reports.sweeps.page import sweep_page
    from tideover.reports.sweeps.points import points

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
