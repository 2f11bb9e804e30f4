"""Worlds for `same_bytes`: those that the reference is tried in (`tests/oracle`), drawn with a fixed seed.

Every strategy of the reference is there, with every kind of failure, windows, queues, machines and detectors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from oracle import random_changes as changed
from oracle import random_clusters as on
from oracle.making import TICK
from oracle.program import PROTOCOLS
from oracle.random_worlds import DAY, RATES, event_windows, overlapping, sliding_windows, worlds

from tideover.models.config import Scenario
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.scenarios.part_builder import to_data
from tideover.sim.faults import FAULTS

Worlds = st.SearchStrategy[Scenario]
EVENTS = "events.csv"
FILES = {
    EVENTS: "time,kind,component,detection,restart\n1.5 s,crash_task,a,0.3 s,0.2 s\n4 s,pause,,,\n",
    RATES.name: RATES.read_text(),
    DAY.name: DAY.read_text(),
}
"""What scenarios name by its path."""


@st.composite
def stores_fail(draw: st.DrawFn, strategy: str) -> Scenario:
    """A world in which the store is slow, down for a while, or empty."""
    found = draw(worlds((strategy,)))
    kind = draw(st.sampled_from(("slow_store", "store_down", "lose_store")))
    more = {} if kind == "lose_store" else {"duration": draw(st.integers(1, 20)) * TICK}
    more |= {"factor": 4.0} if kind == "slow_store" else {}
    fault = FAULTS[kind](at=draw(st.integers(1, 50)) * TICK, **more)
    return found.model_copy(update={"failures": (*found.failures, fault)})


def sorts() -> Iterator[tuple[str, Worlds, int]]:
    """What worlds are called, what they are drawn from, and how many are."""
    for name in sorted(PROTOCOLS):
        one, of = (name,), STRATEGIES[name]
        yield f"{name}-plain", worlds(one), 6
        yield f"{name}-overlap", overlapping(one), 4
        yield f"{name}-sliding", worlds(one, sliding_windows), 2
        yield f"{name}-troubled", changed.troubled(worlds(one)), 3
        yield f"{name}-again", changed.schedules(one), 3
        yield f"{name}-cores", changed.crowded(one), 2
        yield f"{name}-cluster", on.on_clusters(one), 3
        if "event" in of.windows and not of.composed_of:
            yield f"{name}-event", worlds(one, event_windows), 2
        if of.bounded_queues and name != "aligned_snapshots":
            yield f"{name}-queues", changed.queues(one), 3
        if of.reads_queues:
            yield f"{name}-log", changed.logs(one), 2
        if "store" in of.model_fields:
            yield f"{name}-store", stores_fail(name), 3
    for name in on.HEARD:
        yield f"{name}-heartbeats", on.heard((name,)), 3
        yield f"{name}-free_slots", on.reseated((name,)), 2
        yield f"{name}-racks", on.regrouped((name,)), 2
    for name in set(on.GROUPED):
        yield f"{name}-group", on.grouped((name,)), 3
    for name in on.MOVED:
        yield f"{name}-nimbus", on.moved((name,)), 3
    for about, found in changed.SETTINGS.items():
        yield about.replace(", ", "-").replace(" ", "_"), found, 4
    yield "storm_checkpoint-look_up", changed.looked_up(worlds(("storm_checkpoint",))), 4


def some(found: Worlds, count: int, folder: Path) -> list[dict[str, Any]]:
    """The content of so many files in ``folder`` that are not refused, always the same; not the first ones,
    which are the smallest.
    """
    drawn: list[dict[str, Any]] = []
    file = folder / "world.yaml"

    @seed(1)
    @settings(
        max_examples=4 * count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(found)
    def draw(scenario: Scenario) -> None:
        data = to_data(scenario)
        for config in data["topology"].values():
            arrivals = config.get("arrivals")
            if isinstance(arrivals, dict) and "file" in arrivals:
                arrivals["file"] = Path(arrivals["file"]).name
        with suppress(ScenarioError):  # of the end of a run, say, which the reference does not mind
            file.write_text(json.dumps(data))
            load(file)
            drawn.append(data)

    draw()
    return drawn[-count:]


def write(folder: Path) -> list[str]:
    """Write all worlds, and what they name, and return their names."""
    for name, content in FILES.items():
        (folder / name).write_text(content)
    names = []
    for name, found, count in sorts():
        for number, world in enumerate(some(found, count, folder)):
            names.append(f"{name}-{number}")
            (folder / f"{names[-1]}.yaml").write_text(json.dumps(world | {"name": names[-1]}, indent=1))
    return names
