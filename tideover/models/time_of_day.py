"""The time of day at which a run begins, where load follows it (`tideover.models.job.arrivals.day`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tideover.models.config import Scenario
from tideover.models.job.arrivals.day import Day
from tideover.models.job.components import DRAWN, PEAK, SpoutConfig
from tideover.sim.draws import Draws, Purpose
from tideover.sim.time_of_day import format_time_of_day, parse_time_of_day
from tideover.sim.units import DAY, HOUR


def timed(scenario: Scenario, draws: Draws) -> Scenario:
    """The scenario of one replication: ``run.starts_at`` says when it begins, and its arrivals know it. One
    in which no load follows the time of day, or that was timed already, is as it was.
    """
    begin = begins_at(scenario, draws)
    if begin is None:
        return scenario
    topology = {
        name: config.model_copy(update={"arrivals": config.arrivals.starting(begin)})
        if isinstance(config, SpoutConfig) and isinstance(config.arrivals, Day)
        else config
        for name, config in scenario.topology.items()
    }
    run = scenario.run.model_copy(update={"starts_at": format_time_of_day(begin), "fails_at": None})
    return scenario.model_copy(update={"topology": topology, "run": run})


def daily_share(scenario: Scenario, draws: Draws) -> float:
    """The mean rate of roots over a day, as a part of that in a replication; 1 where no load follows the time
    of day. What another arrival process gives is taken for the same all day.
    """
    duration, day, now = scenario.run.duration, 0.0, 0.0
    for config in timed(scenario, draws).topology.values():
        if isinstance(config, SpoutConfig):
            rate = config.processes * config.arrivals.expected(duration) / duration
            is_curve = isinstance(config.arrivals, Day)
            now += rate
            day += config.processes * config.arrivals.expected(DAY) / DAY if is_curve else rate
    return day / now if now else 1.0


def heaviest(scenario: Scenario) -> Scenario:
    """The same of a replication with the most to do: where the time of day is drawn, the peak."""
    if scenario.run.fails_at == DRAWN:
        scenario = scenario.model_copy(update={"run": scenario.run.model_copy(update={"fails_at": PEAK})})
    return timed(scenario, Draws(scenario.run.seed))


def begins_at(scenario: Scenario, draws: Draws) -> int | None:
    """The time of day (ns) at simulated time 0; None: no load follows it."""
    if not any(True for _ in _curves(scenario)):
        return None
    run = scenario.run
    if run.fails_at is None:
        return parse_time_of_day(run.starts_at or "00:00")
    return (_fails_at(scenario, run.fails_at, draws) - first_failure(scenario)) % DAY


def first_failure(scenario: Scenario) -> int:
    """The earliest ``at`` of its failures (ns); 0 if none has one."""
    return min((fault.at for fault in scenario.failures if fault.at is not None), default=0)


def busiest(scenario: Scenario) -> int:
    """The first time of day (ns) with the greatest rate of all its spouts together; 0 if none follows it."""
    knots = [float(time) for _, day in _curves(scenario) for time in day.knots()]
    # Where one curve falls by a step, what others come to before it may be the most.
    moments = sorted({moment % DAY for time in knots for moment in (time - 1, time)})
    return int(max(moments, key=lambda time: rate_at(scenario, time), default=0.0))


def rate_at(scenario: Scenario, time: float) -> float:
    """Roots/s that spouts whose load follows the time of day are to emit at a time (ns), all together."""
    return sum(count * day.rate_at(time) for count, day in _curves(scenario))


def hour_of_day(scenario: Scenario, moment: int) -> dict[str, float]:
    """What a row says of a moment (ns) of a timed scenario: the time of day (h), if load follows it."""
    begin = begins_at(scenario, Draws(scenario.run.seed))
    return {} if begin is None else {"hour_of_day": (begin + moment) % DAY / HOUR}


def _curves(scenario: Scenario) -> Iterator[tuple[int, Day]]:
    """The loads that follow the time of day, and how many arrival processes have each."""
    for config in scenario.topology.values():
        if isinstance(config, SpoutConfig) and isinstance(config.arrivals, Day):
            yield config.processes, config.arrivals


def _fails_at(scenario: Scenario, when: str, draws: Draws) -> int:
    """The time of day (ns) that ``run.fails_at`` says."""
    if when == PEAK:
        return busiest(scenario)
    if when == DRAWN:
        bits = draws.bits("run", Purpose.DAY, np.zeros(1, np.int64))
        return int(bits[0] >> np.uint64(11)) * DAY >> 53
    return parse_time_of_day(when)
