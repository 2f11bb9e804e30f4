"""Random small worlds whose hosts have a few cores for all their tasks, or are slow for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType

from .random_parameters import STRATEGY_NAMES
from .random_times import TICK, TICK_MS, times
from .random_worlds import overlapping, worlds
from .worlds import MS, fault

FACTORS = (0.5, 0.3, 0.7)


@st.composite
def crowded(
    draw: st.DrawFn,
    strategies: tuple[str, ...] = STRATEGY_NAMES,
    of: Callable[[tuple[str, ...]], st.SearchStrategy[Scenario]] = worlds,
) -> Scenario:
    """Any world (``of`` these strategies), on one to four machines with a core, two, or any number."""
    return draw(on_cores(of(strategies)))


def crowded_and_failing(strategies: tuple[str, ...] = STRATEGY_NAMES) -> st.SearchStrategy[Scenario]:
    """The same with faults that overlap."""
    return crowded(strategies, overlapping)


@st.composite
def on_cores(draw: st.DrawFn, found: st.SearchStrategy[Scenario]) -> Scenario:
    """One of these worlds, on such machines; up to two times a host is slow."""
    scenario = draw(found)
    hosts = scenario.hosts if isinstance(scenario.hosts, int) else 3
    cores = [draw(st.sampled_from((1, 1, 1, 2, None))) for _ in range(hosts)]
    machines = {f"m{i}": MachineType(count=1, cores=number) for i, number in enumerate(cores)}
    update: dict[str, Any] = {"hosts": Hosts(machines=machines)}
    if scenario.hosts is None:
        update["links"] = scenario.links.model_copy(update={"pairs": {}})
    until = scenario.run.duration // TICK
    slow = []
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2)))):
        at = draw(st.one_of(st.integers(1, until - 1).map(lambda n: TICK_MS * n), times(False, until - 1)))
        where = {"host": draw(st.integers(0, hosts - 1)), "factor": draw(st.sampled_from(FACTORS))}
        lasts = max(1, round(draw(times(draw(st.booleans()), 1, 10, 30)) * MS))
        slow.append(fault("slow_host", at, duration=lasts, **where))
    update["failures"] = tuple(draw(st.permutations([*scenario.failures, *slow])))
    return scenario.model_copy(update=update)
