"""The world in which strategies are held to their word, and what strikes it.

A word count in seconds, small enough to be simulated hundreds of times:

    words x 2 ──shuffle──▶ split x 2 ──fields──▶ count x 2    2 sentences/s a task, windows of 5 s ended by
    markers, 55 s
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tideover.models.config import Scenario
from tideover.models.job.arrivals.periodic import Periodic
from tideover.models.job.components import BoltConfig, Links, Run, SpoutConfig, Store
from tideover.models.job.groupings.fields import Fields
from tideover.models.job.groupings.shuffle import Shuffle
from tideover.models.job.spouts.sentences import Sentences
from tideover.models.job.stores.disk import Disk
from tideover.models.operators.split_words import SplitWords
from tideover.models.operators.stateful import Stateful
from tideover.models.operators.window import Window
from tideover.models.operators.windowed_count import WindowedCount
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import Strategy
from tideover.sim.distributions.constant import Constant
from tideover.sim.distributions.exponential import Exponential
from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.faults.base import FAULTS, Fault
from tideover.sim.units import S

Trigger = Literal["marker", "tick"]
MS = S // 1000
STORE = 5 * MS
"""Latency of the store."""
WINDOW = 5 * S
END = 2 * WINDOW
"""End of the window at which faults strike, and after it: there is state to lose by then."""
LONG = END + 9 * WINDOW
"""How long the world is, where nobody says how long it has to be."""
DOWN = 2 * S
"""Longest time for which a task is down."""


class Strike(NamedTuple):
    """When a fault strikes; after how long it is detected, and the task restarted 3 times as long after that;
    what becomes of arrivals meanwhile. Times in ns.
    """

    at: int
    detection: int = 0
    while_down: str = "drop"


STRIKES = (
    Strike(END + 2 * S),
    Strike(END),
    Strike(END + 5 * MS, S // 2),
    Strike(END + 2 * S, S // 2, "hold"),
)
"""In a window, at its end, and while its end is under way. Whole seconds: a strategy whose beat is one second
(two) is struck at the instants at which it acts.
"""
WHERE = (("words", "count"), ("split", "count"), ("count", "split"), ("count", "count"))
"""Components of two faults."""
OF_TASKS = ("crash_host", "crash_task", "lose_state", "pause")
"""Kinds that are struck in all pairs."""
VARIANTS = (0.37, 2.3)
"""Settings of a strategy's interval at which it is held to its promise too, as multiples of the given one."""


def word_count(
    strategy: Strategy,
    failures: tuple[Fault, ...] = (),
    *,
    seed: int = 1,
    trigger: Trigger = "marker",
    bolt: type[Stateful] = WindowedCount,
    duration: int = LONG,
) -> Scenario:
    """The world of the checks, every task on a host of its own; ``trigger``: what ends its windows;
    ``bolt``: what counts; ``duration``: in ns.
    """
    words = SpoutConfig(spout=Sentences(), arrivals=Periodic(rate=2.0), parallelism=2)
    split = BoltConfig(
        bolt=SplitWords(), from_={"words": Shuffle()}, service=Exponential(mean=2 * MS), parallelism=2
    )
    count = BoltConfig(
        bolt=bolt(window=Window(length=WINDOW, trigger=trigger)),
        from_={"split": Fields(fields=("word",))},
        service=Constant(value=1 * MS),
        parallelism=2,
    )
    return Scenario(
        name="conformance",
        topology={"words": words, "split": split, "count": count},
        strategy=strategy,
        failures=failures,
        links=Links(latency=Exponential(mean=3 * MS), local=Constant(value=0), pairs={}),
        store=Store(latency=STORE),
        stores={"disk": Disk(latency=STORE // 5)},
        run=Run(duration=duration, seed=seed),
    )


def long_enough(strategy: Strategy) -> int:
    """How long a world has to be (ns) for a failure within a window of END, its recovery, and two windows
    after that.
    """
    return END + WINDOW + strategy.recovers_within(DOWN, WINDOW) + 2 * WINDOW


def run(scenario: Scenario, **more: Any) -> Replication:
    """Simulate; the ledger has to balance after every run of every check."""
    done = simulate(scenario, **more)
    add_up(done.ledger)
    return done


def add_up(ledger: Mapping[str, int]) -> None:
    """Emitted = completed + in flight + lost."""
    assert ledger["emitted"] == ledger["completed"] + ledger["in_flight"] + ledger["lost"], (
        f"roots do not add up: {ledger}"
    )


def variants(strategy: Strategy) -> list[Strategy]:
    """The strategy, and the same with other intervals: with other values of the parameters that are the
    period of its ``cycle``. Where there is no cycle, or a limit forbids the value, there are fewer.
    """
    found = [strategy]
    cycle = strategy.cycle()
    given = dict(strategy)
    for name, factor in itertools.product(given if cycle else (), VARIANTS):
        assert cycle is not None
        if given[name] == cycle[1]:
            try:
                other = type(strategy).model_validate(given | {name: round(factor * cycle[1])})
            except ValueError:
                continue
            if other.cycle() != cycle:
                found.append(other)
    return found


def off_beat(strategy: Strategy, bolt: type[Stateful] = WindowedCount) -> tuple[Strike, ...]:
    """Strikes at moments that are the strategy's own: just after it has emitted a window, and drawn ones, one
    within the first period of its cycle after the window's end, one anywhere in the next window.
    """
    done = run(word_count(strategy, bolt=bolt, duration=END + 2 * WINDOW), trace=True)
    assert done.trace is not None
    emitted = [row[4] for row in done.trace.windows if row[:2] == ("count", 0) and row[4] >= END]
    cycle = strategy.cycle()
    period = WINDOW if cycle is None else min(cycle[1], WINDOW)
    text = f"{strategy.kind} {period}"  # another interval, other moments
    soon, later = uniform01(Draws(0).bits(text, Purpose.FAULT, np.arange(2))).tolist()
    return (
        Strike(min(emitted) + 1),
        Strike(END + round((0.1 + 0.8 * soon) * period)),
        Strike(END + round((0.1 + 0.8 * later) * WINDOW), S // 2),
    )


def combined(whole: bool, *axes: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    """Combinations of values on several axes: all, or so many that each two meet."""
    return itertools.product(*axes) if whole else pairwise(*axes)


def pairwise(*axes: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Of all combinations a few: each value of an axis meets each value of every other one in one of them."""
    combinations = list(itertools.product(*(range(len(axis)) for axis in axes)))
    axis_pairs = list(itertools.combinations(range(len(axes)), 2))

    def met(combination: tuple[int, ...]) -> set[tuple[int, ...]]:
        return {(a, b, combination[a], combination[b]) for a, b in axis_pairs}

    missing = set().union(*map(met, combinations))
    while missing:
        best = max(combinations, key=lambda combination: len(met(combination) & missing))
        missing -= met(best)
        yield tuple(axis[i] for axis, i in zip(axes, best, strict=True))


def fault(kind: str, component: str, strike: Strike) -> Fault:
    """A fault of a kind that strikes (the first task of) a component."""
    hosts = {"words": 0, "split": 2, "count": 4}
    at, detection, down = strike
    where = FAULTS[kind].aimed_at(component, hosts[component])
    downtime = {"detection": detection, "restart": 3 * detection, "while_down": down}
    passing = {"duration": 4 * detection or MS} if "duration" in FAULTS[kind].model_fields else {}
    times = downtime if FAULTS[kind].kills else passing
    return FAULTS[kind].model_validate({"at": at} | times | where)


def striking() -> list[str]:
    """The kinds that strike by themselves, and do not stand for others."""
    return [kind for kind, part in FAULTS.items() if not part.expands]


def components(strategy: Strategy) -> tuple[str, ...]:
    """Those whose tasks a fault may hit without harm to the promise: a strategy may leave out bolts without
    state (``stateless_too``).
    """
    return ("words", "split", "count") if strategy.stateless_too else ("words", "count")
