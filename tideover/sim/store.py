"""A store that serves one request after the other."""

from __future__ import annotations

from collections.abc import Callable

from tideover.sim.kernel import Kernel, Reads


class StoreServer:
    """A store (Redis, say): first in, first out; a request takes ``latency`` ns plus its bytes at
    ``bandwidth`` bytes/s.

    Requests come from control events only, so they come in order of time.
    """

    def __init__(self, kernel: Kernel, latency: int, bandwidth: int) -> None:
        self._kernel = kernel
        self._latency = latency
        self._bandwidth = bandwidth
        self._free_at = 0
        self.bytes = 0

    def request(
        self, size: int, rank: int, done: Callable[[], None], order: int = 0, reads: Reads = None
    ) -> int:
        """Read or write ``size`` bytes; ``done`` is called at the end, at ``rank`` and ``order``, when what
        it ``reads`` was moved there. Returns when that is.
        """
        self.bytes += size
        duration = self._latency + -(-size * 1_000_000_000 // self._bandwidth)
        self._free_at = max(self._free_at, self._kernel.now) + duration
        self._kernel.at(self._free_at, rank, done, order, reads)
        return self._free_at
