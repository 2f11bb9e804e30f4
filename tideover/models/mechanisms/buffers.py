"""Upstream buffers: senders keep what they have sent, and replay it; receivers let each message in once.

Strategies make `UpstreamBuffers`, members of a `hybrid` have `Shared` ones, `active_standby` has
`OutputQueues`. The data plane numbers, keeps, sends again and lets in (plane.h: ``buffer``); who asks whom
for what, and when, is changed here.

The rules of `rsm`, `passive_standby`, `upstream_backup` and `hybrid` (tests/models/test_rsm.py,
test_rsm_senders.py; with bounded queues test_bounded_queues.py):

- Each message of a buffered channel gets a number 1, 2, ... when it is made, and is kept from then on. A
  crash of the sender empties its buffers; a `lose_state` does not.
- When a receiver has something safe, each sender that is up gets a trim marker (rank TRIM) in its queue; at
  its turn the buffer is dropped up to the number that the marker has.
- From its fault until the end-of-replay marker of a channel, a receiver discards what comes directly over
  this channel, and when it is ready what is still in its queue. What comes over unbuffered channels
  meanwhile is held until the restore, then served.
- With the restore a request goes to each sender at once: a marker (rank REQUEST) in its queue. At its turn
  the i-th kept message above the receiver's number leaves i steps later, a step being the longer of
  `replay_cost` and 1/`replay_rate`. It keeps number, creation stamp and attempt. The end marker goes with
  the last; until then the sender is busy, and what it sends to others waits.
- A sender that is not ready is asked when it is (with state: restored). So is one that failed before its
  end marker had left, for the same numbers. A message that the receiver has accepted before is dropped.
- A request is skipped, and replays and end markers are thrown away, if their receiver has failed again.
- In lines that can be full a replay is put at its own pace, be there room or not; the sender may be blocked
  then. What is discarded gives its place back.
- A recovery ends when the end marker of each sender (of one of its replicas) has been processed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tideover.models.job.topology import Component
from tideover.models.mechanisms import offsets
from tideover.models.mechanisms.base import Mechanism, sent_again
from tideover.models.mechanisms.replicas import CheckpointFilter, DuplicateFilter, live_replica
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Wire
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.hooks import CopyHolder, Mask
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import Plane, Rows
from tideover.sim.train import Ints, Train

END_OF_REPLAY = -1
"""Mark of the message that ends a replay."""
Task = SpoutTask | BoltTask


class Kept(NamedTuple):
    """A copy of an upstream buffer: rows with their numbers in the place of arrivals, the newest number that
    was sent, and the newest that was lost.
    """

    plane: Plane
    rows: Rows
    sent: int
    gone_to: int

    def above(self, number: int) -> int:
        """How many of its messages have a greater number."""
        return int(np.count_nonzero(self.rows["arrival"] > number))

    def tuples(self) -> list[Train]:
        return [without_markers(self.plane.train(self.rows))] if len(self.rows) else []


class UpstreamBuffer:
    """What a sender keeps of one channel until its receiver has it safe, up to number ``safe``.

    R. Castro Fernandez et al., *Integrating Scale Out and Fault Tolerance in Stream Processing using Operator
    State Management*, SIGMOD 2013, section 3.2.
    """

    def __init__(self, channel: Wire, plane: Plane) -> None:
        plane.number()
        self.channel, self.plane = channel, plane
        self.safe = 0
        self.after = self.recovery = 0
        """Above which number it is to be sent again, and in which recovery of the receiver."""
        self.asked, self.served = -1, False
        """In which life of the sender it was asked, and whether it has come to the end of the replay, and of
        what it has put in its line.
        """
        self._bare = False
        self.c: Any = plane.ffi.new("buffer *")
        plane.keep(self.c)
        channel.c.buffer = self.c

    @property
    def sent(self) -> int:
        return int(self.c.sent)

    @property
    def size(self) -> int:
        """How many messages are kept."""
        return int(self.c.kept.n)

    def trim(self, safe: int) -> None:
        """Drop the messages up to number ``safe``."""
        self.safe = max(self.safe, safe)
        self.plane.lib.plane_trim(self.plane.p, self.channel.number, safe)

    def drop_known(self, seen: Ints, newest_mark: int = 0) -> None:
        """Drop the tuples that were seen (greatest uid by path), and marks up to this one."""
        plane, greatest = self.plane, self.plane.ffi.from_buffer("int64_t[]", seen)
        plane.lib.plane_trim_known(plane.p, self.channel.number, greatest, newest_mark)

    def clear(self) -> None:
        """Lose everything: the sender has crashed."""
        self._bare = True
        self.plane.lib.plane_lose_copies(self.plane.p, self.channel.number)

    def copy(self) -> Kept:
        return Kept(self.plane, self.plane.stored(self.c.kept), self.sent, int(self.c.gone_to))

    def become(self, rows: Rows) -> None:
        """Have these messages, and nothing else."""
        plane = self.plane
        plane.lib.plane_trim(plane.p, self.channel.number, self.sent)
        plane.have_chunks(len(rows))
        plane.lib.plane_keep(plane.p, self.channel.number, plane.ffi.from_buffer("row[]", rows), len(rows))

    def follow(self, other: UpstreamBuffer) -> None:
        """Keep what another buffer keeps, and nothing else, as if it had been sent here now."""
        rows = self.plane.stored(other.c.kept)
        rows["arrival"] = np.arange(self.sent + 1, self.sent + len(rows) + 1)
        self.become(rows)
        self.c.sent += len(rows)

    def put_back(self, kept: Kept) -> None:
        """Have again what went down with the sender, as far as the copy has it."""
        if self._bare:
            self._bare = False
            self.become(kept.rows)
            self.c.gone_to = kept.gone_to if kept.sent == self.sent else self.sent

    @property
    def replayed(self) -> bool:
        """Whether the end of a replay has left the sender, or waits in its line, where a crash would destroy
        it.
        """
        plane, number = self.plane, self.channel.number
        comes = plane.lib.plane_end_comes(plane.p, number, self.recovery)
        # the replay of the channel has come to its end
        return self.served and (bool(comes) or not self.c.waits)

    def tuples(self) -> Train:
        """The tuples (not the markers) in the buffer."""
        return self.plane.tuples(self.c.kept)


@dataclass(eq=False)
class Receiver:
    """What one task takes from its buffered channels, by their position among its inputs.

    step       time that a sender takes for each message that it replays (ns)
    recovery   counts recoveries: replays that belong to an earlier one are stale
    """

    task: BoltTask
    buffers: dict[int, UpstreamBuffer]
    step: int
    recovery: int = 0
    restoring: bool = False

    @property
    def recovering(self) -> bool:
        """From a fault until an end-of-replay marker of each sender (of one of its replicas) is processed."""
        ups = [(buffer.channel.up, buffer.c.unfinished) for buffer in self.buffers.values()]
        ends = [((up.component.name, up.index), unfinished) for up, unfinished in ups]
        finished = {sender for sender, unfinished in ends if not unfinished}
        return self.restoring or any(sender not in finished for sender, _ in ends)


def send_kept(
    job: Job, up: Task, asked: Sequence[tuple[UpstreamBuffer, int]], recovery: int, step: int
) -> int:
    """What a sender keeps in these buffers, each above a number, leaves again, one message every ``step`` ns;
    returns how many there are. ``recovery``: of the receiver, which is told of the end; 0: nobody is.
    """
    plane, now = job.plane, job.kernel.now
    lined_up = sum(buffer.size + 1 for buffer, _ in asked)
    plane.have_chunks(lined_up)
    plane.have_messages(len(asked) if step else lined_up)  # those that leave at once
    numbers = [(buffer.channel.number, after) for buffer, after in asked]
    n = sum(plane.lib.plane_line_up_kept(plane.p, each, after, recovery) for each, after in numbers)
    for receiver, train in _lined_up(job, up):
        job.say.reopened(receiver, train)
    plane.have_rows(plane.p.resent, n)

    def give_up() -> None:
        for receiver, train in _lined_up(job, up):
            job.say.unsent(receiver, train)
        plane.lib.plane_give_up(plane.p, up.number)

    up.gave_up = give_up
    plane.lib.plane_replay(plane.p, up.number, now, step)
    if n:
        up.occupy(n * step)
    return n


def _lined_up(job: Job, up: Task) -> Iterator[tuple[BoltTask, Train]]:
    plane = job.plane
    rows = plane.stored(up.c.replay.rows)
    rows = rows[rows["mark"] == 0]
    for number in dict.fromkeys(rows["source"].tolist()):
        yield job.wires[number].down, plane.train(rows[rows["source"] == number])


class Reached(NamedTuple):
    """How far a task is with what is sent to it: newest number that it has processed, by input channel, and
    greatest uid, by path (None: nothing, or numbers are enough).
    """

    positions: Mapping[int, int] = MappingProxyType({})
    seen: Ints | None = None


class UpstreamBuffers(Mechanism, CopyHolder):
    """Senders keep what they have sent to those tasks of which they are told (``keep_for``), numbered by
    channel, and replay it on request.

    A protocol has to do this with them, for each task that is replayed to:

    a checkpoint   not while ``recovering``; its content is the state and what it has ``reached``; when it is
                   safe, ``trim`` to that
    ready          ``empty_queue``; with the checkpoint at hand ``restored``, and the verbs ``restore`` and
                   ``open``; then ``sender_ready``, and ``ask``. If the checkpoint takes time to come,
                   ``close`` the task first
                   of any other task: ``open`` it, then ``sender_ready``
    windows        those that a tick ends do not come again in a replay, so a checkpoint has to follow each;
                   those that a marker or a count ends do, and are known by their number

    seen   what drops duplicates at the tasks that are replayed to, if it has to go back with them; None: what
           they have by number is enough, since each of their senders is one task, not several replicas
    """

    steady = True

    def __init__(self, job: Job, seen: CheckpointFilter | None = None) -> None:
        super().__init__(job)
        self._seen = seen
        job.context.marks[END_OF_REPLAY] = "end of replay"
        self._requests: list[UpstreamBuffer] = []
        """Until who asked fails again: a sender may crash with the end of the replay in its line."""
        self._receivers: dict[TaskView, Receiver] = {}
        self._buffers: list[UpstreamBuffer] = []
        self._sent: dict[int, list[UpstreamBuffer]] = {}

    def keep_for(
        self, tasks: Iterable[BoltView], at_spouts: bool, replay_cost: int, replay_rate: float | None
    ) -> None:
        """From the start, keep what is sent to these tasks. What one without state sends after a replay, it
        may send in another order, and under new numbers: who reads it needs a `ReplayFilter`.

        at_spouts     whether spouts keep a buffer too
        replay_cost   time to replay one tuple (ns)
        replay_rate   most tuples replayed per second
        """
        step = replay_cost if replay_rate is None else max(replay_cost, round(1e9 / replay_rate))
        for task in map(self._bolt, tasks):
            senders = (c for c in task.inputs if isinstance(c.up, BoltTask) or at_spouts)
            buffers = {channel.position: UpstreamBuffer(channel, self._job.plane) for channel in senders}
            self._receivers[task] = Receiver(task, buffers, step)
            self._buffers += buffers.values()
            for buffer in buffers.values():
                self._sent.setdefault(buffer.channel.up.number, []).append(buffer)

    def positions(self, task: BoltView) -> dict[int, int]:
        """Newest number that a task has processed on each of its buffered channels."""
        return {at: int(buffer.c.processed) for at, buffer in self._receivers[task].buffers.items()}

    def reached(self, task: BoltView) -> Reached:
        """How far a task is now with what is sent to it."""
        return Reached(self.positions(task), None if self._seen is None else self._seen.done(task))

    def trim(self, task: BoltView, reached: Reached) -> None:
        """A task has everything safe up to what it has ``reached``: its senders are told."""
        seen = None if self._seen is None else reached.seen
        for position, buffer in self._receivers[task].buffers.items():
            up = buffer.channel.up
            if up.available:
                up.enqueue(Rank.TRIM, partial(self._trim, buffer, reached.positions.get(position, 0), seen))

    def _trim(self, buffer: UpstreamBuffer, safe: int, seen: Ints | None) -> None:
        self.moved(self._job.kernel.now)  # what the buffers keep has its peak now
        buffer.trim(safe)
        if seen is not None:  # of replicas it is mostly one that was first
            buffer.drop_known(seen)
        self._job.step(buffer.channel.up.name, "buffer trimmed", f"up to number {safe}")

    def sent_by(self, task: TaskView) -> list[UpstreamBuffer]:
        return self._sent.get(task.number, [])

    def outputs(self, task: TaskView) -> dict[Wire, Kept]:
        """A copy of what a task keeps now of what it has sent: its output queues."""
        return {buffer.channel: buffer.copy() for buffer in self.sent_by(task)}

    def put_back(self, task: TaskView, outputs: Mapping[Wire, Kept]) -> None:
        """A task that is up again keeps what this copy has of what it had sent, if that went down with it."""
        for buffer in self.sent_by(task):
            if buffer.channel in outputs:
                buffer.put_back(outputs[buffer.channel])

    def copy(self, task: TaskView, peer: TaskView) -> None:
        """A replica that has copied its ``peer`` keeps what that one keeps, and nothing else."""
        for mine, theirs in zip(self.sent_by(task), self.sent_by(peer), strict=True):
            mine.follow(theirs)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        sender = self._job.tasks[task.number]
        stopped = isinstance(sender, BoltTask) and sender.gate.stopped
        if not (task.up or stopped):  # with the sender its buffers are gone
            for buffer in self.sent_by(task):
                self._job.say.copies_lost(buffer.channel.down, buffer.tuples().uid)
                buffer.clear()
        if task in self._receivers:  # from now on every channel is to be replayed
            receiver, plane = self._receivers[task], self._job.plane
            if receiver.buffers:
                plane.lib.plane_take_in(plane.p, task.number, plane.p.now)
                receiver.task.c.bounded |= plane.lib.SCREENS
            receiver.recovery += 1
            receiver.restoring = True
            for buffer in receiver.buffers.values():
                buffer.c.waits, buffer.c.unfinished, buffer.c.recovery = 1, 1, receiver.recovery

    def recovering(self, task: BoltView) -> bool:
        """Whether not everything has been replayed to a task since its last failure."""
        return self._receivers[task].recovering

    def empty_queue(self, task: BoltView) -> None:
        """A task is up again: what waits there, and will be replayed, is thrown away."""
        self._bolt(task).empty()

    def restored(self, task: BoltView, reached: Reached) -> None:
        """A task has the state of when it had ``reached`` this; what waits in its queue comes behind."""
        receiver = self._receivers[task]
        for position, buffer in receiver.buffers.items():
            buffer.c.processed = buffer.c.brought = reached.positions.get(position, 0)
        receiver.restoring = False
        if self._seen is not None:
            self._seen.go_back(task, reached.seen)
            self._seen.admit_again(task)

    def ask(self, task: BoltView) -> None:
        """Ask all senders of a task for what they keep, now or as soon as they are ready."""
        self._requests = [buffer for buffer in self._requests if buffer.recovery == buffer.c.recovery]
        for buffer in self._receivers[task].buffers.values():
            buffer.after, buffer.recovery = int(buffer.c.processed), int(buffer.c.recovery)
            buffer.asked, buffer.served = -1, False
            self._requests.append(buffer)
            self.sender_ready(buffer.channel.up)

    def sender_ready(self, task: TaskView) -> None:
        """A task is up and open: what it owes is asked for, if it was not in this life of it."""
        up, kernel = self._job.tasks[task.number], self._job.kernel
        for buffer in self._requests if up.available else ():
            if buffer.channel.up is up and buffer.asked != up.life and not buffer.replayed:
                buffer.asked, buffer.served = up.life, False
                self._job.step(buffer.channel.down.name, "replay asked for", to=up.name)
                serve = partial(self._serve, up, buffer, buffer.recovery)
                kernel.at(kernel.now, Rank.REQUEST, partial(up.enqueue, Rank.REQUEST, serve), up.number)

    def _serve(self, up: Task, buffer: UpstreamBuffer, recovery: int) -> None:
        """The sender's turn: it replays its buffer, then an end marker; new tuples follow."""
        receiver = self._receivers[buffer.channel.down]
        if receiver.recovery == recovery:
            n = send_kept(self._job, up, [(buffer, buffer.after)], recovery, receiver.step)
            self._job.step(up.name, "buffer replayed", f"{n} tuples", receiver.task.name)
            buffer.served = True

    def moved(self, now: int) -> None:
        self._job.say.kept(sum(buffer.size for buffer in self._buffers))

    def tuples(self) -> list[tuple[Component, Train]]:
        return [(buffer.channel.down.component, buffer.tuples()) for buffer in self._buffers]

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        return sent_again(self._job, task, train, outage)

    def settled(self, outage: OutageView) -> bool:
        hit = self._job.supervisor.outages[outage.number].tasks
        return not any(self._receivers[task].recovering for task in hit if task in self._receivers)


class Shared:
    """What members of a `hybrid` have in common: the filter of duplicates (``seen``), if some tasks have
    replicas, which goes back (``restored``), if some are ``saved``; and the upstream buffers.
    """

    def __init__(self, job: Job, replicated: bool = False, saved: bool = False) -> None:
        self._job = job
        self.restored = CheckpointFilter(job) if replicated and saved else None
        self.seen = DuplicateFilter(job) if replicated and not saved else self.restored
        self._buffers: UpstreamBuffers | None = None
        offsets.follow(job)

    @property
    def buffers(self) -> UpstreamBuffers:
        """Those of all senders; there are none before somebody asks for them."""
        if self._buffers is None:
            self._buffers = UpstreamBuffers(self._job, self.restored)
        return self._buffers

    def back(self, task: TaskView) -> None:
        """A task is up, and takes in what arrives: it replays what it owes."""
        if self._buffers is not None:
            self._buffers.sender_ready(task)

    def there(self, task: TaskView, peer: TaskView | None) -> None:
        """The same of a replica, which has copied its ``peer`` (None: nobody)."""
        if self._buffers is not None and peer is not None:
            self._buffers.copy(task, peer)
        self.back(task)


class OutputQueues(Mechanism, CopyHolder):
    """Of the replicas of each bolt task one *speaks*; when another does, it sends what it has kept, one
    message every ``cost_ns``.

    J.-H. Hwang et al., ICDE 2005, section 4.3; M. A. Shah et al., SIGMOD 2004, section 3.
    """

    def __init__(self, job: Job, duplicates: DuplicateFilter, cost_ns: int) -> None:
        super().__init__(job)
        self._duplicates, self._cost = duplicates, cost_ns
        self._of: dict[Wire, UpstreamBuffer] = {}
        self._speaker: dict[BoltTask, BoltTask] = {}
        """By the first of each pair: who speaks, or will when it has its turn."""
        self._outputs: dict[BoltTask, list[Wire]] = {}
        """All channels of a task, in the physical order of their receivers."""
        for task in job.bolt_tasks:
            self._speaker[self._replicas(task)[0]] = self._replicas(task)[0]
            task.held_windows = {}
            self._outputs[task] = list(task.wires.values())
            for wire in self._outputs[task]:
                self._of[wire] = UpstreamBuffer(wire, job.plane)
            self._silence(task, task.replica > 0)

    def _silence(self, task: BoltTask, silent: bool) -> None:
        task.silent = silent
        for channel in self._outputs[task]:
            channel.c.withheld = silent

    def _replicas(self, task: BoltTask) -> list[BoltTask]:
        return self._job.bolts[task.component.name, task.index]

    def trim(self, view: BoltView) -> int:
        """A task tells those who send to it, each replica, what it has had; returns how many it tells."""
        task, told = self._bolt(view), 0
        self.moved(self._job.kernel.now)  # what they keep has its peak now
        for channel in task.inputs:
            if channel in self._of and channel.up.available:
                told += 1
                self._of[channel].drop_known(self._duplicates.seen(task), task.newest_marker(channel))
        newest = max(each.said for each in self._replicas(task))
        task.held_windows = {
            number: closed for number, closed in (task.held_windows or {}).items() if number > newest
        }
        return told

    def gone(self, view: TaskView) -> None:
        """A task has failed, or is back, empty: if it spoke, and another one is there, that one does."""
        task = self._bolt(view)
        other = live_replica(self._job, task)
        if self._speaker[self._replicas(task)[0]] is task and other is not None:
            self._speak(other)

    def there(self, task: BoltTask, peer: BoltTask | None) -> None:
        """A task goes on, as a copy of its ``peer`` (None: of nobody), and speaks if nobody else can."""
        if peer is not None:
            for mine, theirs in zip(self._outputs[task], self._outputs[peer], strict=True):
                self._lose(mine)
                self._of[mine].become(self._of[theirs].copy().rows)
            task.held_windows = dict(peer.held_windows or {})
        speaker = self._speaker[self._replicas(task)[0]]
        if speaker is task or not speaker.available:
            self._speak(task)

    def _speak(self, task: BoltTask) -> None:
        """From now on; what it has kept leaves when it has served what is in its queue."""
        kernel, replicas = self._job.kernel, self._replicas(task)
        self._speaker[replicas[0]] = task
        self._job.step(task.name, "is to speak")
        for each in replicas:
            if each is not task:
                self._silence(each, True)

        def place() -> None:
            if task.available and task.silent:
                task.enqueue(Rank.REQUEST, partial(self._send, task))

        kernel.at(kernel.now, Rank.REQUEST, place, task.number)

    def _send(self, task: BoltTask) -> None:
        """Its turn: what it has kept leaves, channel by channel; what it makes from now on comes behind."""
        replicas = self._replicas(task)
        if not task.silent or self._speaker[replicas[0]] is not task:
            return
        task.put_out_held(max(each.said for each in replicas))
        self._silence(task, False)
        asked = [(self._of[channel], 0) for channel in self._outputs[task]]
        n = send_kept(self._job, task, asked, 0, self._cost)
        self._job.step(task.name, "queue sent", f"{n} messages")

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None:
        if not (task.up or task.gate.stopped):
            task.held_windows = {}
            for channel in self._outputs[task]:
                self._lose(channel)

    def _lose(self, channel: Wire) -> None:
        buffer = self._of[channel]
        self._job.say.copies_lost(channel.down, buffer.tuples().uid)
        buffer.clear()

    def moved(self, now: int) -> None:
        self._job.say.kept(sum(buffer.size for buffer in self._of.values()))

    def tuples(self) -> list[tuple[Component, Train]]:
        return [(channel.down.component, buffer.tuples()) for channel, buffer in self._of.items()]
