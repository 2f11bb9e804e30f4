"""A store is slow for a while."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tideover.sim.faults.base import FAULTS, PassingFault, StoreFault, Target


@FAULTS.register("slow_store")
class SlowStore(StoreFault, PassingFault):
    """Requests that begin within ``duration`` take ``factor`` times as long; the one in service goes on as it
    was. Of several that hold at once the newest does.
    """

    factor: Annotated[float, Field(gt=1, le=1e6, description="how many times as long a request takes")] = 10.0

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.slow_store(victim, outage, self.factor)
