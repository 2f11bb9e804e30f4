"""A worker's process dies with all that runs in it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tideover.sim.faults.base import FAULTS, Fault, Target


@FAULTS.register("crash_worker")
class CrashWorker(Fault):
    """Every task in the worker crashes at once, the acker too if it lives there (in worker 0 of its host)."""

    host: Annotated[int, Field(ge=0, description="number of the host")]
    worker: Annotated[int, Field(ge=0, description="number of the worker on that host")] = 0

    @property
    def where(self) -> str:
        return f"worker {self.worker} of host {self.host}"

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {"host": host}

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_in(self.host, self.worker)

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.crash(victim, outage)
