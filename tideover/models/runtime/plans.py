"""What a process has planned: its death voids all of it."""

from __future__ import annotations

from collections.abc import Callable

from tideover.sim.kernel import Kernel, Rank

Action = Callable[[], None]


class Plans:
    """Control actions of one process, at the kernel's ranks and its own ``order`` among them."""

    def __init__(self, kernel: Kernel, order: int = 0) -> None:
        self._kernel = kernel
        self._order = order
        self._life = 0

    def at(self, when: int, rank: Rank, action: Action) -> None:
        """Call ``action`` at ``when`` (ns), unless the plans are void by then; ``reads``: see the kernel."""
        self._kernel.at(when, rank, self.unless_void(action), self._order)

    def after(self, delay: int, rank: Rank, action: Action) -> None:
        """The same, ``delay`` ns from now."""
        self.at(self._kernel.now + delay, rank, action)

    def unless_void(self, action: Action) -> Action:
        """The action, which does nothing once what is planned now is void."""
        wanted = self.watch()
        return lambda: action() if wanted() else None

    def watch(self) -> Callable[[], bool]:
        """Says whether what is planned now is still wanted."""
        life = self._life
        return lambda: life == self._life

    def void(self) -> None:
        """Nothing of what was planned is done."""
        self._life += 1
