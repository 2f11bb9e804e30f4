"""Whether a run is of a size that can be simulated: that it comes to an end, fits into memory, and that int64
has room for every moment and number of bytes. A single value is limited by its own type (`sim.units`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import inf

from tideover.models.advice.loads import task_loads
from tideover.models.coarsening import coarseness, counting, tuple_costs
from tideover.models.config import Scenario
from tideover.models.effort import MOST_ROOTS, roots
from tideover.models.evaluation.normal import reach_of
from tideover.models.job.components import MOST_LUMP, BoltConfig, SpoutConfig
from tideover.models.job.deployment import Deployment
from tideover.models.time_of_day import heaviest
from tideover.scenarios.draft import Draft
from tideover.scenarios.errors import Problem
from tideover.sim.recorder import LONG, SLOT
from tideover.sim.units import DAY, MAX_PERIOD, S

MOST_CHANNELS = 4_000_000
"""Pairs of tasks that send to one another: some 1.5 kB each."""
SLOT_BYTES = 120
"""Of what is recorded of a slot of 10 ms of a run and of the one without failures, and said of seconds."""
_TIMES = 3
"""Moments at which something happens with a root: it comes in, is processed, and leaves."""
LATEST = 2.0**61
"""ns, 73 years: the latest moment that work is expected to be done, a quarter of what int64 holds."""
MOST_BYTES = 2.0**61
"""That all tuples of a run have together."""


def check(draft: Draft, scenario: Scenario, deployment: Deployment) -> Iterator[Problem]:
    """Problems of a scenario whose parts are fine; one sort at a time, as each needs the one before."""
    lump, heavy = coarseness(scenario), heaviest(scenario)
    if lump > MOST_LUMP:
        message = (
            f"lets one tuple stand for {lump:.3g}; at most {MOST_LUMP:,} are allowed: give a higher rate"
        )
        yield draft.problem(message, "run", "lump_rate")
        return
    found = [
        *_spouts(draft, heavy, lump),
        *_channels(draft, deployment),
        *_memory(draft, heavy),
    ]
    yield from found or _work(draft, heavy, lump, deployment)


def _spouts(draft: Draft, scenario: Scenario, lump: int) -> Iterator[Problem]:
    """A run comes to an end while somebody waits for it, and something is called in it."""
    for name, config in scenario.topology.items():
        if not isinstance(config, SpoutConfig):
            continue
        gap, number = config.arrivals.mean_gap_ns * lump, roots(config, scenario)
        if not gap <= MAX_PERIOD:
            each = f", of {lump:,} tuples each" if lump > 1 else ""
            yield draft.problem(
                f"has a call every {gap / DAY:.3g} d{each}; at most {MAX_PERIOD // DAY} d are allowed",
                "topology",
                name,
            )
        elif not number <= MOST_ROOTS:
            lumps = not any(counting(scenario.topology, scenario.strategy))
            remedy = (
                "let one stand for several, as with run.lump_rate: 1000/s" if lumps else "take a shorter run"
            )
            message = (
                f"emits about {number:.2g} tuples within run.duration; at most {MOST_ROOTS:.0e} are allowed: "
                f"{remedy}"
            )
            yield draft.problem(message, "topology", name)


def _channels(draft: Draft, deployment: Deployment) -> Iterator[Problem]:
    """Each task has a channel to each task, with its replicas, that reads from it."""
    copies, number = deployment.replicas, 0
    for edge in deployment.topology.edges:
        number += edge.up.tasks * copies[edge.up.name] * edge.down.tasks * copies[edge.down.name]
        if number > MOST_CHANNELS:
            message = (
                f"makes {number:,} pairs of tasks that send to one another, which do not fit into memory; at "
                f"most {MOST_CHANNELS:,} are allowed: lower the parallelism"
            )
            yield draft.problem(message, "topology", edge.down.name)
            return


def _memory(draft: Draft, scenario: Scenario) -> Iterator[Problem]:
    """What is recorded fits: of a long run the slots near to what happens, or all, if that is everywhere."""
    duration = scenario.run.duration
    if duration <= LONG:
        return
    spouts = [config for config in scenario.topology.values() if isinstance(config, SpoutConfig)]
    cycle = scenario.strategy.cycle()
    near = 4 * reach_of(0 if cycle is None else cycle[1]) + 20 * S
    times = _TIMES * sum(roots(config, scenario) for config in spouts)
    if any(config.source is not None for config in spouts):
        times = inf  # their lag is looked at every second
    needed = SLOT_BYTES * min(duration, times * near) / SLOT
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        message = (
            f"is so long that what is recorded, 10 ms by 10 ms, needs {needed / 1e9:,.0f} GB of memory; "
            f"this machine has {there / 1e9:,.0f} GB: take a shorter run, or one in which less happens"
        )
        yield draft.problem(message, "run", "duration")


def _work(draft: Draft, scenario: Scenario, lump: int, deployment: Deployment) -> Iterator[Problem]:
    """The latest moment and the bytes that the run may come to are numbers that int64 holds. Loads and bytes
    are the same with lumps.
    """
    duration, links = scenario.run.duration, scenario.links
    loads = task_loads(deployment.topology, scenario.strategy)
    cards = [host.nic for host in deployment.cluster.hosts if host.nic is not None]
    each = tuple_costs(scenario.strategy) + tuple_costs(links)
    byte = links.serialise_cost + links.deserialise_cost + (S / min(cards) if cards else 0.0)
    latest = float(duration)
    latest += len(loads) * max(one.mean_ns for one in (links.latency, links.local, *links.pairs.values()))
    for c in deployment.topology.components:
        config = c.config
        if isinstance(config, BoltConfig):
            rate = loads[c.name].rate
            latest += loads[c.name].load * duration + config.service.mean_ns * lump
        else:
            rate = c.tasks * S / config.arrivals.mean_gap_ns
        tuples, size = lump + rate * duration / S, config.tuple_size + links.header
        latest += (each + size * byte) * tuples
        if not latest <= LATEST:
            said = (
                f"leaves work for {latest / DAY:.3g} d and more in a run; at most {LATEST / DAY:.0f} d are "
                "allowed: take a shorter run, or lower its rate or what a tuple costs"
            )
            yield draft.problem(said, "topology", c.name)
            return
        if not size * tuples <= MOST_BYTES:
            said = f"sends {size * tuples:.1e} bytes in this run; at most {MOST_BYTES:.1e} are allowed"
            yield draft.problem(said, "topology", c.name)
            return
