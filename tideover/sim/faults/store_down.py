"""A store does not answer for a while."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from tideover.sim.faults.base import FAULTS, Fault, Target
from tideover.sim.units import Duration


@FAULTS.register("store_down")
class StoreDown(Fault):
    """For ``duration`` requests wait; one that was in service is made again, and begins anew. What has been
    written is kept.
    """

    kills: ClassVar[bool] = False

    store: Annotated[
        str | None, Field(description="which of `stores`; if not given: the scenario's `store`")
    ] = None
    duration: Annotated[Duration, Field(gt=0, description="for how long it is down, e.g. 30 s")]

    @model_validator(mode="after")
    def _is_not_noticed(self) -> StoreDown:
        if self.detection or self.restart:
            raise ValueError("a store is not detected and comes back by itself: give duration alone")
        return self

    @property
    def where(self) -> str:
        return f"store {self.store}" if self.store else "store"

    @property
    def lasts(self) -> int:
        return self.duration

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {}

    def victims(self, target: Target) -> list[Any]:
        return target.servers_of(self.store)

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.stop_store(victim, outage)
