"""A task's process is stopped for a while."""

from __future__ import annotations

from typing import Any

from tideover.sim.faults.base import FAULTS, PassingFault, Target, TaskFault


@FAULTS.register("pause")
class Pause(PassingFault, TaskFault):
    """The task's process does nothing for ``duration``, and then goes on where it was: SIGSTOP and SIGCONT.

    It keeps all it has; what arrives meanwhile waits in its queue. Nobody notices, unless it is silent for
    longer than a detector's timeout: then it counts as dead, and another process takes its place. Under
    ``micro_batch`` it is the executor that is stopped.
    """

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.pause(victim, outage)
