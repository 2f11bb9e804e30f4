"""The queue before a spout that waits for a confirmation of each item, and gives it out again without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .clock import Rank, control
from .logs import Log

if TYPE_CHECKING:
    from .layout import Datum
    from .spouts import SpoutTask

LONG_AGO = -(1 << 62)  # before any timeout, however long


class Kestrel(Log):
    """Items are taken as records of a log are; there is no offset, but each has its own end."""

    def __init__(self, spout: SpoutTask) -> None:
        super().__init__(spout)
        self.given_out: dict[int, int] = {}  # by root: when it was emitted last
        self.orphans: dict[int, int] = {}  # the same, of those that the spout has forgotten

    def start(self) -> None:
        self._sweep_at(self.source.sweep_interval)

    def emitted(self, datum: Datum) -> None:
        super().emitted(datum)
        self.given_out[datum.root] = self.spout.world.clock.now

    def _sweep_at(self, time: int) -> None:
        def sweep() -> None:
            if not self.spout.down:
                self._sweep(time - self.source.timeout)
            self._sweep_at(time + self.source.sweep_interval)

        self.spout.world.clock.at(time, control(Rank.TRIM, self.spout.rank), sweep)

    def _sweep(self, before: int) -> None:
        protocol = self.spout.world.protocol
        pending = protocol.unconfirmed(self.spout) - protocol.waiting_roots()
        late = {root for root in pending if self.given_out[root] <= before}
        protocol.give_up(self.spout, late)
        again = sorted((time, root) for root, time in self.orphans.items() if time <= before)
        for _, root in again:
            del self.orphans[root]
        numbers = [root >> self.spout.world.layout.spout_bits for _, root in again]
        protocol.emit_again(self.spout, [self._next_attempt(number) for number in numbers])

    def kept(self) -> set[int]:
        return set(self.orphans)

    def crashed(self, unconfirmed: set[int], waiting: set[int]) -> None:
        for root in unconfirmed:
            self.orphans[root] = LONG_AGO if root in waiting else self.given_out[root]

    def go_back(self) -> None:
        self.since = self.spout.world.clock.now
