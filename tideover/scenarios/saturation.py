"""How much a scenario carries: the greatest rate at which its backlog does not grow (``--saturate``).

The rates of all spouts are scaled together, without failures, until the system cannot follow any more; then
the two rates between which that happens are brought together. Each rate is *probed*: a run as short as the
answer allows, in which the roots that are done are counted against those that the spouts were to emit. How
long probes are, and how near the two rates come, is said by the constants; tests hold what is found against
bounds that are computed by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tideover.models.coarsening import coarsened, coarseness, counting
from tideover.models.config import Scenario
from tideover.models.effort import effort
from tideover.models.evaluation.bottleneck import FULL, Load, Used, as_record, mean_loads, shortage
from tideover.models.job.arrivals import Arrivals, Day, Periodic
from tideover.models.job.components import BoltConfig, SpoutConfig, bounds_of
from tideover.models.strategies.base import given
from tideover.models.world import World
from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.part_builder import to_data, unit_of
from tideover.sim.kernel import standing
from tideover.sim.recorder import SLOT
from tideover.sim.registry import kind_of
from tideover.sim.units import RATE, S

ROUGH, THOROUGH = 20_000, 150_000
"""Roots that a probe counts, if these are not too many tuples."""
TUPLES = {False: 200_000, True: 1_000_000}
"""Most tuples that tasks emit or work on, of the roots that are counted."""
SLACK = {False: 0.01, True: 0.0015}
"""Part of the roots that may be done later than emitted: what is in queues may be more at the end."""
BATCHES = 20
_T_95 = 2.093
"""Student's t for the means of so many batches."""
_LEAST = 10 * SLOT
CLOSE = 1.003
"""The two rates are so close together at the end."""
_MOST_PROBES = 60
_EXPECTED = {False: 4, True: 6}
"""How many short and thorough probes a search takes as a rule."""
_LEAP = 1000
"""Most by which a rate is multiplied at once."""
_MOST_FACTOR = 2.0**40

Report = Callable[[int, float], None]
"""Called with the number of probes that are done, and the rate (tuples/s) of the next."""


@dataclass(frozen=True)
class Probe:
    """A rate that was tried.

    factor, rate  of the scenario's own rate; in tuples/s of all spouts together
    part_done     roots that were done, of those that the spouts were to emit, in the stretch that is counted
    carried       whether these are all, but for noise
    throughput    of the measured component, per second: mean, and its 95 % interval
    held_back     what held the spouts back, in words; empty: nothing did
    """

    factor: float
    rate: float
    thorough: bool
    part_done: float
    carried: bool
    throughput: tuple[float, float, float]
    loads: list[Load]
    held_back: str

    @property
    def busiest(self) -> float:
        return max((load.busy for load in self.loads), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        shown = ("carried", "part_done", "thorough")
        return {"rate_per_s": self.rate} | {name: getattr(self, name) for name in shown}


@standing()  # the world goes when it ends
def probe(scenario: Scenario, factor: float, thorough: bool) -> Probe:
    """Try a rate: ``factor`` times the scenario's own."""
    sped = at_rate(scenario, factor)
    tried, lump = _tried(sped, _roots(scenario, thorough))
    begin, end = tried.run.warmup, tried.run.duration
    world = World(tried, judge_windows=False, looks=1)
    world.run()
    wanted, slots = _calls(world, begin, end), slice(begin // SLOT + 1, None)
    entered, left, done = (
        series.until(end)[slots]
        for series in (world.recorder.entered, world.recorder.left, world.recorder.done)
    )
    finished = int(left.sum())
    cycle = tried.strategy.cycle()
    if cycle is not None and "acker" in tried.strategy.roles:
        # Acks wait for checkpoints, so as many more count as come in one period. A store that cannot follow
        # makes checkpoints longer and longer, in which tuples are processed all the same: only their acks get
        # fewer.
        complete = world.recoveries.complete
        complete.flush()
        acked = complete.count + math.ceil(wanted * cycle[1] / (end - begin))
        finished = min(finished, acked)
    part = finished / wanted if wanted else 1.0
    size = max(1, len(done) // BATCHES)
    means = done[: size * BATCHES].reshape(-1, size).mean(axis=1) * (lump * S / SLOT)
    half = _T_95 * float(means.std(ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    mean = float(done.mean()) * (lump * S / SLOT)
    held_back = ""
    if int(entered.sum()) < (1 - SLACK[thorough]) * wanted:
        limits = ((spout.in_flight.most, spout.name) for spout in world.job.spouts)
        found = (f"max_spout_pending ({n:,} a task) holds {who} back" for n, who in limits if n is not None)
        held_back = next(found, "spouts have to wait")
    assert world.usage is not None
    return Probe(
        factor=factor,
        rate=offered(sped),
        thorough=thorough,
        part_done=part,
        carried=part >= 1 - SLACK[thorough],
        throughput=(mean, mean - half, mean + half),
        loads=mean_loads([Used.of(world.usage).loads(begin, end)]),
        held_back=held_back,
    )


def _roots(scenario: Scenario, thorough: bool) -> int:
    each = effort(scenario).moved / (offered(scenario) / coarseness(scenario) * scenario.run.duration / S)
    return round(min(THOROUGH if thorough else ROUGH, TUPLES[thorough] / each))


def _tried(sped: Scenario, roots: int) -> tuple[Scenario, int]:
    """What is simulated, and for how many tuples one stands in it."""
    lump, begin, end = counted(sped, offered(sped), roots)
    run = sped.run.model_copy(update={"duration": end, "warmup": begin, "replications": 1})
    return coarsened(sped.model_copy(update={"run": run}), lump), lump


def seconds(scenario: Scenario, thorough: bool) -> float:
    """How long a probe takes on one core, very roughly."""
    return effort(_tried(scenario, _roots(scenario, thorough))[0]).seconds


def _with_arrivals(scenario: Scenario, change: Callable[[Arrivals], Arrivals]) -> Scenario:
    """The scenario with the arrivals of all its spouts changed."""
    spouts = {name: config for name, config in scenario.topology.items() if isinstance(config, SpoutConfig)}
    changed = {
        name: spout.model_copy(update={"arrivals": change(spout.arrivals)}) for name, spout in spouts.items()
    }
    return scenario.model_copy(update={"topology": {**scenario.topology, **changed}})


def scales(scenario: Scenario) -> bool:
    """Whether all its spouts have rates, or a pause, that can be scaled."""
    every = (spout.arrivals for spout in _spouts(scenario))
    return all(isinstance(arrivals, Periodic) or bool(_rates(arrivals)) for arrivals in every)


def _rates(arrivals: Arrivals) -> dict[str, float]:
    """What makes all of its rates greater if it is multiplied: a factor of them, or they themselves."""
    if arrivals.rate_factors:
        return {name: getattr(arrivals, name) for name in arrivals.rate_factors}
    fields = type(arrivals).model_fields.items()
    names = [name for name, info in fields if unit_of(info.annotation, info.metadata) is RATE]
    return {name: rate for name in names if (rate := getattr(arrivals, name)) is not None}


def at_rate(scenario: Scenario, factor: float) -> Scenario:
    """The scenario with all rates multiplied; no spout is faster than its ``emit_cost`` allows."""

    def faster(arrivals: Arrivals) -> Arrivals:
        if rates := _rates(arrivals):
            return arrivals.model_copy(update={name: rate * factor for name, rate in rates.items()})
        assert isinstance(arrivals, Periodic)
        pause = max(round(arrivals.gap_ns / factor) - arrivals.emit_cost, 0 if arrivals.emit_cost else 1)
        return arrivals.model_copy(update={"pause": pause})

    return _with_arrivals(scenario, faster)


def offered(scenario: Scenario) -> float:
    """Roots/s that the spouts are to emit, all together."""
    return sum(spout.processes * 1e9 / spout.arrivals.mean_gap_ns for spout in _spouts(scenario))


def _spouts(scenario: Scenario) -> list[SpoutConfig]:
    return [config for config in scenario.topology.values() if isinstance(config, SpoutConfig)]


def counted(scenario: Scenario, rate: float, roots: int) -> tuple[int, int, int]:
    """How many tuples one stands for, and the stretch that is counted (ns); lumps, if it has many roots."""
    lump, strategy = coarseness(scenario), scenario.strategy
    begin, end = _stretch(scenario, rate / lump, roots)
    many = int(rate / lump * (end - begin) / S / roots)
    # Lumps carry as much as single tuples if nothing limits how many there are of these.
    bounds = bounds_of(scenario.topology, scenario.queues).values()
    limited = any(bound.length is not None for bound in bounds) or given(strategy, strategy.counts_tuples)
    if many < 2 or limited or any(counting(scenario.topology, strategy)):
        return lump, begin, end
    return lump * many, begin, end


def _stretch(scenario: Scenario, rate: float, roots: int) -> tuple[int, int]:
    """What is counted (ns): so many roots, in whole periods of whatever comes regularly, after a quarter of
    it.
    """
    period = period_of(scenario)
    length = max(_LEAST, math.ceil(roots / rate * S))
    if not period:
        length = -(-length // SLOT) * SLOT
        begin = -(-length // (4 * SLOT)) * SLOT
        return begin, begin + length
    periods = -(-length // period)
    before = max(1, -(-periods // 4))
    begin = -(-before * period // SLOT) * SLOT
    return begin, begin + -(-periods * period // SLOT) * SLOT


def period_of(scenario: Scenario) -> int:
    """The longest time after which something comes again (ns); 0: nothing does."""
    windows = [
        window.length
        for config in scenario.topology.values()
        if isinstance(config, BoltConfig) and (window := getattr(config.bolt, "window", None)) is not None
        if window.length is not None
    ]
    cycle = scenario.strategy.cycle()
    return max([0, *windows, *([] if cycle is None else [cycle[1]])])


def _calls(world: World, begin: int, end: int) -> int:
    """How many roots the spouts were to emit after ``begin``, up to ``end``: had nothing held them back."""
    found, draws = 0, world.job.draws
    for spout in world.job.spouts:
        config = spout.component.config
        assert isinstance(config, SpoutConfig)
        last, index = config.arrivals.offset(spout.name, draws), 0
        while last <= end:
            calls = config.arrivals.next_calls(spout.name, draws, last, index, 1 << 15)
            found += int(calls.searchsorted(end, "right") - calls.searchsorted(begin, "right"))
            last, index = int(calls[-1]), index + len(calls)
    return found


@dataclass(frozen=True)
class Group:
    """Resources of one sort (tasks of a component, cores …), and which part of the time they were busy; at
    ``full_at`` (tuples/s) the busiest of them would be busy all the time; None: it has nothing to do.
    """

    name: str
    busiest: Load
    busy: float
    full_at: float | None


@dataclass(frozen=True)
class Saturation:
    """What ``tideover run --saturate`` says. Rates are tuples/s of all spouts together.

    sustained    the greatest rate that was found to be carried on and on; None: not even the least
    exceeded     the least rate that was found to be too much; None: none was
    throughput   what the last stateful bolt (or the last component) was done with, per second, at the
                 sustained rate, with its 95 % interval from the means of batches
    groups       all resources at that rate, in groups, the busiest first; ``loads``: each of them
    limit, then  what it is short of, and what breaks next, in sentences
    probes       all rates that were tried; of one that was tried twice, the longer try
    """

    scenario: Scenario
    strategy: str
    sustained: float | None
    exceeded: float | None
    throughput: tuple[float, float, float] | None
    groups: list[Group]
    loads: list[Load]
    limit: str
    then: str
    probes: list[Probe]

    def __repr__(self) -> str:
        return f"<Saturation {self.scenario.name!r}: {self.strategy}, {self.sentence}>"

    @property
    def sentence(self) -> str:
        if self.sustained is None:
            return f"carries nothing: {self.limit}"
        if self.exceeded is None:
            return f"carries more than {self.sustained:,.0f} tuples/s: {self.limit}"
        low, high = _apart(self.sustained, self.exceeded)
        return f"carries {low} tuples/s, not {high}: {self.limit}"

    def to_dict(self) -> dict[str, Any]:
        mean, low, high = self.throughput or (None, None, None)
        return {
            "scenario": to_data(self.scenario),
            "strategy": self.strategy,
            "sustained_per_s": self.sustained,
            "exceeded_per_s": self.exceeded,
            "throughput_per_s": {"mean": mean, "low": low, "high": high},
            "bottleneck": self.limit,
            "next": self.then,
            "resources": [
                {"group": g.name, "busy": g.busy, "full_at_per_s": g.full_at}
                | {"busiest": as_record([g.busiest])[0]}
                for g in self.groups
            ],
            "probes": [each.to_dict() for each in self.probes],
        }


def _apart(*rates: float) -> list[str]:
    """Rates in as few decimals as tell them apart, at most 6.

    >>> _apart(45.0, 45.1), _apart(9_000.2, 9_013.7)
    (['45.0', '45.1'], ['9,000', '9,014'])
    """
    for places in range(6):
        told = [f"{rate:,.{places}f}" for rate in rates]
        if len(set(told)) == len(rates):
            return told
    return [f"{rate:,.6f}" for rate in rates]


def _quiet(scenario: Scenario) -> Scenario:
    """What is searched: nothing fails, and the load stays as it is at the peak of the day."""

    def at_peak(arrivals: Arrivals) -> Arrivals:
        return Periodic(rate=1e9 / arrivals.mean_gap_ns) if isinstance(arrivals, Day) else arrivals

    return _with_arrivals(scenario.model_copy(update={"failures": ()}), at_peak)


def expected(scenario: Scenario) -> tuple[int, float]:
    """How many rates a search tries as a rule, and how long that takes on one core (s), very roughly."""
    quiet = _quiet(scenario)
    lasts = sum(many * seconds(quiet, thorough) for thorough, many in _EXPECTED.items())
    return sum(_EXPECTED.values()), lasts


def check(scenario: Scenario) -> None:
    """Raises ScenarioError where there is no rate to scale."""
    for name, config in scenario.topology.items():
        if not isinstance(config, SpoutConfig):
            continue
        key, kind = f"topology.{name}", kind_of(config.arrivals)
        if kind not in ("constant", "day", "poisson"):
            key, said = f"{key}.arrivals", f"{kind} has no single rate to scale; give rate, pause or poisson"
        elif config.spout.limit is not None:
            said = "--saturate needs a stream without an end; leave its limit out, or repeat it"
        else:
            continue
        raise ScenarioError([Problem("--saturate", None, key, said)])


def saturate(scenario: Scenario, report: Report | None = None) -> Saturation:
    """Find the greatest sustained throughput, at the peak of the day; raises ScenarioError like `check`."""
    check(scenario)
    low, high, probes = _searched(_quiet(scenario), report)
    seen = low or high
    assert seen is not None
    groups = _groups(seen)
    first = groups[0].busiest if groups else None
    if first is not None and first.busy >= FULL:
        limit = f"{first.words} {first.verb} {100 * first.busy:.1f} % busy"
    elif high is None:
        limit = "the spouts cannot emit faster, and nothing is full"
    elif high.held_back:
        limit = f"{high.held_back}; nothing is full"
    else:
        limit = "work is not done in time, though nothing is busy all the time"
        if first is not None:
            limit += f"; the busiest, {first.words}, is at {first.busy:.0%}"
    then = "nothing else has anything to do"
    for group in groups[1:]:
        if group.full_at is not None:
            load = group.busiest
            then = f"{load.words}, {100 * load.busy:.1f} % busy: full at {group.full_at:,.0f} tuples/s"
            break
    return Saturation(
        scenario=scenario,
        strategy=kind_of(scenario.strategy),
        sustained=None if low is None else low.rate,
        exceeded=None if high is None else high.rate,
        throughput=None if low is None else low.throughput,
        groups=groups,
        loads=seen.loads,
        limit=limit,
        then=then,
        probes=list({probe.factor: probe for probe in probes}.values()),
    )


def _searched(scenario: Scenario, report: Report | None) -> tuple[Probe | None, Probe | None, list[Probe]]:
    """The greatest factor that is carried, the least that is not, and all probes: doubled or halved, then
    bisected; where a resource will be full is known from how busy it is.
    """
    own = offered(scenario)
    gaps = ((one.arrivals.mean_gap_ns, getattr(one.arrivals, "emit_cost", 0)) for one in _spouts(scenario))
    # at which all spouts emit as fast as they can: without a pause, or every 8 ns
    most = min(_MOST_FACTOR, max(gap / max(8.0, cost) for gap, cost in gaps))
    low: Probe | None = None
    high: Probe | None = None
    probes: list[Probe] = []
    factor: float | None = 1.0
    while factor is not None and len(probes) < _MOST_PROBES:
        width = math.inf if low is None or high is None else high.factor / low.factor - 1
        if report is not None:
            report(len(probes), factor * own)
        doubted = high is not None and high.thorough
        found = probe(scenario, factor, thorough=doubted or width < 8 * (CLOSE - 1))
        probes.append(found)
        if found.carried:
            low = found
            if high is not None and not high.thorough and width < 2 * (CLOSE - 1):
                high = None if found.factor >= high.factor else high
        else:
            high = found
            low = None if low is not None and low.factor >= factor else low
        factor = _next(low, high, most)
    return low, high, probes


def _next(low: Probe | None, high: Probe | None, most: float) -> float | None:
    """The factor to be tried next; None: they are close together, or there is nothing to be found."""
    if low is None:
        assert high is not None
        least = 0.99 if high.thorough else 0.97
        return high.factor * min(least, max(0.1, high.part_done)) if high.factor > 1e-9 else None
    guess = low.factor / low.busiest if low.busiest > 1e-6 else math.inf
    if high is None:
        if low.factor >= most:
            return None
        return min(most, max(1.02 * low.factor, min(1.02 * guess, _LEAP * low.factor)))
    width = high.factor / low.factor - 1
    if width < CLOSE - 1:
        return next((end.factor for end in (low, high) if not end.thorough), None)
    if high.thorough and not low.thorough:
        return low.factor
    below = 0.985 * guess
    if width > 4 * (CLOSE - 1) and low.factor * 1.001 < below < high.factor / 1.002:
        return below
    return math.sqrt(low.factor * high.factor)


def _groups(seen: Probe) -> list[Group]:
    def sort(load: Load) -> str:
        return f"tasks of {load.name.partition('.')[0]}" if load.kind == "task" else load.words_of_kind

    found = []
    for name, members in groupby(sorted(seen.loads, key=sort), key=sort):
        loads = list(members)
        busiest = max(loads, key=lambda load: load.busy)
        mean = sum(load.busy for load in loads) / len(loads)
        full_at = seen.rate / busiest.busy if busiest.busy > 1e-6 else None
        found.append(Group(name, busiest, mean, full_at))
    return sorted(found, key=lambda group: shortage(group.busiest))
