"""Complete latency: from a root's emission until its tree is acked."""

from __future__ import annotations

import numpy as np

from tideover.models.runtime.stream import Sent
from tideover.models.runtime.views import SpoutView
from tideover.sim.histogram import Histogram
from tideover.sim.train import Ints, Train


class Completion:
    """How long roots took from their last emission until all of their tree was acked.

    latency   of the roots that were completed after ``warmup`` (ns)
    """

    def __init__(self, spouts: int, spout_bits: int, warmup: int) -> None:
        self._bits, self._warmup = spout_bits, warmup
        self._emitted: list[Ints] = [np.zeros(1024, np.int64) for _ in range(spouts)]
        self.latency = Histogram()

    def on_emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        number, emitted = train.uid >> self._bits, self._emitted[spout.spout_number]
        most = int(number.max())
        if most >= len(emitted):
            emitted = np.concatenate([emitted, np.zeros(max(most + 1, len(emitted)), np.int64)])
            self._emitted[spout.spout_number] = emitted
        emitted[number] = train.time

    def on_completed(self, root: Ints, attempt: Ints, time: Ints) -> None:
        late = time > self._warmup
        root, time = root[late], time[late]
        spout = root & ((1 << self._bits) - 1)
        for number, emitted in enumerate(self._emitted):
            mine = np.flatnonzero(spout == number)
            if len(mine):
                self.latency.add(time[mine] - emitted[root[mine] >> self._bits])
