"""A kernel without tuples: nothing flows, and what is in the place of the data plane notes up to where it was
moved.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tideover.sim.kernel import Kernel

Log = list[tuple[str, int]]


class NoData:
    """Stands in for the data plane.

    asks  moments at which it comes back for reason 1, with the number of task 7
    """

    def __init__(self, log: Log, asks: tuple[int, ...] = ()) -> None:
        self.log, self.asks = log, sorted(asks)
        self.p = SimpleNamespace(turn=0, instant=-1, waiting=0, when=0, who=7)
        self.lib = SimpleNamespace(TURN=2, HURRY=3)

    def advance(self, to: int) -> int:
        if self.asks and self.asks[0] <= to:
            self.p.when = self.asks.pop(0)
            return 1
        self.log.append(("data", to))
        return 0


def kernel_without_data(log: Log | None = None, asks: tuple[int, ...] = ()) -> Kernel:
    """A kernel that can run; moves of data are noted in ``log``."""
    kernel = Kernel()
    plane: Any = NoData([] if log is None else log, asks)
    kernel.plane = plane
    return kernel
