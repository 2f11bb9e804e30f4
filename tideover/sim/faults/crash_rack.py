"""A rack fails with all its hosts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tideover.sim.faults.base import FAULTS, MachineFault, Target


@FAULTS.register("crash_rack")
class CrashRack(MachineFault):
    """Every host of the rack crashes at once: its switch or its power is gone."""

    rack: Annotated[int, Field(ge=0, description="number of the rack")]

    @property
    def where(self) -> str:
        return f"rack {self.rack}"

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {"rack": 0}

    def breaks(self, host: int, rack: int) -> bool:
        return rack == self.rack

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_in_rack(self.rack)
