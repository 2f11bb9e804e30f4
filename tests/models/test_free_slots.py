"""Tasks of a host that fails, restarted in free slots of others. Times in ms.

s ──▶ p, on hosts 0 and 1; host 2 has no task. Heartbeats come each microsecond, and a process is missed after
40 and launched in 20: p, whose host crashes at 100, is back just before 160.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES
from tests.models.test_cards import served
from tests.models.test_exactness import check
from tests.models.traced import hosts_at_end
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.simulation import simulate
from tideover.models.strategies.aligned_snapshots import AlignedSnapshots
from tideover.models.strategies.none import Amnesia
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load

DIES = fault("crash_host", 100, host=1, repair=500 * MS)
TO_2 = Links(latency=ms(5), local=ms(0), pairs={"0-2": ms(2)})


def found_on(*failures: Any, slots: int | None = None, until: float = 300, **more: Any) -> Scenario:
    topology = {"s": spout(**ONES, hosts=(0,)), "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(1,))}
    hosts = Hosts(machines={"m": MachineType(count=3, slots=slots)}, reserve=more.pop("reserve", 0))
    detector = Heartbeats(interval=1000, timeout=40 * MS, launch=ms(20), restart_on="free_slot", **more)
    found = world(topology, "none", failures or (DIES,), until, hosts=hosts, links=TO_2)
    return found.model_copy(update={"detector": detector})


def seldom(scenario: Scenario) -> Scenario:
    """The same with fewer heartbeats, for the reference, which has an event for each."""
    rarely = scenario.detector.model_copy(update={"interval": 10 * MS})
    return scenario.model_copy(update={"detector": rarely})


@pytest.mark.parametrize("reserve", [0, 1])
def test_a_task_goes_to_the_host_with_the_fewest_tasks(reserve: int) -> None:
    """Host 2, 2 away, be it in reserve or not: p takes in what comes from 160 on, and that of 130 to 150 is
    lost. Roots 0 to 8 were done before.
    """
    found = simulate(found_on(reserve=reserve), trace=True)
    delays = [(root, round(arrived - 10 * (root + 1), 3)) for root, arrived, _ in served(found, "p")]
    assert delays == [*((root, 5) for root in range(9)), *((root, 2) for root in range(15, 29))]
    (row,) = found.recoveries
    assert row["ready_at_s"] == pytest.approx(0.160, abs=2e-6)


def test_without_a_slot_it_waits_for_the_repair_of_its_host() -> None:
    """Host 0's one slot is taken, and host 2 is down itself until 650: p is launched on host 1 at 600."""
    scenario = found_on(DIES, fault("crash_host", 50, host=2, repair=600 * MS), slots=1, until=900)
    (_, row) = simulate(scenario).recoveries
    assert row["ready_at_s"] == pytest.approx(0.620, abs=2e-6)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1}


def test_if_its_slot_is_taken_by_a_failure_it_gets_another() -> None:
    """Host 2 fails at 120, before p is launched there: host 0 has room, and nothing is later for that."""
    scenario = found_on(DIES, fault("crash_host", 120, host=2, repair=500 * MS))
    first, second = simulate(scenario).recoveries
    assert first["ready_at_s"] == second["ready_at_s"] == pytest.approx(0.160, abs=2e-6)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 0}


@pytest.mark.parametrize("strategy", [Amnesia(), AlignedSnapshots(checkpoint_interval=50 * MS)])
@pytest.mark.parametrize("lost", ["crash_host", "planned_restart"])
def test_if_its_slot_is_taken_and_no_other_is_free_it_waits_for_its_host(lost: str, strategy: Any) -> None:
    """The same, but host 0 is full: what is ordered at 140 is launched when host 1 is repaired, at 600."""
    second = stop_of(2, at=120) if lost == "planned_restart" else fault(lost, 120, host=2, repair=500 * MS)
    scenario = found_on(DIES, second, slots=1, until=900).model_copy(update={"strategy": strategy})
    rows = simulate(scenario).recoveries
    assert [row["ready_at_s"] for row in rows] == [0.62, 0.62]
    assert [row["detected_at_s"] for row in rows] == pytest.approx([0.14, 0.14], abs=2e-6)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1}
    check(seldom(scenario))


def test_a_process_that_crashes_on_a_host_that_lives_stays_there() -> None:
    assert hosts_at_end(found_on(fault("crash_task", 100, component="p"))) == {"s.0": 0, "p.0": 1}


def test_who_is_cut_off_from_the_listener_is_restarted_where_it_is_heard() -> None:
    """Host 1 is cut off from 100 on: it is not heard for 40, and p is launched on host 2, though it lives."""
    cut = fault("partition", 100, hosts=(1,), duration=500 * MS)
    scenario = found_on(cut, listener=0)
    _, row = simulate(scenario).recoveries
    assert (row["kind"], row["ready_at_s"]) == ("false_detection", pytest.approx(0.160, abs=2e-6))
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 2}
    arrived = [at for _, at, _ in served(simulate(scenario, trace=True), "p")]
    assert arrived[9:] == [*range(162, 300, 10)]


def test_of_a_job_only_what_has_failed_goes_elsewhere() -> None:
    """p and q on hosts 1 and 0: all of the job begins again, and p does so on host 2."""
    scenario = found_on().model_copy(update={"strategy": AlignedSnapshots(checkpoint_interval=50 * MS)})
    q = bolt("forward", {"p": "shuffle"}, 1, hosts=(0,))
    scenario = scenario.model_copy(update={"topology": scenario.topology | {"q": q}})
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 2, "q.0": 0}
    assert simulate(scenario).ledger["lost"] == 0


def stop_of(*hosts: int, down: int = 500, at: float = 100) -> Any:
    return fault("planned_restart", at, hosts=hosts, down=ms(down), pause=50 * MS)


def test_what_stands_on_a_host_that_is_stopped_takes_a_free_slot_at_once() -> None:
    """Nobody has to miss p: it is launched on host 2 at 100, and takes in what comes from 120 on."""
    found = simulate(found_on(stop_of(1)), trace=True)
    delays = [(root, round(arrived - 10 * (root + 1), 3)) for root, arrived, _ in served(found, "p")]
    assert delays == [*((root, 5) for root in range(9)), *((root, 2) for root in range(11, 29))]
    assert found.recoveries[0]["ready_at_s"] == 0.12


def test_a_host_that_is_back_has_free_slots() -> None:
    """p goes to host 2. That is stopped at 250, 50 after the return of host 1: p goes there, and is back at
    270. Without a slot elsewhere (host 2 is down itself) it waits for its host.
    """
    scenario = found_on(stop_of(1, 2, down=100))
    moments = [(row["failed_at_s"], row["ready_at_s"]) for row in simulate(scenario).recoveries]
    assert moments == [(0.1, 0.12), (0.25, 0.27)]
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1}
    scenario = found_on(fault("crash_host", 50, host=2, repair=600 * MS), stop_of(1), slots=1, until=900)
    assert simulate(scenario).recoveries[1]["ready_at_s"] == 0.6
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1}


@pytest.mark.parametrize("second", [stop_of(2), fault("crash_host", 100, host=2, repair=900 * MS)])
def test_a_slot_that_is_gone_at_the_instant_of_the_stop_is_none(second: Any) -> None:
    """p is stopped, and host 2, where it would go, at once after it: it is back with its host, at 600."""
    scenario = found_on(stop_of(1), second, slots=1, until=900)
    assert [row["ready_at_s"] for row in simulate(scenario).recoveries] == [0.6, 0.6]
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1}
    check(seldom(scenario))


def test_who_does_not_work_needs_no_slot() -> None:
    """Host 1, which is stopped, has p and count.1, which is idle; host 2 has one slot, host 0 none. p goes
    there, and the job is back 20 + 7 after the stop.
    """
    more = {"window": {"length": 100 * MS}, "hosts": (0, 1), "max_parallelism": 2}
    count = bolt("windowed_count", {"p": "fields"}, 1, **more)
    scenario = found_on(stop_of(1), until=900, prepare=ms(7))
    changes = {
        "topology": scenario.topology | {"count": count},
        "hosts": Hosts(machines={"m": MachineType(count=2, slots=2), "n": MachineType(count=1, slots=1)}),
        "strategy": AlignedSnapshots(checkpoint_interval=50 * MS),
    }
    scenario = scenario.model_copy(update=changes)
    (row,) = simulate(scenario).recoveries
    assert row["ready_at_s"] - row["failed_at_s"] == pytest.approx(0.027)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 2, "count.0": 0, "count.1": 1}
    check(seldom(scenario))


@pytest.mark.parametrize(("slots", "down", "host"), [(2, 27, 2), (1, 500, 1)])
def test_a_job_takes_free_slots_if_there_are_enough(slots: int, down: int, host: int) -> None:
    """p and r are on host 1. Where host 2 has two slots they run there 20 after the stop, and all is prepared
    7 later; where it has one both wait for their host.
    """
    changes = {
        "topology": {
            "s": spout(**ONES, hosts=(0,)),
            "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(1,)),
            "r": bolt("forward", {"p": "shuffle"}, 1, hosts=(1,)),
            "q": bolt("forward", {"r": "shuffle"}, 1, hosts=(0,)),
        },
        "hosts": Hosts(machines={"m": MachineType(count=2, slots=2), "n": MachineType(count=1, slots=slots)}),
        "strategy": AlignedSnapshots(checkpoint_interval=50 * MS),
    }
    scenario = found_on(stop_of(1), until=900, prepare=ms(7)).model_copy(update=changes)
    found = simulate(scenario)
    (row,) = found.recoveries
    assert row["ready_at_s"] - row["failed_at_s"] == pytest.approx(down / 1000)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": host, "r.0": host, "q.0": 0}
    assert found.ledger["lost"] == found.ledger["duplicated"] == found.ledger["replayed"] == 0


@pytest.mark.parametrize("latency", [4, 0])
def test_a_card_that_hands_on_to_itself_after_a_move(latency: float) -> None:
    """s (host 2) ──▶ p (1, host 0) ──▶ q (4, host 1) ──▶ r (host 3): each card takes 2, each wire 4. From its
    emission on a root is at p after 2 + 4 + 2, leaves it at 9, is at q at 17, leaves it at 21, and comes to
    r's card at 27, where it is through at 29. r goes to host 0: that card has served what brings this message
    about, and has a later root, emitted 20 after it, from 26 to 28. So r has it at 30. With wires that take
    nothing it is at r's card at 15, and through at 17; the next root is at host 0 from 12 to 14, and that
    after it comes at 22: nothing is in its way.
    """
    topology = {
        "s": spout(**ONES, hosts=(2,)),
        "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(0,)),
        "q": bolt("forward", {"p": "shuffle"}, 4, hosts=(1,)),
        "r": bolt("forward", {"q": "shuffle"}, 0, hosts=(3,)),
    }
    hosts = Hosts(machines={"m": MachineType(count=4, nic=128_000)})
    update = {"topology": topology, "hosts": hosts, "links": Links(latency=ms(latency), local=ms(0))}
    dies = fault("crash_host", 100, host=3, repair=500 * MS)
    scenario = found_on(dies, until=295).model_copy(update=update)
    assert hosts_at_end(scenario) == {"s.0": 2, "p.0": 0, "q.0": 1, "r.0": 0}
    found = simulate(scenario, trace=True)
    delays = [(root, arrived - 10 * (root + 1)) for root, arrived, _ in served(found, "r")]
    if latency:
        assert delays == [*((root, 29) for root in range(7)), *((root, 30) for root in range(12, 26))]
    else:
        assert delays == [(root, 17) for root in (*range(8), *range(14, 27))]


def test_slots_without_hosts_are_refused() -> None:
    failures = "failures=[{kind: crash_task, component: count, at: 75 s}]"
    with pytest.raises(ScenarioError, match=r"detector\.restart_on: free_slot needs hosts"):
        load("wordcount", ["detector={kind: heartbeats, restart_on: free_slot}", failures])
