"""Failure kinds, one a file."""

from tideover.sim.faults import (
    cascade,
    crash_host,
    crash_rack,
    crash_task,
    crash_worker,
    events,
    lose_state,
    lose_store,
    machines_fail,
    partition,
    pause,
    slow_host,
    slow_link,
    slow_store,
    store_down,
)

__all__ = [
    "cascade",
    "crash_host",
    "crash_rack",
    "crash_task",
    "crash_worker",
    "events",
    "lose_state",
    "lose_store",
    "machines_fail",
    "partition",
    "pause",
    "slow_host",
    "slow_link",
    "slow_store",
    "store_down",
]
