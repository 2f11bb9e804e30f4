"""Complete latency: from a root's emission until its tree is acked."""

from __future__ import annotations

from tideover.sim.histogram import Histogram
from tideover.sim.train import Ints


class Completion:
    """How long roots took from their last emission until all of their tree was acked.

    latency   of the roots that were completed after ``warmup`` (ns)
    """

    def __init__(self, warmup: int) -> None:
        self._warmup = warmup
        self.latency = Histogram()

    def on_completed(self, root: Ints, attempt: Ints, emitted: Ints, time: Ints) -> None:
        late = time > self._warmup
        self.latency.add(time[late] - emitted[late])
