"""A store at work: its servers, and how a request finds them."""

from __future__ import annotations

from collections.abc import Callable

from tideover.models.job.stores.base import StoreKind
from tideover.sim.kernel import Kernel
from tideover.sim.store import StoreServer


class Storage:
    """A store of the scenario: one server for all, or one on each of ``hosts`` hosts.

    servers   in the order of their hosts
    """

    def __init__(self, servers: list[StoreServer], copies: int = 1) -> None:
        self.servers = servers
        self._copies = min(copies, len(servers))

    @classmethod
    def of(cls, kind: StoreKind, name: str, kernel: Kernel, hosts: int) -> Storage:
        """A store of this kind, in a cluster of so many hosts."""
        places = range(hosts) if kind.per_host else (None,)
        return cls([kind.server(kernel, name, host) for host in places], kind.copies)

    @property
    def bytes(self) -> int:
        """Bytes read and written so far, all copies counted."""
        return sum(server.bytes for server in self.servers)

    def _at(self, host: int) -> int:
        return host % len(self.servers)

    def server(self, host: int) -> StoreServer:
        """The one that a task on ``host`` reads from."""
        return self.servers[self._at(host)]

    def read(
        self,
        host: int,
        size: int,
        rank: int,
        done: Callable[[], None],
        order: int = 0,
        operations: int = 1,
    ) -> int:
        """A task on ``host`` reads ``size`` bytes in so many ``operations``: see ``StoreServer.request``."""
        return self.server(host).request(size, rank, done, order, operations)

    def write(
        self,
        host: int,
        size: int,
        rank: int,
        done: Callable[[], None],
        order: int = 0,
        operations: int = 1,
    ) -> int:
        """It writes; ``done`` is called when the last copy is there."""
        left = self._copies

        def one_more() -> None:
            nonlocal left
            left -= 1
            if not left:
                done()

        call = done if self._copies == 1 else one_more
        first = self._at(host)
        places = [(first + i) % len(self.servers) for i in range(self._copies)]
        return max(self.servers[i].request(size, rank, call, order, operations) for i in places)
