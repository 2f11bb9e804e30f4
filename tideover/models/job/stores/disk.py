"""The disk of a host."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tideover.models.job.stores.base import STORES, StoreKind
from tideover.sim.kernel import Kernel
from tideover.sim.store import StoreServer
from tideover.sim.units import Bandwidth, Duration


@STORES.register("disk")
class Disk(StoreKind):
    """Each host has one, for the tasks that run there. It outlives them, and their host's crash."""

    local: ClassVar[bool] = True

    latency: Annotated[Duration, Field(description="time of a request besides its bytes")] = 5_000_000
    bandwidth: Annotated[Bandwidth, Field(description="bytes per second, read or written")] = 200 * 2**20

    def server(self, kernel: Kernel, name: str, host: int | None) -> StoreServer:
        return StoreServer(kernel, self.latency, self.bandwidth, name=name, host=host)
