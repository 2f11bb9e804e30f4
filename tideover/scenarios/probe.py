"""One rate, tried: whether a system follows, and how busy everything is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tideover.models.coarsening import coarsened, coarseness, counting
from tideover.models.config import Scenario
from tideover.models.effort import effort
from tideover.models.evaluation.bottleneck import Load, Used, mean_loads
from tideover.models.job.arrivals.base import Arrivals
from tideover.models.job.arrivals.periodic import Periodic
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.queues import bounds_of
from tideover.models.strategies.base import given
from tideover.models.world import World
from tideover.scenarios.part_builder import unit_of
from tideover.sim.memory import standing
from tideover.sim.recorder import SLOT
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

    factor      of the scenario's own rate
    rate        tuples/s of all spouts together
    thorough    whether it was a long one
    part_done   roots that were done, of those that the spouts were to emit, in the stretch that is counted
    carried     whether these are all, but for noise
    throughput  of the measured component, per second: mean, and its 95 % interval
    loads       how busy everything was
    held_back   what held the spouts back, in words; empty: nothing did
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
        """Which part of the time the busiest resource was busy."""
        return max((load.busy for load in self.loads), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """As the record has it."""
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
    topology = {
        name: config.model_copy(update={"arrivals": _faster(config.arrivals, factor)})
        if isinstance(config, SpoutConfig)
        else config
        for name, config in scenario.topology.items()
    }
    return scenario.model_copy(update={"topology": topology})


def scales(scenario: Scenario) -> bool:
    """Whether all its spouts have rates, or a pause, that can be scaled."""
    spouts = (config.arrivals for config in scenario.topology.values() if isinstance(config, SpoutConfig))
    return all(isinstance(arrivals, Periodic) or bool(_rates(arrivals)) for arrivals in spouts)


def _rates(arrivals: Arrivals) -> dict[str, float]:
    """What makes all of its rates greater if it is multiplied: a factor of them, or they themselves."""
    factors = {name: getattr(arrivals, name) for name in arrivals.rate_factors}
    if factors:
        return factors
    fields = type(arrivals).model_fields.items()
    given = {
        name: getattr(arrivals, name)
        for name, info in fields
        if unit_of(info.annotation, info.metadata) is RATE
    }
    return {name: rate for name, rate in given.items() if rate is not None}


def _faster(arrivals: Arrivals, factor: float) -> Arrivals:
    rates = _rates(arrivals)
    if rates:
        return arrivals.model_copy(update={name: rate * factor for name, rate in rates.items()})
    assert isinstance(arrivals, Periodic)
    pause = max(round(arrivals.gap_ns / factor) - arrivals.emit_cost, 0 if arrivals.emit_cost else 1)
    return arrivals.model_copy(update={"pause": pause})


def fastest(scenario: Scenario) -> float:
    """The factor at which all spouts emit as fast as they can: without a pause, or every 8 ns."""
    spouts = [config.arrivals for config in scenario.topology.values() if isinstance(config, SpoutConfig)]
    return max(each.mean_gap_ns / max(8.0, getattr(each, "emit_cost", 0)) for each in spouts)


def offered(scenario: Scenario) -> float:
    """Roots/s that the spouts are to emit, all together."""
    spouts = [config for config in scenario.topology.values() if isinstance(config, SpoutConfig)]
    return sum(config.processes * 1e9 / config.arrivals.mean_gap_ns for config in spouts)


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
