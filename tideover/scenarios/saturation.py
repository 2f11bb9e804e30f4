"""How much a scenario carries: the greatest rate at which its backlog does not grow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
        return {
            "rate_per_s": self.rate,
            "carried": self.carried,
            "part_done": self.part_done,
            "thorough": self.thorough,
        }


@standing()  # the world goes when it ends
def probe(scenario: Scenario, factor: float, thorough: bool) -> Probe:
    """Try a rate: ``factor`` times the scenario's own."""
    sped = at_rate(scenario, factor)
    rate = offered(sped)
    tried, lump = _tried(sped, _roots(scenario, thorough))
    begin, end = tried.run.warmup, tried.run.duration
    world = World(tried, judge_windows=False, looks=1)
    world.run()
    wanted = _calls(world, begin, end)
    emitted, done = (
        int(series.until(end)[begin // SLOT + 1 :].sum())
        for series in (world.recorder.entered, world.recorder.left)
    )
    acked = _acked(world, begin, end, wanted)
    part = (done if acked is None else min(done, acked)) / wanted if wanted else 1.0
    assert world.usage is not None
    return Probe(
        factor=factor,
        rate=rate,
        thorough=thorough,
        part_done=part,
        carried=part >= 1 - SLACK[thorough],
        throughput=_throughput(world, begin, end, lump),
        loads=mean_loads([Used.of(world.usage).loads(begin, end)]),
        held_back=_held_back(world) if emitted < (1 - SLACK[thorough]) * wanted else "",
    )


def _roots(scenario: Scenario, thorough: bool) -> int:
    """How many roots a probe counts."""
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


def at_rate(scenario: Scenario, factor: float) -> Scenario:
    """The scenario with the rates of all its spouts multiplied; no spout is faster than its ``emit_cost``
    allows.
    """
    return _with_arrivals(scenario, lambda arrivals: _faster(arrivals, factor))


def _with_arrivals(scenario: Scenario, change: Callable[[Arrivals], Arrivals]) -> Scenario:
    """The scenario with the arrivals of all its spouts changed."""
    topology = {
        name: config.model_copy(update={"arrivals": change(config.arrivals)})
        if isinstance(config, SpoutConfig)
        else config
        for name, config in scenario.topology.items()
    }
    return scenario.model_copy(update={"topology": topology})


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


def _faster(arrivals: Arrivals, factor: float) -> Arrivals:
    rates = _rates(arrivals)
    if rates:
        return arrivals.model_copy(update={name: rate * factor for name, rate in rates.items()})
    assert isinstance(arrivals, Periodic)
    pause = max(round(arrivals.gap_ns / factor) - arrivals.emit_cost, 0 if arrivals.emit_cost else 1)
    return arrivals.model_copy(update={"pause": pause})


def fastest(scenario: Scenario) -> float:
    """The factor at which all spouts emit as fast as they can: without a pause, or every 8 ns."""
    every = (spout.arrivals for spout in _spouts(scenario))
    return max(each.mean_gap_ns / max(8.0, getattr(each, "emit_cost", 0)) for each in every)


def offered(scenario: Scenario) -> float:
    """Roots/s that the spouts are to emit, all together."""
    return sum(spout.processes * 1e9 / spout.arrivals.mean_gap_ns for spout in _spouts(scenario))


def _spouts(scenario: Scenario) -> list[SpoutConfig]:
    return [config for config in scenario.topology.values() if isinstance(config, SpoutConfig)]


def counted(scenario: Scenario, rate: float, roots: int) -> tuple[int, int, int]:
    """How many tuples one stands for, and the stretch that is counted (ns): where it cannot be so short that
    there are few roots in it, they are lumps.
    """
    lump = coarseness(scenario)
    begin, end = _stretch(scenario, rate / lump, roots)
    many = int(rate / lump * (end - begin) / S / roots)
    return lump * many if many > 1 and _lumps(scenario) else lump, begin, end


def _lumps(scenario: Scenario) -> bool:
    """Whether lumps carry as much as single tuples: nothing limits how many there are of these."""
    strategy, bounds = scenario.strategy, bounds_of(scenario.topology, scenario.queues).values()
    limited = any(bound.length is not None for bound in bounds) or given(strategy, strategy.counts_tuples)
    return not limited and not any(counting(scenario.topology, strategy))


def _stretch(scenario: Scenario, rate: float, roots: int) -> tuple[int, int]:
    """What is counted (ns): long enough for so many roots, and whole periods of whatever comes regularly
    (windows, checkpoints), after one of them or a quarter of it.
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
    found = 0
    draws = world.job.draws
    for spout in world.job.spouts:
        config = spout.component.config
        assert isinstance(config, SpoutConfig)
        last, index = config.arrivals.offset(spout.name, draws), 0
        while last <= end:
            calls = config.arrivals.next_calls(spout.name, draws, last, index, 1 << 15)
            found += int(calls.searchsorted(end, "right") - calls.searchsorted(begin, "right"))
            last, index = int(calls[-1]), index + len(calls)
    return found


def _acked(world: World, begin: int, end: int, wanted: int) -> int | None:
    """How many roots were acked, and as many more as come in one period, where acks wait for checkpoints;
    None: they do not. A store that cannot follow makes checkpoints longer and longer, in which tuples are
    processed all the same: only their acks get fewer.
    """
    strategy = world.scenario.strategy
    cycle = strategy.cycle()
    if cycle is None or "acker" not in strategy.roles:
        return None
    assert world.completion is not None
    world.completion.latency.tally()
    return world.completion.latency.count + math.ceil(wanted * cycle[1] / (end - begin))


def _throughput(world: World, begin: int, end: int, lump: int) -> tuple[float, float, float]:
    """Mean, and its 95 % interval from the means of batches (per second)."""
    done = world.recorder.done.until(end)[begin // SLOT + 1 :]
    size = max(1, len(done) // BATCHES)
    means = done[: size * BATCHES].reshape(-1, size).mean(axis=1) * (lump * S / SLOT)
    half = _T_95 * float(means.std(ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    mean = float(done.mean()) * (lump * S / SLOT)
    return mean, mean - half, mean + half


def _held_back(world: World) -> str:
    """What holds spouts back that have emitted too little."""
    for spout in world.job.spouts:
        if spout.in_flight.most is not None:
            return f"max_spout_pending ({spout.in_flight.most:,} a task) holds {spout.name} back"
    return "spouts have to wait"


# The rates of all spouts are scaled together, without failures, until the system cannot follow any more;
# then the two rates between which that happens are brought together. Each rate is *probed*: a run as short
# as the answer allows, in which the roots that are done are counted against those that the spouts were to
# emit.

CLOSE = 1.003
"""The two rates are so close together at the end."""
_MOST_PROBES = 60
_USUAL = {False: 4, True: 6}
"""How many short and thorough probes a search takes as a rule."""
_LEAP = 1000
"""Most by which a rate is multiplied at once."""
_MOST_FACTOR = 2.0**40

Report = Callable[[int, float], None]
"""Called with the number of probes that are done, and the rate (tuples/s) of the next."""


@dataclass(frozen=True)
class Group:
    """Resources of one sort (the tasks of a component, the cores of all hosts, …), and which part of the time
    they were busy on average; ``full_at``: rate (tuples/s) at which the busiest of them would be busy all the
    time; None: it has nothing to do.
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
        """The answer in a few words."""
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


def saturate(scenario: Scenario, report: Report | None = None) -> Saturation:
    """Find the greatest sustained throughput of a scenario. Raises ScenarioError if its spouts have no single
    rate; of a load that follows the time of day the greatest one is taken.
    """
    check(scenario)
    search = _Search(_quiet(scenario), report)
    search.run()
    return _told(scenario, search)


def expected(scenario: Scenario) -> tuple[int, float]:
    """How many rates a search tries as a rule, and how long that takes on one core (s), very roughly."""
    quiet = _quiet(scenario)
    lasts = sum(many * seconds(quiet, thorough) for thorough, many in _USUAL.items())
    return sum(_USUAL.values()), lasts


def _quiet(scenario: Scenario) -> Scenario:
    """What is searched: nothing fails, and the load stays as it is at the peak of the day."""

    def at_peak(arrivals: Arrivals) -> Arrivals:
        return Periodic(rate=1e9 / arrivals.mean_gap_ns) if isinstance(arrivals, Day) else arrivals

    return _with_arrivals(scenario.model_copy(update={"failures": ()}), at_peak)


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


class _Search:
    """Brings the greatest factor that is carried and the least that is not together."""

    def __init__(self, scenario: Scenario, report: Report | None) -> None:
        self._scenario, self._report = scenario, report
        self._own = offered(scenario)
        self.probes: list[Probe] = []
        self.carried: Probe | None = None
        self.too_much: Probe | None = None
        self._most = min(_MOST_FACTOR, fastest(scenario))

    def run(self) -> None:
        """Double or halve, then bisect; where a resource will be full is known from how busy it is."""
        factor: float | None = 1.0
        while factor is not None and len(self.probes) < _MOST_PROBES:
            self._try(factor)
            factor = self._next()

    def _try(self, factor: float) -> None:
        width = self._width
        if self._report is not None:
            self._report(len(self.probes), factor * self._own)
        doubted = self.too_much is not None and self.too_much.thorough
        found = probe(self._scenario, factor, thorough=doubted or width < 8 * (CLOSE - 1))
        self.probes.append(found)
        if found.carried:
            self.carried = found
            if self.too_much is not None and not self.too_much.thorough and width < 2 * (CLOSE - 1):
                self.too_much = None if found.factor >= self.too_much.factor else self.too_much
        else:
            self.too_much = found
            if self.carried is not None and self.carried.factor >= factor:
                self.carried = None

    @property
    def _width(self) -> float:
        if self.carried is None or self.too_much is None:
            return math.inf
        return self.too_much.factor / self.carried.factor - 1

    def _next(self) -> float | None:
        """The next factor; None: they are close together, or there is nothing to be found."""
        low, high = self.carried, self.too_much
        if low is None:
            assert high is not None
            least = 0.99 if high.thorough else 0.97
            return high.factor * min(least, max(0.1, high.part_done)) if high.factor > 1e-9 else None
        guess = low.factor / low.busiest if low.busiest > 1e-6 else math.inf
        if high is None:
            if low.factor >= self._most:
                return None
            return min(self._most, max(1.02 * low.factor, min(1.02 * guess, _LEAP * low.factor)))
        if self._width < CLOSE - 1:
            rough = next((end for end in (low, high) if not end.thorough), None)
            return None if rough is None else rough.factor
        if high.thorough and not low.thorough:
            return low.factor
        below = 0.985 * guess
        if self._width > 4 * (CLOSE - 1) and low.factor * 1.001 < below < high.factor / 1.002:
            return below
        return math.sqrt(low.factor * high.factor)


def _told(scenario: Scenario, search: _Search) -> Saturation:
    low, high = search.carried, search.too_much
    seen = low or high
    assert seen is not None
    groups = list(_groups(seen))
    return Saturation(
        scenario=scenario,
        strategy=kind_of(scenario.strategy),
        sustained=None if low is None else low.rate,
        exceeded=None if high is None else high.rate,
        throughput=None if low is None else low.throughput,
        groups=groups,
        loads=seen.loads,
        limit=_limit(groups, low, high),
        then=_then(groups),
        probes=list({probe.factor: probe for probe in search.probes}.values()),
    )


def _groups(seen: Probe) -> Iterator[Group]:
    def sort(load: Load) -> str:
        return f"tasks of {load.name.partition('.')[0]}" if load.kind == "task" else load.words_of_kind

    found = []
    for name, members in groupby(sorted(seen.loads, key=sort), key=sort):
        loads = list(members)
        busiest = max(loads, key=lambda load: load.busy)
        mean = sum(load.busy for load in loads) / len(loads)
        full_at = seen.rate / busiest.busy if busiest.busy > 1e-6 else None
        found.append(Group(name, busiest, mean, full_at))
    yield from sorted(found, key=lambda group: shortage(group.busiest))


def _limit(groups: Sequence[Group], low: Probe | None, high: Probe | None) -> str:
    """What it is short of."""
    if groups and groups[0].busiest.busy >= FULL:
        first = groups[0].busiest
        return f"{first.words} {first.verb} {100 * first.busy:.1f} % busy"
    if high is None:
        return "the spouts cannot emit faster, and nothing is full"
    if high.held_back:
        return f"{high.held_back}; nothing is full"
    told = "work is not done in time, though nothing is busy all the time"
    if not groups:
        return told
    return f"{told}; the busiest, {groups[0].busiest.words}, is at {groups[0].busiest.busy:.0%}"


def _then(groups: Sequence[Group]) -> str:
    """What breaks next."""
    others = [group for group in groups[1:] if group.full_at is not None]
    if not others or others[0].full_at is None:
        return "nothing else has anything to do"
    then = others[0]
    return f"{then.busiest.words}, {100 * then.busiest.busy:.1f} % busy: full at {then.full_at:,.0f} tuples/s"
