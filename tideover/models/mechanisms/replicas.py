"""Replicas of a task: duplicates dropped, state copied from a live one, fleets of a task and its shadows.

Strategies with replicas or secondaries make these mechanisms, and `buffers.py` goes back with a
`CheckpointFilter`. The data plane compares and drops (plane.h: ``seen``, ``done``); what tasks know after a
failure is changed here.

Duplicate filters, by which a receiver drops what it has had from another replica
(tests/models/test_active_replication.py, test_hybrid.py):

- A *path* is the logical way from the spout: the spout's task, then the logical tasks between. Uids rise on
  it, so a task keeps the greatest that it has let in on each path, and drops at arrival, without service,
  what is not greater. End markers go by their number, aggregates by their uid and sending task.
- A crash forgets this. A task that keeps its queue (`lose_state`) keeps it, too.
- What leaves the topology is filtered in the same way by who reads it: of the windows of several replicas
  the first counts.
- Where tasks go back to a checkpoint they have had what it says, and no more: what waits in their queue,
  and then what was held, passes the filter again at that instant. End markers are never dropped there.

State transfer between replicas of `active_replication`, `active_standby` and `hybrid`
(tests/models/test_active_replication.py, test_plane_by_hand.py):

- At `ready` a replica looks for the live one with the lowest number. Until the copy it serves nothing: its
  queue and what arrives are set aside, and ticks that wait in its queue are cancelled.
- The copy is made (rank RESTORE) when `copy_time` and the state's bytes / `copy_bandwidth` are over, and
  all has arrived at the other that was on the wire to it at `ready`. If the other is not live then, the
  wait begins anew; if nobody is, the replica goes on with what it has, its own queue first.
- It has at that instant the state, paths, epochs and queue of the other, ticks in it included. What was set
  aside passes the filter then.
- Its connections begin anew: nothing that it sends comes to a receiver's host before what the other has on
  the wire to it (1 ns later at the earliest). What still waits in that host's card can be overtaken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from tideover.models.mechanisms.base import Costs, Mechanism, stored_entries
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import when_arrived
from tideover.models.runtime.hooks import NOTHING, CopyHolder, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, restore, restored, roll_back
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import NEVER
from tideover.sim.train import Ints


class DuplicateFilter(Mechanism):
    """Every task drops at arrival what it has had already. The data plane compares, and notes the greatest
    uid seen on each logical path from the spout (the (source, primary) of the paper); -1: none was.

    E. Tanuwidjaja, UC Berkeley EECS-2015-134, section 3: the numbers of tuples.
    """

    needs = Needs(paths=True, comparison=True)
    markers_too: ClassVar[bool] = True
    """Whether end markers are dropped, too: not where what comes again has to end windows again."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._plane = plane = job.plane
        self._seen: dict[TaskView, Ints] = {}
        plane.have_paths()
        for task in job.bolt_tasks:
            task.markers_once = self.markers_too
            self._seen[task] = np.full(task.component.paths, -1, np.int64)
            plane.array(task.c, "seen", self._seen[task])
            task.c.bounded |= plane.lib.FILTERS
        for sender in job.tasks:
            first = plane.tasks[sender.number].first_outlet
            for place, outlet in enumerate(sender.outlets):
                plane.outlets[first + place].first_path = job.topology.first_path(outlet.edge, sender.index)

    def seen(self, task: BoltView) -> Ints:
        return self._seen[task]

    def copy(self, task: BoltView, peer: BoltView) -> None:
        """From now on ``task`` has seen what ``peer`` has."""
        self._seen[task][:] = self._seen[peer]

    def admit_again(self, task: BoltView) -> None:
        """A task has seen more than when it let in what is set aside: drop what it knows of that."""
        self._plane.have_rows(self._plane.p.discarded, self._plane.tasks[task.number].aside.n)
        self._plane.lib.plane_sift(self._plane.p, task.number, self._job.kernel.now)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self._plane.tasks[task.number].repeats_until = NEVER  # as long as it is not restored
        # who keeps the queue keeps what filtered it
        if task in self._seen and not task.up and not self._bolt(task).gate.stopped:
            self._seen[task][:] = -1


class CheckpointFilter(DuplicateFilter):
    """The same where tasks go back to a checkpoint: they have had what that has, and no more. The data plane
    notes, too, what of it is processed.
    """

    markers_too: ClassVar[bool] = False

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._done = {task: seen.copy() for task, seen in self._seen.items()}
        """What each task has processed of what it has seen."""
        for task, done in self._done.items():
            self._plane.array(self._plane.tasks[task.number], "done", done)

    def done(self, task: BoltView) -> Ints:
        """A copy of what a task has processed by now."""
        return self._done[task].copy()

    def go_back(self, task: BoltView, done: Ints | None) -> None:
        """A task goes on from where it had processed this (None: nothing)."""
        known = -1 if done is None else done
        self._seen[task][:] = known
        self._done[task][:] = known


class ReplayFilter(CheckpointFilter):
    """The same for what comes again because a task of an earlier state goes on in the place of one that has
    failed: what belongs to epochs that are over is turned away, too, and all of it is told of.
    """

    needs = Needs(paths=True, readers_go_back=True)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        for task in job.bolt_tasks:
            task.c.bounded |= self._plane.lib.TELLS

    def begin_after(self, task: BoltView, epoch: int) -> None:
        """A task has gone back to where it was over with all epochs before ``epoch``."""
        self._plane.tasks[task.number].over = epoch


def live_replica(job: Job, task: BoltTask) -> BoltTask | None:
    """The first other replica of a task that is there; None: none is."""
    replicas = job.bolts[task.component.name, task.index]
    return next((each for each in replicas if each is not task and each.available), None)


class StateTransfer(Mechanism):
    """A replica that comes back has a live one's state, queue and position in the stream at one instant.

    copy_time    until the copy begins (ns)
    bandwidth    at which state is copied (bytes/s); None: at once
    entry_size   bytes of an entry of the state
    then         called when a replica is there again, with the one that it has copied (None: it is alone)
    """

    def __init__(
        self,
        job: Job,
        duplicates: DuplicateFilter,
        copy_time: int,
        bandwidth: int | None,
        entry_size: int,
        then: Callable[[BoltTask, BoltTask | None], None],
    ) -> None:
        super().__init__(job)
        self._then, self._duplicates = then, duplicates
        self._copy_time, self._bandwidth, self._entry_size = copy_time, bandwidth, entry_size

    def copy_or_go_on(self, view: TaskView, outage: OutageView) -> None:
        """``view`` is up again: it copies a live replica, or goes on with what it has."""
        task, now = self._bolt(view), self._job.kernel.now
        peer = live_replica(self._job, task)
        if peer is None:
            task.gate.closed = False
            if task.state is not None:
                task.state = task.state  # what is in service may fill a window no more
            restored(self._job, task, outage, NOTHING)
            self._then(task, None)
            task.gate.open()
            return
        task.gate.closed = True
        # no tick can end anything now; most of the queue is in the peer's too, and will be dropped
        task.set_aside()
        size = (0 if peer.state is None else peer.state.entries) * self._entry_size
        copied = now + self._copy_time
        if self._bandwidth is not None:
            copied += -(-size * 1_000_000_000 // self._bandwidth)
        sent = [(channel, channel.messages) for channel in peer.inputs]
        self._job.say.transferred(size)
        self._job.step(task.name, "copy asked for", f"{size} B", peer.name)
        copy = partial(self._copy, task, peer, outage)
        when_arrived(self._job.kernel, sent, copied, Rank.RESTORE, copy, task.number)

    def _copy(self, task: BoltTask, peer: BoltTask, outage: OutageView) -> None:
        """State, what was seen, epochs and queue of the peer, all at this instant; then what was held."""
        if self._job.context.newest[task] != outage.number:
            return  # it has failed again
        if not peer.available:
            self.copy_or_go_on(task, outage)
            return
        self._job.step(peer.name, "state copied", to=task.name)
        self._duplicates.copy(task, peer)
        self._duplicates.admit_again(task)
        task.windows.epochs = dict(peer.windows.epochs)
        if peer.state is not None:
            copy = peer.state.copy()
            roll_back(self._job, task, copy.fresh())
            task.state = copy
            task.windows.ended = peer.windows.ended
            restored(self._job, task, outage, copy.effects().uid)
        for mine, theirs in zip(task.outlets, peer.outlets, strict=True):
            mine.follow(theirs)
        task.gate.closed = False
        task.copy_queue(peer)
        self._then(task, peer)
        task.gate.open()


class _Turn(NamedTuple):
    """A member that is to write, or writes; and what happens if it fails before it has written."""

    member: BoltTask
    ask_another: Callable[[], None]


class Fleets(Mechanism, CopyHolder):
    """All replicas of a task but the first are its shadows; after a failure one live member of each fleet
    that was hit writes its state to the store, from which those that are back read it.

    costs         of taking over a state that was read, from ``store``
    transaction   time until a recovery transaction has reached the live members (ns)
    copy_cost     time that each copy for a shadow takes a spout (ns)
    then          called when a member has the state of another, and may ack once more what it has acked
    """

    def __init__(
        self, job: Job, costs: Costs, transaction: int, copy_cost: int, then: Callable[[], None]
    ) -> None:
        super().__init__(job)
        for c in job.topology.components:
            copies = sum(job.deployment.replicas[edge.down.name] - 1 for edge in c.outputs)
            if c.is_spout and copy_cost * copies:
                Verbs(job).charge(c.name, copy_cost * copies)
        self._costs, self._transaction, self._then = costs, transaction, then
        self._unwritten: dict[OutageView, set[BoltTask]] = defaultdict(set)
        """Of each recovery the tasks whose state is not written yet, and the states that were, and nobody
        reads yet.
        """
        self._states: dict[OutageView, dict[BoltTask, SavedState]] = defaultdict(dict)
        self._asked: dict[BoltTask, _Turn] = {}
        for task in job.bolt_tasks:
            task.silent = task.replica > 0

    def begin(self, view: TaskView, outage: OutageView) -> None:
        """A member is up again, and empty; a task without state just goes on."""
        task, kernel = self._bolt(view), self._job.kernel
        if not task.component.keeps_state:
            task.gate.closed = False
            task.gate.open()
            return
        task.gate.closed = True
        task.set_aside()
        self._unwritten[outage].add(task)
        ask = partial(self._ask, task, task.life, outage)
        kernel.at(kernel.now + self._transaction, Rank.RESTORE, ask, task.number)

    def _waits(self, task: BoltTask, life: int, outage: OutageView) -> bool:
        """Whether a task still does: it has not failed again."""
        return task.life == life and self._job.context.newest[task] == outage.number

    def _ask(self, task: BoltTask, life: int, outage: OutageView) -> None:
        """The transaction has reached the fleet: a live member takes its turn at it."""
        if not self._waits(task, life, outage):
            return
        member = live_replica(self._job, task)
        if member is None:  # nobody has the state: it is lost
            self._unwritten[outage].discard(task)
            self._restored(task, life, outage, SavedState.of(task))
            self._read_all(outage)
            return
        self._job.step(task.name, "state asked for", to=member.name)
        turn = self._asked[task] = _Turn(member, partial(self._ask, task, life, outage))
        member.enqueue(Rank.RESTORE, partial(self._write, task, outage, turn))

    def _write(self, task: BoltTask, outage: OutageView, turn: _Turn) -> None:
        if self._asked.get(task) is not turn:
            return
        saved = SavedState.of(turn.member)
        entries = stored_entries(task, saved)
        store, size = self._job.store_named(self._costs.store), entries * self._costs.entry_size
        done = partial(self._written, task, outage, turn, saved)
        end = store.write(turn.member.host, size, Rank.RESTORE, done, task.number, max(1, entries))
        turn.member.occupy(end - self._job.kernel.now)

    def _written(self, task: BoltTask, outage: OutageView, turn: _Turn, saved: SavedState) -> None:
        if self._asked.get(task) is not turn:
            return
        del self._asked[task]
        self._job.step(turn.member.name, "state written", to=task.name)
        self._unwritten[outage].discard(task)
        self._states[outage][task] = saved
        self._read_all(outage)

    def bolt_failed(self, failed: BoltTask, outage: OutageView) -> None:
        """Nobody waits for who fails again; what it has not written is asked of another."""
        kernel = self._job.kernel
        self._asked.pop(failed, None)
        for older, unwritten in self._unwritten.items():
            if failed in unwritten or failed in self._states[older]:
                unwritten.discard(failed)
                self._states[older].pop(failed, None)
                kernel.at(kernel.now, Rank.RESTORE, partial(self._read_all, older), failed.number)
        for task, turn in list(self._asked.items()):
            if turn.member is failed:
                del self._asked[task]
                kernel.at(kernel.now, Rank.RESTORE, turn.ask_another, task.number)

    def store_lost(self, store: str | None) -> None:
        for states in self._states.values() if store == self._costs.store else ():
            for task, saved in states.items():
                states[task] = saved.emptied()

    def _read_all(self, outage: OutageView) -> None:
        """When all has been written it is read."""
        if self._unwritten[outage]:
            return
        states = self._states.pop(outage, {})
        if states:
            self._job.supervisor.outages[outage.number].written_at = self._job.kernel.now
        store = self._job.store_named(self._costs.store)
        for task, saved in states.items():
            entries = stored_entries(task, saved)
            load = partial(self._load, task, task.life, outage, saved)
            size = entries * self._costs.entry_size
            store.read(task.host, size, Rank.RESTORE, load, task.number, max(1, entries))

    def _load(self, task: BoltTask, life: int, outage: OutageView, saved: SavedState) -> None:
        costs, kernel = self._costs, self._job.kernel
        self._job.step(task.name, "state read")
        takes = costs.restoring + stored_entries(task, saved) * costs.restoring_entry
        done = partial(self._restored, task, life, outage, saved)
        kernel.at(kernel.now + takes, Rank.RESTORE, done, task.number)

    def _restored(self, task: BoltTask, life: int, outage: OutageView, saved: SavedState) -> None:
        if not self._waits(task, life, outage):
            return
        if task.state is not None:
            roll_back(self._job, task, task.state.fresh())
        restore(self._job, task, saved, outage, rewind=False)
        if task.state is None:
            restored(self._job, task, outage, saved.effects())
        self._then()
        task.gate.open()
