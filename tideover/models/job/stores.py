"""Where state is kept: stores for checkpoints and for state that no task has in its memory, and backends
beside a task. One class a kind.

The rules (tests/models/test_stores.py, tests/sim/test_store.py):

- A store serves requests in the order in which they are made. Each takes the latency and its bytes /
  bandwidth, rounded up; `redis` is kept by operations and bytes, and its latency is on the way.
- `redis` and the key `store` are one server for all; `disk` is one on each host, for the tasks there; `dfs`
  one on each host: a write is a request at the writer's and at the `replication` - 1 next ones, done when
  the last is, a read one at the reader's. All outlive any crash.
- `slow_store`: a request that begins before its end takes `factor` times as long. `store_down`: what is
  asked for waits until the end; what was in service begins anew then, ahead of what waits.
- `lose_store`: what strategies had in it is gone at once, and what is being written does not count. How far
  the newest checkpoint had got with what is sent is known elsewhere. Who is restored afterwards, or is
  being restored, begins there with an empty state. Live state is not touched.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tideover.sim.kernel import Kernel
from tideover.sim.registry import Part, Registry
from tideover.sim.store import StoreServer
from tideover.sim.units import Bandwidth, Duration, Rate, Size

STORES: Registry[StoreKind] = Registry("kind of store")


class StoreKind(Part):
    """A kind of store.

    per_host   each host has a server of its own, else all share one
    local      what is written lies on the writer's host alone
    """

    kind: ClassVar[str]
    per_host: ClassVar[bool] = True
    local: ClassVar[bool] = False

    @property
    def copies(self) -> int:
        """On how many hosts what is written lies."""
        return 1

    def server(self, kernel: Kernel, name: str, host: int | None) -> StoreServer:
        """One of its servers; ``host``: None if it is on no host."""
        raise NotImplementedError


class OnHosts(StoreKind):
    """A server on each host."""

    latency: Duration
    bandwidth: Bandwidth

    def server(self, kernel: Kernel, name: str, host: int | None) -> StoreServer:
        return StoreServer(kernel, self.latency, self.bandwidth, name=name, host=host)


@STORES.register("dfs")
class Dfs(OnHosts):
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


@STORES.register("disk")
class Disk(OnHosts):
    """Each host has one, for the tasks that run there. It outlives them, and their host's crash."""

    local: ClassVar[bool] = True

    latency: Annotated[Duration, Field(description="time of a request besides its bytes")] = 5_000_000
    bandwidth: Annotated[Bandwidth, Field(description="bytes per second, read or written")] = 200 * 2**20


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


BACKENDS: Registry[Backend] = Registry("state backend")


class Backend(Part):
    """Where a task of a bolt keeps its state: so many entries, of which each tuple reads and writes some.

    Which ones is drawn, all alike. What the entries hold is not simulated, only what they take: the effects
    of tuples are those of the bolt.
    """

    kind: ClassVar[str]

    entries: Annotated[int, Field(ge=1, le=2**30, description="entries of the state of one task")] = 1024
    entry_size: Annotated[Size, Field(description="bytes of an entry, in a store or on its way")] = 64
    accesses: Annotated[
        int, Field(ge=0, le=10**6, description="entries that each tuple looks up and changes")
    ] = 1
    access_cost: Annotated[Duration, Field(description="time that one access takes the task")] = 0

    def to_write(self, tuples: int) -> int:
        """Entries that a snapshot writes when the task has worked on so many tuples since an earlier one."""
        return self.entries

    def changed(self, tuples: int) -> int:
        """Entries that so many tuples change in the mean: n accesses leave one of E with (1 - 1/E)^n."""
        return round(self.entries * (1 - (1 - 1 / self.entries) ** (tuples * self.accesses)))


@BACKENDS.register("memory")
class Memory(Backend):
    """A map in the task's memory; an access costs next to nothing."""


@BACKENDS.register("rocksdb")
class RocksDB(Backend):
    """An embedded store on the task's host, as Flink's: each access serialises the entry, and may read a
    file.
    """

    access_cost: Annotated[Duration, Field(description="time that one access takes the task")] = 5_000
    incremental: Annotated[
        bool, Field(description="a snapshot writes only the entries that have changed since the last one")
    ] = False

    def to_write(self, tuples: int) -> int:
        return self.changed(tuples) if self.incremental else self.entries
