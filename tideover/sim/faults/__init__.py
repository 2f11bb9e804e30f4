"""Failure kinds, one a file."""

from tideover.sim.faults import crash_host, crash_rack, crash_task, crash_worker, lose_state, pause, slow_host

__all__ = ["crash_host", "crash_rack", "crash_task", "crash_worker", "lose_state", "pause", "slow_host"]
