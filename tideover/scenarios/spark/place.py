"""Who does the work: this process, embedded Spark, a cluster, a Spark Connect server."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tideover.scenarios.spark.masters import LOCAL, SparkNotStarted, is_embedded, shown

ABSENT = 'Spark is not installed; pip install "tideover[spark]" brings it'
HERE = "runs are done in this process, one after another: " + ABSENT


def has_spark() -> bool:
    """Whether PySpark is installed: it is an extra."""
    return find_spec("pyspark") is not None


@dataclass(frozen=True)
class Place:
    """Where runs are done.

    ``master``: Spark's, None for this process, without Spark; or ``remote``, the address of a
    Spark Connect server.
    ``conf``: Spark's settings. ``archive``: packages for workers that lack them.
    """

    master: str | None = LOCAL
    remote: str | None = None
    conf: Mapping[str, Any] = field(default_factory=dict)
    archive: Path | None = None

    @property
    def elsewhere(self) -> str | None:
        """The cluster or server that has to be connected to, or None."""
        if self.remote is not None:
            return shown(self.remote)
        return None if self.master is None or is_embedded(self.master) else self.master

    @staticmethod
    def given(
        master: str | None,
        remote: str | None,
        conf: Mapping[str, Any] | None,
        archive: str | Path | None = None,
    ) -> Place:
        """What arguments of a function mean: where Spark is not installed, and nobody asks for more than the
        usual master, this process, with a warning. Raises SparkNotStarted if somebody does.
        """
        if master is not None and not has_spark():
            if (master, remote, archive) != (LOCAL, None, None) or conf:
                raise SparkNotStarted(ABSENT)
            warnings.warn(HERE, stacklevel=3)
            return Place(None)
        return Place(master, remote, conf or {}, None if archive is None else Path(archive))
