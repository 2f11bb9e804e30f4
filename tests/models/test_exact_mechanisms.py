"""The engine against the per-tuple reference, mechanism by mechanism: full queues, cards, clusters, look-ups,
and what notices a failure, in which each heartbeat is an event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from tests.models.test_exactness import LONG, QUICK, SHARED, TRIED, agree, check, differences
from tests.oracle.random_changes import (
    backed,
    both,
    crowded_and_failing,
    looked_up,
    networks,
    on_cards,
    planned,
    queues,
    reading,
    rescaled,
    saved,
    together,
)
from tests.oracle.random_clusters import HEARD, grouped, heard, on_clusters, regrouped, reseated
from tests.oracle.random_worlds import overlapping, worlds
from tideover.models.config import Scenario

Worlds = st.SearchStrategy[Scenario]
PLAIN = ("none", "source_replay")
SNAPSHOTS, RSM, STORM, FLEETS = ("aligned_snapshots",), ("rsm",), ("storm_checkpoint",), ("estorm",)
OVER_CARDS = ("none", "source_replay", "rsm", "active_replication", "aligned_snapshots", "micro_batch")
RESCALED = rescaled(
    planned(
        st.one_of(
            heard(SNAPSHOTS), reseated(SNAPSHOTS), *(regrouped(SNAPSHOTS, where) for where in (False, True))
        )
    )
)
TOLD = ("detected_at_s", "ready_at_s", "detect_s", "delay_s", "launch_s", "prepare_s", "restart_s")
"""Of each failure; figures that ask when it was over are compared where faults say how long they last."""


def happens(scenario: Scenario) -> None:
    """All that happens is as in the reference."""
    found = differences(scenario)
    over = {name for name in found if name[0].isdigit() or name.startswith(("latency ", "end_to_end "))}
    assert not {name: both for name, both in found.items() if name not in over or name.endswith(TOLD)}


def one_failure(scenarios: Worlds) -> Worlds:
    return scenarios.filter(lambda found: len(found.failures) < 2)


def tried(
    name: str,
    scenarios: Worlds,
    few: int = 8,
    many: settings | None = LONG,
    holds: Callable[[Scenario], None] = check,
) -> list[Any]:
    """In so few worlds, where it is more than none, and in many."""
    name = name.replace(" ", "_")  # so that -k can choose it
    short = pytest.param(scenarios, settings(QUICK, max_examples=max(few, 1)), holds, id=f"{name}-few")
    long = pytest.param(scenarios, many, holds, id=f"{name}-many", marks=pytest.mark.long)
    return [short] * (few > 0) + [long] * (many is not None)


@pytest.mark.parametrize(
    ("scenarios", "how", "holds"),
    [
        *tried("who waits for room", queues(PLAIN, ("block",)), 15),
        *tried("who waits for credit", queues((*PLAIN, *SNAPSHOTS), ("credits",)), 20, None),
        *tried("credit or room", queues((*PLAIN, *SNAPSHOTS), ("credits", "credits", "block")), 0),
        *tried("who waits for either", queues(PLAIN, ("block", "block", "credits")), 10, None),
        *tried("what finds no room", queues((*PLAIN, *RSM), ("drop",)), 10),
        *tried("replays wait", queues(RSM, ("block",)), 12),
        *tried("replays wait after failures that overlap", queues(RSM, ("block",), overlap=True), 0),
        *tried("logs wait", reading(queues(PLAIN)), 6),
        *tried("logs wait elsewhere", one_failure(reading(queues((*RSM, *STORM, *FLEETS), ("block",)))), 0),
        *tried("transactions wait", queues(STORM, ("block", "credits", "drop")), 4),
        *tried("fleets wait", queues(FLEETS), 2, None),
        *tried("fleets wait after a failure", one_failure(queues(FLEETS)), 0),
        *tried("state is waited for", backed((*PLAIN, *RSM, *STORM), ("block", "drop")), 5),
        *tried("snapshots in full queues", queues(SNAPSHOTS, ("block",)), 4),
        *tried("jobs fail with full queues", queues(SNAPSHOTS, ("block",), overlap=True), 2),
        *(row for one in OVER_CARDS for row in tried(f"cards {one}", networks((one,)), 6, SHARED)),
        *(row for one in TRIED for row in tried(f"clusters {one}", on_clusters((one,)))),
        *(row for one in HEARD for row in tried(f"heartbeats {one}", heard((one,)), 6, SHARED, happens)),
        *tried("heartbeats of what is stopped", planned(heard()), 6, SHARED, happens),
        *tried("heartbeats in place", planned(regrouped(in_place=True)), 4, SHARED, happens),
        *tried("heartbeats of what is rescaled", RESCALED, 6, LONG, happens),
        *tried("groups", grouped(), 8, SHARED, happens),
        *tried("groups with changelogs", grouped(("changelog",)), 8, SHARED),
        *tried("groups that are stopped", planned(grouped(("changelog",))), 6, SHARED),
        *tried("fleets with a state", saved(both("estorm"))),
        *tried("look ups", looked_up(st.one_of(worlds(STORM), overlapping(STORM))), 50),
        *tried("look ups share cores", looked_up(crowded_and_failing(STORM)), 8, SHARED),
        *tried("look ups share cards", looked_up(on_cards(worlds(STORM))), 8, SHARED),
        *tried("look ups in queues", looked_up(queues(STORM, ("block", "credits", "drop"), True)), 8, SHARED),
        *tried("look ups share all", looked_up(together(STORM)), 8, SHARED),
    ],
)
def test_the_engine_equals_the_reference(
    scenarios: Worlds, how: settings, holds: Callable[[Scenario], None]
) -> None:
    agree(scenarios, how, holds)
