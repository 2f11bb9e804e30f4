"""Failures that strike once, each in a run as long as it takes, at moments spread over what recurs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.schema.endings import LOSSY
from tideover.scenarios.lost_time.curve import Part
from tideover.scenarios.probe import period_of
from tideover.scenarios.statistics.causes import Cause
from tideover.scenarios.statistics.conditioning import down_s, simulated
from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.faults.base import Fault
from tideover.sim.units import S

_STEPS = ((math.sqrt(5) - 1) / 2, math.sqrt(2) - 1, (math.sqrt(13) - 3) / 2)
_LONGER = 3
"""A run in which a failure is not over is made twice as long, so many times."""


class Felt(NamedTuple):
    """What a failure did (s); None: it is not known.

    seconds   for how long the run was other than without it (None: to its end)
    noticed   until it was noticed
    down      until what failed was ready, with its state
    ended     how the recovery ended; with loss if one of several did
    """

    seconds: float | None
    noticed: float | None
    down: float | None
    ended: str


class Stretch(NamedTuple):
    """The moments at which a failure may strike (ns): from ``begin`` on for ``length``, in which all that
    recurs (checkpoints, windows) is in each of its states about as often as ever.
    """

    begin: int
    length: int

    @staticmethod
    def of(scenario: Scenario) -> Stretch:
        """The first one after the warm-up, and after a first checkpoint."""
        warmup, most = scenario.run.warmup, period_of(scenario)
        if (cycle := scenario.strategy.cycle()) is None:
            return Stretch(warmup, most or S)
        first, period = cycle
        before = max(1, -(-(warmup - first) // period))
        return Stretch(first + before * period, -(-most // period) * period)

    def moment(self, part: float) -> int:
        """The moment that a part of it has passed."""
        return self.begin + round(part * self.length)


def spread(seed: int, name: str, replication: int, dimensions: int = 1) -> list[float]:
    """Numbers in (0, 1), at most three, for a replication. Those of replications 0, 2, 4 … are even in each
    dimension, and in all together: steps that are far from all fractions (golden, silver and bronze means),
    from where a draw begins. Replications 1, 3, 5 … mirror them: so what grows evenly with the number (work
    since the last checkpoint) has its mean in each pair.
    """
    begins = uniform01(Draws(seed).bits(name, Purpose.FAULT, np.arange(dimensions)))
    pair, mirrored = divmod(replication, 2)
    found = [
        math.fmod(float(begin) + pair * step, 1.0)
        for begin, step in zip(begins, _STEPS[:dimensions], strict=True)
    ]
    return [1 - value for value in found] if mirrored else found


def felt(scenario: Scenario, cause: Cause, replication: int, stretch: Stretch, longer: int) -> Felt:
    """What a failure of this cause does in a replication; ``longer``: see `struck`."""
    (part,) = spread(scenario.run.seed, cause.name, replication)
    fault = cause.strikes[replication // 2 % len(cause.strikes)]
    tail = scenario.run.duration - (fault.latest or 0) + longer
    return struck(scenario, fault, stretch.moment(part), tail, replication)


def struck(
    scenario: Scenario, fault: Fault, moment: int, tail: int, replication: int, longer: int = _LONGER
) -> Felt:
    """What a failure does that strikes at a ``moment`` (ns). The run goes on for ``tail`` (ns), and if it is
    not over then for twice as long, ``longer`` times.
    """
    once = fault.model_copy(update={"at": moment, "within": None, "in_interval": None})
    run = scenario.run.model_copy(update={"duration": moment + tail})
    one = scenario.model_copy(update={"failures": (once,), "run": run})
    done = simulated(one, replication, fault.kind)
    seconds = down_s(done, one)
    if seconds is None and longer:
        return struck(scenario, fault, moment, 2 * tail, replication, longer - 1)
    first = done.recoveries[0]
    known = [row for row in done.recoveries if None not in (row["ready_at_s"], row["restore_s"])]
    downs = [row["ready_at_s"] + row["restore_s"] - row["failed_at_s"] for row in known]
    noticed, endings = first["detected_at_s"], [row["ended"] for row in done.recoveries]
    return Felt(
        seconds,
        None if noticed is None else noticed - first["failed_at_s"],
        max(downs) if downs else None,
        LOSSY if LOSSY in endings else endings[0],
    )


def mean_of(
    causes: Sequence[Cause], felts: Sequence[Sequence[Felt]], what: Callable[[Felt], float | None]
) -> float | None:
    """The mean of what failures did, each as often as its cause; where it is not known it is left out."""
    every = [
        (cause.rate_per_s, what(one)) for cause, found in zip(causes, felts, strict=True) for one in found
    ]
    known = [(rate, value) for rate, value in every if value is not None]
    rates = sum(rate for rate, _ in known)
    return sum(rate * value for rate, value in known) / rates if rates else None


def parts_of(causes: Sequence[Cause], felts: Sequence[Sequence[Felt]], replications: int) -> tuple[Part, ...]:
    """What each cause takes; nothing is known of one that struck in no replication."""
    never = (None,) * replications
    return tuple(
        Part(
            cause.name,
            cause.rate_per_s,
            tuple(each.seconds for each in found) or never,
            tuple(each.ended for each in found),
        )
        for cause, found in zip(causes, felts, strict=True)
    )


def remarks_on(scenario: Scenario, causes: Sequence[Cause], replications: int) -> list[str]:
    """What an expert would remark on such runs."""
    run = scenario.run.model_copy(update={"replications": replications})
    return warnings(causes[0].struck(scenario.model_copy(update={"run": run}), 0))
