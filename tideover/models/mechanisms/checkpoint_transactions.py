"""Storm's checkpoint transactions of a job (`storm_checkpoint`): prepare, then commit, then the acks; and
state that lies in a store, of which a task has at hand what it has changed since the last commit.

That strategy alone makes both mechanisms, and has the rules of transactions in its docstring. The data plane
looks entries up (plane.h: ``look_ups``); what is at hand is changed in `RemoteState`.

The rules (tests/models/test_look_ups.py):

- The i-th access of a tuple goes to the entry drawn by uid * `accesses` + i. An entry is at hand from its
  access to the commit of the prepare that follows; an access to another takes `round_trip` more. What is at
  hand is known when a tuple is given service.
- With `look_up_work` a look-up keeps the store for so long in the middle of its round trip, first come,
  first served, with writes. The tuple is served first, then its accesses, one by one. A store that gets
  slower, or stops, is done first with what was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tideover.models.job.topology import Component
from tideover.models.mechanisms.acking import Acks
from tideover.models.mechanisms.base import Costs, Mechanism, stored_entries
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import SENT_BY, BoltTask
from tideover.models.runtime.hooks import CopyHolder
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, read
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, TaskView
from tideover.sim.draws import Purpose
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train

LEAST = 64
"""Entries at hand for which there is room, at first."""


class RemoteState(Mechanism):
    """Every access to an entry that is not at hand keeps its task until the store has answered.

    Storm 1.0, ``RedisKeyValueState``: what was put since the last commit is looked up in two maps, that of
    the transaction in preparation and that of the prepared one; everything else is a round trip (``HGET``),
    one after the other.

    round_trip    of a look-up that waits for nobody (ns)
    work          the part of it for which it keeps the store, and all others waiting; 0: nobody waits
    access_cost   of each access
    """

    def __init__(self, job: Job, store: str | None, round_trip: int, work: int, access_cost: int) -> None:
        super().__init__(job)
        plane = job.plane
        self._plane, self._store, self._work = plane, store, work
        self._of: dict[TaskView, Any] = {}
        self._prepared: dict[TaskView, int] = {}
        """Entries of the transaction that is not committed yet."""
        self._paces: dict[int, Any] = {}
        for task in job.bolt_tasks:
            backend = task.component.backend
            if backend is not None:
                c = self._of[task] = plane.ffi.new("look_ups *")
                c.key = int(job.draws.key(task.component.name, Purpose.ACCESS))
                c.entries, c.accesses, c.access_cost = backend.entries, backend.accesses, access_cost
                c.there = (round_trip - work) // 2 if work else round_trip
                c.back, c.work = round_trip - work - c.there if work else 0, work
                c.stamp = c.at_hand = 1
                self._make_room(task)
                self._seat(task)
                plane.keep(c)
                task.c.look_ups = c
                task.c.bounded |= plane.lib.LOOKS_UP
        plane.asked[plane.lib.NEED_ENTRIES] = lambda number: self._make_room(job.tasks[number])

    def _make_room(self, task: TaskView) -> None:
        """For what is at hand, twice, and for another tuple."""
        c = self._of[task]
        more = min(int(c.accesses), int(c.entries))
        at_hand = int(c.changed) + self._prepared.get(task, 0)
        room = 1 << (2 * max(LEAST, at_hand + more) - 1).bit_length()
        slots = np.zeros(room, np.uint64)
        if c.slots:
            into = self._plane.ffi.cast("uint64_t *", slots.ctypes.data)
            self._plane.lib.plane_move_entries(c, into, room - 1)
        self._plane.array(c, "slots", slots)
        c.mask, c.most = room - 1, room - room // 4 - more

    def _seat(self, task: BoltTask) -> None:
        """It asks the store that is there for its host."""
        if not self._work:
            return
        server = self._job.store_named(self._store).server(task.host)
        if id(server) not in self._paces:
            pace = self._paces[id(server)] = self._plane.ffi.new("remote_store *")
            pace.factor, server.pace, server.looked_up = 1.0, pace, True
        self._of[task].store = self._paces[id(server)]

    def prepare(self, task: BoltTask) -> int:
        """A transaction begins at a task; returns how many entries it has."""
        if task not in self._of:
            return 0
        c = self._of[task]
        self._prepared[task], c.changed = int(c.changed), 0
        c.at_hand, c.stamp = c.stamp, c.stamp + 1
        return self._prepared[task]

    def commit(self, task: BoltTask) -> None:
        if task in self._of:
            self._of[task].at_hand, self._prepared[task] = self._of[task].stamp, 0

    def roll_back(self, task: TaskView) -> None:
        """A task goes back to the last commit: it has nothing at hand."""
        if task in self._of:
            c = self._of[task]
            c.stamp += 1
            c.at_hand, c.changed, self._prepared[task] = c.stamp, 0, 0

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None:
        self.roll_back(task)

    def bolt_ready(self, task: BoltTask, outage: OutageView) -> None:
        if task in self._of:
            self._seat(task)


class Transactions(Mechanism, CopyHolder):
    """Waves of markers: one prepares, the next commits; after a failure all tasks go back to the newest
    transaction that all have prepared, and what live tasks had prepared in it is acked then.
    """

    def __init__(self, job: Job, acks: Acks, remote: RemoteState, interval: int, costs: Costs) -> None:
        super().__init__(job)
        self._acks, self._do, self._remote = acks, Verbs(job), remote
        self._interval, self._costs = interval, costs
        self._plans = Plans(job.kernel)
        self._tasks = [task for task in job.bolt_tasks if task.component.keeps_state]
        self._began = 0
        self._wave = self._newest_wave = 0
        """Number of the wave that is under way (0: none is), and of the newest."""
        self._committing = False
        self._come: Counter[TaskView] = Counter()
        self._awaited: dict[TaskView, int] = {}
        for task in job.bolt_tasks:
            bolts = sum(isinstance(channel.up, BoltTask) for channel in task.inputs)
            self._awaited[task] = bolts + (len(task.inputs) > bolts)
        self._left: set[TaskView] = set()
        """Tasks that the wave under way has not left."""
        self._changed: dict[TaskView, int] = {}
        """Entries that the transaction under way writes, and writes again."""
        self._parts: dict[TaskView, SavedState] = {}
        """Of the transaction that is being prepared."""
        self._held: dict[TaskView, SavedState] = {}
        self._preparing: dict[TaskView, list[Effects]] = {}
        self._safe: dict[TaskView, list[Effects]] = {}
        """Tuples in the newest transaction that holds, and which are not acked yet."""
        self._down: dict[TaskView, OutageView] = {}
        """Tasks that have failed and are not rolled back yet, and why."""

    def start(self) -> None:
        self._next(self._interval)

    def _next(self, when: int) -> None:
        def begin() -> None:
            self._began, self._parts = when, {}
            self._send_wave(committing=False)

        self._plans.at(when, Rank.CHECKPOINT, begin)

    def _send_wave(self, committing: bool) -> None:
        self._committing = committing
        self._job.step("checkpoint spout", "commit begun" if committing else "prepare begun")
        self._left = set(self._job.bolt_tasks)
        self._newest_wave += 1
        number = self._wave = self._newest_wave
        self._come.clear()
        for task in self._job.bolt_tasks:
            if any(isinstance(channel.up, SpoutTask) for channel in task.inputs):
                task.enqueue(Rank.CHECKPOINT, partial(self._marker, task, number, "the spouts"))

    def barrier(self, task: BoltView, message: Train) -> None:
        sender = self._job.tasks[int(message.column(SENT_BY)[0])].name
        self._marker(self._bolt(task), int(message.key[0]), sender)

    def _marker(self, task: BoltTask, number: int, sender: str) -> None:
        """A marker has come; with the last one the wave has reached the task."""
        if number != self._wave:
            return
        self._come[task] += 1
        many = f"{self._come[task]} of {self._awaited[task]}, from {sender}"
        self._job.step(task.name, "marker come", many)
        if self._come[task] < self._awaited[task]:
            return
        if not task.component.keeps_state:
            self._leave(task, number)
            return
        acks = 0
        if self._committing:
            self._remote.commit(task)
            acks = self._acks.takes(self._safe.get(task, []))
        else:
            state = self._parts[task] = SavedState.of(task)
            self._preparing[task] = self._acks.mark(task)
            self._changed[task] = self._remote.prepare(task) + state.entries
        self._job.step(task.name, "commit reached" if self._committing else "prepare reached")
        self._write(task, self._changed[task], acks, partial(self._written, task, number))

    def _write(self, task: BoltTask, entries: int, acks: int, then: Callable[[], None]) -> None:
        """Let the store write so many entries, which keeps the task until it has, and for what they, and
        ``acks`` (ns), cost the task; then ``then`` is called, later if the task is stopped meanwhile.
        """
        costs, kernel = self._costs, self._job.kernel
        busy = costs.saving + entries * costs.saving_entry
        then = self._plans.unless_void(then)

        def wait(duration: int, put_off: int) -> None:
            if duration:
                kernel.at(kernel.now + duration, Rank.TRIM, partial(kept, put_off), task.number)
            else:
                kept(put_off)

        def kept(put_off: int) -> None:
            if task.put_off > put_off:
                wait(task.put_off - put_off, task.put_off)
            else:
                then()

        store, size = self._job.store_named(costs.store), entries * costs.entry_size
        done = self._plans.unless_void(partial(wait, busy, task.put_off))
        end = store.write(task.host, size, Rank.TRIM, done, task.number, max(1, entries))
        task.occupy(end - kernel.now + busy + acks)

    def _written(self, task: BoltTask, number: int) -> None:
        safe = self._safe.pop(task, []) if self._committing else []
        self._acks.release(task, safe)
        self._leave(task, number)

        def sent() -> None:
            if task not in self._down:
                self._job.step(task.name, "acks sent", to=self._acks.acker.name)

        if safe:
            when = self._job.kernel.now + self._acks.takes(safe)
            self._job.kernel.at(when, Rank.TRIM, sent, task.number)

    def _leave(self, task: BoltTask, number: int) -> None:
        self._job.step(task.name, "committed" if self._committing else "prepared")
        if number == self._wave:
            task.send_barrier(number)
        self._left.discard(task)
        if self._left:
            return
        if self._committing:
            self._next(max(self._job.kernel.now, self._began + self._interval))
        else:
            self._held, self._parts = self._parts, {}
            self._safe, self._preparing = self._preparing, {}
            self._send_wave(committing=True)

    def _part(self, task: BoltTask) -> SavedState:
        return self._held[task] if task in self._held else SavedState.at_the_beginning(task)

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None:
        self._plans.void()
        self._wave = 0
        self._acks.forget(task, outage, [*self._preparing.pop(task, []), *self._safe.pop(task, [])])
        self._down[task] = outage

    def bolt_ready(self, task: BoltTask, outage: OutageView) -> None:
        if task in self._down:
            size = stored_entries(task, self._part(task)) * self._costs.entry_size
            task.gate.closed = True
            task.set_aside()  # a tick that waits must not end a window of what comes back
            back = partial(self._roll_back, task, outage)
            read(self._job, task, size, 0, back, self._job.store_named(self._costs.store))

    def _roll_back(self, task: BoltTask, outage: OutageView) -> None:
        """``task`` has read its state: all go back that were not down with it, unless it has failed again."""
        if self._down.get(task) is not outage:
            return
        del self._down[task]
        self._do.restore(task, self._part(task), outage, rewind=False)
        self._do.open(task)
        together = set(outage.tasks).issuperset(self._tasks)
        for other in self._tasks if not together else ():
            if other is not task and other not in self._down:
                self._do.close(other)  # the tuple in service begins again
                if other.component.saves_ids and other.state is not None:
                    lost = other.state.effects()  # what is in its windows comes again
                    self._acks.destroyed(outage.number, lost.uid >> other.component.bits, lost.attempt)
                self._do.roll_back(other, self._part(other))
                self._remote.roll_back(other)
                safe = self._safe.pop(other, [])
                other.occupy(self._acks.takes(safe))
                self._acks.release(other, safe)
                self._acks.forget(other, outage, self._preparing.pop(other, []))
                self._do.open(other)
        self._job.step(task.name, "job rolled back")
        if not self._down:
            self._next(self._job.kernel.now + self._interval)

    def settled(self, outage: OutageView) -> bool:
        return outage not in self._down.values()

    def store_lost(self, store: str | None) -> None:
        if store == self._costs.store:
            self._held = {task: part.emptied() for task, part in self._held.items()}
            self._parts = {task: part.emptied() for task, part in self._parts.items()}

    def effects(self) -> list[tuple[Component, Ints]]:
        return [(t.component, part.effects()) for t, part in self._held.items() if part.state is not None]
