"""The truth beside a run: what the windows would hold without failures, and what effects each root must
have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tideover.models.bolts.base import Children
from tideover.models.config import SpoutConfig
from tideover.models.ledger import EMPTY
from tideover.models.topology import Component, Topology
from tideover.models.windowlog import Place, WindowAudit
from tideover.models.windows import Counts, sums_by_key
from tideover.sim.draws import Draws
from tideover.sim.train import Ints, Train, join

if TYPE_CHECKING:
    from tideover.models.task import SpoutTask
    from tideover.models.world import World

STEP = 20_000
"""Roots that are gathered before the twin is moved."""


class Pool(Counts):
    """Counts of the first of a component's tasks, which counts for the others too: each owns some keys."""

    def __init__(self, keys: int, others: list[tuple[Counts, Ints]]) -> None:
        super().__init__(keys)
        self._others = others
        self._own = np.setdiff1d(np.arange(keys), np.concatenate([EMPTY, *(theirs for _, theirs in others)]))

    def add(self, train: Train) -> None:
        sums = sums_by_key(train, self.keys)
        for counts, keys in [(self, self._own), *self._others]:
            counts.add_sums(keys, sums[keys])


class Twin:
    """The same topology without failures, fed with the run's own first emissions, in lockstep.

    A tick waits in the queue behind all that has arrived before it, so what is in its window depends on
    arrivals only. Counts that end by tick and that nothing reads are therefore made at arrival, without
    service.

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
        for component in self._world.topology.components:
            if component.trigger == "tick" and not component.outputs:
                self._count_at_arrival(component)
        self._world.start()
        self.audit = WindowAudit()
        self.counts: dict[str, int] = {}
        """emitted, correct, wrong, missing windows, at the end."""
        self._fed = 0

    def _count_at_arrival(self, component: Component) -> None:
        """Let the tasks of a component count at arrival.

        If their keys are a partition of all keys, and all wires take equally long, nothing has to be put in
        order or spread over them: the first task counts for all.
        """
        tasks = [self._world.bolts[component.name, task][0] for task in range(component.tasks)]
        for task in tasks:
            task.count_at_arrival = True
        owners = [edge.grouping.owners(component.input_keys, component.tasks) for edge in component.inputs]
        delays = {channel.delay for task in tasks for channel in task.inputs}
        owner = owners[0]
        if owner is None or None in delays or len(delays) > 1:
            return
        if any(other is None or (other != owner).any() for other in owners):
            return
        tasks[0].counts = Pool(
            component.input_keys,
            [(task.counts, np.flatnonzero(owner == task.task)) for task in tasks[1:] if task.counts],
        )
        for sender in self._world.tasks:
            for outlet in sender.outlets:
                outlet.pooled |= outlet.edge.down is component

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
        waiting = {
            (task.component.name, task.task, number)
            for task in self._main.bolt_tasks
            for number in task.ticks_waiting
        }
        self.audit.due = {place for place in set(truth.open) - waiting if not self._awaited(*place)}
        while self._main.windows.open.keys() - truth.open.keys():
            event = kernel.next_data_event()
            if event is None or event <= kernel.now:
                break
            kernel.run(event)
        self.counts = self.audit.finish(self._main.windows, truth)

    def _awaited(self, component: str, task: int, number: int) -> bool:
        replicas = self._main.bolts[component, task]
        return any(self._main.protocol.awaited(replica, number) for replica in replicas)

    @property
    def bad(self) -> dict[Place, tuple[int, int]]:
        """Windows that are wrong or missing, and from when to when (ns) their content was."""
        return self.audit.bad


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
        _hand_on(spout, _untimed(mine, key), Children(), at)
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
    rows = slice(None) if children.rows is None else children.rows
    key = train.key[rows] if children.key is None else children.key
    for edge in component.outputs:
        uid = edge.child_uid(train.uid[rows], children.position)
        copies = range(edge.down.tasks) if edge.grouping.copies else range(1)
        at[edge.down.name] += [_untimed(uid | task if task else uid, key) for task in copies]


def _untimed(uid: Ints, key: Ints) -> Train:
    """Tuples without a time."""
    return Train(uid, uid, uid, key)
