"""Losses of what a task, or a store, has in memory: the process lives on.

Scenarios name them, `Supervisor` lets them strike; a class each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import model_validator

from tideover.sim.faults import FAULTS, Draft, Found, StoreFault, Target, TaskFault


@FAULTS.register("lose_state")
class LoseState(TaskFault):
    """Counts, held ids and acks not yet sent vanish; queue and process live on (Stableford's experiment).

    With a detection or restart time the task is down for so long, but keeps its queue.
    """

    process_lives: ClassVar[bool] = True

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.lose_state(victim, outage, keep=self.detection + self.restart == 0)


@FAULTS.register("lose_store")
class LoseStore(StoreFault):
    """All that strategies had in a store is gone, and what is being written there does not count; it serves
    on, empty, at once. Nobody notices before somebody reads: a task that is restored then begins with an
    empty state, and gets what came after the checkpoint that is gone.
    """

    @model_validator(mode="after")
    def _at_once(self) -> LoseStore:
        if self.detection or self.restart:
            raise ValueError("a failure of kind lose_store is not detected: leave out detection and restart")
        return self

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.empty_store(self.store)

    def problems(self, draft: Draft) -> Iterator[Found]:
        yield from super().problems(draft)
        if draft.strategy is not None and not draft.strategy.store_may_lose:
            message = (
                f"lose_store does not go with {draft.strategy.kind}: what disks and standbys still have of a "
                "changelog that is gone is not simulated"
            )
            yield ("kind",), message
