"""Who does the work: this process, embedded Spark, a cluster, a Spark Connect server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tideover.scenarios.spark.masters import LOCAL, is_embedded, shown


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
