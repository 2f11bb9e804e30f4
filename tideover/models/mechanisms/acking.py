"""Acks, for `source_replay` and what is built on it: Storm's acker, pending map and rotation.

Those strategies make `Acks`, whose rules are in the docstring of `source_replay`; `offsets.py` and
`checkpoint_transactions.py` go by what is pending, or is held. The data plane acks and completes by itself
(plane.h: `pending`): what is counted as done is changed there, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tideover.models.mechanisms.base import Mechanism, Process
from tideover.models.operators.state import Effects, joined
from tideover.models.runtime.channels import LATE, Sent
from tideover.models.runtime.hooks import CopyHolder, Mask, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.draws import Purpose
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train

NEVER = 1 << 62
LONG_AGO = -NEVER
NO_ROOTS: Ints = np.zeros((3, 0), np.int64)


COLUMNS = {
    "value": np.uint64,
    "emitted": np.int64,
    "last_ack": np.int64,
    "attempt": np.int32,
    "outage": np.int32,
    "cause": np.int32,
    "live": np.int32,
    "retrying": np.uint8,
}


class PendingRoots:
    """Roots of one spout task that are neither completed nor given up, by the root's number, from the oldest
    root that is still needed: 41 bytes a root. The data plane writes into the columns (struct ``pending``).

    needed_from   number of the first root that may be emitted again although it is not pending
    remembered    called when attempts are over
    up_to_date    called before somebody asks which roots are pending
    """

    def __init__(self, spout_bits: int, number: int, plane: Plane, c: Any) -> None:
        self._plane, self._c = plane, c
        self.remembered: Callable[[], None] = int  # type: ignore[assignment]
        self.up_to_date: Callable[[], None] = int  # type: ignore[assignment]
        self._bits, self._number = spout_bits, number
        c.base = c.size = 0
        self._columns: dict[str, Any] = {name: np.zeros(1024, kind) for name, kind in COLUMNS.items()}
        self.causes: dict[tuple[int, int], int] = {}
        """``cause`` of earlier attempts, of roots that are emitted again and again, while these are kept."""
        self._earlier: set[int] = set()
        """The outages among these."""
        self.needed_from: int | None = None
        self._forgotten = NO_ROOTS
        self._connect()

    def _connect(self) -> None:
        for name, column in self._columns.items():
            self._plane.array(self._c, name, column)
        self._c.room = len(self._columns["live"])

    def _of(self, name: str) -> Any:
        """A column, as far as there are roots."""
        return self._columns[name][: int(self._c.size)]

    def _waiting(self) -> Mask:
        """Which roots are pending, or wait to be emitted again."""
        mask: Mask = (self._of("live") > 0) | (self._of("retrying") > 0)
        return mask

    def _at(self, roots: Ints) -> Ints:
        return (roots >> self._bits) - int(self._c.base)

    def _root(self, index: Ints) -> Ints:
        return ((index + int(self._c.base)) << self._bits) | self._number

    def make_room(self) -> None:
        """For the next roots; forget the oldest that are not needed any more."""
        base, size = int(self._c.base), int(self._c.size)
        needed = np.flatnonzero(self._waiting())
        cut = int(needed[0]) if len(needed) else size
        if self.needed_from is not None:
            cut = max(0, min(cut, self.needed_from - base))
        left = size - cut
        for name, old in self._columns.items():
            if 4 * (left + 1) <= 3 * len(old):  # in place: fresh memory costs more than to copy
                old[:left] = old[cut:size]
                old[left:size] = 0
                continue
            grown = np.zeros(max(left + 1, 2 * left), old.dtype)
            grown[:left] = old[cut:size]
            self._columns[name] = grown
        self._c.base, self._c.size = base + cut, left
        if self.causes:  # of roots that are not kept any more: else they would be followed for ever
            first = (base + cut) << self._bits
            self.causes = {key: outage for key, outage in self.causes.items() if key[0] >= first}
            self._earlier = set(self.causes.values())
        self._connect()

    def _remember(self, index: Ints) -> None:
        """These attempts are over: the outages because of which they were made may still be asked for."""
        attempt, cause = self._of("attempt"), self._of("cause")
        index = index[(attempt[index] > 0) & (cause[index] >= 0)]
        for at, root in zip(index.tolist(), self._root(index).tolist(), strict=True):
            self.causes[root, int(attempt[at])] = int(cause[at])
        self._earlier.update(cause[index].tolist())
        self.remembered()

    def expire(self, before: int) -> tuple[Ints, Ints, Ints]:
        """Give up roots last emitted by ``before``; returns roots, attempt, outage, as emitted."""
        self.up_to_date()
        live, emitted = self._of("live"), self._of("emitted")
        index = np.flatnonzero((live > 0) & (emitted <= before))
        index = index[np.argsort(emitted[index], kind="stable")]
        live[index] = 0
        self._of("retrying")[index] = 1
        self._remember(index)
        attempt, outage = (self._of(name)[index].astype(np.int64) for name in ("attempt", "outage"))
        return self._root(index), attempt, outage

    def mark(self, roots: Ints, attempt: Ints | None, outage: int) -> None:
        """Tuples of these attempts were destroyed; of several outages the newest counts."""
        index, marked = self._at(roots), self._columns["outage"]
        known = (index >= 0) & (index < int(self._c.size))
        live = self._columns["live"][np.where(known, index, 0)]
        index = index[known & (live == (1 if attempt is None else attempt + 1))]
        if outage < 0:  # no outage, which is the weaker reason
            marked[index[marked[index] == -1]] = outage
        else:
            marked[index] = np.maximum(marked[index], outage)

    def mark_all(self, emitted_after: int, outage: int) -> None:
        """An outage destroyed what the acker knew of the pending roots emitted after an instant."""
        self._of("outage")[(self._of("live") > 0) & (self._of("emitted") > emitted_after)] = outage

    def replayed_for(self, roots: Ints, attempt: Ints, outage: int) -> Mask:
        index = self._at(roots)
        there = np.maximum(index, 0)
        newest: Mask = (index >= 0) & (self._columns["attempt"].take(there) == attempt)
        known: Mask = newest & (self._columns["cause"].take(there) == outage)
        for row in np.flatnonzero(~newest).tolist() if self.causes else ():
            known[row] = self.causes.get((int(roots[row]), int(attempt[row]))) == outage
        return known

    def waiting_for(self, outage: int) -> bool:
        return bool(((self._of("outage") == outage) & self._waiting()).any())

    def emitted_for(self, outage: int) -> bool:
        """Whether roots were emitted again because of it: their tuples may be on their way."""
        return bool((self._of("cause") == outage).any()) or outage in self._earlier

    def roots(self) -> Ints:
        return self._root(np.flatnonzero(self._of("live") > 0))

    def clear(self) -> None:
        """Forget everything: the spout has crashed."""
        self.up_to_date()
        index = np.flatnonzero(self._waiting())
        self._remember(index)
        emitted = np.where(self._of("retrying")[index] > 0, LONG_AGO, self._of("emitted")[index])
        self._forgotten = np.stack([self._root(index), self._of("attempt")[index], emitted])
        self._of("live")[:] = 0
        self._of("retrying")[:] = 0
        self._columns["outage"][:] = -1

    def retrying(self, roots: Ints) -> None:
        """These, which it had forgotten, wait to be emitted again."""
        self._columns["retrying"][self._at(roots)] = 1

    def take_forgotten(self) -> Ints:
        """What it forgot in the last crash, in rows: roots, last attempt, when that was emitted (ns)."""
        found, self._forgotten = self._forgotten, NO_ROOTS
        return found


class AckCosts(Mechanism):
    """Acks take ``ack_cost`` ns each at the bolt: each tuple's at once, a window's in one burst at its
    end, which takes ``ack_time`` ns besides; where they are ``held``, those of bolts with state when they are
    released.
    """

    occupies = False

    def __init__(self, job: Job, ack_cost: int, ack_time: int, held: bool = False) -> None:
        super().__init__(job)
        self.ack_cost, self.ack_time = ack_cost, ack_time
        for c in job.topology.components:
            at_once = not (c.keeps_state if held else c.window)
            if not c.is_spout and c.anchored and at_once:
                Verbs(job).charge(c.name, ack_cost)

    def takes(self, parts: Sequence[Effects]) -> int:
        """How long it takes to ack these tuples in one burst (ns)."""
        return self._burst(sum(len(part.uid) for part in parts))

    def _burst(self, acks: int) -> int:
        return self.ack_time + self.ack_cost * acks if acks else 0

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        return self.takes(parts) if task.component.anchored else 0


class Acks(AckCosts, CopyHolder):
    """Every root and every tuple anchored to it is acked when its effect is safe; the acker knows which roots
    are pending, and spouts emit those again that are not done in time.

    All ackers of a topology are one; acks reach it at the instant at which they are sent. The data plane
    keeps a value for each root, the XOR of the ids of all tuples created and acked in its tree, which is
    done when that is zero (Toshniwal et al., *Storm @Twitter*, SIGMOD 2014, section 3.3).

    ack_size        bytes of an ack message
    period          of the rotating maps of spouts and of the acker (ns)
    buckets         of a spout's map: at a rotation what is in the oldest one has timed out
    phase           first rotation after the spout's start (ns); None: drawn, uniform within a period
    acker_buckets   of the acker's map (phase 0): acks for older entries are ignored
    host            of the acker; None: it has none
    held            acks of bolts with state wait until ``release`` says that their effects are safe
    maps            pending roots of each spout task
    """

    needs = Needs(comparison=True)
    knows_the_plane = True

    def __init__(
        self,
        job: Job,
        ack_cost: int,
        ack_time: int,
        ack_size: int,
        period: int,
        buckets: int,
        phase: int | None,
        acker_buckets: int,
        host: int | None,
        held: bool,
    ) -> None:
        super().__init__(job, ack_cost, ack_time, held)
        self._ack_size, self._period, self._buckets, self._phase = ack_size, period, buckets, phase
        self._acker_buckets, self._holds, self._do = acker_buckets, held, Verbs(job)
        self._held: dict[TaskView, list[Effects]] = {}
        self._acked = 0
        self.acker = Process("acker", host, 0, 0, lambda _: (), self._acker_failed, self._acker_ready)
        job.context.machines.append(self.acker)
        self._plane = plane = job.plane
        p, bits, spouts = plane.p, job.topology.spout_bits, len(job.spouts)
        self._mask = (1 << bits) - 1
        structs = plane.ffi.new("pending[]", spouts)
        plane.keep(structs)
        p.pending, p.rotation, p.buckets = structs, period, acker_buckets
        p.alive_since, p.acker_outage = -1, -1
        self.maps = [PendingRoots(bits, number, plane, structs[number]) for number in range(spouts)]
        for map_ in self.maps if job.topology.by_event else ():
            map_.up_to_date = job.catch_up
        self._describe(job)
        plane.asked[plane.lib.NEED_PENDING] = lambda task: self.maps[plane.tasks[task].spout].make_room()
        plane.asked[plane.lib.HAS_COMPLETED] = lambda _: self.tell()
        job.settlers.append(self.tell)

    def _describe(self, job: Job) -> None:
        """Tell the data plane who acks what, under which ids."""
        plane = self._plane
        plane.array(plane.p, "spouts", np.array([spout.number for spout in job.spouts], np.int32))
        for component in job.topology.components:
            c, edges = plane.components[component.index], component.inputs
            if not edges or not component.anchored:
                continue
            keys = [int(job.draws.key(edge.name, Purpose.IDENTITY)) for edge in edges]
            plane.array(c, "identities", np.array(keys, np.uint64))
            c.input_shift, c.input_mask = edges[0].task_bits, (1 << edges[0].edge_bits) - 1
            c.acks = component.window is None
            c.holds_acks = self._holds and component.keeps_state
            for task in job.bolt_tasks if c.holds_acks else ():
                if task.component is component:  # they tell what they have done
                    task.c.logs, task.taken = 1, partial(self._hold, task)
        for sender in job.tasks:
            for place, outlet in enumerate(sender.outlets):
                key = job.draws.key(outlet.edge.name, Purpose.IDENTITY)
                plane.outlets[plane.tasks[sender.number].first_outlet + place].identity = int(key)

    def start(self) -> None:
        for spout in self._job.spouts:
            self._rotate(spout)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        spout = self._job.tasks[task.number]
        if isinstance(spout, SpoutTask):
            self._rotate(spout)

    def _rotate(self, spout: SpoutTask) -> None:
        """Begin with the rotations of a spout that begins."""
        period, life, phase = self._period, spout.life, self._phase
        if phase is None:
            phase = self._job.draws.moment(spout.name, Purpose.PHASE, period)
        first = self._job.kernel.now + phase

        def rotate(r: int) -> None:
            if spout.life != life or not spout.up:
                return
            pending = self.maps[spout.spout_number]
            pending.up_to_date()
            self._do.keep(sum(s.in_flight.count for s in self._job.spouts))
            self._job.step(spout.name, "buckets rotated")
            self._do.emit_again(spout, *pending.expire(first + (r - self._buckets + 1) * period))

        self._job.kernel.every(first, period, Rank.ROTATION, rotate, spout.number)

    def tell(self) -> None:
        """Announce what was acked, and completed."""
        p = self._plane.p
        if p.acked > self._acked:
            self._job.say.transferred((int(p.acked) - self._acked) * self._ack_size)
            self._acked = int(p.acked)
        if p.acks.n:
            rows = self._plane.read(p.acks)
            for number in dict.fromkeys(rows["task"].tolist()):
                mine = rows[rows["task"] == number]
                columns = (np.ascontiguousarray(mine[name], np.int64) for name in ("uid", "attempt", "time"))
                self._tell_acked(self._job.bolt(self._job.tasks[number]), *columns)
        if p.completed.n:
            self._job.tell_of_emissions()
            rows = self._plane.read(p.completed)
            names = ("uid", "attempt", "created", "time")
            self._job.say.completed(*(np.ascontiguousarray(rows[name], np.int64) for name in names))

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        if self._holds and task.component.keeps_state:
            if task.component.saves_ids:  # of what was processed only what is known by its id
                train = train.pick(train.column(LATE) > 0)
            self._hold(task, Effects(train.uid, train.attempt))
        elif self._plane.components[task.component.index].acks:
            self._job.say.acked(task, self.acker.name, train)
        elif train.has(LATE):
            late = train.pick(train.column(LATE) > 0)
            if late.n:
                self._send(task, late.uid, late.column("attempt"), late.time)

    def _send(self, task: BoltView, uid: Ints, attempt: Ints, times: Ints) -> None:
        completed = self._plane.p.completed
        if completed.room - completed.n < len(uid):
            self.tell()
            self._plane.have_rows(completed, len(uid))
        columns = [self._plane.ffi.from_buffer("int64_t[]", each) for each in (uid, attempt, times)]
        self._plane.lib.plane_ack(self._plane.p, task.number, len(uid), *columns)
        self._tell_acked(task, uid, attempt, times)

    def _tell_acked(self, task: BoltView, uid: Ints, attempt: Ints, times: Ints) -> None:
        self._job.say.acked(task, self.acker.name, Train(times, uid, times, uid, attempt=attempt))

    def _post(self, task: BoltView, parts: list[Effects], now: int) -> int:
        """Ack these tuples one after the other; returns how long that takes (ns)."""
        uid, attempt = joined(parts)
        attempt = np.zeros(len(uid), np.int64) if attempt is None else attempt
        if not self._burst(len(uid)):
            self._send(task, uid, attempt, np.full(len(uid), now, np.int64))
            return 0
        c, plane = self._plane.tasks[task.number].acks, self._plane
        after = self.ack_time + self.ack_cost * np.arange(1, len(uid) + 1, dtype=np.int64)
        columns = [uid, attempt, after]
        if c.sent < c.n:  # it has gone back since it began to send these, and need not wait for them
            before = self._waiting(c)
            before[-1] += c.since - now
            columns = [np.concatenate(parts) for parts in zip(before, columns, strict=True)]
            order = columns[-1].argsort(kind="stable")
            columns = [column[order] for column in columns]
        for name, column in zip(("uid", "attempt", "after"), columns, strict=True):
            plane.array(c, name, column)
        c.n, c.sent, c.since = len(columns[0]), 0, now
        return self._burst(len(uid))

    def _waiting(self, c: Any) -> list[Ints]:
        return [self._plane.kept(c, name)[c.sent :] for name in ("uid", "attempt", "after")]

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if not parts or not task.component.anchored:
            return 0
        if not self._holds:
            return self._post(task, parts, now)
        if task.component.saves_ids:
            self._hold(task, *parts)
        return 0

    def _hold(self, task: BoltView, *effects: Effects) -> None:
        self._held.setdefault(task, []).extend(effects)

    def mark(self, task: TaskView) -> list[Effects]:
        """Tuples that ``task`` holds acks of, taken out: for ``release`` when they are safe."""
        self._bolt(task).catch_up()
        return self._held.pop(task, [])

    def release(self, task: TaskView, parts: list[Effects]) -> None:
        """The effects of these tuples are safe: they are acked from now on; who calls keeps ``task``."""
        if parts:
            self._post(self._bolt(task), parts, self._job.kernel.now)

    def forget(self, task: TaskView, outage: OutageView, marked: Sequence[Effects] = ()) -> None:
        """The acks that ``task`` holds, and those of ``marked``, are never sent because of an outage."""
        held = self.mark(task) if self._holds and not task.component.is_spout else []
        uid, attempt = joined([*marked, *held])
        self.destroyed(outage.number, uid >> task.component.bits, attempt)

    def may_repeat(self) -> None:
        """A replica may ack again what it has acked, until all emitted by now is forgotten: order matters."""
        self._plane.p.in_order_until = self._job.kernel.now + self._acker_buckets * self._period

    def destroyed(self, outage: int, roots: Ints, attempt: Ints | None) -> None:
        """Lost state means lost ids: those roots are never acked."""
        for number, pending in enumerate(self.maps):
            mine = np.flatnonzero(roots & self._mask == number)
            pending.mark(roots[mine], None if attempt is None else attempt[mine], outage)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        c = self._plane.tasks[task.number].acks
        if c.sent < c.n:
            uid, attempt, _ = self._waiting(c)
            c.sent = c.n = 0
            roots = uid >> task.component.bits
            self.destroyed(self._job.context.newest.get(task, -1), roots, attempt)
        self.forget(task, outage)
        failed = self._job.tasks[task.number]
        if isinstance(failed, SpoutTask) and not failed.up:
            self.maps[failed.spout_number].clear()

    def _acker_failed(self, _: Process, outage: OutageView) -> None:
        """All entries are lost; until it is up again acks are too."""
        now, p = self._job.kernel.now, self._plane.p
        # what was emitted at or before this has rotated out
        rotated_out = (-(-now // self._period) - self._acker_buckets) * self._period
        forgotten = max(rotated_out, int(p.alive_since))
        p.alive_since, p.acker_outage = NEVER, outage.number
        for pending in self.maps:
            pending.mark_all(forgotten, outage.number)

    def _acker_ready(self, acker: Process, outage: OutageView) -> None:
        self._job.supervisor.back(acker)
        self._plane.p.alive_since, self._plane.p.acker_outage = self._job.kernel.now, -1

    def watched(self) -> None:
        for map_ in self.maps:
            map_.remembered = self._tell_causes
        self._tell_causes()

    def _tell_causes(self) -> None:
        known = [(*key, outage) for map_ in self.maps for key, outage in map_.causes.items()]
        self._causes = np.array(known, np.int64).reshape(-1, 3)
        self._plane.p.n_causes = len(known)
        self._plane.p.causes = self._plane.ffi.cast("cause *", self._causes.ctypes.data)

    def roots(self) -> Ints:
        return np.concatenate([pending.roots() for pending in self.maps])

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        """Which tuples belong to a root that was emitted again because of the outage."""
        if train.attempt is None or not task.component.anchored:
            return None
        mask: Mask = train.attempt > 0
        retried = np.flatnonzero(mask)
        roots = train.uid[retried] >> task.component.bits
        for number, pending in enumerate(self.maps):
            mine = np.flatnonzero(roots & self._mask == number) if self._mask else slice(None)
            mask[retried[mine]] = pending.replayed_for(roots[mine], train.attempt[retried[mine]], outage)
        return mask

    def settled(self, outage: OutageView) -> bool:
        return not any(pending.waiting_for(outage.number) for pending in self.maps)

    def on_the_way(self, outage: OutageView) -> bool:
        return any(pending.emitted_for(outage.number) for pending in self.maps)
