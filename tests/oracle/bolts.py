"""Bolts: what a tuple or a marker does when it has been served; windowed counts."""

from __future__ import annotations

from functools import partial

from .channels import Message
from .clock import Rank
from .layout import Datum, Logical
from .tasks import Task


class Bolt(Task):
    """What a tuple or a marker does when it has been served."""

    def take(self, message: Message, arrived: int) -> None:
        world, datum = self.world, message.datum
        because = world.protocol.because(self, message)
        world.protocol.served(self, message)
        if datum is not None:
            row = (*self.physical, datum.uid, datum.attempt, arrived, world.clock.now)
            world.trace.processed.append(row)
            world.record.served(self, datum, arrived, because)
            if world.layout.stateful(self.component):
                self._count(datum)
            else:
                self._hand_on(datum)
            world.record.gone(datum)
        elif message.marker is not None:
            self._marker(message.channel.up.logical, message.marker)

    def _hand_on(self, datum: Datum) -> None:
        sent: list[Datum] = []
        if self.world.layout.down[self.component]:
            for child in self.world.layout.children(self.component, datum):
                sent += self.send(child)
        elif datum.anchored:
            self.world.ledger.left(self, datum)
            self.world.protocol.leaves(self, datum)
            if self.world.sinks.withholds(self):
                self.world.sinks.tuple(self, datum)
            self.world.record.applied(self, datum)
        if datum.anchored:
            self.world.protocol.done(datum, sent)

    def _count(self, datum: Datum) -> None:
        cell, state = (datum.epoch, datum.key), self.state
        state.counts[cell] = state.counts.get(cell, 0) + datum.value
        state.tuples += 1
        state.held.append(datum)
        self.world.record.applied(self, datum)
        if self.window.tuples is not None and state.tuples == self.window.tuples:
            self.windows_closed += 1
            self.close_window(self.windows_closed)

    def _marker(self, up: Logical, number: int) -> None:
        """When the least of all inputs' newest reaches w, a count may end its window; then hand w on."""
        state = self.state
        state.markers[up] = max(number, state.markers.get(up, 0))
        least = min(state.markers.get(channel.up.logical, 0) for channel in self.inputs.values())
        if least > state.handed:
            layout = self.world.layout
            if layout.stateful(self.component) and layout.by_marker(self.component):
                self.close_window(least, before=least)
            self.send_marker(least)

    # -- windowed counts -----------------------------------------------------------------------------------

    @property
    def window(self):
        return self.world.layout.config[self.component].bolt.window

    def tick(self, number: int) -> None:
        """The window ends, when the queue before the tick has been served."""
        if not self.waiting:
            self.place(Rank.WINDOW, partial(self.ticked, number), number)

    def ticked(self, number: int) -> None:
        """The turn of a tick has come."""
        self.close_window(number)
        self.world.protocol.ticked(self)

    def close_window(self, number: int, before: int | None = None) -> None:
        """Emit and forget the counts (of the epochs before the marker); the ids go to the strategy."""
        world, old, new = self.world, self.state.copy(), self.state
        new.counts = {cell: n for cell, n in old.counts.items() if before is not None and cell[0] >= before}
        new.held = [datum for datum in old.held if before is not None and datum.epoch >= before]
        new.tuples = 0
        old.counts = {cell: n for cell, n in old.counts.items() if cell not in new.counts}
        emitted = [datum for datum in old.held if before is None or datum.epoch < before]
        emitted = [datum for datum in emitted if datum.anchored]
        again = world.ledger.emitted_window(self, number, emitted)
        if self.silent and not self.keeps:
            world.protocol.ack_window(self, emitted)
            return
        if self.silent:
            world.protocol.unsaid_window(self, number, old.keys(), again)
        else:
            self.say_window(number, old.keys())
        serialising = 0
        known = again and not world.layout.needs.readers_go_back
        for key, value in sorted(() if known else old.keys().items()):
            layout = world.layout
            aggregate = layout.aggregate(self.component, self.index, number, key, value, self.state.handed)
            self.send(aggregate)
            serialising += self.serialising(aggregate)
        world.protocol.window_ended(self, number)
        world.protocol.ack_window(self, emitted)
        if not self.silent:
            self.occupy_longer(serialising)

    def say_window(self, number: int, sums: dict[int, int]) -> None:
        """To whoever reads it."""
        self.world.trace.windows.append((*self.physical, number, self.world.clock.now, sums))
        self.world.record.window(self, number)
        if self.world.sinks.withholds(self):
            self.world.sinks.window(self, number, sums)
        self.world.protocol.said_window(self, number)
