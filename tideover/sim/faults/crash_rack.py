"""A rack fails with all its hosts."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from tideover.sim.faults.base import FAULTS, Fault, Target
from tideover.sim.units import Duration


@FAULTS.register("crash_rack")
class CrashRack(Fault):
    """Every host of the rack crashes at once: its switch or its power is gone."""

    unsaid: ClassVar[frozenset[str]] = Fault.unsaid | {"repair"}

    rack: Annotated[int, Field(ge=0, description="number of the rack")]
    repair: Annotated[
        Duration | None,
        Field(description="how long nothing can be launched there; default: it is up again at once"),
    ] = None

    @property
    def out_of_order(self) -> int:
        return self.repair or 0

    @property
    def where(self) -> str:
        return f"rack {self.rack}"

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {"rack": 0}

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_in_rack(self.rack)

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.crash(victim, outage)
