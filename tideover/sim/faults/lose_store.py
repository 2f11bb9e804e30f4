"""A store loses what it has."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from tideover.sim.faults.base import FAULTS, StoreFault, Target


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
