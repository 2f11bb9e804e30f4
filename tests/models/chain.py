"""The small world of the tests of R+SM, s ──▶ p (1) ──▶ count (1), and what is read off its trace. Times in
ms.
"""

from __future__ import annotations

from typing import Any

from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig, SpoutConfig, Store
from tideover.models.simulation import Replication

ONES: dict[str, Any] = {"kind": "values", "values": (1,), "repeat": True}
EVERY_10 = [(n, 10 * n + 12) for n in range(20)]
"""(root, counted at) while nothing fails."""


def chain(
    failures: tuple[Any, ...] = (), until: float = 95, window: dict[str, Any] | None = None, **more: Any
) -> Scenario:
    """s ──▶ p (1) ──▶ count (1)."""
    topology: dict[str, SpoutConfig | BoltConfig] = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, more.pop("at_p", 1)),
        "count": bolt(
            "windowed_count",
            {"p": "shuffle"},
            more.pop("at_count", 1),
            window=window or {"length": 1000 * MS},
        ),
    }
    store = Store(latency=round(more.pop("read", 0) * MS), bandwidth=2**50)
    for name in ("replay_cost", "serialise_time", "restore_time"):
        more[name] = round(more.get(name, 0) * MS)
    more.setdefault("checkpoint_interval", 20 * MS)
    return world(topology, "rsm", failures, until, store=store, entry_size=0, **more)


def lost(at: float, of: str = "count", **more: Any) -> Any:
    """A task, the count, loses its state."""
    return fault("lose_state", at, component=of, **more)


def crashed(at: float, restart: float, component: str = "count", **more: Any) -> Any:
    return fault("crash_task", at, component=component, restart=restart, **more)


def counted(run: Replication, replica: int | None = None) -> list[tuple[int, float]]:
    """(root, when) of all tuples that the count, or one replica of it, has processed, in its order."""
    rows = (row for row in run.trace.processed if row[0] == "count" and replica in (None, row[2]))
    return [(row[3], row[6] / MS) for row in rows]


def windows(run: Replication) -> list[tuple[int, float, int]]:
    """(number, when, sum) of the windows."""
    return [(row[3], row[4] / MS, row[5].get(0, 0)) for row in run.trace.windows]


def saved(run: Replication) -> list[float]:
    """When checkpoints were safe in the store."""
    return [step.at / MS for step in run.trace.steps if step.what == "checkpoint saved"]
