"""The race of Storm's supervisors with Nimbus. Times in ms.

s ──▶ p (1) ──▶ count (1), each on a host of its own, in a worker: 0.0, 1.0 and 2.0. Heartbeats are as good as
always fresh (each microsecond), supervisors look each microsecond, and Nimbus each 10.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import chain, crashed, lost
from tests.models.test_exactness import check
from tests.oracle.worlds import bolt, fault, ms, spout, world
from tideover.models.detectors.storm import Storm
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
from tideover.models.results import RECOVERY, figures
from tideover.models.simulation import Replication, simulate

OFTEN = 1000


def storm(nimbus: float, launch: float = 15, prepare: float = 8, **more: Any) -> Storm:
    """Supervisors wait 30, Nimbus so long."""
    times = {name: round(value * 1e6) for name, value in more.items()}
    fine = dict.fromkeys(("worker_heartbeat", "task_heartbeat", "supervisor_round"), OFTEN)
    return Storm(
        supervisor_worker_timeout=30_000_000,
        nimbus_task_timeout=round(nimbus * 1e6),
        nimbus_round=10_000_000,
        launch=ms(launch),
        prepare=ms(prepare),
        **fine | times,
    )


def run(detector: Storm, *failures: Any, **more: Any) -> Replication:
    changes = {"detector": detector, **more}
    return simulate(chain(failures or (crashed(100, 0),), 900).model_copy(update=changes))


def restarts(done: Replication) -> list[tuple[str, str, float, float]]:
    """(kind, where, struck, ready) of each, to 10 microseconds."""
    return [
        (row["kind"], row["component"], *(round(row[at] * 1e3, 2) for at in ("failed_at_s", "ready_at_s")))
        for row in done.recoveries
    ]


def test_a_supervisor_that_is_quick_enough_ends_it() -> None:
    """Missed at 130, launched until 145, prepared until 153: before Nimbus gives up at 160 or later."""
    (only,) = restarts(run(storm(nimbus=60)))
    assert only == ("crash_task", "count", 100, 153)


def test_nimbus_restarts_the_neighbour_twice() -> None:
    """Nimbus gives up in its first round after 140, at N, when the worker is not yet prepared. The task moves
    to worker 1.0, next to what it reads: that is killed, and both are there at N + 23. At N + 10, in its next
    round, Nimbus sees that worker 2.0 is free: the task goes home, and worker 1.0 is killed again; both are
    back at N + 33. So the buffer of p is gone twice.
    """
    done = run(storm(nimbus=40))
    first, moved, home = restarts(done)
    n = moved[2]
    assert 140 <= n < 150
    assert moved == ("reassigned", "worker 2.0 to 1.0", n, pytest.approx(n + 33))
    assert home == ("reassigned", "back to worker 2.0", pytest.approx(n + 10), pytest.approx(n + 33))
    assert first == ("crash_task", "count", 100, pytest.approx(n + 33))
    assert done.ledger["lost"] > run(storm(nimbus=120)).ledger["lost"]


def test_nimbus_has_heard_from_a_neighbour_until_it_is_killed() -> None:
    """As above, but Nimbus has no patience for what it has just assigned. The neighbour's task was last heard
    when it was killed, at N, and takes 23 to come back, but is killed again at N + 10, and once more when
    count, last heard at 100, comes again at N + 20. So it is silent for 40 at N + 40, and moved then.
    """
    done = run(storm(nimbus=40, task_launch=0))
    moves = [(row["component"], row["failed_at_s"] * 1e3) for row in done.recoveries[1:]]
    n = moves[0][1]
    assert moves[2] == ("worker 2.0 to 1.0", pytest.approx(n + 20))
    neighbour = next(moment for where, moment in moves if where.startswith("worker 1.0 to"))
    assert neighbour == pytest.approx(n + 40)


def test_what_nimbus_moves_is_no_failure() -> None:
    """Its restarts are rows of their own, but one failure is told of, and the recovery from it."""
    done = run(storm(nimbus=40))
    assert len(done.recoveries) == 3
    told = figures([done])
    assert (told["failures"], told[RECOVERY]) == (1, done.recoveries[0]["time_to_recover_s"])


def test_a_free_worker_takes_the_task_alone() -> None:
    """With a fourth host in reserve nothing else is killed: count moves there, and stays."""
    machines = Hosts(machines={"small": MachineType(count=4)}, reserve=1)
    done = run(storm(nimbus=40), hosts=machines)
    _, moved = restarts(done)
    assert moved == ("reassigned", "worker 2.0 to 3.0", moved[2], pytest.approx(moved[2] + 23))
    assert done.ledger["lost"] == 0


def test_nimbus_has_patience_with_what_it_has_just_assigned() -> None:
    """Tasks that take 100 to prepare are silent for longer than its timeout, but it waits `task_launch`: one
    move, one way home, and no more.
    """
    done = run(storm(nimbus=40, prepare=100, task_launch=300))
    assert [row[0] for row in restarts(done)] == ["crash_task", "reassigned", "reassigned"]


def test_without_patience_it_never_ends() -> None:
    """With none, tasks that take longer than its timeout are moved for ever."""
    done = run(storm(nimbus=40, prepare=100, task_launch=0))
    assert len(done.recoveries) > 6


def test_all_of_a_worker_dies_with_one_task() -> None:
    """p and count are on host 1, in one worker: the crash of count takes p down, a lost state does not."""
    topology = chain().topology
    hosts = {"s": (0,), "p": (1,), "count": (1,)}
    changed = {name: config.model_copy(update={"hosts": hosts[name]}) for name, config in topology.items()}
    done = run(storm(nimbus=500), topology=changed)
    (row,) = restarts(done)
    assert row == ("crash_task", "count", 100, 153)
    assert done.ledger["lost"] > 0  # with the buffer of p
    assert run(storm(nimbus=500), lost(100), topology=changed).ledger["lost"] == 0


def test_who_loses_its_state_twice_at_one_instant_is_back_once() -> None:
    """s (a root each 10) ──▶ p (15), of which there are two. At 55 the first loses its state, and once more:
    it copies the other one once, with its queue, and does what is there one after the other, each once.
    """
    topology = {"s": spout(), "p": bolt("forward", {"s": "shuffle"}, 15)}
    gone = fault("lose_state", 55, component="p")
    replicated = world(topology, "active_replication", (gone, gone), 100, k=1)
    seldom = storm(nimbus=60, worker_heartbeat=1, task_heartbeat=1, supervisor_round=1)
    scenario = replicated.model_copy(update={"detector": seldom})
    check(scenario)
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    first = [(row[3], row[-1] / 1e6) for row in trace.processed if row[2] == 0]
    assert first == [(0, 25), (1, 40), (2, 55), (3, 70), (4, 85), (5, 100)]
