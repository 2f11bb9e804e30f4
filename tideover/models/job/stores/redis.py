"""Redis: one thread for all."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tideover.models.job.stores.base import STORES, StoreKind
from tideover.sim.kernel import Kernel
from tideover.sim.store import StoreServer
from tideover.sim.units import Bandwidth, Duration, Rate


@STORES.register("redis")
class Redis(StoreKind):
    """A store on a machine of its own with one thread that serves all tasks, one operation after the other.

    A request takes its operations and its bytes at the store, and the latency on the way there and back,
    which keeps nobody else waiting.
    """

    per_host: ClassVar[bool] = False

    latency: Annotated[Duration, Field(description="round trip between a task and the store")] = 500_000
    bandwidth: Annotated[Bandwidth, Field(description="bytes per second, read or written")] = 100 * 2**20
    operations: Annotated[Rate, Field(description="operations per second of its one thread")] = 80_000.0

    def server(self, kernel: Kernel, name: str, host: int | None) -> StoreServer:
        return StoreServer(kernel, self.latency, self.bandwidth, self.operations, True, name, host)
