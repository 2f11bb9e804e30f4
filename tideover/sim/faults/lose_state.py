"""A task loses its state, and lives."""

from __future__ import annotations

from typing import Any, ClassVar

from tideover.sim.faults.base import FAULTS, Target, TaskFault


@FAULTS.register("lose_state")
class LoseState(TaskFault):
    """Counts, held ids and acks not yet sent vanish; queue and process live on (Stableford's experiment).

    With a detection or restart time the task is down for so long, but keeps its queue.
    """

    process_lives: ClassVar[bool] = True

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.lose_state(victim, outage, keep=self.detection + self.restart == 0)
