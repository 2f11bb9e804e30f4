"""The tandem as one writes it in SimPy: a store and a process per task."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import simpy

Process = Generator[simpy.Event, Any, None]


class Tandem:
    """Three queues, one after the other; ``run`` returns the mean time that a tuple spends in them."""

    def __init__(self, rate: float, load: float, tuples: int, seed: int) -> None:
        self.env = simpy.Environment()
        self.random = random.Random(seed)
        self.rate = rate
        self.service_rate = rate / load
        self.tuples = tuples
        self.done = 0
        self.total_time = 0.0

    def source(self, out: simpy.Store) -> Process:
        for _ in range(self.tuples):
            yield self.env.timeout(self.random.expovariate(self.rate))
            yield out.put(self.env.now)

    def task(self, queue: simpy.Store, out: simpy.Store) -> Process:
        while True:
            created = yield queue.get()
            yield self.env.timeout(self.random.expovariate(self.service_rate))
            yield out.put(created)

    def last_task(self, queue: simpy.Store) -> Process:
        while True:
            created = yield queue.get()
            yield self.env.timeout(self.random.expovariate(self.service_rate))
            self.done += 1
            self.total_time += self.env.now - created

    def run(self) -> float:
        first, second, third = (simpy.Store(self.env) for _ in range(3))
        self.env.process(self.source(first))
        self.env.process(self.task(first, second))
        self.env.process(self.task(second, third))
        self.env.process(self.last_task(third))
        self.env.run()
        return self.total_time / self.done
