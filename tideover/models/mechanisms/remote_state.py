"""State that lies in a store, of which a task has at hand what it has changed since the last commit.

The rules (tests/models/test_look_ups.py):

- The i-th access of a tuple goes to the entry drawn by uid * `accesses` + i. An entry is at hand from its
  access to the commit of the prepare that follows; an access to another takes `round_trip` more. What is at
  hand is known when a tuple is given service.
- With `look_up_work` a look-up keeps the store for so long in the middle of its round trip, first come,
  first served, with writes. The tuple is served first, then its accesses, one by one. A store that gets
  slower, or stops, is done first with what was asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tideover.models.mechanisms.base import Mechanism
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.draws import Purpose

LEAST = 64
"""Entries at hand for which there is room, at first."""


class RemoteState(Mechanism):
    """Every access to an entry that is not at hand keeps its task until the store has answered.

    Storm 1.0, ``RedisKeyValueState``: what was put since the last commit is looked up in two maps, that of
    the transaction in preparation and that of the prepared one; everything else is a round trip (``HGET``),
    one after the other.

    ``round_trip``: of a look-up that waits for nobody (ns); ``work``: the part of it for which it keeps the
    store, and all others waiting (ns); 0: nobody waits; ``access_cost``: of each access (ns).
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

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self.roll_back(task)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task in self._of:
            self._seat(self._bolt(task))
