"""A store does not answer for a while."""

from __future__ import annotations

from typing import Any

from tideover.sim.faults.base import FAULTS, PassingFault, StoreFault, Target


@FAULTS.register("store_down")
class StoreDown(StoreFault, PassingFault):
    """For ``duration`` requests wait; one that was in service is made again, and begins anew. What has been
    written is kept.
    """

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.stop_store(victim, outage)
