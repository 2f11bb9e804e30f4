"""A task's process dies."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from tideover.sim.faults.base import FAULTS, Target, TaskFault


@FAULTS.register("crash_task")
class CrashTask(TaskFault):
    """State, queue, the tuple in service and everything else in the task's memory are gone until it is
    restarted.
    """

    unsaid: ClassVar[frozenset[str]] = TaskFault.unsaid | {"together"}

    together: Annotated[
        int,
        Field(ge=1, le=1024, description="so many tasks of the component die at once, from `task` on"),
    ] = 1

    def victims(self, target: Target) -> list[Any]:
        tasks = range(self.task, self.task + self.together)
        return [victim for task in tasks for victim in target.tasks_of(self.component, task, self.replica)]

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.crash(victim, outage)
