"""One fault and what came of it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.sim.recorder import Span
from tideover.sim.train import Ints


class Return(NamedTuple):
    """When something that was hit is noticed, and when it is back (ns)."""

    detected: int
    ready: int


@dataclass
class Outage:
    """A fault that struck, with the moments of its recovery (ns; None: not reached, or there is no such
    stage).

    detected_at      all that it hit is noticed, or back
    ready_at         all that it hit is back; as planned, until something else changes it
    tasks            the physical tasks that it hit
    returns          the same two moments for each thing that it hit: tasks, machines, the acker
    masked           each of them had a live replica that went on
    span             latencies of what was done until all was replayed, from creation stamps
    from_first       the same from each root's first emission; None: no difference, none was emitted again
    restored_at      state is back (read from a store, or copied from a replica)
    timed_out_at     the first root of which it destroyed something was given up, to be emitted again
    last_replay      arrival of the last tuple replayed because of it, at a task that it hit
    restored, replayed, dropped, extra    effects restored, tuples replayed, discarded as duplicates, and
                                          applied twice
    """

    number: int
    kind: str
    component: str
    failed_at: int
    detected_at: int
    ready_at: int
    span: Span
    tasks: list[Any] = field(default_factory=list)
    returns: dict[Any, Return] = field(default_factory=dict)
    masked: bool = False
    from_first: Span | None = None
    restored_at: int | None = None
    timed_out_at: int | None = None
    last_replay: int | None = None
    restored: int = 0
    replayed: int = 0
    dropped: int = 0
    extra: int = 0
    missing_closed: int = 0
    """Effects that were missing when their roots were settled for good."""
    lost_effects: list[tuple[Any, Any]] = field(default_factory=list)

    def add(
        self, times: Ints, latency: Ints, from_first: Ints, replayed: npt.NDArray[np.bool_] | None
    ) -> None:
        """Tuples were measured at ``times`` (rising) after it struck; ``replayed``: because of it."""
        if self.from_first is None and from_first is not latency:
            self.from_first = deepcopy(self.span)
        self.span.add(times, latency, replayed)
        if self.from_first is not None:
            self.from_first.add(times, from_first, replayed)

    def settle(self) -> None:
        """A step of the data plane is over, and all tasks have reported."""
        self.span.settle()
        if self.from_first is not None:
            self.from_first.settle()

    def hit(self, victims: list[Any]) -> None:
        """These are down."""
        self.returns = {victim: Return(self.detected_at, self.ready_at) for victim in victims}

    def struck_again(self, victim: Any, newer: Outage) -> None:
        """A newer fault has hit what is not back yet: it is back from both when it is back from that one, and
        if nobody has noticed yet, detection begins anew too.
        """
        detected = self.returns[victim].detected
        detected = detected if detected < newer.failed_at else newer.detected_at
        self._revise(victim, Return(detected, newer.ready_at))

    def expect(self, victim: Any, ready: int) -> None:
        """What it hit is back at ``ready`` (ns), or will be."""
        self._revise(victim, self.returns[victim]._replace(ready=ready))

    def _revise(self, victim: Any, back: Return) -> None:
        self.returns[victim] = back
        self.detected_at = max(min(back) for back in self.returns.values())
        self.ready_at = max(back.ready for back in self.returns.values())
