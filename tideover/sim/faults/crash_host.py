"""A host dies with all that runs on it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tideover.sim.faults.base import FAULTS, MachineFault, Target


@FAULTS.register("crash_host")
class CrashHost(MachineFault):
    """Every task on the host crashes at once, the acker too if it lives there."""

    host: Annotated[int, Field(ge=0, description="number of the host")]

    @property
    def where(self) -> str:
        return f"host {self.host}"

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {"host": host}

    def breaks(self, host: int, rack: int) -> bool:
        return host == self.host

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_on(self.host)
