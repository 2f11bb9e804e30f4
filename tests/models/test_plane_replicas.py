"""Replicas on the compiled data plane, against the per-tuple reference: equal to the nanosecond."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.models.chain import ONES
from tests.models.test_exactness import FEW, LONG, QUICK, SHARED, agree, check
from tests.models.test_moved_exactness import check as check_moves
from tests.oracle.random_cores import crowded
from tests.oracle.random_moves import moved
from tests.oracle.random_networks import networks
from tests.oracle.random_queues import queues
from tests.oracle.random_worlds import overlapping, worlds
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.simulation import simulate

REPLICAS = ("active_replication", "active_standby")
BESIDES = {
    "queues": queues(REPLICAS),
    "full queues where failures overlap": queues(REPLICAS, overlap=True),
    "cards": networks(REPLICAS),
    "shared cores": crowded(REPLICAS),
    "checkpoints, where failures overlap": overlapping(("hybrid",)),
}
EACH = pytest.mark.parametrize("besides", BESIDES)


def test_replicas_are_as_in_the_reference() -> None:
    agree(worlds(REPLICAS), QUICK)


def test_replicas_whose_failures_overlap_are_as_in_the_reference() -> None:
    agree(overlapping(REPLICAS), QUICK)


@EACH
def test_replicas_are_as_in_the_reference_with(besides: str) -> None:
    agree(BESIDES[besides], FEW)


@pytest.mark.long
def test_many_replicas_are_as_in_the_reference() -> None:
    agree(worlds(REPLICAS), LONG)


@pytest.mark.long
def test_many_replicas_whose_failures_overlap_are_as_in_the_reference() -> None:
    agree(overlapping(REPLICAS), LONG)


@pytest.mark.long
@EACH
def test_many_replicas_are_as_in_the_reference_with(besides: str) -> None:
    agree(BESIDES[besides], SHARED)


def test_replicas_that_move_are_as_in_the_reference() -> None:
    FEW(given(moved(("active_replication",)))(check_moves))()


@pytest.mark.long
def test_many_replicas_that_move_are_as_in_the_reference() -> None:
    SHARED(given(moved(("active_replication",)))(check_moves))()


@pytest.mark.parametrize("strategy", REPLICAS)
def test_a_marker_that_has_come_already_keeps_no_window_open(strategy: str) -> None:
    """Both counts crash at 51, and with them the marker of t, of 50. That of p comes at 70, and the first has
    served it at 80. It is held for the second, which copies the first at 85, with the tuple that is in
    service until 92. At 90, the run's end, no marker waits: the window of 50 is missing.
    """
    topology = {
        "s": spout(**ONES),
        "t": spout(**ONES | {"gap": 1000}),
        "p": bolt("forward", {"s": "shuffle"}, 12),
        "count": bolt(
            "windowed_count",
            {"t": "shuffle", "p": "shuffle"},
            10,
            window={"length": 50 * MS, "trigger": "marker"},
        ),
    }
    failures = tuple(fault("crash_task", 51, component="count", replica=r, detection=1) for r in (0, 1))
    scenario = world(topology, strategy, failures, 90, copy_time=33 * MS)
    assert simulate(scenario).windows == {"emitted": 0, "correct": 0, "wrong": 0, "missing": 1}
    check(scenario)
