"""What a process has planned: its death voids all of it."""

from __future__ import annotations

from collections.abc import Callable

from tideover.sim.kernel import Kernel, Rank


class Plans:
    """Control actions of one process, at the kernel's ranks and its own ``order`` among them."""

    def __init__(self, kernel: Kernel, order: int = 0) -> None:
        self._kernel = kernel
        self._order = order
        self._life = 0

    def at(self, when: int, rank: Rank, action: Callable[[], None]) -> None:
        """Call ``action`` at ``when`` (ns), unless the plans are void by then."""
        life = self._life
        self._kernel.at(when, rank, lambda: action() if life == self._life else None, self._order)

    def after(self, delay: int, rank: Rank, action: Callable[[], None]) -> None:
        """The same, ``delay`` ns from now."""
        self.at(self._kernel.now + delay, rank, action)

    def void(self) -> None:
        """Nothing of what was planned is done."""
        self._life += 1
