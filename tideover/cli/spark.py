"""Where a command's runs are done: the options for Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tideover.cli.output import BadInput, may_write, note, show, writing
from tideover.scenarios.spark import conf as settings
from tideover.scenarios.spark.masters import LOCAL, check_master, check_remote
from tideover.scenarios.spark.package import check_archive, is_archive, write_archive
from tideover.scenarios.spark.place import ABSENT, HERE, Place, has_spark

Master = Annotated[
    str | None,
    typer.Option(
        help="Spark's master: local[*,4] is embedded; spark://…, yarn, k8s://… are clusters.",
        show_default=LOCAL,
    ),
]
Remote = Annotated[
    str | None,
    typer.Option(
        metavar="sc://HOST:PORT", help="A Spark Connect server, in place of a master.", show_default=False
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="A setting of Spark, as in spark.executor.memory=2g. Repeatable.",
        show_default=False,
    ),
]
Archive = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Packages for workers that lack them; --package makes it.", show_default=False
    ),
]
NoSpark = Annotated[bool, typer.Option("--no-spark", help="Simulate in this process, one run after another.")]


def place(
    master: str | None,
    remote: str | None,
    conf: Sequence[str] | None,
    archive: Path | None,
    no_spark: bool,
) -> Place:
    """What the options mean together; raises BadInput and ScenarioError for what means nothing to Spark."""
    given = {"--master": master, "--remote": remote, "--conf": conf or None, "--archive": archive}
    named = [option for option, value in given.items() if value is not None]
    if no_spark and named:
        raise BadInput(f"{named[0]}: does not go with --no-spark")
    if master is not None and remote is not None:
        raise BadInput("--remote: does not go with --master; a Spark Connect server has its own master")
    if no_spark:
        return Place(None)
    if not has_spark():
        if named:
            raise BadInput(f"{named[0]}: {ABSENT}")
        note([HERE])
        return Place(None)
    if remote is not None:
        check_remote(remote, "--remote")
    where = Place(
        check_master(master or LOCAL, "--master"),
        remote,
        settings.parse(conf or ()),
        None if archive is None else check_archive(archive, "--archive"),
    )
    if archive is not None and where.elsewhere is None:
        raise BadInput("--archive: goes with --remote, or the --master of a cluster")
    return where


def _make_package(path: Path | None) -> None:
    """Make the archive, and end."""
    if path is None:
        return
    if not has_spark():  # the pandas here may be one that Spark cannot use
        raise BadInput(f"--package: {ABSENT}")
    may_write(path, "--package", is_archive, "an archive that tideover made")
    with writing(path, option="--package"):
        packages = write_archive(path)
    megabytes = path.stat().st_size / 1e6
    show(f"{path}: {megabytes:.0f} MB: Tideover, {', '.join(packages)}", whole_lines=True)
    raise typer.Exit()


Package = Annotated[
    Path | None,
    typer.Option(
        "--package",
        metavar="FILE",
        help="Make an archive (.tar.gz) of what workers need, for --archive, and end.",
        show_default=False,
        is_eager=True,
        callback=_make_package,
    ),
]
