"""One replication, built: tasks on hosts, channels between them, and the verbs that faults and strategies
act by.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tideover.models.backlog import Backlog
from tideover.models.config import Scenario
from tideover.models.ledger import EMPTY, Ledger
from tideover.models.outage import Outage
from tideover.models.strategies.base import Strategy
from tideover.models.stream import Outlet, Sent
from tideover.models.supervision import Supervisor
from tideover.models.task import TRAIN, BoltTask, SpoutTask
from tideover.models.topology import Topology, placement
from tideover.models.tracing import Trace
from tideover.models.twin import Twin, effects_of, expected_effects
from tideover.models.windowlog import WindowLog
from tideover.models.windows import Counts, Held
from tideover.sim.distributions.base import Distribution
from tideover.sim.distributions.constant import Constant
from tideover.sim.draws import Draws, Purpose
from tideover.sim.kernel import Kernel, Rank
from tideover.sim.link import Channel, Latency
from tideover.sim.recorder import Recorder
from tideover.sim.store import StoreServer
from tideover.sim.train import Ints, Train

CLOSE_AT = 1 << 21
"""Slots in the ledger's book at which old roots are settled."""


class World:
    """Everything that one replication consists of. Build it, ``run`` it, read it."""

    def __init__(
        self,
        scenario: Scenario,
        replication: int = 0,
        *,
        trace: bool = False,
        train_cap: int = TRAIN,
        feed: bool = False,
        strategy: Strategy | None = None,
    ) -> None:
        self.scenario = scenario
        self.strategy = strategy if strategy is not None else scenario.strategy
        self.train_cap = train_cap
        self.fed = feed
        """A twin: only its windows are looked at, so nothing is recorded."""
        self.draws = Draws(scenario.run.seed, replication)
        self.topology = Topology(scenario)
        self.kernel = Kernel()
        self.recorder = Recorder(trace)
        self.trace = Trace() if self.recorder.trace else None
        self.store = StoreServer(self.kernel, scenario.store.latency, scenario.store.bandwidth)
        self.protocol = self.strategy.protocol(self)
        self.replicas = {
            c.name: 1 if c.is_spout else self.strategy.replicas(c.name) for c in self.topology.components
        }
        self.hosts = placement(self.topology, scenario, self.replicas)
        self.ledger = Ledger(
            self.topology,
            self.replicas,
            lambda roots: expected_effects(self.topology, self.draws, roots),
            self.strategy.routed,
        )
        self.backlog = Backlog(self.recorder)
        self.windows = WindowLog()
        self.supervisor = Supervisor(self)
        self.outages: list[Outage] = []
        self.supervisor = Supervisor(self)
        self.watched: list[Outage] = []
        """Outages whose recovery may still go on."""
        self.peak_buffered = 0
        self.control_bytes = 0
        """Bytes of acks and of copies between replicas: what goes over the network besides the streams."""
        self.spouts: list[SpoutTask] = []
        self.bolts: dict[tuple[str, int], list[BoltTask]] = {}
        self._close_at = CLOSE_AT
        self._build(feed)
        self._measured = self.topology.measured
        self.kernel.listeners.append(self._moved)
        self.supervisor = Supervisor(self)
        self.twin = Twin(self) if not feed and self._needs_twin() else None

    def _needs_twin(self) -> bool:
        """Whether the windows can differ from those of a run without failures."""
        stateful = any(c.window for c in self.topology.components)
        return stateful and (bool(self.scenario.failures) or self.strategy.disturbs)

    # -- building --------------------------------------------------------------------------------------------

    def _build(self, feed: bool) -> None:
        number = 0
        physical: dict[str, list[list[Any]]] = {}
        for c in self.topology.components:
            rows: list[list[Any]] = []
            for task in range(c.tasks):
                if c.is_spout:
                    spout = SpoutTask(self, c, task, number, self.hosts[c.name, task, 0], fed=feed)
                    number += 1
                    self.spouts.append(spout)
                    rows.append([spout])
                else:
                    replicas = [
                        BoltTask(self, c, task, r, self.hosts[c.name, task, r])
                        for r in range(self.replicas[c.name])
                    ]
                    self.bolts[c.name, task] = replicas
                    rows.append(replicas)
            physical[c.name] = rows
        for c in self.topology.components:
            for edge in c.inputs:
                for task, senders in enumerate(physical[edge.up.name]):
                    offset = (
                        self.topology.route_offset(edge, task)
                        if self.strategy.routed and c.routes > 1
                        else None
                    )
                    for sender in senders:
                        wires = [
                            [self._channel(sender, receiver) for receiver in row] for row in physical[c.name]
                        ]
                        sender.outlets.append(Outlet(edge, self.draws, wires, offset))

    def _channel(self, up: SpoutTask | BoltTask, down: BoltTask) -> Channel:
        links = self.scenario.links
        if self.strategy.batched and isinstance(up, BoltTask):
            spread: Distribution = Constant(value=0)
        elif up.host == down.host:
            spread = links.local
        else:
            pair = links.pairs.get(f"{up.host}-{down.host}", links.pairs.get(f"{down.host}-{up.host}"))
            spread = links.latency if pair is None else pair
        name = f"{up.name}->{down.name}"
        latency: int | Latency
        if isinstance(spread, Constant):
            latency = spread.value
        else:
            draws = self.draws

            def latency(number: Ints) -> Ints:
                return spread.sample(draws.bits(name, Purpose.LATENCY, number))

        channel = Channel(up, down, latency, up.config.tuple_size, up.host != down.host)
        down.connect(channel)
        return channel

    @property
    def bolt_tasks(self) -> list[BoltTask]:
        """All bolt tasks and their replicas, in physical order."""
        return [task for replicas in self.bolts.values() for task in replicas]

    @property
    def tasks(self) -> list[SpoutTask | BoltTask]:
        """All physical tasks, in physical order."""
        return [node for node in self.kernel.nodes if isinstance(node, SpoutTask | BoltTask)]

    # -- running ---------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run from 0 to the scenario's end."""
        self.start()
        self.kernel.run(self.scenario.run.duration)
        if self.twin is not None:
            self.twin.finish()
        if self.trace is not None:
            for task in self.bolt_tasks:
                self.trace.end(task)

    def start(self) -> None:
        """Start ticks, markers, faults and the protocol."""
        for task in self.bolt_tasks:
            task.from_log = self.strategy.log_source
            window = task.component.window
            if task.ends_by_tick and window is not None and window.window.length is not None:
                length = window.window.length
                self.kernel.every(length, length, Rank.WINDOW, partial(_tick, task), task.number)
        if self.topology.marker_length is not None:
            length = self.topology.marker_length
            for spout in self.spouts:
                self.kernel.every(
                    length, length, Rank.MARKER, partial(self._send_marker, spout), spout.number
                )
        self.supervisor.start()
        self.protocol.start()

    def _send_marker(self, spout: SpoutTask, i: int) -> None:
        if spout.up:
            spout.enqueue(Rank.MARKER, lambda: spout.send_marker(i + 1))

    def _moved(self, now: int) -> None:
        self.protocol.moved(now)
        self.backlog.settle()
        for outage in self.watched:
            outage.settle()
        if self.twin is not None:
            self.twin.follow(now)
        if self.ledger.size > self._close_at or self.backlog.size > self._close_at:
            self._close()

    def _close(self) -> None:
        """Settle and forget the oldest roots."""
        alive = [
            self.alive(),
            *(
                t.counts.effects().uid >> t.component.bits
                for ts in self.bolts.values()
                for t in ts
                if t.counts
            ),
        ]
        roots = np.concatenate([*alive, [s.next_root << self.topology.spout_bits for s in self.spouts]])
        before = int(roots.min()) >> self.topology.spout_bits
        for outage in self.outages:
            self._settle(outage, before << self.topology.spout_bits)
        self.ledger.close(before)
        self.backlog.prune(before << self.topology.spout_bits)
        self._close_at = max(CLOSE_AT, 2 * max(self.ledger.size, self.backlog.size))

    def _settle(self, outage: Outage, before: int) -> None:
        """Count what is missing of the roots < ``before`` for good, and keep the rest."""
        kept = []
        for task, uid in outage.lost_effects:
            old = uid >> task.component.bits < before
            outage.missing_closed += self.ledger.missing(task.component, uid[old])
            if not old.all():
                kept.append((task, uid[~old]))
        outage.lost_effects = kept

    # -- what the tasks report -------------------------------------------------------------------------------

    def emitted(self, spout: SpoutTask, train: Train, sent: list[Sent]) -> None:
        """A spout task has emitted roots."""
        if self.fed:
            return
        copies = sum(self.replicas[s.edge.down.name] for s in sent)
        self.backlog.enter(train.uid, train.time, copies)
        self.backlog.emitted(train.uid, train.attempt, train.time)
        if train.attempt is not None:
            again = np.flatnonzero(train.attempt > 0)
            self.backlog.change(train.uid[again], train.time[again], -1)
            self.ledger.replay(train.uid[again])
        if self.trace is not None:
            self.trace.emit(spout, train)
        if self.twin is not None:
            self.twin.feed(spout, train)
        self.protocol.emitted(spout, train, sent)

    def processed(self, task: BoltTask, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        """A bolt task is done with tuples, and has handed on ``sent``."""
        if self.fed:
            return
        component = task.component
        if self.trace is not None:
            self.trace.process(task, train, arrival)
        if not component.anchored:
            return
        roots = train.uid >> component.bits if component.bits else train.uid
        self._count_open(task, train, roots, sent)
        if component.ends_roots:
            twice = self.ledger.apply(component, train.uid, task.replica)
            if twice and self.outages:
                self.outages[-1].extra += twice
            if not component.window and task is self.lead(task):
                self.recorder.output.add(train.time)
        latencies = None
        if component is self._measured and task is self.lead(task):
            latencies = self._measure(train, roots)
        for outage in self.watched:
            self._replayed(outage, task, train, arrival, latencies)
        self.protocol.processed(task, train, sent)

    def _count_open(self, task: BoltTask, train: Train, roots: Ints, sent: list[Sent]) -> None:
        net: Ints | int = -1
        if sent:
            if all(s.copies is None for s in sent):
                net = sum(self.replicas[s.edge.down.name] for s in sent) - 1
                if net == 0:
                    return
            else:
                net = np.full(train.n, -1, np.int64)
                for s in sent:
                    copies = self.replicas[s.edge.down.name]
                    net += copies if s.copies is None else copies * s.copies
        self.backlog.change(roots, train.time, net)

    def _measure(self, train: Train, roots: Ints) -> tuple[Ints, Ints]:
        """Latencies of tuples that are done: from their creation stamps, and from their roots' first
        emissions (the same array if none of them was emitted again).
        """
        since = train.born
        if train.attempt is not None and (again := np.flatnonzero(train.attempt > 0)).size:
            since = since.copy()
            since[again] = self.backlog.first(roots[again])
        return self.recorder.measure(train.time, train.born, since)

    def _replayed(
        self,
        outage: Outage,
        task: BoltTask,
        train: Train,
        arrival: Ints,
        latencies: tuple[Ints, Ints] | None,
    ) -> None:
        mask = self.protocol.replayed(task, train, outage.number)
        if mask is not None and task in outage.tasks and mask.any():
            # who reads a log takes from it what it can work off: it is there when it is done
            there = train.time if self.strategy.log_source else arrival
            outage.last_replay = max(int(there[np.flatnonzero(mask)[-1]]), outage.last_replay or 0)
            outage.replayed += int(np.count_nonzero(mask))
        if latencies is not None:
            outage.add(train.time, *latencies, mask)

    def window(self, task: BoltTask, number: int, now: int, keys: Ints, sums: Ints, held: list[Held]) -> bool:
        """A task has emitted a window, made of the tuples ``held``; returns whether it had emitted it
        before.
        """
        component = task.component
        if self.trace is not None:
            self.trace.window(task, number, now, keys, sums)
        place = (component.name, task.task, number)
        again = self.windows.emitted(place, task.replica, now, keys, sums)
        if not component.outputs:
            self.recorder.note_output(place, now)
        if again and component.anchored and not self.fed:
            # the same window once more, out of a replay, is void: its reader has it by its number
            for part in held:
                self.ledger.destroy_effects(component, part.uid, task.replica)
        return again

    def lead(self, task: BoltTask) -> BoltTask:
        """The replica that is measured: the live one with the lowest number."""
        replicas = self.bolts[task.component.name, task.task]
        return next((r for r in replicas if r.available), task) if len(replicas) > 1 else task

    def destroyed(self, task: BoltTask | SpoutTask, trains: list[Train], arrived: bool = False) -> None:
        """Tuples were destroyed in a task's queue, or (``arrived``) because they arrived while it was
        down.
        """
        for train in trains:
            train = _data(train)
            if not train.n:
                continue
            times = train.time if arrived else np.full(train.n, self.kernel.now, np.int64)
            if self.trace is not None:
                self.trace.destroy(task, train, times)
            if task.component.anchored:
                roots = train.uid >> task.component.bits
                self.backlog.change(roots, times, -1)
                self.ledger.destroy(roots)
                self.protocol.destroyed(task.fault, roots, train.attempt)

    def discarded(self, task: BoltTask, train: Train) -> None:
        """Arrivals that a strategy filters out: what they carry is known already."""
        if train.n and task.component.anchored:
            self.backlog.change(train.uid >> task.component.bits, train.time, -1)
            outage = self.outages[task.fault] if task.fault >= 0 else None
            if outage is not None and self._under_way(outage):
                outage.dropped += train.n

    def _under_way(self, outage: Outage) -> bool:
        """Whether the tasks that an outage hit are not yet (or just now) as they were."""
        restored = outage.restored_at
        return restored is None or restored >= self.kernel.now or not self.protocol.settled(outage)

    # -- verbs -----------------------------------------------------------------------------------------------

    def retry(self, spout: SpoutTask, roots: Ints, attempt: Ints) -> None:
        """Put roots at the end of a spout task's retry queue."""
        if len(roots):
            spout.retries.append((roots, attempt))
            self.backlog.enter(roots, np.full(len(roots), self.kernel.now, np.int64), 1)

    def timed_out(self, spout: SpoutTask, roots: Ints, attempt: Ints, outage: Ints) -> None:
        """Roots are given up by their spout, to be emitted again; ``outage`` (-1: none) is why they were
        not done.
        """
        self.ledger.false_timeouts += int(np.count_nonzero(outage < 0))
        for hit in (self.outages[number] for number in np.unique(outage).tolist() if number >= 0):
            if hit.timed_out_at is None:
                hit.timed_out_at = self.kernel.now
        self.note(f"{spout.name}: {len(roots)} roots have timed out")
        if self.trace is not None:
            self.trace.fail(roots, attempt, self.kernel.now)

    def restore_effects(self, task: BoltTask, outage: Outage, uid: Ints) -> None:
        """``task`` has its state back (read, or copied), and with it these effects."""
        outage.restored += len(uid)
        outage.restored_at = self.kernel.now
        if task.component.anchored and len(uid):
            self.ledger.apply(task.component, uid, task.replica)
        self.note(f"{task.name}: state restored ({len(uid)} tuples in it)")

    def reloaded(self, task: BoltTask, outage: int, since: int) -> None:
        """``task`` has had its state again since ``since`` (ns), which ``outage`` took."""
        assert task.counts is not None
        hit = self.outages[outage]
        hit.restored += task.counts.size
        hit.restored_at = max(since, hit.restored_at or 0)

    def roll_back(self, task: BoltTask, counts: Counts | None) -> None:
        """``task`` goes back to an earlier state; effects since then are undone, unless a window has them."""
        if task.counts is None or counts is None:
            return
        gone, back = task.counts.effects().uid, counts.effects().uid
        task.restore(counts)
        if task.component.anchored:
            self.ledger.destroy_effects(task.component, gone, task.replica)
            if len(back):
                self.ledger.apply(task.component, back, task.replica)

    def reopen(self, task: BoltTask, train: Train) -> None:
        """Tuples are on their way to ``task`` once more (a replay, a copied queue)."""
        data = _data(train)
        if task.component.anchored and data.n:
            roots, tuples = np.unique(data.uid >> task.component.bits, return_counts=True)
            self.backlog.enter(roots, np.full(len(roots), self.kernel.now, np.int64), tuples)

    def replayed(self, task: BoltTask, train: Train) -> None:
        """Tuples leave an upstream buffer for ``task`` again."""
        if task.component.anchored:
            self.ledger.replay(_data(train).uid >> task.component.bits)

    def closed_unsent(self, task: BoltTask, train: Train) -> None:
        """Replays to ``task`` that will not be sent after all."""
        data = _data(train)
        if task.component.anchored and data.n:
            self.backlog.change(
                data.uid >> task.component.bits, np.full(data.n, self.kernel.now, np.int64), -1
            )

    def lost_effects(self, task: BoltTask, uid: Ints) -> None:
        """Copies of these tuples to ``task`` are gone: if their effects are missing, they may be so for
        good.
        """
        if len(uid) and task.component.anchored:
            self.ledger.destroy(uid >> task.component.bits)

    def note(self, text: str) -> None:
        """For the trace: what the protocol does."""
        if self.trace is not None:
            self.trace.note(self.kernel.now, text)

    # -- the end ---------------------------------------------------------------------------------------------

    def on_the_way(self) -> dict[str, list[Train]]:
        """Tuples of roots in queues, in service and on the wire, by the component they are at or go to."""
        at: dict[str, list[Train]] = {c.name: [] for c in self.topology.components}
        for task in self.tasks:
            if isinstance(task, BoltTask) and task.component.anchored:
                trains = [*task.queue(), *task.kept, *task.held, *(t for c in task.inputs for t in c.wire)]
                at[task.component.name] += [_data(train) for train in trains]
        return at

    def can_be_emitted(self) -> Ints:
        """Roots that wait for a retry, or that the strategy can still emit again."""
        waiting = [roots for spout in self.spouts for roots, _ in spout.retries]
        return np.concatenate([EMPTY, *waiting, self.protocol.copies()])

    def alive(self) -> Ints:
        """Roots that are on their way, or of which a strategy keeps a copy (with repetitions)."""
        parts = [self.can_be_emitted()]
        for name, trains in self.on_the_way().items():
            parts += [train.uid >> self.topology.by_name[name].bits for train in trains]
        parts += [
            uid >> component.bits for component, uid in self.protocol.kept_effects() if component.anchored
        ]
        return np.concatenate(parts)

    def balance(self) -> dict[str, int]:
        """The ledger at this moment: emitted = completed + in flight + lost."""
        bits = self.topology.spout_bits
        first = self.ledger.base >> bits
        emitted = [
            (np.arange(first, s.next_root, dtype=np.int64) << bits) | s.spout_number for s in self.spouts
        ]
        coming = {
            name: [uid] for name, uid in effects_of(self.topology, self.draws, self.on_the_way()).items()
        }
        for component, uid in self.protocol.kept_effects():
            if component.anchored:
                coming.setdefault(component.name, []).append(uid)
        return self.ledger.balance(np.concatenate(emitted), coming, self.can_be_emitted())


def _data(train: Train) -> Train:
    """Without markers."""
    return train if train.mark is None else train.pick(train.mark == 0)


def _tick(task: BoltTask, i: int) -> None:
    task.tick(i + 1)
