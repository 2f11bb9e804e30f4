"""The truth beside a run: what the windows would hold without failures, and what effects each root must
have.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tideover.models.bolts.base import Children
from tideover.models.config import SpoutConfig
from tideover.models.groupings.fields import Fields
from tideover.models.strategies.base import Protocol
from tideover.models.stream import Outlet
from tideover.models.task import BoltTask
from tideover.models.topology import Component, Topology
from tideover.models.windowlog import WindowAudit
from tideover.sim.draws import Draws
from tideover.sim.train import Ints, Train, join

if TYPE_CHECKING:
    from tideover.models.task import SpoutTask
    from tideover.models.world import World

STEP = 20_000
"""Roots that are gathered before the twin is moved."""
EXACT = 10_000
"""Mean service times before the run's end from which on a twin's counts serve tuple by tuple."""
MOST_ENTRIES = 1 << 16
"""Greatest table of the keys that become of keys."""


class Twin:
    """The same topology without failures, fed with the run's own first emissions, in lockstep.

    It pays the strategy's costs in normal operation (acks), so that a failure-free run equals its twin. A
    replay that delays later roots is not an error of the windows: the twin gets those roots late too.
    """

    def __init__(self, world: World) -> None:
        strategy = world.strategy.undisturbed()
        quiet = world.scenario.model_copy(update={"failures": ()})
        self._main = world
        self._world = type(world)(
            quiet, world.draws.replication, train_cap=world.train_cap, feed=True, strategy=strategy
        )
        count_early(self._world)
        self._world.start()
        self.audit = WindowAudit()
        self._fed = 0

    def feed(self, spout: SpoutTask, train: Train) -> None:
        """Roots that the run has emitted; those emitted for the first time go to the twin."""
        if train.attempt is not None:
            train = train.pick(train.attempt == 0).replace(attempt=None)
        if train.n:
            self._world.spouts[spout.spout_number].feed(train)
            self._fed += train.n

    def follow(self, now: int) -> None:
        """Move the twin to just before ``now``, if there is enough to move."""
        if self._fed >= STEP and now > self._world.kernel.now + 1:
            self._world.kernel.run(now - 1)
            self._fed = 0
            self.audit.match(self._main.windows, self._world.windows)

    def finish(self) -> None:
        """Move the twin to the end, and on to the windows that a faster replica has emitted by then."""
        truth = self._world.windows
        kernel = self._world.kernel
        kernel.run(self._main.scenario.run.duration)
        self.audit.match(self._main.windows, truth)
        self.audit.due = set(truth.open)
        while self._main.windows.open.keys() - truth.open.keys():
            event = kernel.next_data_event()
            if event is None or event <= kernel.now:
                return
            kernel.run(event)

    def counts(self) -> dict[str, int]:
        """emitted, correct, wrong, missing windows."""
        return self.audit.counts(self._main.windows, self._world.windows)


def count_early(world: World) -> None:
    """Spare a twin most of the work at its counts.

    A tick waits in the queue behind all that has arrived before it. So what is in a window depends on
    arrivals only, and when it is emitted matters only at the run's end: is it out by then, or not? So counts
    that nobody reads take in their tuples as sums, at arrival, and are as busy as they would be on average,
    until the last windows; from then on they serve tuple by tuple. A queue that was empty once in between has
    forgotten how it was before.
    """
    protocol = type(world.protocol)
    plain = protocol.receive is Protocol.receive and protocol.admit is Protocol.admit
    if not plain or world.topology.marker_length is not None:
        return
    for tasks in world.bolts.values():
        for task in tasks:
            window = task.component.window
            if window is None or window.window.length is None or task.outlets:
                continue
            length = window.window.length
            exact = max(length, round(EXACT * task.config.service.mean_ns))
            last = (world.scenario.run.duration - exact) // length * length
            task.count_early_until = last if last > 0 else -1
    for tasks in world.bolts.values():
        for task in tasks:
            if task.component.bolt.by_key and task.outlets and all(_sums(o) for o in task.outlets):
                outlets = [SumOutlet(task, outlet, world.draws) for outlet in task.outlets]
                task.hand_on_sums = partial(_hand_on_sums, outlets)


def _sums(outlet: Outlet) -> bool:
    """Whether sums by key can be sent instead of tuples: then the key must say who gets them."""
    return (
        isinstance(outlet.edge.grouping, Fields)
        and outlet.edge.up.input_keys * outlet.edge.down.input_keys <= MOST_ENTRIES
        and all(
            len(row) == 1
            and row[0].constant_latency is not None
            and isinstance(row[0].down, BoltTask)
            and row[0].down.count_early_until > 0
            for row in outlet.channels
        )
    )


class SumOutlet:
    """Sends to the counts at the end of an edge how many tuples of each key there are."""

    def __init__(self, task: BoltTask, outlet: Outlet, draws: Draws) -> None:
        down = outlet.channels[0][0].down
        assert isinstance(down, BoltTask)
        window = down.component.window
        assert window is not None
        assert window.window.length is not None
        self._length = window.window.length
        self._until = down.count_early_until
        latencies = [row[0].constant_latency or 0 for row in outlet.channels]
        self._least, self._most = min(latencies), max(latencies)
        keys = np.arange(task.component.input_keys, dtype=np.int64)
        one_each = Train(keys, keys, keys, keys)
        children = task.component.bolt.children(task.component.name, draws, one_each)
        rows = keys if children.rows is None else children.rows
        key = keys[rows] if children.key is None else children.key
        self._made = np.zeros((len(keys), down.component.input_keys), np.int64)
        """How many tuples of each key a tuple of each key makes."""
        np.add.at(self._made, (rows, key), 1)
        every = np.arange(down.component.input_keys, dtype=np.int64)
        target = outlet.edge.grouping.targets(
            outlet.edge.name, draws, Train(every, every, every, every), len(outlet.channels)
        )
        self._wires = [(row[0], every[target == i]) for i, row in enumerate(outlet.channels)]

    def can(self, first: int, last: int) -> bool:
        """Whether all that leaves from ``first`` to ``last`` falls into one window."""
        begin, end = first + self._least, last + self._most
        return end <= self._until and -(-begin // self._length) == -(-end // self._length)

    def send(self, keys: Ints, now: int) -> None:
        """Send what these keys become, as if all had left at ``now``."""
        sums = np.bincount(keys, minlength=len(self._made)) @ self._made
        for wire, mine in self._wires:
            if len(mine):
                count = sums[mine]
                wire.send(Train(np.full(len(mine), now, np.int64), mine, mine, mine, value=count, seq=count))


def _hand_on_sums(outlets: list[SumOutlet], train: Train) -> bool:
    """Send the children of a train as sums; False: that can not be done."""
    first, last = int(train.time[0]), int(train.time[-1])
    if train.value is not None or not all(outlet.can(first, last) for outlet in outlets):
        return False
    for outlet in outlets:
        outlet.send(train.key, last)
    return True


def expected_effects(topology: Topology, draws: Draws, roots: Ints) -> dict[str, Ints]:
    """Uids of all effects that the roots must have, by component: the topology as a pure function, without
    time.
    """
    at: dict[str, list[Train]] = {c.name: [] for c in topology.components}
    owner = roots & ((1 << topology.spout_bits) - 1)
    for number, (spout, _) in enumerate(topology.spout_tasks):
        mine = roots[owner == number] if topology.spout_bits else roots
        if not len(mine):
            continue
        assert isinstance(spout.config, SpoutConfig)
        key, _value = spout.config.spout.content(spout.name, draws, mine, mine >> topology.spout_bits)
        train = Train(np.zeros(len(mine), np.int64), mine, np.zeros(len(mine), np.int64), key)
        _hand_on(spout, train, Children(), at)
    return effects_of(topology, draws, at)


def effects_of(topology: Topology, draws: Draws, at: dict[str, list[Train]]) -> dict[str, Ints]:
    """Uids of all effects that tuples waiting ``at`` components will have, by component."""
    effects: dict[str, Ints] = {}
    for component in topology.components:
        if component.is_spout or not at[component.name]:
            continue
        train = join(at.pop(component.name))
        if component.ends_roots:
            effects[component.name] = train.uid
        elif component.output_anchored:
            _hand_on(component, train, component.bolt.children(component.name, draws, train), at)
    return effects


def _hand_on(component: Component, train: Train, children: Children, at: dict[str, list[Train]]) -> None:
    for edge in component.outputs:
        child = train if children.rows is None else train.pick(children.rows)
        uid = edge.child_uid(child.uid, children.position)
        child = child.replace(uid=uid, key=child.key if children.key is None else children.key)
        copies = range(edge.down.tasks) if edge.grouping.copies else range(1)
        at[edge.down.name] += [child.replace(uid=uid | task) if task else child for task in copies]
