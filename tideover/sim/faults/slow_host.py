"""A straggler: a host's cores are slow for a while."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tideover.sim.faults.base import FAULTS, PassingFault, Target


@FAULTS.register("slow_host")
class SlowHost(PassingFault):
    """Each core of the host works at ``factor`` of its speed for ``duration``; then all is as before.

    A neighbour on the same machine, a throttled processor, a failing disk. Nothing is lost, and nobody
    notices. Spouts keep their beat. If several hold at once, the slowest does. Under ``micro_batch`` tasks
    run in executors, and are not slower.
    """

    host: Annotated[int, Field(ge=0, description="number of the host")]
    factor: Annotated[float, Field(gt=0, lt=1, description="part of its speed that a core has, e.g. 0.5")]

    @property
    def where(self) -> str:
        return f"host {self.host}"

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {"host": host, "factor": 0.5}

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_on(self.host)

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.slow_down(self.host, outage, self.factor)
