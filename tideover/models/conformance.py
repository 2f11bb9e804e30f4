"""Whether a strategy keeps its word: checks that hold for every strategy, built-in or from outside.

Tests of strategies call it, those of other packages too. Each check takes a strategy (an instance, with its
parameters) and raises AssertionError if it does not hold; ``CHECKS`` lists them, ``conforms`` runs them all.

The world of the checks is a word count in seconds, small enough to be simulated hundreds of times:

    words x 2 ──shuffle──▶ split x 2 ──fields──▶ count x 2    2 sentences/s a task, windows of 5 s ended by
    markers, 55 s

It has a store, and on each host a disk (of `stores` the one that is called ``disk``). In a second one
ticks end the windows, for strategies that promise exactly once also then. Checks that simulate can be
given another ``bolt`` with state in place of the count. Those that cross kinds of failures with victims
and moments try so many combinations that each two of these meet; as a ``whole`` they try all
(``THOROUGH``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from tideover.models.config import Scenario
from tideover.models.job.arrivals import Periodic
from tideover.models.job.components import BoltConfig, Links, Run, SpoutConfig, Store
from tideover.models.job.groupings import Fields, Shuffle
from tideover.models.job.spouts import Sentences
from tideover.models.job.stores import Disk
from tideover.models.operators.base import Stateful
from tideover.models.operators.kinds import SplitWords, WindowedCount
from tideover.models.operators.window import Window
from tideover.models.results import Result
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES, Promise, Strategy
from tideover.models.world import World
from tideover.sim.distributions import Constant, Exponential
from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.faults import FAULTS, Fault
from tideover.sim.kernel import standing
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


def as_hosts() -> frozenset[str]:
    """Kinds that are as `crash_host` where each host has one task, in one worker: few of their strikes do."""
    kinds = (kind for kind, part in FAULTS.items() if part.kills and part.hits is not Fault.hits)
    return frozenset(kinds) - {"crash_host"}


def word_count(
    strategy: Strategy,
    failures: tuple[Fault, ...] = (),
    *,
    seed: int = 1,
    trigger: Trigger = "marker",
    bolt: type[Stateful] = WindowedCount,
    duration: int = LONG,
) -> Scenario:
    """The world of the checks, every task on a host of its own: ``bolt`` counts, ``trigger`` ends windows."""
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
    """Of a world (ns) with a failure in the window of END, its recovery, and two windows after that."""
    return END + WINDOW + strategy.recovers_within(DOWN, WINDOW) + 2 * WINDOW


def add_up(ledger: Mapping[str, int]) -> None:
    accounted = ledger["completed"] + ledger["in_flight"] + ledger["lost"]
    assert ledger["emitted"] == accounted, f"roots do not add up: {ledger}"


def run(scenario: Scenario, **more: Any) -> Replication:
    """Simulate; the ledger has to balance after every run of every check."""
    done = simulate(scenario, **more)
    add_up(done.ledger)
    return done


def variants(strategy: Strategy) -> list[Strategy]:
    """The strategy, and the same with other intervals: with other values of the parameters that are the
    period of its ``cycle``. Where there is no cycle, or a limit forbids the value, there are fewer.
    """
    found = [strategy]
    cycle, given = strategy.cycle(), dict(strategy)
    periods = [name for name in given if cycle is not None and given[name] == cycle[1]]
    for name, factor in itertools.product(periods, VARIANTS):
        try:
            other = type(strategy).model_validate(given | {name: round(factor * given[name])})
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


def combined(whole: bool, *axes: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """All combinations of values on several axes; or a few, in which each two values on two axes meet."""
    if whole:
        yield from itertools.product(*axes)
        return
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
    times = FAULTS[kind].lasting(detection, 3 * detection)
    if FAULTS[kind].kills:
        times["while_down"] = down
    return FAULTS[kind].model_validate({"at": at} | times | where)


def components(strategy: Strategy) -> tuple[str, ...]:
    """Those whose tasks a fault may hit without harm to the promise."""
    return ("words", "split", "count") if strategy.stateless_too else ("words", "count")


def describes_itself(strategy: Strategy) -> None:
    """Its name, a docstring, every parameter described, a promise, and failure kinds that exist."""
    cls = type(strategy)
    assert STRATEGIES[strategy.kind] is cls, f"{cls.__name__} is not registered as {strategy.kind!r}"
    assert (cls.__doc__ or "").strip(), f"{cls.__name__} has no docstring"
    silent = [name for name, field in cls.model_fields.items() if not field.description]
    assert not silent, f"parameters without a description: {silent}"
    assert cls.promise in get_args(Promise), f"{cls.promise!r} is not a promise: {get_args(Promise)}"
    unknown = [kind for kind in cls.survives if kind not in FAULTS]
    assert not unknown, f"survives failure kinds that do not exist: {unknown}"


def cites_its_source(strategy: Strategy) -> None:
    """The docstring says where the protocol is described: at least a name and a year."""
    if strategy.kind != "none":  # doing nothing is the baseline; nobody has invented it
        doc = type(strategy).__doc__ or ""
        assert re.search(r"[A-Z][a-z]+.*\b(19|20)\d\d\b", doc, re.DOTALL), "the docstring cites nothing"


def survives_without_failures(strategy: Strategy, bolt: type[Stateful] = WindowedCount) -> None:
    """Nothing is lost, replayed or counted twice, and the windows are those of the baseline, sum by sum: what
    a run without failures says itself of its windows may be taken for granted. Markers end them, and ticks if
    the strategy says that they cannot come out wrong.
    """
    baseline = STRATEGIES["none"].model_validate({})
    triggers: tuple[Trigger, ...] = ("marker", "tick")
    for trigger in triggers[:1] if strategy.needs.comparison or strategy.needs.log else triggers:
        found, truth = (
            run(word_count(each, trigger=trigger, bolt=bolt), trace=True) for each in (strategy, baseline)
        )
        bad = {name: found.ledger[name] for name in ("lost", "replayed", "duplicated", "false_timeouts")}
        assert not any(bad.values()), f"without any failure: {bad}"
        windows = found.windows
        assert windows["correct"] == windows["emitted"], windows
        assert windows["wrong"] == windows["missing"] == 0, windows
        ours, theirs = first_windows(found), first_windows(truth)
        differ = [place for place in theirs.keys() | ours.keys() if ours.get(place) != theirs.get(place)]
        assert not differ, f"windows that differ, without any failure: {sorted(differ)}"


def first_windows(done: Replication) -> dict[tuple[str, int, int], dict[int, int]]:
    """Sums of each window (component, task, number) as it was first emitted."""
    assert done.trace is not None
    windows: dict[tuple[str, int, int], dict[int, int]] = {}
    for component, task, _, number, _, sums in sorted(done.trace.windows, key=lambda row: row[4]):
        windows.setdefault((component, task, number), sums)
    return windows


def keeps_its_promise(strategy: Strategy, bolt: type[Stateful] = WindowedCount, whole: bool = False) -> None:
    """One fault of a kind that it survives, all else healthy: at most once duplicates nothing, at least once
    loses nothing, exactly once neither, and then no window that ends markers is wrong. On its beat and off
    it, and as a ``whole`` with other intervals too.
    """
    for each in variants(strategy) if whole else (strategy,):
        strikes = off_beat(each, bolt) + (STRIKES if each is strategy else ())
        few = each.survives & as_hosts()
        for what in itertools.chain(
            combined(whole, sorted(each.survives - few), components(each), strikes),
            itertools.product(sorted(few), components(each)[-1:], strikes[:1]),
        ):
            _keeps_its_promise_after(fault(*what), each, "marker", bolt)


def keeps_its_promise_between_ticks(
    strategy: Strategy, bolt: type[Stateful] = WindowedCount, whole: bool = False
) -> None:
    """Exactly once also where ticks end the windows: that of a fault, if it is over before its window ends,
    and all others come out right, and nothing is lost or counted twice. What a tick finds during a recovery
    is not asked for (it cannot wait for a replay), nor what has ended a moment ago (a store has to have it).
    Where markers end all windows there are no ticks; where replicas may disagree about them they must.
    """
    if strategy.promises() != "exactly once" or strategy.needs.log or strategy.needs.comparison:
        return
    for each in variants(strategy) if whole else (strategy,):
        strikes = (*off_beat(each, bolt), *STRIKES)
        within = [s for s in strikes if 10 * STORE < s.at - END <= WINDOW - 4 * s.detection - S]
        kinds = sorted(each.survives - as_hosts())
        for what in combined(whole, kinds, components(each), within):
            _keeps_its_promise_after(fault(*what), each, "tick", bolt)


def _keeps_its_promise_after(
    failure: Fault, strategy: Strategy, trigger: Trigger, bolt: type[Stateful]
) -> None:
    duration, promise = long_enough(strategy), strategy.promises()
    done = run(word_count(strategy, (failure,), trigger=trigger, bolt=bolt, duration=duration))
    where = f"windows by {trigger}, {failure!r} under {strategy!r}"
    what = f"{promise}, {where}: {done.ledger}, {done.windows}"
    if promise in ("at most once", "exactly once"):
        assert done.ledger["duplicated"] == 0, f"duplicates; {what}"
    if promise in ("at least once", "exactly once"):
        assert done.ledger["lost"] == 0, f"losses; {what}"
        assert done.recoveries[0]["missing"] == 0, f"state missing; {what}"
    bad_windows = done.windows["wrong"] + done.windows["missing"]
    assert promise != "exactly once" or bad_windows == 0, f"bad windows; {what}"


def recovers_in_time(strategy: Strategy, bolt: type[Stateful] = WindowedCount) -> None:
    """After the last failure all is as it would have been within the time that the strategy states
    (``recovers_within``): after one of a kind that it survives, and after a second one that strikes while the
    task is down from the first, or soon after it is back, during its recovery.
    """
    for kind in sorted(strategy.survives & {"crash_task", "lose_state"}):
        first = Strike(END + 2 * S, S // 2)
        for later in (None, 1 * S, DOWN + 5 * MS):
            strikes = [first] if later is None else [first, Strike(first.at + later, S // 2)]
            faults = tuple(fault(kind, "count", strike) for strike in strikes)
            done = run(word_count(strategy, faults, bolt=bolt, duration=long_enough(strategy)))
            latest = strikes[-1].at / S + strategy.recovers_within(DOWN, WINDOW) / S
            for row in done.recoveries:
                took = row["time_to_recover_s"]
                assert took is not None, f"no recovery from {kind} within the run, after {faults!r}"
                over = row["failed_at_s"] + took
                assert over <= latest, f"recovered at {over:g} s, not by {latest:g} s, after {faults!r}"


def survives_during_its_steps(strategy: Strategy, bolt: type[Stateful] = WindowedCount) -> None:
    """The promise holds if a task crashes just behind a step of the protocol (of a checkpoint, say)."""
    if "crash_task" not in strategy.survives:
        return
    quiet = run(word_count(strategy, bolt=bolt, duration=END + 2 * WINDOW), trace=True)
    assert quiet.trace is not None
    sorts = {step.what: step.at for step in reversed(quiet.trace.steps) if END < step.at < END + WINDOW}
    for moment in sorted(set(sorts.values())):
        failure = fault("crash_task", "count", Strike(moment + 1, S // 2))
        _keeps_its_promise_after(failure, strategy, "marker", bolt)


def bounds_its_buffers(strategy: Strategy, bolt: type[Stateful] = WindowedCount) -> None:
    """What is kept to be sent again grows by at most a quarter in a run of twice the length."""
    crash = fault("crash_task", "count", STRIKES[-1])
    one = long_enough(strategy)
    runs = (run(word_count(strategy, (crash,), bolt=bolt, duration=n * one)) for n in (1, 2))
    short, long = (done.cost["peak_buffered_tuples"] or 0 for done in runs)
    assert long <= 1.25 * short, f"kept tuples grow from {short:g} to {long:g}"


def conserves_roots(strategy: Strategy, bolt: type[Stateful] = WindowedCount, whole: bool = False) -> None:
    """Emitted = completed + in flight + lost, whatever breaks, and whatever breaks during its recovery."""
    duration = long_enough(strategy)
    if not whole:  # roots add up at any time
        duration = min(duration, END + 4 * WINDOW)
    others = [kind for kind, part in FAULTS.items() if not part.expands and kind not in OF_TASKS]
    first, last = WHERE[:1], WHERE[-1:]  # these hit much the same wherever they are aimed
    before, after = (others, others) if whole else (others[::2], others[1::2])
    cases = itertools.chain(
        combined(whole, OF_TASKS, OF_TASKS, WHERE),
        itertools.product(before, ("crash_task",), first + last if whole else first),
        itertools.product(("crash_task",), after, first + last if whole else last),
    )
    for kind, then, (one, other) in cases:
        failures = fault(kind, one, STRIKES[2]), fault(then, other, STRIKES[3])
        scenario = word_count(strategy, failures, bolt=bolt, duration=duration)
        with standing():  # the world goes when it ends
            world = World(scenario, judge_windows=False)
            world.run()
            add_up(world.balance())
            del world


def draws_its_luck(strategy: Strategy, bolt: type[Stateful] = WindowedCount) -> None:
    """The same seed gives the same bytes, another seed gives others."""
    crash = fault("crash_task", "count", STRIKES[2])

    def text(seed: int) -> str:
        scenario = word_count(strategy, (crash,), seed=seed, bolt=bolt, duration=END + 4 * WINDOW)
        return Result(scenario, [run(scenario)]).to_json()

    first = text(1)
    assert text(1) == first, "two runs with the same seed differ"
    other, same = (re.sub(r'"seed": \d+', "", each) for each in (text(2), first))
    assert other != same, "the seed changes nothing"


CHECKS: tuple[Callable[..., None], ...] = (
    describes_itself,
    cites_its_source,
    survives_without_failures,
    keeps_its_promise,
    keeps_its_promise_between_ticks,
    survives_during_its_steps,
    recovers_in_time,
    bounds_its_buffers,
    conserves_roots,
    draws_its_luck,
)


THOROUGH: tuple[Callable[..., None], ...] = tuple(
    partial(check, whole=True)
    for check in (keeps_its_promise, keeps_its_promise_between_ticks, conserves_roots)
)
"""Those that try a part of all combinations, trying all: minutes in place of seconds."""


def conforms(strategy: Strategy) -> None:
    """Run all checks; raises AssertionError at the first that does not hold."""
    for check in CHECKS:
        check(strategy)
