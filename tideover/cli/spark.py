"""Where a command's runs are done: the options for Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer

from tideover.cli.output import BadInput
from tideover.scenarios.spark import conf as settings
from tideover.scenarios.spark.masters import LOCAL, check_master, check_remote, is_embedded, shown

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
NoSpark = Annotated[bool, typer.Option("--no-spark", help="Simulate in this process, one run after another.")]


@dataclass(frozen=True)
class Place:
    """Where runs are done; ``master``: None for this process, without Spark."""

    master: str | None = LOCAL
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def elsewhere(self) -> str | None:
        """The cluster or server that has to be connected to, or None."""
        if self.remote is not None:
            return shown(self.remote)
        return None if self.master is None or is_embedded(self.master) else self.master


def place(master: str | None, remote: str | None, conf: Sequence[str] | None, no_spark: bool) -> Place:
    """What the options mean together; raises BadInput and ScenarioError for what means nothing to Spark."""
    given = {"--master": master, "--remote": remote, "--conf": conf or None}
    named = [option for option, value in given.items() if value is not None]
    if no_spark and named:
        raise BadInput(f"{named[0]}: does not go with --no-spark")
    if master is not None and remote is not None:
        raise BadInput("--remote: does not go with --master; a Spark Connect server has its own master")
    if no_spark:
        return Place(None)
    if remote is not None:
        check_remote(remote, "--remote")
    return Place(check_master(master or LOCAL, "--master"), remote, settings.parse(conf or ()))
