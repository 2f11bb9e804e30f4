"""Which tuple went from whom to whom, when: departures and arrivals of a stretch, brought together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tideover.models.accounts.space_time import SENDER, SpaceTime
from tideover.models.runtime.bolt_task import BoltTask
from tideover.sim.train import Train, single

Key = tuple[int, int, int, int]
"""Numbers of sender and receiver, uid, attempt."""


@dataclass(frozen=True)
class Message:
    """A tuple on its way from one task to another (their numbers among all tasks); times in ns.

    sent   when it left; None: before departures were noted, or (``copied``) it did not come over a channel
    came   when it arrived; None: it did not, as far as the run was followed
    over   when it was processed, or lost; None: neither, as far as the run was followed
    fate   processed, discarded (known, or to come again), destroyed, overflowed, waiting, under way
    again  it left a buffer, a log or a spout once more
    log    it was read again from a log, where it had come before
    copied it came out of a queue that was saved, or is another replica's
    """

    sender: int
    receiver: int
    uid: int
    attempt: int
    key: int
    sent: int | None
    came: int | None
    over: int | None
    fate: str
    again: bool = False
    log: bool = False
    copied: bool = False


@dataclass
class _Arrival:
    time: int
    over: int | None
    fate: str
    key: int
    created: int


def messages(noted: SpaceTime) -> list[Message]:
    """The messages of which something happens in the stretch, by departure, then by arrival.

    A channel is first in, first out. So of a tuple's departures over one channel the newest at or before
    its last arrival is that one's, and so on; those that are left over were lost, or are under way. Of
    arrivals at one instant those that were known came last.
    """
    return sorted(_Matching(noted).all(), key=_order)


def _order(message: Message) -> tuple[int, ...]:
    sent = -1 if message.sent is None else message.sent
    came = 1 << 62 if message.came is None else message.came
    return sent, came, message.sender, message.receiver, message.uid


class _Matching:
    def __init__(self, noted: SpaceTime) -> None:
        self._noted, self._job = noted, noted.job
        self._sent: dict[tuple[int, str, int, int], list[tuple[int, int]]] = defaultdict(list)
        """Departures and keys by sender, component, uid, attempt."""
        self._again: dict[Key, list[tuple[int, bool]]] = defaultdict(list)
        self._came: dict[Key, list[_Arrival]] = defaultdict(list)
        self._lost: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        """When tuples were lost before they came, by receiver, uid, attempt."""
        self._back: set[tuple[int, int, int]] = set()
        """What comes to its receiver again, by receiver, uid, attempt."""
        self._used: set[tuple[Key, int]] = set()
        self._arrived: Counter[tuple[int, str, int, int, int]] = Counter()
        """At how many replicas a departure has arrived."""
        for part in noted.departures:
            rows = zip(*(column.tolist() for column in part[2:]), strict=True)
            for uid, attempt, key, time in rows:
                self._sent[part.sender, part.edge.down.name, uid, attempt].append((time, key))
        for more in noted.again:
            for sender, uid, attempt, time in zip(*(column.tolist() for column in more[2:]), strict=True):
                self._again[sender - 1, more.receiver, uid, attempt].append((time, more.logged))
        for back in noted.reopened:
            uids, attempts = back.uid.tolist(), back.attempt.tolist()
            self._back |= {(back.receiver, *row) for row in zip(uids, attempts, strict=True)}
        for came in noted.arrivals:
            self._note(came.receiver, came.fate, *(column.tolist() for column in came[2:]))
        self._note_what_waits()

    def _note(self, receiver: int, fate: str, *columns: list[int]) -> None:
        for sender, uid, attempt, key, created, time, over in zip(*columns, strict=True):
            if sender:
                found = _Arrival(time, over, fate, key, created)
                self._came[sender - 1, receiver, uid, attempt].append(found)
            else:
                self._lost[receiver, uid, attempt].append(over)

    def _note_what_waits(self) -> None:
        """At the end of the run that was followed."""
        for task in self._job.bolt_tasks:
            trains = (*task.queue.trains(), *task.gate.aside, *task.gate.held)
            for train in trains:
                self._waits(task, None, train, "waiting")
            for channel in task.inputs:
                for train in channel.on_the_way:
                    self._waits(task, channel.up.number, train, "under way")

    def _waits(self, task: BoltTask, sender: int | None, train: Train, fate: str) -> None:
        data = train.pick(train.column("mark") == 0)
        froms = data.column(SENDER) - 1 if sender is None else np.full(data.n, sender, np.int64)
        columns = (froms, data.uid, data.column("attempt"), data.key, data.created, data.time)
        for one, uid, attempt, key, created, time in zip(*(c.tolist() for c in columns), strict=True):
            self._came[one, task.number, uid, attempt].append(_Arrival(time, None, fate, key, created))

    # -- bringing them together ------------------------------------------------------------------------------

    def all(self) -> Iterator[Message]:
        for key, arrivals in self._came.items():
            yield from (m for m in self._matched(key, arrivals) if self._concerns(m))
        for sender, name, uid, attempt in self._sent:
            for message in self._left(sender, name, uid, attempt):
                if self._concerns(message):
                    yield message

    def _concerns(self, message: Message) -> bool:
        begin, end = self._noted.stretch
        known = [time for time in (message.sent, message.came, message.over) if time is not None]
        return min(known) <= end and (message.over is None or max(known) >= begin)

    def _matched(self, key: Key, arrivals: list[_Arrival]) -> Iterator[Message]:
        sender, receiver, uid, attempt = key
        up, down = self._job.tasks[sender].component, self._job.tasks[receiver].component
        first = [time for time, _ in self._sent.get((sender, down.name, uid, attempt), ())]
        if up.window is not None:  # what a window puts out is stamped when it leaves
            first = list({arrival.created for arrival in arrivals})
        left = [(time, False, False) for time in first]
        left += [(time, True, log) for time, log in self._again.get(key, ())]
        left.sort()
        at = len(left) - 1
        for arrival in sorted(arrivals, key=lambda each: (each.time, each.fate == "discarded"), reverse=True):
            while at >= 0 and left[at][0] > arrival.time:
                at -= 1
            sent, again, log = left[at] if at >= 0 else (None, False, False)
            if sent is not None and not again:
                self._used.add((key, sent))
                self._arrived[sender, down.name, uid, attempt, sent] += 1
            at -= 1
            came, fate, over = arrival.time, arrival.fate, arrival.over
            copied = sent is None and (receiver, uid, attempt) in self._back
            if not copied or over is not None:  # else it only waits to come again
                flags = again or copied or attempt > 0, log, copied
                yield Message(*key, arrival.key, sent, came, over, fate, *flags)

    def _left(self, sender: int, name: str, uid: int, attempt: int) -> Iterator[Message]:
        """Departures of which no arrival is known."""
        for time, tuple_key in self._sent[sender, name, uid, attempt]:
            if self._arrived[sender, name, uid, attempt, time] == self._job.deployment.replicas[name]:
                continue
            for task in self._job.bolts[name, self._target(sender, name, uid, tuple_key)]:
                key = sender, task.number, uid, attempt
                if (key, time) in self._used:
                    continue
                lost = [over for over in self._lost.get(key[1:], ()) if over >= time]
                over, fate = (lost[0], "destroyed") if lost else (None, "under way")
                yield Message(*key, tuple_key, time, None, over, fate, attempt > 0)

    def _target(self, sender: int, name: str, uid: int, key: int) -> int:
        """The task of a component that a tuple goes to."""
        (edge,) = (e for e in self._job.tasks[sender].component.outputs if e.down.name == name)
        if edge.grouping.copies:
            return uid & ((1 << edge.task_bits) - 1)
        row = single(0, uid, key=key)
        return int(edge.grouping.targets(edge.name, self._job.draws, row, edge.down.tasks)[0])
