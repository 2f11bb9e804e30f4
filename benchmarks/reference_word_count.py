"""The word count under source replay as one writes it in SimPy: a store and a process per task, a dict as
acker; or, not ``acking``, without any of that.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Generator
from typing import Any

import simpy

from tideover.models.operators.kinds import SENTENCES, WORDS

Process = Generator[simpy.Event, Any, None]
SPLIT = [sentence.split() for sentence in SENTENCES]
WORD_NUMBER = {word: number for number, word in enumerate(WORDS)}
TICK = None


class WordCount:
    """Spout, split and counting tasks, acker, a rotating map of two buckets, failures that take a count's
    state.
    """

    def __init__(
        self,
        rate: float,
        split_s: float,
        count_s: float,
        seconds: float,
        losses: list[tuple[float, int]],
        splitters: int = 4,
        counters: int = 8,
        window: float = 1.0,
        timeout: float = 2.0,
        seed: int = 1,
        acking: bool = True,
    ) -> None:
        self.acking = acking
        self.env = simpy.Environment()
        self.random = random.Random(seed)
        self.rate, self.split_s, self.count_s, self.seconds = rate, split_s, count_s, seconds
        self.window, self.timeout = window, timeout
        self.split_queues = [simpy.Store(self.env) for _ in range(splitters)]
        self.count_queues = [simpy.Store(self.env) for _ in range(counters)]
        self.counts: list[Counter[str]] = [Counter() for _ in range(counters)]
        self.held: list[list[tuple[int, int]]] = [[] for _ in range(counters)]
        self.acker: dict[int, int] = {}
        self.buckets: deque[dict[int, list[str]]] = deque([{}, {}])
        self.retries: deque[list[str]] = deque()
        self.losses = losses
        self.windows = 0
        self.emitted = self.completed = self.failed = 0
        self.hops = 0
        self.latency_sum = 0.0
        self.counted = 0

    # -- the spout and its rotating map

    def spout(self) -> Process:
        while True:
            yield self.env.timeout(self.random.expovariate(self.rate))
            words = self.retries.popleft() if self.retries else self.random.choice(SPLIT)
            root = self.emitted  # a retry gets an id of its own: late acks of the first attempt miss it
            self.emitted += 1
            tuple_id = 0
            if self.acking:
                tuple_id = self.random.getrandbits(64)
                self.acker[root] = tuple_id
                self.buckets[0][root] = words
            self.random.choice(self.split_queues).put((root, tuple_id, words, self.env.now))

    def rotate(self) -> Process:
        while True:
            yield self.env.timeout(self.timeout)
            for root, words in self.buckets.pop().items():
                self.acker.pop(root, None)
                self.failed += 1
                self.retries.append(words)
            self.buckets.appendleft({})

    def ack(self, root: int, value: int) -> None:
        if root not in self.acker:
            return
        value ^= self.acker[root]
        if value:
            self.acker[root] = value
            return
        del self.acker[root]
        self.completed += 1
        for bucket in self.buckets:
            if bucket.pop(root, None) is not None:
                break

    # -- bolts

    def split(self, queue: simpy.Store) -> Process:
        while True:
            root, tuple_id, words, born = yield queue.get()
            yield self.env.timeout(self.random.expovariate(1 / self.split_s))
            self.hops += 1
            value = tuple_id
            for word in words:
                child_id = 0
                if self.acking:
                    child_id = self.random.getrandbits(64)
                    value ^= child_id
                target = self.count_queues[WORD_NUMBER[word] % len(self.count_queues)]
                target.put((root, child_id, word, born))
            if self.acking:
                self.ack(root, value)

    def count(self, task: int) -> Process:
        queue = self.count_queues[task]
        while True:
            message = yield queue.get()
            if message is TICK:
                self.end_window(task)
                continue
            root, tuple_id, word, born = message
            yield self.env.timeout(self.random.expovariate(1 / self.count_s))
            self.hops += 1
            self.counts[task][word] += 1
            if self.acking:
                self.held[task].append((root, tuple_id))
            self.counted += 1
            self.latency_sum += self.env.now - born

    def end_window(self, task: int) -> None:
        self.windows += 1
        self.counts[task].clear()
        for root, tuple_id in self.held[task]:
            self.ack(root, tuple_id)
        self.held[task].clear()

    def ticks(self, task: int) -> Process:
        while True:
            yield self.env.timeout(self.window)
            yield self.count_queues[task].put(TICK)

    def fail(self, at: float, task: int) -> Process:
        yield self.env.timeout(at)
        self.counts[task].clear()
        self.held[task].clear()

    def run(self) -> None:
        self.env.process(self.spout())
        if self.acking:
            self.env.process(self.rotate())
        for queue in self.split_queues:
            self.env.process(self.split(queue))
        for task in range(len(self.count_queues)):
            self.env.process(self.count(task))
            self.env.process(self.ticks(task))
        for at, task in self.losses:
            self.env.process(self.fail(at, task))
        self.env.run(self.seconds)
