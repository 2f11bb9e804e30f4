"""Stores: where checkpoints go, and where state is kept that no task has in its memory."""

from __future__ import annotations

from typing import ClassVar

from tideover.sim.kernel import Kernel
from tideover.sim.registry import Part, Registry
from tideover.sim.store import StoreServer

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
