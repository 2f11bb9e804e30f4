"""What bolt tasks do with windows: tuples fall into panes, ticks and watermarks end them.

`bolt_task.py` builds on it, and the state it works with is in `operators/state.py`. What ends a window is
decided here (``_ended_by``), when an event is late in `operators/window.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tideover.models.job.topology import Component
from tideover.models.operators.base import Children
from tideover.models.operators.keyed_state import SIDE, Sessions
from tideover.models.operators.state import Closed, Effects, State
from tideover.models.operators.window import KNOWN, NEVER, STREAM, EventClock, WindowIds
from tideover.models.runtime.channels import LATE, Sent
from tideover.models.runtime.context import Context
from tideover.models.runtime.node import Node, Seat
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train

REMEMBERED = 1 << 16
"""So many of the newest windows are known by their number when they come again."""


class Windows:
    """The windows of one task: which markers have come, which windows were put out.

    trigger          what ends them: tick, marker, tuples, watermark; None: the task has none
    ended            number of the last window that was ended by a count of tuples; or by a watermark, plus 1
                     (the first is window 0)
    epochs           newest end marker of each logical input
    waiting          numbers of the ticks that wait in the queue
    tick             the tick of this number comes into the queue: it ends the window of its number, or, where
                     windows slide, a pane, and every so many a window
    beats            so many ends, of panes, from one window's end to the next (1: each ends a window)
    count_at_arrival  take in what arrives at once, without service (in a reference run)
    """

    def __init__(self, trigger: str | None, tick: Callable[[int], None], beats: int = 1) -> None:
        self.trigger, self.tick, self.beats = trigger, tick, beats
        self.ended = 0
        self.epochs: dict[int, int] = {}
        self.waiting: set[int] = set()
        self.count_at_arrival = False
        self._put_out: dict[int, None] = {}

    @property
    def epoch(self) -> int:
        return min(self.epochs.values())

    @property
    def newest(self) -> int:
        if self.trigger == "watermark":
            return self.ended - 1
        return self.ended if self.trigger == "tuples" else self.epoch // self.beats

    @property
    def awaited(self) -> list[int]:
        return [number // self.beats for number in self.waiting if number % self.beats == 0]

    def put_out(self, number: int) -> bool:
        """Window ``number`` is put out; returns whether it was before."""
        again = number in self._put_out
        self._put_out[number] = None
        if len(self._put_out) > 2 * REMEMBERED:
            for old in list(self._put_out)[:REMEMBERED]:
                del self._put_out[old]
        return again

    def reopen(self, after: int) -> None:
        """Windows that follow ``after`` are put out as if they had not been."""
        self._put_out = {number: None for number in self._put_out if number <= after}


class WindowedTask(Node):
    """A task of a bolt as far as its state and its windows go.

    held_windows    windows that it has put out while silent, by number; None: nobody will ask for what it
                    does then, and it makes nothing
    said            number of the newest window that it has put out while it was not
    """

    def __init__(self, context: Context, component: Component, seat: Seat, plane: Plane) -> None:
        super().__init__(context, component, seat, plane)
        self.held_windows: dict[int, Closed] | None = None
        self.said = 0
        window = component.window
        self.windows = Windows(component.trigger, self._tick, 1 if window is None else window.beats)
        self._bolt = component.bolt
        self._extent = None if window is None else window.extent
        self._state: State | None = None
        if window is not None:
            self._state = self._bolt.new_state(component.input_keys)
            self._state.extent = self._extent
            if window.saved == "ids":
                self._state.ids = WindowIds()
            if window.by == "event":
                self._state.clock = EventClock(len(component.inputs), window.lag, window.idle_after)
            if window.every is not None:
                self.c.fills = window.every

    @property
    def available(self) -> bool:
        """Whether arrivals are taken into the queue; if not they are dropped or held."""
        return self.up and not self.c.closed

    @property
    def silent(self) -> bool:
        """It processes what another one does, and emits nothing."""
        return bool(self.c.silent)

    @silent.setter
    def silent(self, silent: bool) -> None:
        if silent != self.silent:
            self.catch_up()  # what was done before it changes was of the other kind
        self.c.silent = silent

    @property
    def mute(self) -> bool:
        """Whether nobody will ask for what it makes."""
        return self.silent and self.held_windows is None

    @property
    def state(self) -> State | None:
        """What the task knows; None: its bolt has no state. Set it to restore another."""
        self.catch_up()
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self.catch_up()
        self._state = state
        window = self.component.window
        if window is not None and window.every is not None:
            self.c.fills = window.every - state.tuples

    def take_in_at_arrival(self) -> None:
        self.windows.count_at_arrival = True
        c, lib = self._plane.components[self.component.index], self._plane.lib
        c.service.kind, c.service.low, c.charge, c.due = lib.DRAW_CONSTANT, 0, 0, self._plane.ffi.NULL
        c.serves_at_once = 1

    def catch_up(self) -> None:
        """Take in, and tell, what the data plane has logged."""
        raise NotImplementedError

    def _take_up(self, state: State, train: Train, arrival: Ints) -> Train:
        """Take tuples that came at ``arrival`` into the state, by pane; late ones are only marked."""
        whole, extent, clock = train, self._extent, state.clock
        if self._bolt.sides is not None:
            train = train.adding(**{SIDE: self._digits(train)})
        if state.ids is not None:
            return self._compare(state, state.ids, train, whole)
        if extent is None or self.windows.trigger == "marker":
            state.add(train)
        elif clock is None and isinstance(state, Sessions):
            state.add_events(train, arrival, NEVER)
        elif clock is None:
            panes = None  # the open one: the next tick ends it
            if self.windows.trigger == "tuples":
                panes = 1 + (state.taken + np.arange(train.n, dtype=np.int64)) // extent.pane
            state.add(train.replace(epoch=panes))
        if extent is None or clock is None or self.windows.trigger == "marker":
            return whole
        assert self._context.events is not None
        events = self._context.events.of(train.uid >> self.component.bits)
        inputs = self._digits(train) if len(self.component.inputs) > 1 else None
        late = clock.hear(inputs, events, train.time)
        panes = -(-events // extent.pane)
        if isinstance(state, Sessions):
            late = state.add_events(train, events, clock.watermark)
        elif late.any():
            state.add(train.pick(~late).replace(epoch=panes[~late]))
        else:
            state.add(train.replace(epoch=panes))
        return whole.adding(**{LATE: late.astype(np.int64)}) if late.any() else whole

    def _compare(self, state: State, ids: WindowIds, train: Train, whole: Train) -> Train:
        if not ids.comparing:
            ids.note(train.uid, train.column(STREAM))
            state.add(train.replace(epoch=None))
            return whole
        into, known = ids.compare(train)
        for part in into:
            state.add(part.replace(epoch=None))
        if not known:
            return whole
        mark = np.zeros(train.n, np.int64)
        mark[known] = KNOWN
        return whole.adding(**{LATE: mark})

    def _digits(self, train: Train) -> Ints:
        """Over which of the component's inputs each tuple has come."""
        edges = self.component.inputs
        return (train.uid >> edges[0].task_bits) & ((1 << edges[0].edge_bits) - 1)

    def window_is_full(self, when: int) -> None:
        """A tuple has filled its window; or it may have been late, which somebody waits for."""
        self.catch_up()
        window, windows, state = self.component.window, self.windows, self._state
        if windows.trigger != "tuples" or window is None or state is None:
            self.c.fills = 1
            return
        assert window.every is not None
        self.c.fills = window.every
        windows.ended += 1
        panes = None if self._extent is None else 1 + state.taken // self._extent.pane
        self._keep_busy(self._end_windows({windows.ended: panes}, when, windows.epoch), when)

    def _keep_busy(self, duration: int, when: int) -> None:
        if duration:
            self.busy.add(when, duration)

    def _marker_came(self, source: int, number: int, now: int) -> int:
        """An end marker has come from a logical input; returns how long it keeps the task (ns)."""
        windows = self.windows
        if number < 0:
            return 0
        before = windows.epoch
        windows.epochs[source] = max(windows.epochs[source], number)
        aligned = windows.epoch
        if aligned == before:
            return 0
        stall = 0
        if windows.trigger == "marker" and not self.idle:
            ends: dict[int, int | None] = {aligned: aligned}
            if self._extent is not None:
                slide = self._extent.slide
                ends = {n: n * slide for n in range(before // slide + 1, aligned // slide + 1)}
            stall = self._end_windows(ends, now, before)
        if not self.mute:
            self._broadcast(now, aligned)
        return stall

    def _end_windows(self, ends: dict[int, int | None], now: int, epoch: int) -> int:
        """Put out these windows, each with what is before a pane (None: all); returns how long it keeps the
        task (ns).
        """
        self.catch_up()
        left: list[Effects] = []
        packing = 0
        for number, before in ends.items():
            assert self._state is not None
            closed = self._state.end_window(before)
            packing += self._put_out(number, closed, now, epoch)
            left += closed.parts
        return self._context.hooks.window_ended(self, left, now) + packing if ends else 0

    def _put_out(self, number: int, closed: Closed, now: int, epoch: int) -> int:
        """Put out one window; returns how long its serialisation takes (ns)."""
        context, component = self._context, self.component
        again, n = self.windows.put_out(number), len(closed.keys)
        unheard = self.mute or (self.windows.trigger == "watermark" and not n)
        if not self.silent and not unheard:
            self._say(number, now, closed, again)
        elif again and component.anchored:  # nobody hears of it: what leaves with it leaves for nothing
            for part in closed.parts:
                context.say.void(component, part.uid, self.replica)
        elif not again and not unheard:
            assert self.held_windows is not None
            self.held_windows[number] = closed
        if unheard or not n or not self.outlets or (again and not context.needs.readers_go_back):
            return 0
        first = (number * component.tasks + self.index) << component.key_bits
        moment = np.full(n, now, np.int64)
        epochs = None if context.topology.marker_length is None else np.full_like(moment, epoch)
        train = Train(moment, first | closed.keys, moment, closed.keys, value=closed.values, epoch=epochs)
        plane, lib = self._plane, self._plane.lib
        plane.valued = True
        plane.have_messages(n * self._copies)
        self._give_targets(train, Children())
        uid, key, value = (
            plane.ffi.from_buffer("int64_t[]", column) for column in (train.uid, train.key, closed.values)
        )
        lib.plane_send(plane.p, self.number, now, n, uid, key, value, 0 if epochs is None else epoch)
        if self.silent:
            return 0
        packing = lib.plane_packing(plane.p, self.number, n, uid, key) if self.c.serialises else 0
        context.say.handed_on(self, self._shown(train, Children()))
        return int(packing)

    def _shown(self, train: Train, children: Children) -> list[Sent]:
        """What it has sent of these tuples, if somebody wants to know."""
        outlets = self.outlets if self.shows_sent else []
        return [sent for outlet in outlets for sent in outlet.sent(train, children)]

    def _say(self, number: int, now: int, closed: Closed, again: bool = False) -> None:
        self.said = max(self.said, number)
        groups, working = self.component.groups, self.working
        if groups is not None:
            first, behind = (-(-index * groups // working) for index in (self.index, self.index + 1))
            closed = closed._replace(groups=(first, behind - 1))
        self._context.say.window(self, number, now, closed, again)

    def put_out_held(self, after: int) -> None:
        """Put out now the windows that it has put out in silence, those with a number above ``after``."""
        assert self.held_windows is not None
        held_windows, self.held_windows = self.held_windows, {}
        for number, closed in sorted(held_windows.items()):
            if number > after:
                self._say(number, self._kernel.now, closed)

    def _tick(self, number: int) -> None:
        """The tick ``number`` comes into the queue: it ends a window, or a pane."""
        if self.available:
            self.windows.waiting.add(number)
            self.enqueue(Rank.WINDOW, partial(self._tick_turn, number), last=True)

    def _tick_turn(self, number: int) -> None:
        self.catch_up()
        self.windows.waiting.discard(number)
        if not self.available or (self._state and self._state.ids and self._state.ids.comparing):
            return
        stall = self._end_windows(self._ended_by(number), self._kernel.now, self.windows.epoch)
        if not self.windows.count_at_arrival:  # else nothing waits, and the next tick must not
            self.occupy(stall)

    def _ended_by(self, number: int) -> dict[int, int | None]:
        """The windows that tick ``number`` ends, each with the pane that it ends before (None: with all)."""
        state, extent, window = self._state, self._extent, self.component.window
        assert state is not None
        assert window is not None
        if extent is None:
            return {number: None}
        if state.clock is not None:
            state.clock.look(self._kernel.now)
            return self._ended_by_events()
        if isinstance(state, Sessions):
            return {number: number * (window.beat or 0) // extent.pane + 1}
        state.end_pane(number)
        return {} if number % extent.slide else {number // extent.slide: number + 1}

    def _ended_by_events(self) -> dict[int, int | None]:
        """The windows that the watermark has passed, and that were not put out."""
        state, extent = self._state, self._extent
        assert state is not None
        assert state.clock is not None
        assert extent is not None
        due = state.due(state.clock.ended, state.clock.watermark)
        state.clock.ended = state.clock.watermark
        if due:
            self.windows.ended = due[-1] + 1
        return {window: window * extent.slide + 1 for window in due}

    def end_batch(self, now: int) -> None:
        """All of a batch has passed: put out the windows by event that the watermark before it has ended."""
        self.catch_up()
        self._end_windows(self._ended_by_events(), now, self.windows.epoch)
