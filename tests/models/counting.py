"""The small world of the tests of acks and timeouts: s ──shuffle──▶ count, and what is read off its trace.
Times in milliseconds.
"""

from __future__ import annotations

from typing import Any

from tests.models.chain import ONES
from tests.oracle.worlds import MS, bolt, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.simulation import Replication, simulate


def acked(
    topology: dict[str, Any], failures: tuple[Any, ...] = (), timeout: float = 1000, **more: Any
) -> Any:
    """A run in which roots that are not acked in time come again."""
    return simulate(
        world(topology, "source_replay", failures, message_timeout=timeout * MS, **more), trace=True
    )


def counting(
    failures: tuple[Any, ...] = (), window: float = 50, gap: float = 10, offset: float = 5, **more: Any
) -> Scenario:
    """s ──▶ count; calls of s at offset + gap, offset + 2 gap, …; a tuple is counted at the instant of its
    emission.
    """
    service = more.pop("service", 0)
    topology: dict[str, SpoutConfig | BoltConfig] = {
        "s": spout(gap=gap, offset=offset, **ONES),
        "count": bolt("windowed_count", {"s": "shuffle"}, service, window={"length": round(window * MS)}),
    }
    return world(topology, "source_replay", failures, **more)


def emitted(run: Replication) -> list[tuple[int, int, float]]:
    """(root, attempt, time) of all emissions."""
    return [(root, attempt, time / MS) for _, _, root, attempt, time in run.trace.emitted]


def failed(run: Replication) -> list[tuple[int, int, float]]:
    return [(root, attempt, time / MS) for root, attempt, time in run.trace.failed]


def completed(run: Replication) -> list[tuple[int, int, float]]:
    return sorted(
        ((root, attempt, time / MS) for root, attempt, time in run.trace.completed), key=lambda c: c[2]
    )
