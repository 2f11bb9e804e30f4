"""A task's process dies."""

from __future__ import annotations

from typing import Any

from tideover.sim.faults.base import FAULTS, Target, TaskFault


@FAULTS.register("crash_task")
class CrashTask(TaskFault):
    """State, queue, the tuple in service and everything else in the task's memory are gone until it is
    restarted.
    """

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.crash(victim, outage)
