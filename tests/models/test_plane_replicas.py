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
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.detectors.storm import Storm
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
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


def test_a_replica_that_comes_back_does_not_overtake_what_was_on_its_way_before_a_move() -> None:
    """Host 0 is down from 2 s, with a replica of p, and with q. What the other replica sends q waits at the
    card of host 0, until both move to one host, and the replica there copies the other. It then sends within
    the host, and yet behind all that: q drops nothing that it has not had.
    """
    topology = {
        "a": spout("sentences", gap=500, parallelism=2, hosts=(1, 1)),
        "p": bolt("forward", {"a": "shuffle"}, 100, hosts=(0,)),
        "q": bolt("split_words", {"p": "shuffle"}, 200, hosts=(0,)),
    }
    crash = (fault("crash_host", 2000, host=0, repair=300 * MS, while_down="hold"),)
    hosts = Hosts(
        machines={"a": MachineType(count=5, nic=1717), "b": MachineType(count=1)},
        workers=1,
        reserve=1,
    )
    scenario = world(topology, "active_replication", crash, 5000, 24, components=("p",), hosts=hosts)
    detector = Storm(
        supervisor_worker_timeout=1000 * MS,
        nimbus_task_timeout=500 * MS,
        worker_heartbeat=200 * MS,
        task_heartbeat=300 * MS,
        supervisor_round=300 * MS,
        nimbus_round=1500 * MS,
        worker_start_timeout=1000 * MS,
        task_launch=1000 * MS,
        launch=ms(150),
        prepare=ms(0),
    )
    scenario = scenario.model_copy(update={"detector": detector})
    assert simulate(scenario).ledger["lost"] == 0
    check_moves(scenario)
