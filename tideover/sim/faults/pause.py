"""A task's process is stopped for a while."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from tideover.sim.faults.base import FAULTS, Target, TaskFault
from tideover.sim.units import Duration


@FAULTS.register("pause")
class Pause(TaskFault):
    """The task's process does nothing for ``duration``, and then goes on where it was: SIGSTOP and SIGCONT.

    It keeps all it has; what arrives meanwhile waits in its queue. Nobody notices, unless it is silent for
    longer than a detector's timeout: then it counts as dead, and another process takes its place. Under
    ``micro_batch`` it is the executor that is stopped.
    """

    kills: ClassVar[bool] = False

    duration: Annotated[Duration, Field(gt=0, description="for how long it is stopped, e.g. 5 s")]

    @model_validator(mode="after")
    def _is_not_noticed(self) -> Pause:
        if self.detection or self.restart:
            raise ValueError("a pause is not detected and ends by itself: give duration alone")
        return self

    @property
    def lasts(self) -> int:
        return self.duration

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.pause(victim, outage)
