"""A distributed file system."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tideover.models.job.stores.base import STORES, StoreKind
from tideover.sim.kernel import Kernel
from tideover.sim.store import StoreServer
from tideover.sim.units import Bandwidth, Duration


@STORES.register("dfs")
class Dfs(StoreKind):
    """A file system whose files lie on the hosts, as HDFS: each host reads and writes at its own bandwidth.

    A write goes to the writer's host and to the ``replication`` - 1 next ones, and has ended when all have
    it; a read is from the reader's host.
    """

    latency: Annotated[Duration, Field(description="time of a request besides its bytes")] = 10_000_000
    bandwidth: Annotated[Bandwidth, Field(description="bytes per second of each host")] = 100 * 2**20
    replication: Annotated[int, Field(ge=1, le=64, description="hosts on which a file lies")] = 3

    @property
    def copies(self) -> int:
        return self.replication

    def server(self, kernel: Kernel, name: str, host: int | None) -> StoreServer:
        return StoreServer(kernel, self.latency, self.bandwidth, name=name, host=host)
