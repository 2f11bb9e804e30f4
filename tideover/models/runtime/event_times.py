"""When the events took place that tuples tell of."""

from __future__ import annotations

import numpy as np

from tideover.models.job.components import SpoutConfig
from tideover.models.job.topology import Topology
from tideover.sim.draws import Draws, Purpose
from tideover.sim.train import Ints, Train


class EventTimes:
    """The time of the event of each root (ns): for good, so a retry has that of the first attempt.

    It is what the spout says (``stamps``), else ``event_delay`` (drawn by the root) before the root was first
    emitted, or appended to the queue before its spout; not before 0.
    """

    def __init__(self, topology: Topology, draws: Draws) -> None:
        self._draws = draws
        self._bits = topology.spout_bits
        self._spouts: list[tuple[str, SpoutConfig]] = []
        for component, _ in topology.spout_tasks:
            assert isinstance(component.config, SpoutConfig)
            self._spouts.append((component.name, component.config))
        self._known: list[Ints] = [np.zeros(0, np.int64) for _ in self._spouts]

    def emitted(self, spout: int, train: Train) -> None:
        """The spout task of that number emits roots; those of first attempts tell of new events."""
        new = train if train.attempt is None else train.pick(train.attempt == 0)
        if not new.n:
            return
        name, config = self._spouts[spout]
        number = new.uid >> self._bits
        events = config.spout.stamps_of(number)
        if events is None:
            delay = config.event_delay.sample(self._draws.bits(name, Purpose.EVENT, new.uid))
            events = np.maximum(new.created - delay, 0)
        known, most = self._known[spout], int(number.max()) + 1
        if most > len(known):
            self._known[spout] = np.zeros(max(most, 2 * len(known), 1 << 10), np.int64)
            self._known[spout][: len(known)] = known
        self._known[spout][number] = events

    def of(self, roots: Ints) -> Ints:
        """When the events of these roots took place."""
        number = roots >> self._bits
        if len(self._spouts) == 1:
            return self._known[0][number]
        events = np.zeros(len(roots), np.int64)
        for spout, known in enumerate(self._known):
            mine = roots & ((1 << self._bits) - 1) == spout
            events[mine] = known[number[mine]]
        return events
