"""Bolts: what a tuple or a marker does when it has been served; windowed counts."""

from __future__ import annotations

from functools import partial

from .channels import Message
from .clock import Rank
from .layout import MS, Datum, Logical, Panes
from .tasks import State, Task

OPEN = 0
"""The pane that the next tick ends."""
SO_FAR = -1
"""The epoch of what a count that goes on has put out."""


class Bolt(Task):
    """What a tuple or a marker does when it has been served."""

    def take(self, message: Message, arrived: int) -> None:
        world, datum = self.world, message.datum
        because = world.protocol.because(self, message)
        world.protocol.served(self, message)
        if datum is not None:
            world.trace.processed.append((*self.physical, datum.uid, datum.attempt, arrived, self.now))
            world.record.served(self, datum, arrived, because)
            if self.stateful and self.is_late(datum, message.channel.up.component):
                world.ledger.came_late(self, datum)
                world.protocol.done_late(self, datum)
            elif self.stateful and self.state.compares:
                self._compare(datum)
            elif self.stateful:
                self.count(datum, arrived)
                self.world.record.applied(self, datum)
                self.fill()
            else:
                self._hand_on(datum)
            world.record.gone(datum)
        elif message.marker is not None:
            self.marker(message.channel.up.logical, message.marker)

    def _hand_on(self, datum: Datum) -> None:
        sent: list[Datum] = []
        if self.readers:
            says = self.keeps or not self.silent
            for child in self.layout.children(self.component, datum) if says else ():
                sent += self.send(child)
        elif datum.anchored:
            self.world.ledger.left(self, datum)
            if self.world.sinks.withholds(self):
                self.world.sinks.tuple(self, datum)
            self.world.record.applied(self, datum)
        if datum.anchored:
            self.world.protocol.done(datum, sent)

    def count(self, datum: Datum, arrived: int = -1) -> None:
        state, layout, panes = self.state, self.layout, self.panes
        if self.window.gap is not None and self.window.by == "arrival":
            datum = datum._replace(event=arrived)
        if panes is not None and not layout.by_marker(self.component):
            pane = OPEN
            if self.window.tuples is not None:
                pane = 1 + state.taken // panes.length
            if self.window.by == "event" and self.window.gap is None:
                pane = -(-datum.event // panes.length)
            datum = datum._replace(epoch=pane)
        key = (datum.key, datum.route[-1][0]) if layout.kind(self.component) == "windowed_join" else datum.key
        cell = (datum.epoch, key)
        state.counts[cell] = state.counts.get(cell, 0) + datum.value
        state.tuples += 1
        state.taken += 1
        state.held.append(datum)
        if self.window.gap is not None:
            self._sessions()

    def fill(self) -> None:
        """So many tuples end a window."""
        state, panes = self.state, self.panes
        number = self.window.slide_tuples or self.window.tuples
        if number is not None and state.tuples == number:
            self.windows_closed += 1
            newest = None if panes is None else state.taken // panes.length
            self.close_windows([(self.windows_closed, newest)])

    def _compare(self, datum: Datum) -> None:
        """By the ids of what had left the window, and of what it had put out, when the state was saved."""
        state, up = self.state, datum.route[-1]
        left, put_out = state.compares.get(up, (-1, -1))
        if up in state.compares and datum.uid <= left:
            self.world.protocol.known(self, datum)
            return
        if up in state.compares and datum.uid <= put_out:
            self.count(datum)
        else:
            state.waits.append(datum)
            state.compares.pop(up, None)
            if not state.compares:
                for waits in state.waits:
                    self.count(waits)
                state.waits = []
        self.world.record.applied(self, datum)

    def is_late(self, datum: Datum, up: str) -> bool:
        """Whether its event is not after the watermark; what it tells counts all the same."""
        state = self.state
        if self.window.by != "event":
            return False
        state.newest[up] = max(datum.event, state.newest.get(up, datum.event))
        state.heard[up] = self.now
        if self.window.gap is not None:
            return self._session(datum) * MS <= state.watermark
        return datum.event <= state.watermark

    def _session(self, datum: Datum) -> int:
        """When the session ends that it is in, or would be (ms)."""
        gap = self.window.gap
        events = sorted(other.event for other in [*self.state.held, datum] if other.key == datum.key)
        last = datum.event
        for event in events[events.index(datum.event) :]:
            if event - last > gap:
                break
            last = event
        return -(-(last + gap) // MS)

    def _sessions(self) -> None:
        """Counts by session: a tuple that has come may have made one of two."""
        state = self.state
        state.held = [datum._replace(epoch=self._session(datum)) for datum in state.held]
        state.counts = {}
        for datum in state.held:
            cell = datum.epoch, datum.key
            state.counts[cell] = state.counts.get(cell, 0) + datum.value

    def marker(self, up: Logical, number: int) -> None:
        """When the least of all inputs' newest reaches w, a count may end its window; then hand w on."""
        state = self.state
        state.markers[up] = max(number, state.markers.get(up, 0))
        least = min(state.markers.get(channel.up.logical, 0) for channel in self.inputs.values())
        if least > state.handed:
            if self.stateful and self.layout.by_marker(self.component) and not self.idle:
                panes, ends = self.panes, [(least, least - 1)]
                if panes is not None:
                    passed = range(state.handed + 1, least + 1)
                    ends = [(p // panes.slide, p - 1) for p in passed if p % panes.slide == 0]
                self.close_windows(ends)
            self.send_marker(least)

    @property
    def window(self):
        return self.layout.config[self.component].bolt.window

    def tick(self, number: int) -> None:
        """The window, or pane, ends, when the queue before the tick has been served."""
        if not self.waiting:
            self.place(Rank.WINDOW, partial(self.ticked, number), number)

    def ticked(self, number: int) -> None:
        """The turn of a tick has come."""
        panes = self.panes
        if self.state.compares:
            return
        if self.window.by == "event":
            before = self._watermark()
            self.close_due(panes, before)
            return
        if panes is None:
            self.close_windows([(number, None)])
        elif self.window.gap is not None:
            self.close_windows([(number, number * self.layout.beat(self.component) // MS)])
        else:
            self._end_pane(number)
            if number % panes.slide:
                return
            self.close_windows([(number // panes.slide, number)])
        self.world.protocol.ticked(self)

    def _watermark(self) -> int:
        """Look how far events have come; returns the watermark before."""
        state, window, now = self.state, self.window, self.now
        before = state.watermark
        ups = {channel.up.component for channel in self.inputs.values()}
        for up in ups:
            state.heard.setdefault(up, now)
        counts = [up for up in ups if window.idle_after is None or now - state.heard[up] < window.idle_after]
        if counts and all(up in state.newest for up in counts):
            state.watermark = max(before, min(state.newest[up] for up in counts) - window.lag)
        return before

    def close_due(self, panes: Panes, before: int) -> None:
        """Put out what has ended since the watermark before, where a tuple is or leaves."""
        step = panes.length * panes.slide
        due = set()
        for datum in self.state.held:
            if self.window.gap is not None:
                due.add(datum.epoch)
                continue
            number = -(-datum.event // step)  # the first that it is in
            while number * step < datum.event + panes.length * panes.per_window:
                due.add(number)
                number += 1
            if panes.stays:
                due.add(number)
        ended = sorted(number for number in due if before < number * step <= self.state.watermark)
        self.windows_closed = ended[-1] if ended else self.windows_closed
        self.close_windows([(number, number * panes.slide) for number in ended])

    def _end_pane(self, number: int) -> None:
        """What has come since the last tick is a pane."""
        state = self.state
        state.counts = {(number if pane == OPEN else pane, key): n for (pane, key), n in state.counts.items()}
        state.held = [d._replace(epoch=number) if d.epoch == OPEN else d for d in state.held]

    def close_windows(self, ends: list[tuple[int, int | None]]) -> None:
        """Put these out, each with the newest epoch or pane that it has (None: all that there is), one after
        the other; then what leaves is acked.
        """
        left: list[Datum] = []
        serialising = 0
        for number, newest in ends:
            gone, takes = self.close_window(number, newest)
            left += gone
            serialising += takes
        if ends:
            self.world.protocol.ack_window(self, left)
            self.occupy_longer(serialising)

    def take_out(self, newest: int | None) -> tuple[State, list[Datum]]:
        """Forget what leaves with a window; returns what is in it, and what has left."""
        world, old, new = self.world, self.state.copy(), self.state
        panes = self.panes
        eldest = None if panes is None or newest is None else newest - panes.per_window + 1
        if self.window.gap is not None and self.window.by == "arrival":
            eldest = None  # what has ended earlier, too

        def is_in(epoch: int) -> bool:
            return (newest is None or epoch <= newest) and (eldest is None or epoch >= eldest)

        def leaves(epoch: int) -> bool:
            return is_in(epoch) if eldest is None or not panes.stays else epoch < eldest

        new.counts = {cell: n for cell, n in old.counts.items() if not leaves(cell[0])}
        new.held = [datum for datum in old.held if not leaves(datum.epoch)]
        new.tuples = 0
        old.counts = {cell: n for cell, n in old.counts.items() if is_in(cell[0])}
        if world.layout.goes_on(self.component):
            new.counts |= {(SO_FAR, key): total for key, total in old.keys().items()}
        emitted = [datum for datum in old.held if leaves(datum.epoch) and datum.anchored]
        if self.window.saved == "ids":
            for ids, counts in ((new.put_out, is_in), (new.left, leaves)):
                for datum in [datum for datum in old.held if counts(datum.epoch)]:
                    ids[datum.route[-1]] = max(datum.uid, ids.get(datum.route[-1], datum.uid))
        return old, emitted

    def close_window(self, number: int, newest: int | None) -> tuple[list[Datum], int]:
        """Emit counts, and forget what leaves: returns that, and how long serialising the window takes."""
        world = self.world
        old, emitted = self.take_out(newest)
        again = world.ledger.emitted_window(self, number, emitted)
        if self.silent and not self.keeps:
            return emitted, 0
        heard_of = old.keys() or self.window.by != "event"
        if heard_of and self.silent:
            world.protocol.held_window(self, number, old.keys(), again)
        elif heard_of:
            self.say_window(number, old.keys())
        serialising = 0
        known = again and not world.layout.needs.readers_go_back
        for key, value in sorted(() if known else old.keys().items()):
            aggregate = self.layout.aggregate(
                self.component, self.index, number, key, value, self.state.handed
            )
            self.send(aggregate)
            serialising += self.serialising(aggregate)
        world.protocol.window_ended(self, number)
        return emitted, 0 if self.silent else serialising

    def say_window(self, number: int, sums: dict[int, int]) -> None:
        """To whoever reads it."""
        self.world.trace.windows.append((*self.physical, number, self.now, sums))
        then = self.layout.working_at.setdefault((*self.logical, number), {})
        then[self.now] = self.layout.working[self.component]
        self.world.record.window(self, number)
        if self.world.sinks.withholds(self):
            self.world.sinks.window(self, number, sums)
        self.world.protocol.said_window(self, number)
