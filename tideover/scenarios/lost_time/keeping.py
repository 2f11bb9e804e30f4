"""What checkpoints keep from work, where nothing fails."""

from __future__ import annotations

import math
from typing import NamedTuple

from tideover.models.coarsening import coarsened, coarseness
from tideover.models.config import Scenario
from tideover.models.evaluation.bottleneck import Load, Used
from tideover.models.strategies.base import given
from tideover.models.world import World
from tideover.scenarios.lost_time.strikes import Stretch
from tideover.sim.memory import standing
from tideover.sim.units import MAX_DURATION

FULL = 0.995
"""What is busy for so much of the time has none to lose."""


class Kept(NamedTuple):
    """What checkpoints keep from work.

    name   of the task (or the cores, or the card) that is set back most by them
    busy   which part of the time it is busy without them
    part   which part of the time they keep it
    gives_up   whether tuples are given up that wait for a checkpoint, though nothing fails
    """

    name: str
    busy: float
    part: float
    gives_up: bool = False

    @property
    def behind(self) -> float:
        """Part of the time in which it stands still for them, or catches up with what came meanwhile."""
        full = self.gives_up or self.busy + self.part >= FULL
        return math.inf if full else self.part / (1 - self.busy)


def keeps(scenario: Scenario, interval: int) -> Kept:
    """What checkpoints at the scenario's ``interval`` (ns) keep from work: the task that they set back most.

    Found by two runs of one replication with the same luck, of which one makes none, or free ones: what is
    busy for longer in the other is so by them. Both are as long as what the scenario measures, in whole
    intervals.
    A store is not asked, as what it writes keeps nobody from work that does not wait for it.
    """
    begin = Stretch.of(scenario).begin
    measured = max(interval, scenario.run.duration - scenario.run.warmup)
    end = begin + -(-measured // interval) * interval
    strategy, key = scenario.strategy, scenario.strategy.saves_every
    if strategy.needs.one_job:  # snapshots that take no time: without any, the log would keep all of the run
        free = dict.fromkeys((name for keys in strategy.costs.values() for name in keys), 0)
    else:
        free = dict.fromkeys((key, *given(strategy, strategy.gives_up)), MAX_DURATION // 4)
    without = scenario.model_copy(update={"strategy": strategy.model_copy(update=free)})
    (less, _), (more, gives_up) = _busy(without, begin, end), _busy(scenario, begin, end)
    found = [
        Kept(a.words, a.busy, max(0.0, b.busy - a.busy), gives_up)
        for a, b in zip(less, more, strict=True)
        if a.kind != "store"
    ]
    full = max(found, key=lambda kept: kept.busy)
    return full if full.busy >= FULL else max(found, key=lambda kept: (kept.behind, kept.busy))


@standing()  # the worlds go when they end
def _busy(scenario: Scenario, begin: int, end: int) -> tuple[list[Load], bool]:
    """How busy everything is from ``begin`` to ``end`` (ns), if nothing fails, and whether tuples are given
    up all the same.
    """
    run = scenario.run.model_copy(update={"duration": end, "warmup": begin})
    quiet = scenario.model_copy(update={"failures": (), "run": run})
    world = World(coarsened(quiet, coarseness(quiet)), judge_windows=False, looks=1)
    world.run()
    assert world.usage is not None
    return Used.of(world.usage).loads(begin, end), world.ledger.false_timeouts > 0
