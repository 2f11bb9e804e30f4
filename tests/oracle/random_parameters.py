"""Random parameters of each strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tideover.models.strategies.base import STRATEGIES

from .random_times import TICK, times
from .worlds import MS


@dataclass
class Maker:
    """What a strategy's parameters are made of. ``hosts``: how many, None: each task has one of its own;
    ``bolts``: their names.
    """

    draw: st.DrawFn
    ties: bool
    hosts: int | None
    bolts: list[str]

    def some(self, *values: Any) -> Any:
        """One of these."""
        return self.draw(st.sampled_from(values))

    def ns(self, *small: float) -> int:
        """A time of about these milliseconds."""
        return round(self.draw(times(self.ties, *small)) * MS)


def source_replay(make: Maker) -> dict[str, Any]:
    timeout = make.some(10, 20, 30, 60) * TICK
    return {
        "message_timeout": timeout,
        "timeout_buckets": make.some(2, 2, 3),
        "timeout_phase": make.some(0, None, timeout // 2),
        "acker_buckets": make.some(2, 3),
        "acker_host": make.some(None, 0, 1) if (make.hosts or 0) > 1 else make.some(None, 0),
        "ack_cost": make.ns(0, 0, 0.5, 1),
        "max_spout_pending": make.some(None, None, 1, 2, 5),
    }


def storm_checkpoint(make: Maker) -> dict[str, Any]:
    return source_replay(make) | {
        "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
        "write_time": make.ns(0, 0, 1, 3),
        "write_cost": make.ns(0, 0, 0.5),
    }


def estorm(make: Maker) -> dict[str, Any]:
    return source_replay(make) | {
        "members": make.some(1, 2, 2, 3),
        "copy_cost": make.ns(0, 0, 0, 1, 3),
        "transaction_time": make.ns(0, 0, 2),
        "load_time": make.ns(0, 0, 3),
        "load_cost": make.ns(0, 0, 1),
    }


def rsm(make: Maker) -> dict[str, Any]:
    return {
        "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
        "spout_buffer": make.some(True, False),
        "replay_cost": make.ns(0, 0, 1, 2),
        "replay_rate": make.some(None, None, 10.0, 3.0),
        "serialise_time": make.ns(0, 0, 1),
        "serialise_cost": make.ns(0, 0, 0.5),
        "restore_time": make.ns(0, 0, 3),
        "restore_cost": make.ns(0, 0, 1),
    }


def passive_standby(make: Maker) -> dict[str, Any]:
    return {
        "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
        "delta": make.some(True, False),
        "checkpoint_time": make.ns(0, 0, 1),
        "checkpoint_cost": make.ns(0, 0, 0.5),
        "replay_cost": make.ns(0, 0, 1, 2),
        "replay_rate": make.some(None, None, 10.0, 3.0),
    }


def upstream_backup(make: Maker) -> dict[str, Any]:
    return {
        "ack_interval": make.some(3, 10, 20) * TICK,
        "replay_cost": make.ns(0, 0, 1, 2),
        "replay_rate": make.some(None, None, 10.0, 3.0),
    }


def active_standby(make: Maker) -> dict[str, Any]:
    return {
        "ack_interval": make.some(3, 10, 20) * TICK,
        "replay_cost": make.ns(0, 0, 1, 2),
        "copy_time": make.ns(0, 0, 2, 10),
        "copy_bandwidth": make.some(None, None, 200),
    }


def aligned_snapshots(make: Maker) -> dict[str, Any]:
    return {
        "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
        "checkpoint_phase": make.some(None, None, 0, 7 * TICK),
        "min_pause": make.ns(0, 0, 0, 4, 25),
        "checkpoint_timeout": make.some(None, None, None, 3 * TICK, 12 * TICK) or 1000 * TICK,
        "snapshot_time": make.ns(0, 0, 1, 3),
        "snapshot_cost": make.ns(0, 0, 0.5),
        "upload_time": make.ns(0, 0, 2, 8),
        "restore_time": make.ns(0, 0, 3),
        "restore_cost": make.ns(0, 0, 1),
    }


def micro_batch(make: Maker) -> dict[str, Any]:
    return {
        "recovery": make.some("checkpoint", "checkpoint", "replay"),
        "trigger_interval": make.some(0, 0, 10, 10, 20, 37) * TICK,
        "poll_interval": make.some(1, 10) * TICK,
        "plan_time": make.ns(0, 0, 1, 4),
        "task_time": make.ns(0, 2, 5, 10),
        "cores": make.some(1, 1, 2),
        "state_time": make.ns(0, 0, 1),
        "state_cost": make.ns(0, 0, 0.5),
        "output_time": make.ns(0, 0, 1, 3),
        "commit_time": make.ns(0, 1, 8, 15),
        "reload_time": make.ns(0, 0, 2),
        "reload_cost": make.ns(0, 0, 1),
        "executor_cold": make.ns(0, 0, 4),
        "state_cold": make.ns(0, 0, 3),
        "locality_wait": make.ns(0, 0, 5, 20),
        "resubmit_time": make.ns(0, 0, 2),
        "recovery_time": make.ns(0, 0, 5),
        "cold_time": make.ns(0, 0, 7),
    }


def batch_rerun(make: Maker) -> dict[str, Any]:
    settings = micro_batch(make)
    del settings["recovery"]
    return settings | {
        "trigger_interval": make.some(10, 20, 37, 60) * TICK,
        "retry": make.some("job", "job", "task"),
    }


def trident(make: Maker) -> dict[str, Any]:
    kinds = ("non_transactional", "transactional", "opaque")
    return {
        "spout": make.some(*kinds),
        "state": make.some(*kinds),
        "failed_batches": make.some("emitted_again", "lost"),
        "batch_interval": make.some(1, 5, 10, 20) * TICK,
        "max_spout_pending": make.some(1, 1, 2, 3),
        "message_timeout": make.some(5, 10, 20, 30) * TICK,
        "metadata_time": make.ns(0, 0, 1, 3),
        "task_time": make.ns(0, 0, 1, 3),
        "state_time": make.ns(0, 0, 2, 4),
        "state_cost": make.ns(0, 0, 0.5),
        "commit_time": make.ns(0, 1, 4, 8),
    }


def active_replication(make: Maker) -> dict[str, Any]:
    chosen = tuple(name for name in make.bolts if make.draw(st.booleans()))
    return {
        "k": make.some(0, 1, 1, 2),
        "components": make.some(None, None, chosen),
        "copy_time": make.ns(0, 0, 2, 10),
        "copy_bandwidth": make.some(None, None, 200),
    }


def changelog(make: Maker) -> dict[str, Any]:
    once = make.some(False, True)
    return {
        "guarantee": "exactly_once" if once else "at_least_once",
        "commit_interval": make.some(3, 5, 10, 20, 35) * TICK,
        "commit_time": make.ns(0, 0, 1, 3),
        "batch_interval": None if once else make.some(None, TICK, 4 * TICK),
        "restore_time": make.ns(0, 0, 3),
        "restore_cost": make.ns(0, 0, 1),
        "standby_replicas": make.some(0, 0, 1, 2),
        "local_state": not once and make.some(False, True),
    }


def hybrid(make: Maker) -> dict[str, Any]:
    """A member for each bolt, for those without state, and for the rest."""

    def member() -> Any:
        kind = make.some("rsm", "rsm", "active_replication", "active_replication", "none")
        given = {"rsm": rsm, "active_replication": active_replication}.get(kind, lambda make: {})(make)
        return STRATEGIES[kind](**{key: value for key, value in given.items() if key != "components"})

    named = {name: member() for name in make.bolts if make.draw(st.booleans())}
    return {"bolts": named, "stateless": member() if make.some(True, False) else None, "rest": member()}


PARAMETERS: dict[str, Callable[[Maker], dict[str, Any]]] = {
    "none": lambda make: {},
    "source_replay": source_replay,
    "rsm": rsm,
    "passive_standby": passive_standby,
    "upstream_backup": upstream_backup,
    "active_standby": active_standby,
    "active_replication": active_replication,
    "aligned_snapshots": aligned_snapshots,
    "micro_batch": micro_batch,
    "changelog": changelog,
    "hybrid": hybrid,
}
STRATEGY_NAMES = tuple(PARAMETERS)
STORM = {"storm_checkpoint": storm_checkpoint, "estorm": estorm}
BATCHES = {"trident": trident, "batch_rerun": batch_rerun}
"""These two sorts are tried in fewer ways than the strategies of STRATEGY_NAMES."""
