"""A host dies with all that runs on it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from tideover.sim.faults.base import FAULTS, Fault, Target
from tideover.sim.units import Duration


@FAULTS.register("crash_host")
class CrashHost(Fault):
    """Every task on the host crashes at once, the acker too if it lives there."""

    unsaid: ClassVar[frozenset[str]] = Fault.unsaid | {"repair"}

    host: Annotated[int, Field(ge=0, description="number of the host")]
    repair: Annotated[
        Duration | None,
        Field(description="how long nothing can be launched there; default: it is up again at once"),
    ] = None

    @property
    def out_of_order(self) -> int:
        return self.repair or 0

    @property
    def where(self) -> str:
        return f"host {self.host}"

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {"host": host}

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_on(self.host)

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.crash(victim, outage)
