"""The ledger: where the effects of every root are, and what became of the roots. Its two accounts listen to a
run; the world builds them, and `counted` lets the data plane write into the books.

An *effect* is one tuple of a root's tree at a component where such tuples end: a count, or an output. For
each effect the ledger counts how many times it is applied to state that lives or to windows that were
emitted. Completed, in flight and lost are found independently of one another (from the effects, from a
walk through all queues and copies, from what faults destroyed), so that emitted = completed + in flight +
lost is a law that can fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.models.job.topology import Component, Topology, expected_effects
from tideover.models.operators.state import Closed
from tideover.models.runtime.channels import LATE, Sent, Wire
from tideover.models.runtime.views import BoltView, Outage, SpoutView
from tideover.sim.draws import Draws
from tideover.sim.train import Ints, Train, distinct, grown

BLOCK = 20_000
"""Roots that are settled at a time: all their effects are written out for it."""
EMPTY: Ints = np.zeros(0, np.int64)


def counts_itself(component: Component) -> bool:
    """Whether the plane can tell which tuples of a component take effect: none may be late, or known."""
    window = component.window
    return component.ends_roots and (window is None or (window.by != "event" and window.saved != "ids"))


class Roots:
    """Different roots, of which it is asked mostly how many they are."""

    def __init__(self) -> None:
        self._parts: list[Ints] = []

    def add(self, roots: Ints) -> None:
        self._parts.append(distinct(roots))

    def __len__(self) -> int:
        self._parts = [distinct(np.concatenate([EMPTY, *self._parts]))]
        return len(self._parts[0])


class Losses:
    """Roots to which something happened that a run without failures mostly has not.

    replayed        roots of which something was sent again
    late            roots of which a tuple came too late for a window by event
    false_timeouts  roots that timed out though no outage was why they were not done
    newest          number of the newest outage; -1: none has struck
    """

    def __init__(self) -> None:
        self.replayed, self.late, self.false_timeouts = Roots(), Roots(), Roots()
        self.newest = -1
        self._destroyed: list[tuple[Ints, int]] = []
        """Roots of which something was destroyed, and by which outage (-1: none has struck), in order."""

    def on_struck(self, outage: Outage) -> None:
        self.newest = outage.number

    def on_emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        if train.attempt is not None:
            self.replayed.add(train.uid[train.attempt > 0])

    def on_replayed(self, task: BoltView, train: Train, channel: Wire | None) -> None:
        if task.component.anchored:
            self.replayed.add(train.uid >> task.component.bits)

    def on_timed_out(self, spout: SpoutView, roots: Ints, attempt: Ints, outage: Ints) -> None:
        self.false_timeouts.add(roots[outage == -1])

    def on_forgotten(self, task: BoltView, outage: int, uid: Ints) -> None:
        self.destroy(uid >> task.component.bits, outage)

    def on_destroyed(self, task: SpoutView | BoltView, train: Train, times: Ints, outage: int) -> None:
        if task.component.anchored:
            self.destroy(train.uid >> task.component.bits, outage)

    def on_overflowed(self, task: BoltView, train: Train) -> None:
        self.on_destroyed(task, train, train.time, -1)

    def on_copies_lost(self, task: BoltView, uid: Ints) -> None:
        if task.component.anchored:
            self.destroy(uid >> task.component.bits)

    def on_retries_lost(self, spout: SpoutView, roots: Ints) -> None:
        self.destroy(roots)

    on_expired = on_retries_lost

    def destroy(self, roots: Ints, outage: int = -1) -> None:
        """Tuples of these roots were destroyed, by an outage, or (-1) it is put down to the newest one."""
        if len(roots):
            self._destroyed.append((distinct(roots), self.newest if outage < 0 else outage))

    @property
    def destroyed(self) -> Ints:
        """Roots of which something was destroyed, be it there again or not."""
        return distinct(np.concatenate([EMPTY, *(roots for roots, _ in self._destroyed)]))

    def by_outage(self, lost: Ints) -> Counter[int]:
        """How many of these roots each outage has cost, by its number: that which has destroyed the last of
        them.
        """
        if not len(lost):
            return Counter()
        last_first = self._destroyed[::-1]
        outages = np.repeat([outage for _, outage in last_first], [len(roots) for roots, _ in last_first])
        roots, last = np.unique(np.concatenate([roots for roots, _ in last_first]), return_index=True)
        return Counter(outages[last[np.searchsorted(roots, lost)]].tolist())


class Ledger:
    """Effects of all roots, and the balance at the end.

    The data plane writes into its books what takes effect where it can tell; ``counted``
    (`tideover.models.accounts.counted`) connects the two.

    books   of each component where roots end
    extra   effects that were applied twice since an outage struck, by its number, until the next did
    base    roots below are closed
    lost    roots that were lost, at the last balance
    """

    counted: Any

    def __init__(
        self,
        topology: Topology,
        replicas: Mapping[str, int],
        draws: Draws,
        losses: Losses,
        filtered: bool,
        effects: bool = True,
    ) -> None:
        """``filtered``: what leaves the topology is read by somebody who drops what comes again. Without
        ``effects`` there are no books: nobody will ask for the balance, only for what was destroyed.
        """
        self._topology, self._draws, self._losses = topology, draws, losses
        ends = topology.ends if effects else ()
        self.books = {c.name: Applied(c, replicas[c.name], filtered and not c.window) for c in ends}
        self.extra: dict[int, int] = {}
        self.base = 0
        self.lost = EMPTY
        self._closed_duplicated = self._closed_completed = 0
        self._closed_lost: list[Ints] = []

    def _apply(self, component: Component, uid: Ints, replica: int) -> int:
        """Effects took place; returns how many of them had taken place before."""
        return self.books[component.name].apply(uid, replica) if self.books else 0

    def duplicated_roots(self) -> Ints:
        """Open roots with an effect that is applied twice now; it may yet turn out to be of a void window."""
        return distinct(np.concatenate([EMPTY, *(book.duplicated_roots() for book in self.books.values())]))

    @property
    def duplicated(self) -> int:
        """Roots with an effect that is applied more than once."""
        return self._closed_duplicated + len(self.duplicated_roots())

    def on_struck(self, outage: Outage) -> None:
        """What is applied twice from now on is put down to this outage; by now, to the one before."""
        self.counted.catch_up()
        self.counted.settle()
        self.extra[outage.number] = 0

    def on_processed(self, task: BoltView, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        component = task.component
        if not component.ends_roots or counts_itself(component):
            return
        if train.has(LATE):  # 1: it came too late; another number: it is known
            fate = train.column(LATE)
            late = train.uid[fate == 1]
            self._losses.late.add(late >> component.bits)
            assert component.window is not None
            if component.window.late != "aside":
                self._losses.destroy(late >> component.bits)
            elif len(late):
                self.twice(self._apply(component, late, task.replica))
            train = train.pick(fate == 0)
        if train.n:
            self.twice(self._apply(component, train.uid, task.replica))

    def twice(self, effects: int) -> None:
        """So many effects were applied that had been before."""
        if self.extra:
            self.extra[next(reversed(self.extra))] += effects

    def on_restored(self, task: BoltView, outage: int, uid: Ints) -> None:
        if task.component.anchored and len(uid):
            self._apply(task.component, uid, task.replica)

    def on_rolled_back(self, task: BoltView, gone: Ints, back: Ints) -> None:
        self.on_void(task.component, gone, task.replica)
        if len(back):
            self._apply(task.component, back, task.replica)

    def on_void(self, component: Component, uid: Ints, replica: int) -> None:
        if component.name in self.books:
            self.books[component.name].destroy(uid, replica)
        self._losses.destroy(uid >> component.bits)

    def on_window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        """The same window once more, out of a replay, is void: its reader has it by its number."""
        if again and task.component.anchored:
            for part in closed.parts:
                self.on_void(task.component, part.uid, task.replica)

    def missing(self, component: Component, uid: Ints) -> int:
        """How many of these effects (of open roots) are not applied now."""
        return int(np.count_nonzero(self.books[component.name].times(uid) == 0))

    def _missing(self, roots: Ints) -> dict[str, Ints]:
        """Uids of the effects of these roots that are not applied, by component."""
        if self.counted.knows_children:
            return self.counted.missing(self._topology, self._draws, roots)
        parts: dict[str, list[Ints]] = {}
        for first in range(0, len(roots), BLOCK):
            block = roots[first : first + BLOCK]
            for name, uid in expected_effects(self._topology, self._draws, block).items():
                parts.setdefault(name, []).append(uid[self.books[name].times(uid) == 0])
        return {name: np.concatenate(missing) for name, missing in parts.items()}

    @property
    def size(self) -> int:
        """Slots in use: when to close."""
        return max((book.used for book in self.books.values()), default=0)

    def close(self, before: int) -> None:
        """Settle the roots with a number < ``before`` for good.

        None of them may be in flight, in a copy, or in state that a fault could still destroy.
        """
        bits, spouts = self._topology.spout_bits, len(self._topology.spout_tasks)
        limit = before << bits
        if limit <= self.base or spouts == 0:
            return
        if self.books:
            self._closed_duplicated += int(np.count_nonzero(self.duplicated_roots() < limit))
            number = np.arange(self.base >> bits, before, dtype=np.int64)
            roots = ((number << bits)[:, None] | np.arange(spouts, dtype=np.int64)).ravel()
            by_name = self._topology.by_name
            missing = [uid >> by_name[name].bits for name, uid in self._missing(roots).items()]
            bad = distinct(np.concatenate([EMPTY, *missing]))
            self._closed_completed += len(roots) - len(bad)
            self._closed_lost.append(bad)
            for book in self.books.values():
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
        destroyed = self._losses.destroyed
        all_lost = np.concatenate([*self._closed_lost, gone])
        found = self.lost = np.intersect1d(distinct(all_lost), destroyed, assume_unique=True)
        completed = self._closed_completed + len(emitted) - len(incomplete)
        total = len(emitted) + self._closed_completed + sum(len(part) for part in self._closed_lost)
        if total != completed + len(in_flight) + len(found):
            vanished = _without(all_lost, destroyed)[:5].tolist()
            raise AssertionError(f"roots that vanished: {vanished} of {total}")
        return {"emitted": total, "completed": completed, "in_flight": len(in_flight), "lost": len(found)}


def _without(values: Ints, others: Ints) -> Ints:
    """The different values that are not among the others, rising."""
    return np.setdiff1d(distinct(values), distinct(others), assume_unique=True)


_ONE = np.uint8(1)
"""Of the slots' own type: with another type ``ufunc.at`` is fifty times slower."""


class Applied:
    """How often each effect at one component is applied, by replica: one byte each, for the roots that are
    not closed.

    once   whether its reader drops what it has already: an output that comes again is none
    used   slots up to the highest that was touched; the array is larger
    base   the first root that is not closed
    """

    def __init__(self, component: Component, replicas: int, once: bool) -> None:
        self.component = component
        self.replicas = replicas
        self.once = once
        self.slots = np.zeros(1 << 12 + min(component.bits, 4), np.uint8)
        self.base = 0
        self.used = 0

    def _index(self, uid: Ints, replica: int) -> Ints:
        index = uid - (self.base << self.component.bits)
        if self.replicas > 1:
            index = index * self.replicas + replica
        top = int(index.max()) + 1
        self.used = max(self.used, top)
        if top > len(self.slots):
            self.slots = grown(self.slots, max(top, 2 * len(self.slots)))
        return index

    def have_room(self, roots: int) -> None:
        """Have room for the effects of so many roots from the base on."""
        slots = self.replicas * roots << self.component.bits
        if slots > len(self.slots):
            self.slots = grown(self.slots, slots)

    def apply(self, uid: Ints, replica: int) -> int:
        """Count effects as applied; returns how many of them were applied already in that replica, be it
        further ahead in ``uid``.
        """
        if self.once:
            index = self._index(uid, replica)  # which may make room for them
            self.slots[index] = _ONE
            return 0
        index = self._index(uid, replica)
        np.add.at(self.slots, index, _ONE)
        twice = index[self.slots.take(index) > _ONE]
        if not len(twice):
            return 0
        places, times = np.unique(twice, return_counts=True)
        new = np.count_nonzero(self.slots.take(places) == times)  # of these the first one is no repetition
        return len(twice) - int(new)

    def duplicated_roots(self) -> Ints:
        """Roots of which an effect is applied more than once in one replica."""
        if not self.used or int(self.slots[: self.used].max()) <= 1:
            return EMPTY
        index = np.flatnonzero(self.slots > 1) // self.replicas
        return distinct((index >> self.component.bits) + self.base)

    def destroy(self, uid: Ints, replica: int) -> None:
        """Count effects as applied once less."""
        if len(uid):
            np.subtract.at(self.slots, self._index(uid, replica), _ONE)

    def times(self, uid: Ints) -> npt.NDArray[np.uint8]:
        """How often each effect is applied, the replica with the most."""
        if not len(uid):
            return self.slots[:0]
        index = self._index(uid, 0)
        most = self.slots.take(index)
        if self.replicas > 1:
            self._index(uid, self.replicas - 1)
            for r in range(1, self.replicas):
                np.maximum(most, self.slots.take(index + r), out=most)
        return most

    def forget(self, before_root: int) -> None:
        """Drop the slots of all roots < ``before_root``."""
        cut = ((before_root - self.base) << self.component.bits) * self.replicas
        self.used = max(0, self.used - cut)
        kept = np.zeros(max(1 << 12, 2 * self.used), np.uint8)
        kept[: self.used] = self.slots[cut : cut + self.used]
        self.slots = kept
        self.base = before_root
