"""Simulating one tuple for several: ``run.lump``.

A tuple that stands for ``lump`` real ones comes ``lump`` times less often, takes ``lump`` times as long and
is ``lump`` times as large. Loads, bytes and the fluid limit of every queue stay as they are; what is coarser
is the grain: a tuple waits for whole lumps, and keys are drawn for a lump as a whole. Whoever builds a world
scales its scenario here first; the result's scenario keeps the real figures.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tideover.models.config import Scenario, topology_of
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.topology import traffic
from tideover.models.strategies.base import Strategy, given
from tideover.sim.distributions import Distribution
from tideover.sim.registry import Part
from tideover.sim.units import DURATION, RATE, S, Unit

MUCH = 20
"""A latency so many times what lumps add to it is told: it is wrong by 5 % at most."""
_LEAST_FREE = 0.05
GRAIN = 1_000
"""A cap on a number of tuples goes with lumps from here on: it then is one of whole lumps."""


def coarseness(scenario: Scenario) -> int:
    """How many real tuples a simulated one stands for: ``run.lump``, or what ``run.lump_rate`` asks for."""
    most = scenario.run.lump_rate
    if most is None:
        return scenario.run.lump
    spouts = [c for c in scenario.topology.values() if isinstance(c, SpoutConfig)]
    # Gaps are whole nanoseconds, so a rate may come out a trifle greater than it was given.
    return max(1, *(math.ceil(c.processes * 1e9 / c.arrivals.mean_gap_ns / most - 1e-3) for c in spouts))


def coarsened(scenario: Scenario, lump: int | None = None) -> Scenario:
    """The scenario as it is simulated: rates divided, services, costs per tuple and sizes multiplied; by
    default by its own ``coarseness``.
    """
    lump = coarseness(scenario) if lump is None else lump
    if lump == 1:
        return scenario
    topology: dict[str, SpoutConfig | BoltConfig] = {}
    for name, config in scenario.topology.items():
        scaled: dict[str, Any] = {"tuple_size": config.tuple_size * lump}
        if isinstance(config, SpoutConfig):
            scaled["arrivals"] = _scaled(config.arrivals, lump)
            scaled["source"] = config.source and _scaled(config.source, lump)
        else:
            state = config.state
            accesses = state and state.model_copy(update={"accesses": state.accesses * lump})
            scaled |= {"service": _scaled(config.service, lump), "state": accesses}
        topology[name] = config.model_copy(update=scaled)
    strategy = _scaled(scenario.strategy, lump)
    links = _scaled(scenario.links, lump).model_copy(update={"header": scenario.links.header * lump})
    return scenario.model_copy(update={"topology": topology, "strategy": strategy, "links": links})


PartT = typing.TypeVar("PartT", bound=Part)


def _scaled(part: PartT, lump: int) -> PartT:
    """A part with its rates divided, and with every duration that each tuple costs multiplied."""
    update: dict[str, Any] = {}
    for name, info in type(part).model_fields.items():
        value = getattr(part, name)
        if value is None:
            continue
        nested = isinstance(part, Distribution) and isinstance(value, Distribution)
        units = set(_units((info.annotation, *info.metadata)))
        if nested or isinstance(value, Strategy):
            update[name] = _scaled(value, lump)
        elif isinstance(value, dict):
            inner = value.items()
            update[name] = {k: _scaled(v, lump) if isinstance(v, Strategy) else v for k, v in inner}
        elif name in part.rate_factors or (RATE in units and not part.rate_factors):
            update[name] = value / lump
        elif name in part.caps:
            update[name] = max(1, round(value / lump))
        elif DURATION in units and (name in part.per_tuple or isinstance(part, Distribution)):
            update[name] = tuple(v * lump for v in value) if isinstance(value, tuple) else value * lump
    return part.model_copy(update=update)


def tuple_costs(part: Part) -> float:
    """What its keys let each tuple cost (ns), all together."""
    total = 0.0
    for name in type(part).model_fields:
        value = getattr(part, name)
        if name in part.per_tuple:
            total += float(value or 0)
        inner = value.values() if isinstance(value, dict) else (value,)
        total += sum(tuple_costs(one) for one in inner if isinstance(one, Strategy))
    return total


def finest(scenario: Scenario) -> float:
    """The shortest latency (ns) of which its lumps tell anything: ``MUCH`` times what they add to one. 0:
    they add nothing, as there are none.

    A lump is served as a whole, and waits for whole lumps: at each task on the way for as long as ``lump``
    tuples take instead of one, divided by what is left of the task's time (as in an M/M/1 queue). And it is
    emitted at once, where tuples come one after the other. In a queue that grows or drains all of that is
    little beside what waits.
    """
    lump = coarseness(scenario)
    if lump == 1:
        return 0.0
    topology = topology_of(scenario)
    rates = traffic(topology)
    each = tuple_costs(scenario.strategy) + tuple_costs(scenario.links)
    added: dict[str, float] = {}
    for c in topology.components:
        if isinstance(c.config, SpoutConfig):
            added[c.name] = lump * c.config.arrivals.mean_gap_ns / c.config.processes
            continue
        work = scenario.strategy.load(c)
        rate = float(np.sum([rates[edge.name] for edge in c.inputs], axis=0).max())
        load = rate * (c.config.service.mean_ns + work.per_tuple) / S + work.saving
        before = max(added[edge.up.name] for edge in c.inputs)
        added[c.name] = before + (lump - 1) * (c.config.service.mean_ns + each) / max(_LEAST_FREE, 1 - load)
    return MUCH * max(added.values())


def _units(marks: Any) -> typing.Iterator[Unit]:
    for mark in marks:
        if isinstance(mark, Unit):
            yield mark
        yield from _units(typing.get_args(mark))
        yield from _units(getattr(mark, "__metadata__", ()))


def counting(
    topology: Mapping[str, SpoutConfig | BoltConfig | None], strategy: Strategy | None
) -> Iterator[str]:
    """Keys of a scenario that count single tuples, and so do not go with lumps.

    ``None`` stands for a component, or strategy, of which nothing is known.
    """
    for name, config in topology.items():
        if isinstance(config, SpoutConfig) and config.spout.limit is not None:
            own = next(
                (key for key in ("limit", "values") if key in type(config.spout).model_fields), "spout"
            )
            yield f"topology.{name}.{own}"
        window = getattr(config.bolt, "window", None) if isinstance(config, BoltConfig) else None
        if getattr(window, "tuples", None) is not None:
            yield f"topology.{name}.window.tuples"
    if strategy is not None:
        for key, value in given(strategy, strategy.counts_tuples).items():
            if key not in strategy.caps or value < GRAIN:
                yield f"strategy.{key}"
