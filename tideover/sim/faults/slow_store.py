"""A store is slow for a while."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from tideover.sim.faults.base import FAULTS, Fault, Target
from tideover.sim.units import Duration


@FAULTS.register("slow_store")
class SlowStore(Fault):
    """Requests that begin within ``duration`` take ``factor`` times as long; the one in service goes on as it
    was. Of several that hold at once the newest does.
    """

    kills: ClassVar[bool] = False

    store: Annotated[
        str | None, Field(description="which of `stores`; if not given: the scenario's `store`")
    ] = None
    factor: Annotated[float, Field(gt=1, description="how many times as long a request takes")] = 10.0
    duration: Annotated[Duration, Field(gt=0, description="for how long it is slow, e.g. 30 s")]

    @model_validator(mode="after")
    def _is_not_noticed(self) -> SlowStore:
        if self.detection or self.restart:
            raise ValueError("a slow store is not detected and gets well by itself: give duration alone")
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
        target.slow_store(victim, outage, self.factor)
