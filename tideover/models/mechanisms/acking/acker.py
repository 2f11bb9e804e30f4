"""Storm's acker: one 64-bit value per root.

The value is the XOR of the ids of all tuples created and acked in the root's tree. When it is zero, the tree
is done (Toshniwal et al., *Storm @Twitter*, SIGMOD 2014, section 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tideover.models.job.topology import Edge
from tideover.models.mechanisms.acking.pending import Completed, PendingRoots
from tideover.models.runtime.context import Context
from tideover.models.runtime.keeper import Keeper
from tideover.models.runtime.machine import Machine
from tideover.models.runtime.stream import Sent
from tideover.models.runtime.supervision import Supervisor
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.draws import Bits
from tideover.sim.train import Ints, Train

NEVER = 1 << 62


class Acker(Machine, Keeper):
    """All ackers of a topology as one; acks reach it at the instant at which they are sent.

    period, buckets   of its own rotating map (phase 0): older entries are forgotten, and acks for them
                      ignored
    maps              pending roots of each spout task
    members           how many tasks get, and ack, a tuple that goes to one of a component's
    """

    def __init__(
        self,
        context: Context,
        supervisor: Supervisor,
        members: Mapping[str, int],
        period: int,
        buckets: int,
        host: int | None,
    ) -> None:
        super().__init__("acker", host, 0, 0)
        self._context, self._supervisor = context, supervisor
        self._draws = context.draws
        self._members = members
        self._fleets = any(number > 1 for number in members.values())
        self._late: list[tuple[Ints, Ints, Ints, Bits]] = []
        """Acks of fleets that were not looked at: roots, attempts, times, and what each changes."""
        self._period, self._buckets = period, buckets
        bits = context.topology.spout_bits
        self._mask = (1 << bits) - 1
        self.maps = [PendingRoots(bits, number) for number in range(len(context.topology.spout_tasks))]
        self._alive_since = -1
        """It knows only roots emitted after this instant."""
        self._outage = -1

    # -- ids -------------------------------------------------------------------------------------------------

    def _ids(self, edge: Edge, train: Train) -> Bits:
        return self._draws.identity(edge.name, train.uid, train.attempt)

    def _created(self, sent: list[Sent], parents: int) -> Bits:
        """XOR of the ids of each parent's children."""
        value = np.zeros(parents, np.uint64)
        for s in sent:
            ids = self._ids(s.edge, s.train)
            for member in range(1, self._members[s.edge.down.name]):
                ids = ids ^ _of_member(self._ids(s.edge, s.train), member)
            value ^= group_xor(ids, s.copies)
        return value

    def _own(self, task: BoltView, train: Train) -> Bits:
        """Ids of tuples, by the edge that they came over."""
        edges = task.component.inputs
        if len(edges) == 1:
            return self._ids(edges[0], train)
        digit = (train.uid >> edges[0].task_bits) & ((1 << edges[0].edge_bits) - 1)
        ids = np.zeros(train.n, np.uint64)
        for edge in edges:
            rows = np.flatnonzero(digit == edge.input_index)
            ids[rows] = self._ids(edge, train.pick(rows))
        return ids

    # -- what it is told -------------------------------------------------------------------------------------

    def begin(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        """Trees begin: a spout has emitted ``train`` as ``sent``."""
        pending = self.maps[spout.spout_number]
        pending.emit(train.uid, train.attempt, train.time, self._created(sent, train.n))
        if self._alive_since == NEVER:
            pending.mark(train.uid, train.attempt, self._outage)

    def ack(self, task: BoltView, train: Train, sent: list[Sent]) -> list[tuple[int, Completed]]:
        """Tuples were acked, and their children created; returns the roots done, by number of the spout
        task. Of fleets: none while data are moved (``settle``).
        """
        value = self._own(task, train)
        if task.replica:
            value = _of_member(value, task.replica)
        if sent:
            value ^= self._created(sent, train.n)
        roots = train.uid >> task.component.bits
        if not self._fleets:
            return self._change(roots, train.attempt, train.time, value)
        self._late.append((roots, train.column("attempt"), train.time, value))
        kernel = self._context.kernel
        return self.settle() if kernel.moved_to == kernel.now else []  # else what comes may be earlier

    def add(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        """The children of tuples were created, which are acked themselves later."""
        roots = train.uid >> task.component.bits
        self._change(roots, train.attempt, train.time, self._created(sent, train.n))

    def settle(self) -> list[tuple[int, Completed]]:
        """All tasks have sent their acks up to now: those of fleets are taken as they came. A member may ack
        a tuple twice, and then it matters what the others have acked before, in between and after.
        """
        if not self._late:
            return []
        roots, attempt, times, value = (np.concatenate(column) for column in zip(*self._late, strict=True))
        self._late = []
        finished = []
        for rows in _in_turn(times.argsort(kind="stable"), roots):
            finished += self._change(roots[rows], attempt[rows], times[rows], value[rows])
        return finished

    def _change(
        self, roots: Ints, attempt: Ints | None, times: Ints, value: Bits
    ) -> list[tuple[int, Completed]]:
        finished = []
        for number, pending in enumerate(self.maps):
            mine = slice(None) if not self._mask else np.flatnonzero(roots & self._mask == number)
            again = None if attempt is None else attempt[mine]
            done = self._ack(pending, roots[mine], again, times[mine], value[mine])
            if done is not None:
                finished.append((number, done))
        return finished

    def _ack(
        self, pending: PendingRoots, roots: Ints, attempt: Ints | None, times: Ints, value: Bits
    ) -> Completed | None:
        if not len(roots):
            return None
        known = self._known(pending, roots, times)
        if known is None:
            return pending.ack(roots, attempt, times, value, self._alive_since)
        if not known.any():
            return None
        attempt = None if attempt is None else attempt[known]
        return pending.ack(roots[known], attempt, times[known], value[known], self._alive_since)

    def _known(self, pending: PendingRoots, roots: Ints, times: Ints) -> npt.NDArray[np.bool_] | None:
        """Which roots are still in the acker's own map at the time of the ack; None: all."""
        if pending.expired_to >= int(self._forgotten(times[-1:])[0]):
            return None
        return pending.emitted_at(roots) > self._forgotten(times)

    def _forgotten(self, times: Ints) -> Ints:
        """Roots emitted at or before this have rotated out, seen at ``times`` (before a rotation then)."""
        return (-(-times // self._period) - self._buckets) * self._period

    # -- faults ----------------------------------------------------------------------------------------------

    def failed(self, outage: OutageView) -> None:
        """All entries are lost; until it is up again acks are too."""
        now = self._context.kernel.now
        rotated_out = int(self._forgotten(np.array([now], np.int64))[0])
        forgotten = max(rotated_out, self._alive_since)
        self._alive_since = NEVER
        self._outage = outage.number
        for pending in self.maps:
            pending.mark_all(forgotten, outage.number)

    def ready(self, outage: OutageView) -> None:
        """Up again, knowing nothing."""
        self._supervisor.back(self)
        self._alive_since = self._context.kernel.now

    def destroyed(self, outage: int, roots: Ints, attempt: Ints | None) -> None:
        """Tuples of these attempts of roots are gone."""
        for number, pending in enumerate(self.maps):
            mine = np.flatnonzero(roots & self._mask == number)
            pending.mark(roots[mine], None if attempt is None else attempt[mine], outage)

    # -- what the accounts ask -------------------------------------------------------------------------------

    def roots(self) -> Ints:
        """All pending roots."""
        return np.concatenate([pending.roots() for pending in self.maps])

    def replayed(self, task: BoltView, train: Train, outage: int) -> npt.NDArray[np.bool_] | None:
        """Which tuples belong to a root that was emitted again because of the outage."""
        if train.attempt is None or not task.component.anchored:
            return None
        mask = train.attempt > 0
        retried = np.flatnonzero(mask)
        roots = train.uid[retried] >> task.component.bits
        for number, pending in enumerate(self.maps):
            mine = np.flatnonzero(roots & self._mask == number) if self._mask else slice(None)
            mask[retried[mine]] = pending.replayed_for(roots[mine], train.attempt[retried[mine]], outage)
        return mask

    def settled(self, outage: OutageView) -> bool:
        """Whether no root that the outage hit still waits to be emitted again."""
        return not any(pending.waiting_for(outage.number) for pending in self.maps)

    def on_the_way(self, outage: OutageView) -> bool:
        """Whether tuples of roots that were emitted again because of it may be."""
        return any(pending.emitted_for(outage.number) for pending in self.maps)


def _of_member(ids: Bits, member: int) -> Bits:
    """Ids of the copies that a further member of a fleet has."""
    return ids * np.uint64(2 * member + 1)


def group_xor(values: Bits, copies: Ints | None) -> Bits:
    """XOR of the children's ids by parent; ``copies``: how many each parent has, None: one."""
    if copies is None:
        return values
    starts = copies.cumsum() - copies
    if copies.all():
        return np.bitwise_xor.reduceat(values, starts)
    out = np.zeros(len(copies), np.uint64)
    parents = np.flatnonzero(copies)
    if len(parents):
        out[parents] = np.bitwise_xor.reduceat(values, starts.take(parents))
    return out


def _in_turn(rows: Ints, roots: Ints) -> list[Ints]:
    """Rows such that each root is there once: its first ones, its second ones, and so on.

    >>> [part.tolist() for part in _in_turn(np.arange(5), np.array([7, 8, 7, 7, 9]))]
    [[0, 1, 4], [2], [3]]
    """
    order = np.argsort(roots[rows], kind="stable")
    ranked = roots[rows][order]
    turn = np.empty(len(rows), np.int64)
    turn[order] = np.arange(len(rows)) - ranked.searchsorted(ranked)
    return [rows[turn == number] for number in range(int(turn.max(initial=-1)) + 1)]
