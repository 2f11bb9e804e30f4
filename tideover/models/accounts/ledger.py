"""The ledger: where the effects of every root are, and what became of the roots.

An *effect* is one tuple of a root's tree at a component where such tuples end: a count, or an output. For
each effect the ledger counts how many times it is applied to state that lives or to windows that were
emitted. Completed, in flight and lost are found independently of one another (from the effects, from a walk
through all queues and copies, from what faults destroyed), so that emitted = completed + in flight + lost is
a law that can fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from tideover.models.accounts.applied import Applied
from tideover.models.job.topology import Component, Topology
from tideover.models.job.tree import expected_effects
from tideover.models.operators.state import Closed
from tideover.models.runtime.outage import Outage
from tideover.models.runtime.stream import LATE, Sent
from tideover.models.runtime.views import BoltView, SpoutView
from tideover.models.runtime.wire import Wire
from tideover.sim.draws import Draws
from tideover.sim.train import Ints, Train, distinct

BLOCK = 20_000
"""Roots that are settled at a time: all their effects are written out for it."""
EMPTY: Ints = np.zeros(0, np.int64)


def counts_itself(component: Component) -> bool:
    """Whether the plane can tell which tuples of a component take effect: none may be late, or known."""
    window = component.window
    return component.ends_roots and (window is None or (window.by != "event" and window.saved != "ids"))


class Counting(Protocol):
    """What counts effects while data moves (`tideover.models.accounts.counted`)."""

    @property
    def knows_children(self) -> bool:
        """Whether it knows what each root's tree becomes."""

    def catch_up(self) -> None:
        """Tell all that has happened."""

    def settle(self) -> None:
        """Tell what it has counted."""

    def missing(self, topology: Topology, draws: Draws, roots: Ints) -> dict[str, Ints]:
        """Uids of the effects of these roots that are not applied, by component."""


class Ledger:
    """Effects of all roots; what faults destroyed; the balance at the end.

    The data plane writes into its books what takes effect where it can tell; ``counted`` connects the two.
    """

    counted: Counting

    def __init__(self, topology: Topology, replicas: Mapping[str, int], draws: Draws, filtered: bool) -> None:
        """``filtered``: what leaves the topology is read by somebody who drops what comes again."""
        self._topology = topology
        self._draws = draws
        self._books = {c.name: Applied(c, replicas[c.name], filtered and not c.window) for c in topology.ends}
        self.extra: dict[int, int] = {}
        """Effects that were applied twice since an outage struck, by its number, until the next one did."""
        self._newest = -1
        self._closed_duplicated = 0
        self._replayed: list[Ints] = []
        self._late: list[Ints] = []
        self._given_up: list[Ints] = []
        self._destroyed: list[tuple[Ints, int]] = []
        """Roots of which something was destroyed, and by which outage (-1: none has struck), in order."""
        self.base = 0
        """Roots below are closed."""
        self.closed_completed = 0
        self._closed_lost: list[Ints] = []
        self.lost = EMPTY
        """Roots that were lost, at the last balance."""

    def _apply(self, component: Component, uid: Ints, replica: int) -> int:
        """Effects took place; returns how many of them had taken place before."""
        return self._books[component.name].apply(uid, replica)

    def duplicated_roots(self) -> Ints:
        """Open roots with an effect that is applied twice now; it may yet turn out to be of a void window."""
        return distinct(np.concatenate([EMPTY, *(book.duplicated_roots() for book in self._books.values())]))

    @property
    def duplicated(self) -> int:
        """Roots with an effect that is applied more than once."""
        return self._closed_duplicated + len(self.duplicated_roots())

    def _replay(self, roots: Ints) -> None:
        """Tuples of these roots are sent again."""
        self._replayed.append(distinct(roots))

    @property
    def replayed(self) -> int:
        """Roots of which something was sent again."""
        self._replayed = [distinct(np.concatenate([EMPTY, *self._replayed]))]
        return len(self._replayed[0])

    @property
    def late(self) -> int:
        """Roots of which a tuple came too late for a window by event."""
        self._late = [distinct(np.concatenate([EMPTY, *self._late]))]
        return len(self._late[0])

    @property
    def false_timeouts(self) -> int:
        """Roots that timed out though no outage was why they were not done."""
        self._given_up = [distinct(np.concatenate([EMPTY, *self._given_up]))]
        return len(self._given_up[0])

    # -- what happens ----------------------------------------------------------------------------------------

    def on_struck(self, outage: Outage) -> None:
        """What is applied twice from now on is put down to this outage; by now, to the one before."""
        self.counted.catch_up()
        self.counted.settle()
        self._newest = outage.number
        self.extra[outage.number] = 0

    def on_emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        """Retries are replays."""
        if train.attempt is not None:
            self._replay(train.uid[train.attempt > 0])

    def on_replayed(self, task: BoltView, train: Train, channel: Wire | None) -> None:
        """So is what leaves a buffer, or a log, again."""
        if task.component.anchored:
            self._replay(train.uid >> task.component.bits)

    def on_timed_out(self, spout: SpoutView, roots: Ints, attempt: Ints, outage: Ints) -> None:
        """A timeout is false if no outage is why the root was not done."""
        self._given_up.append(distinct(roots[outage == -1]))

    def on_processed(self, task: BoltView, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        """Where a root's tuples end, they have taken effect."""
        component = task.component
        if component.ends_roots and not counts_itself(component):
            if train.has(LATE):
                late = train.column(LATE)
                self._come_late(component, train.uid[late == 1], task.replica)
                train = train.pick(late == 0)
            if train.n:
                self._take_effect(component, train.uid, task.replica)

    def _take_effect(self, component: Component, uid: Ints, replica: int) -> None:
        self.twice(self._apply(component, uid, replica))

    def twice(self, effects: int) -> None:
        """So many effects had taken place before."""
        if self._newest >= 0:
            self.extra[self._newest] += effects

    def _come_late(self, component: Component, uid: Ints, replica: int) -> None:
        """Late tuples take no effect: they are lost, or leave aside."""
        if not len(uid):
            return
        roots = uid >> component.bits
        self._late.append(distinct(roots))
        assert component.window is not None
        if component.window.late == "aside":
            self._take_effect(component, uid, replica)
        else:
            self._destroy(roots)

    def on_restored(self, task: BoltView, outage: int, uid: Ints) -> None:
        """Effects live again."""
        if task.component.anchored and len(uid):
            self._apply(task.component, uid, task.replica)

    def on_rolled_back(self, task: BoltView, gone: Ints, back: Ints) -> None:
        """Some effects are undone, others live again."""
        self.on_void(task.component, gone, task.replica)
        if len(back):
            self._apply(task.component, back, task.replica)

    def on_void(self, component: Component, uid: Ints, replica: int) -> None:
        """Effects are undone."""
        if component.name in self._books:
            self._books[component.name].destroy(uid, replica)
        self._destroy(uid >> component.bits)

    def on_forgotten(self, task: BoltView, outage: int, uid: Ints) -> None:
        """It is known which outage has undone effects."""
        self._destroy(uid >> task.component.bits, outage)

    def on_window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        """The same window once more, out of a replay, is void: its reader has it by its number."""
        if again and task.component.anchored:
            for part in closed.parts:
                self.on_void(task.component, part.uid, task.replica)

    def on_destroyed(self, task: SpoutView | BoltView, train: Train, times: Ints, outage: int) -> None:
        """Tuples of roots are gone."""
        if task.component.anchored:
            self._destroy(train.uid >> task.component.bits, outage)

    def on_overflowed(self, task: BoltView, train: Train) -> None:
        """So are those that found a queue full."""
        self.on_destroyed(task, train, train.time, -1)

    def on_copies_lost(self, task: BoltView, uid: Ints) -> None:
        """So are copies of them."""
        if len(uid) and task.component.anchored:
            self._destroy(uid >> task.component.bits)

    def on_retries_lost(self, spout: SpoutView, roots: Ints) -> None:
        """And roots that were to be emitted again."""
        self._destroy(roots)

    def on_expired(self, spout: SpoutView, roots: Ints) -> None:
        """Or that are no longer in the queue before the spout."""
        self._destroy(roots)

    def _destroy(self, roots: Ints, outage: int = -1) -> None:
        """Tuples of these roots were destroyed, by an outage, or (-1) it is put down to the newest one."""
        if len(roots):
            self._destroyed.append((distinct(roots), self._newest if outage < 0 else outage))

    @property
    def destroyed(self) -> Ints:
        """Roots of which something was destroyed, be it there again or not."""
        return distinct(np.concatenate([EMPTY, *(roots for roots, _ in self._destroyed)]))

    def lost_by(self, anyway: Ints) -> Counter[int]:
        """How many of the roots that were lost (at the last balance) each outage has cost, by its number:
        that which has destroyed the last of them. ``anyway``: roots that would have suffered without one.
        """
        lost = np.setdiff1d(self.lost, anyway)
        if not len(lost):
            return Counter()
        last_first = self._destroyed[::-1]
        outages = np.repeat([outage for _, outage in last_first], [len(roots) for roots, _ in last_first])
        roots, last = np.unique(np.concatenate([roots for roots, _ in last_first]), return_index=True)
        return Counter(outages[last[np.searchsorted(roots, lost)]].tolist())

    def missing(self, component: Component, uid: Ints) -> int:
        """How many of these effects (of open roots) are not applied now."""
        return int(np.count_nonzero(self._books[component.name].times(uid) == 0))

    def _missing(self, roots: Ints) -> dict[str, Ints]:
        """Uids of the effects of these roots that are not applied, by component."""
        if self.counted.knows_children:
            return self.counted.missing(self._topology, self._draws, roots)
        parts: dict[str, list[Ints]] = {}
        for first in range(0, len(roots), BLOCK):
            block = roots[first : first + BLOCK]
            for name, uid in expected_effects(self._topology, self._draws, block).items():
                parts.setdefault(name, []).append(uid[self._books[name].times(uid) == 0])
        return {name: np.concatenate(missing) for name, missing in parts.items()}

    @property
    def size(self) -> int:
        """Slots in use: when to close."""
        return max([book.size for book in self._books.values()])

    def close(self, before: int) -> None:
        """Settle the roots with a number < ``before`` for good.

        None of them may be in flight, in a copy, or in state that a fault could still destroy.
        """
        spouts = len(self._topology.spout_tasks)
        limit = before << self._topology.spout_bits
        if limit <= self.base or spouts == 0:
            return
        self._closed_duplicated += int(np.count_nonzero(self.duplicated_roots() < limit))
        number = np.arange(self.base >> self._topology.spout_bits, before, dtype=np.int64)
        roots = ((number << self._topology.spout_bits)[:, None] | np.arange(spouts, dtype=np.int64)).ravel()
        missing = [uid >> self._topology.by_name[name].bits for name, uid in self._missing(roots).items()]
        bad = distinct(np.concatenate([EMPTY, *missing]))
        self.closed_completed += len(roots) - len(bad)
        self._closed_lost.append(bad)
        for book in self._books.values():
            book.forget(limit)
        self.base = limit

    def balance(self, emitted: Ints, coming: dict[str, list[Ints]], whole: Ints) -> dict[str, int]:
        """Completed, in flight, lost, of the roots ``emitted`` (all that are open).

        ``coming``: uids of the effects that tuples on their way or in copies can still have, by component;
        ``whole``: roots that can be emitted again. Raises AssertionError if a root is neither complete, nor
        on its way, nor was destroyed: a bug.
        """
        unfinished, given_up = [EMPTY], [EMPTY]
        for name, missing in self._missing(emitted).items():
            bits = self._topology.by_name[name].bits
            lost = missing[~np.isin(missing, np.concatenate([EMPTY, *coming.get(name, [])]))]
            unfinished.append(missing >> bits)
            given_up.append(lost >> bits)
        gone = _without(np.concatenate(given_up), whole)
        incomplete = distinct(np.concatenate(unfinished))
        in_flight = _without(incomplete, gone)
        destroyed = self.destroyed
        all_lost = np.concatenate([*self._closed_lost, gone])
        found = self.lost = np.intersect1d(distinct(all_lost), destroyed, assume_unique=True)
        completed = self.closed_completed + len(emitted) - len(incomplete)
        total = len(emitted) + self.closed_completed + sum(len(part) for part in self._closed_lost)
        if total != completed + len(in_flight) + len(found):
            vanished = _without(all_lost, destroyed)[:5].tolist()
            raise AssertionError(f"roots that vanished: {vanished} of {total}")
        return {"emitted": total, "completed": completed, "in_flight": len(in_flight), "lost": len(found)}


class Destroyed(Ledger):
    """A ledger that counts no effects: of a run of which nobody wants the balance, only what is destroyed."""

    size = 0

    def _take_effect(self, component: Component, uid: Ints, replica: int) -> None:
        """Nobody asks how often."""

    def _apply(self, component: Component, uid: Ints, replica: int) -> int:
        return 0

    def on_void(self, component: Component, uid: Ints, replica: int) -> None:
        self._destroy(uid >> component.bits)

    def close(self, before: int) -> None:
        self.base = max(self.base, before << self._topology.spout_bits)


def _without(values: Ints, others: Ints) -> Ints:
    """The different values that are not among the others, rising."""
    return np.setdiff1d(distinct(values), distinct(others), assume_unique=True)
