"""Handovers of a consumer group.

    s ──▶ p        host 0: s, host 1: p, host 2: nothing, and host 3: nothing

The members are the processes on hosts 1, 2 and 3. Times in s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.models.chain import ONES
from tests.models.test_exactness import check
from tests.models.traced import hosts_at_end
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.detectors.consumer_group import ConsumerGroup
from tideover.models.job.components import Links
from tideover.models.job.stores import RocksDB
from tideover.models.simulation import Replication, simulate
from tideover.models.world import World
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.sim.distributions import Constant, Exponential
from tideover.sim.draws import Draws, Purpose
from tideover.sim.units import S

BEAT, SESSION = 3 * S, 45 * S


ONCE = {"guarantee": "exactly_once", "transaction_timeout": 60 * S}
PROCESS, HOST = (fault(f"crash_{which}", 100_000, host=1) for which in ("worker", "host"))
"""They die at 100."""


def dies(
    *failures: Any,
    hosts: int = 4,
    seed: int = 1,
    tasks: int = 1,
    strategy: Any = None,
    state: RocksDB | None = None,
    **more: Any,
) -> Scenario:
    p = bolt("forward", {"s": "shuffle"}, 1, parallelism=tasks, hosts=(1, 2)[:tasks])
    topology = {
        "s": spout(**ONES | {"gap": 1000}, hosts=(0,)),
        "p": p.model_copy(update={"state": state}),
    }
    times = {name: Constant(value=round(more[name] * S)) for name in ("rebalance", "restart") if name in more}
    detector = ConsumerGroup(**more | times)
    settings = {"commit_interval": S} | (strategy or {})
    found = world(topology, "changelog", failures or (HOST,), 300_000, seed, hosts=hosts, **settings)
    return found.model_copy(update={"detector": detector})


def beats(host: int, after: int, seed: int = 1) -> int:
    """The first heartbeat of a host's process after a moment, if it runs from the start (ns)."""
    bits = Draws(seed).bits(f"worker {host}.0", Purpose.HEARTBEAT, np.zeros(1, np.int64))
    phase = int(bits[0] >> np.uint64(11)) * BEAT >> 53
    return phase + ((after - phase) // BEAT + 1) * BEAT


def removed(seed: int = 1, at: int = 100 * S) -> int:
    """When the process of host 1 is, that dies at 100 (ns)."""
    return beats(1, at, seed) - BEAT + SESSION


def row(scenario: Scenario, which: int = 0) -> dict[str, Any]:
    return simulate(scenario).recoveries[which]


@pytest.mark.parametrize("seed", range(4))
def test_tasks_are_handed_over_when_all_others_have_heard(seed: int) -> None:
    """The dead member is removed 45 after its last heartbeat, and the tasks are assigned when the later of
    the other two has sent its next one: between 42 and 48 after the death. Host 2 takes the task.
    """
    scenario = dies(seed=seed)
    found, out = row(scenario), removed(seed)
    assert found["detected_at_s"] == pytest.approx(out / S)
    assert found["ready_at_s"] == pytest.approx(max(beats(2, out, seed), beats(3, out, seed)) / S)
    assert 142 < found["ready_at_s"] <= 148
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 2}


def test_the_rounds_of_a_rebalance_come_on_top() -> None:
    out = removed()
    joined = max(beats(2, out), beats(3, out)) / S
    assert row(dies(rebalance=2.5))["ready_at_s"] == pytest.approx(joined + 2.5)


def test_who_comes_back_is_new_and_the_old_member_is_waited_for() -> None:
    """The process runs again at 105, and joins: the others hear of it by 108, but the old member is one until
    it is removed. Then nobody is left to wait for, and host 2 has no task, as has host 1.
    """
    scenario = dies(PROCESS, restart=5)
    assert row(scenario)["ready_at_s"] == pytest.approx(removed() / S)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1}


def test_a_static_member_has_its_tasks_at_once_unless_it_comes_too_late() -> None:
    """After 60 s it is a new one: host 2 has the task, and keeps it."""
    scenario = dies(PROCESS, restart=5, static=True)
    found = row(scenario)
    assert (found["detected_at_s"], found["ready_at_s"]) == pytest.approx((105, 105))
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1}
    assert hosts_at_end(dies(PROCESS, restart=60, static=True)) == {"s.0": 0, "p.0": 2}


def test_a_second_death_holds_up_the_handover_of_the_first() -> None:
    """Host 3 dies at 130, before it could hear of the rebalance: it is waited for until it is removed. Then
    host 2, the last member, joined long ago.
    """
    scenario = dies(HOST, fault("crash_host", 130_000, host=3))
    gone = beats(3, 130 * S) - BEAT + SESSION
    assert row(scenario)["ready_at_s"] == pytest.approx(gone / S)


def test_of_two_members_of_one_worker_the_newest_takes_over() -> None:
    """The process that has come back at 100 dies at 120, and is a member yet when the first one is removed,
    as is the next one, which lives.
    """
    strikes = [fault("crash_host", at, host=1) for at in (100_000, 120_000)]
    found = simulate(dies(*strikes, hosts=2, restart=0)).recoveries
    assert [each["ready_at_s"] for each in found] == [removed() / S] * 2


def test_without_another_member_tasks_wait_for_one() -> None:
    """One host is left, and its process comes back after 80, when its old self has been removed."""
    scenario = dies(PROCESS, hosts=2, restart=80)
    assert row(scenario)["ready_at_s"] == pytest.approx(180)
    stays_away = dies(hosts=2)
    assert row(stays_away)["ready_at_s"] is None or row(stays_away)["ready_at_s"] > 300


@pytest.mark.parametrize(
    ("more", "back"),
    [
        ({"leaves": True}, lambda: max(beats(host, 101 * S) for host in (2, 3))),
        ({}, lambda: removed(at=101 * S)),
        ({"restart": 5, "static": True}, lambda: 121 * S - MS),
    ],
    ids=["leaves", "silent", "static"],
)
def test_who_is_stopped_on_purpose_leaves_or_is_waited_for(more: Any, back: Callable[[], int]) -> None:
    """Stopped from 100.999 to 120.999. Who leaves is removed at once, and host 2 has the task when the others
    have heard. Who does not is waited for, though a new process runs; a static member has it back.
    """
    stop = fault("planned_restart", 100_999, hosts=(1,), down=Constant(value=20 * S))
    scenario = dies(stop, **more)
    found = row(scenario)
    assert (found["kind"], found["detected_at_s"]) == ("planned_restart", 100.999)
    assert found["ready_at_s"] == pytest.approx(back() / S)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 2 if "leaves" in more else 1}


def test_who_is_stopped_without_tasks_takes_none_over() -> None:
    """Host 1 is stopped from 50.999 to 70.999, and has no task then. It is stopped once more from 100.999 to
    160.999; host 2, which has both, dies meanwhile. So they wait until a process runs on host 1.
    """
    stops = [
        fault("planned_restart", at, hosts=(1,), down=Constant(value=down * S))
        for at, down in ((50_999, 20), (100_999, 60))
    ]
    scenario = dies(*stops, fault("crash_host", 110_000, host=2), hosts=3, tasks=2, leaves=True)
    found = simulate(scenario).recoveries
    assert [each["failed_at_s"] for each in found] == [50.999, 100.999, 110]
    assert found[2]["ready_at_s"] == pytest.approx(160.999)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1, "p.1": 1}


def paused(at: int, duration: int, task: int = 0) -> Any:
    return fault("pause", at, component="p", task=task, duration=duration * S)


def moments(scenario: Scenario) -> list[Any]:
    """Of each failure: its kind, when it struck, was noticed, and over."""
    names = ("kind", "failed_at_s", "detected_at_s", "ready_at_s")
    return [tuple(row[name] for name in names) for row in simulate(scenario).recoveries]


def test_who_stands_still_for_longer_than_the_timeout_is_thrown_out() -> None:
    """From 100 to 160: removed as if it had died, and host 2 has the task when the others have heard. When it
    goes on it is a member without tasks, and stays that.
    """
    scenario = dies(paused(100_000, 60))
    out = removed()
    ready = max(beats(2, out), beats(3, out)) / S
    assert moments(scenario)[1] == pytest.approx(("false_detection", out / S, out / S, ready))
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 2}


def test_who_goes_on_has_its_task_back_as_any_that_joins() -> None:
    """Host 2 has both tasks when it hears that host 1 has joined at 160, and closes p.0, which is assigned
    when host 1 has heard, too. Nothing counts twice that the old one has done.
    """
    scenario = dies(paused(100_000, 60), tasks=2, hosts=3, warmup_replicas=2)
    closed = beats(2, 160 * S)
    ready = 160 * S + ((closed - 160 * S) // BEAT + 1) * BEAT
    found = moments(scenario)
    assert [row[0] for row in found] == ["pause", "false_detection", "reassigned"]
    assert found[2][3] == pytest.approx(ready / S)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1, "p.1": 2}
    ledger = simulate(scenario).ledger
    assert (ledger["lost"], ledger["duplicated"]) == (0, 0)


def test_who_goes_on_in_time_beats_from_then_on() -> None:
    """At 141, 144 and 147, before it dies at 149.5. Nobody has missed it, 44 after a heartbeat at most."""
    scenario = dies(paused(100_000, 41), fault("crash_worker", 149_500, host=1))
    (pause, (_, died, noticed, _)) = moments(scenario)
    assert (pause[0], died, noticed) == ("pause", 149.5, 147 + 45)


def test_a_pause_that_is_lengthened_is_one() -> None:
    """From 100 to 135: it does not go on at 120, so who dies at 129 has sent nothing since 100."""
    removed = moments(dies(paused(100_000, 60)))[1][1]
    found = moments(dies(paused(100_000, 20), paused(115_000, 20), fault("crash_worker", 129_000, host=1)))
    assert (found[-1][1], found[-1][2]) == (129, removed)


def test_a_process_stands_still_with_all_of_its_tasks() -> None:
    """Both are on host 1, which has one process. Nothing is done from 100 on, but what is under way."""
    scenario = dies(paused(100_000, 40), hosts=2)
    p = bolt("forward", {"s": "shuffle"}, 1, parallelism=2, hosts=(1, 1))
    done = simulate(scenario.model_copy(update={"topology": scenario.topology | {"p": p}}), trace=True)
    times = {task: [row[6] for row in done.trace.processed if row[:2] == ("p", task)] for task in (0, 1)}
    for task in times.values():
        assert not [at for at in task if 100.002 * S < at < 140 * S]
        assert max(task) > 141 * S


def test_who_stands_still_is_waited_for() -> None:
    """Host 1 leaves at 100.999. Host 2, which stands still from 100.5 on, learns of it at 120.5."""
    stop = fault("planned_restart", 100_999, hosts=(1,), down=Constant(value=100 * S))
    scenario = dies(paused(100_500, 20, task=1), stop, tasks=2, leaves=True)
    assert moments(scenario)[1] == ("planned_restart", 100.999, 100.999, 120.5)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 3, "p.1": 2}


def waits(**more: Any) -> tuple[Replication, int, int]:
    """Tasks on hosts 1 and 2, and a process that is back on host 1 after 5: host 2 hears of it by 108, and
    from then on waits for the removal of the dead member. The run, and both moments (ns).
    """
    scenario = dies(PROCESS, tasks=2, restart=5, **more)
    return simulate(scenario, trace=True), beats(2, 105 * S), removed()


def commits(found: Replication) -> list[int]:
    """Of the task on host 2 (ns)."""
    return [step.at for step in found.trace.steps if (step.who, step.what) == ("p.1", "offsets committed")]


def served(found: Replication) -> list[int]:
    return [row[6] for row in found.trace.processed if row[:2] == ("p", 1)]


def test_who_waits_for_the_others_works_on_and_commits_when_all_have_joined() -> None:
    """It commits each second (1 ms late, behind a tuple) until it has heard, and next when the dead member is
    removed, some 37 s later, which ends the rebalance.
    """
    found, heard, out = waits()
    due = [at for at in range(S, 300 * S + 1, S) if not heard <= at <= out]
    assert [at // S for at in commits(found)] == sorted(at // S for at in [*due, out])
    assert out in commits(found)
    assert sum(heard < at < out for at in served(found)) > 10


def test_exactly_once_readers_see_nothing_meanwhile() -> None:
    """What is worked on at least once is there for readers at once; exactly once they see all of it when the
    rebalance is over. So the silence is that of both tasks, and not of the dead one.
    """
    found, heard, out = waits(strategy=ONCE)
    seen = [at for component, task, _, at in found.trace.committed if (component, task) == ("p", 1)]
    assert max(at for at in seen if at <= out) == out
    assert not any(heard < at < out for at in seen)
    gap = found.recoveries[0]["output_gap_s"] * S
    assert out - heard < gap <= out - heard + 2 * S
    assert waits()[0].recoveries[0]["output_gap_s"] < 10


def test_a_transaction_that_is_too_old_costs_a_member_all_its_tasks() -> None:
    """The broker looks each 10 s for transactions that were begun 10 s ago: that of the last commit of the
    member that waits. So it is without its task until the rebalance is over, and does it all again.
    """
    found, heard, out = waits(strategy=ONCE | {"transaction_timeout": 10 * S})
    begun = max(at for at in commits(found) if at < heard)
    first = Draws(1).moment("transactions", Purpose.PHASE, 10 * S)
    look = next(at for at in range(first, out, 10 * S) if at >= begun + 10 * S)
    fenced = [row for row in found.recoveries if row["kind"] == "fenced"]
    moments = [(row["failed_at_s"], row["detected_at_s"], row["ready_at_s"]) for row in fenced]
    assert moments == [pytest.approx((look / S, look / S, out / S))]
    assert any(heard < at < look for at in served(found))
    assert not any(look < at <= out for at in served(found))
    assert found.ledger["duplicated"] == found.ledger["lost"] == 0


def test_an_eager_member_commits_and_does_nothing_until_tasks_are_assigned() -> None:
    """What has come to it meanwhile is worked on then, 1 ms each."""
    found, heard, out = waits(protocol="eager")
    assert heard in commits(found)
    assert not any(heard < at <= out for at in served(found))
    after = [at for at in served(found) if at > out]
    assert [at - out for at in after[:10]] == [n * MS for n in range(1, 11)]


@pytest.mark.parametrize("state", [None, RocksDB(entries=1000, accesses=1, access_cost=0)])
def test_a_task_goes_home_when_it_is_warm_there(state: RocksDB | None) -> None:
    """Host 1 is stopped from 100.999 to 120.999; host 2 has both tasks when it hears that a new process has
    joined. So p.0, which it has got last, is to go home. Without state it does at once: it is closed, and
    assigned when host 1 has heard, too. Of 1000 entries, 10 ms each, host 1 has a copy some 10 s later, but
    nobody asks before 60 s are over; then p.0 is closed when both have heard of that.
    """
    stop = fault("planned_restart", 100_999, hosts=(1,), down=Constant(value=20 * S))
    more = {"leaves": True, "warmup_replicas": 2, "probing_interval": 60 * S}
    scenario = dies(stop, hosts=3, tasks=2, state=state, strategy={"restore_cost": 10 * MS}, **more)
    back = 121 * S - MS

    def home_hears(after: int) -> int:
        return back + ((after - back) // BEAT + 1) * BEAT

    closed = joined = beats(2, back)
    if state is not None:
        closed = max(beats(2, joined + 60 * S), home_hears(joined + 60 * S))
    found = simulate(scenario)
    assert [row["kind"] for row in found.recoveries] == ["planned_restart", "reassigned"]
    moved = found.recoveries[1]
    assert closed <= moved["failed_at_s"] * S <= closed + MS
    assert moved["ready_at_s"] == pytest.approx(home_hears(closed) / S)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1, "p.1": 2}
    assert found.ledger["duplicated"] == found.ledger["lost"] == 0


def stop(host: int, at: int, down: int) -> Any:
    """From this second less 1 ms, for so many."""
    return fault("planned_restart", at * 1000 - 1, hosts=(host,), down=Constant(value=down * S))


SLOW: dict[str, Any] = {
    "state": RocksDB(entries=1000, accesses=1, access_cost=0),
    "strategy": {"restore_cost": 10 * MS},
}
"""A copy takes 10 s."""


def test_a_copy_is_warm_where_it_is() -> None:
    """As above; host 3 is stopped until 125, and has a member without a task then. At 161 host 1, which has
    had a copy of p.0 since 134, is stopped for good: p.0 is to move to host 3, which has none.
    """
    stops = stop(3, 51, 74), stop(1, 101, 20), stop(1, 161, 200)
    found = simulate(dies(*stops, tasks=2, leaves=True, warmup_replicas=2, **SLOW))
    assert "reassigned" not in [row["kind"] for row in found.recoveries]


def test_a_task_that_comes_back_where_it_was_has_no_copy_elsewhere() -> None:
    """Host 1 has a copy of p.0 by 134, and nobody asks. At 200 the process of host 2, with both tasks, dies;
    it is back at 205, and reads both changelogs.
    """
    more = {"leaves": True, "static": True, "restart": 5, "warmup_replicas": 2}
    dead = fault("crash_worker", 200_000, host=2)
    found = simulate(dies(stop(1, 101, 20), dead, hosts=3, tasks=2, **more, **SLOW), trace=True)
    restored = [step for step in found.trace.steps if step.what == "log read again" and step.at > 200 * S]
    assert [(step.who, step.at) for step in restored] == [
        (task, pytest.approx(215 * S, abs=MS)) for task in ("p.0", "p.1")
    ]


def test_a_task_that_was_closed_to_move_has_its_directory_where_it_stays() -> None:
    """p.0 is closed on host 2, to move to host 1. That is stopped before it has heard of the rebalance: so
    host 2 has p.0 again at once, and all of its state, exactly once, too.
    """
    more = {"leaves": True, "warmup_replicas": 2, "probing_interval": 60 * S, "state": SLOW["state"]}
    more["strategy"] = SLOW["strategy"] | ONCE | {"local_state": True}
    moves = simulate(dies(stop(1, 101, 20), hosts=3, tasks=2, **more)).recoveries[1]
    closed = round(moves["failed_at_s"]) + 1
    assert moves["ready_at_s"] > closed
    found = simulate(dies(stop(1, 101, 20), stop(1, closed, 200), hosts=3, tasks=2, **more), trace=True)
    restored = [step.at for step in found.trace.steps if (step.who, step.what) == ("p.0", "log read again")]
    assert restored[-1] == pytest.approx(closed * S, abs=2 * MS)


def test_who_hands_over_a_task_joins_again_when_it_is_closed() -> None:
    """Commits take 20 s: of the stop of host 1, asked for at 80.999, and of p.0, which is to go home from
    host 2. Meanwhile, at 129.999, a process is back on host 3. Host 2 joins that rebalance when p.0 is
    closed, as the last: so p.0 is at home at once.
    """
    stops, slow = (stop(3, 51, 79), stop(1, 81, 20)), {"commit_time": 20 * S, "commit_interval": 300 * S}
    scenario = dies(*stops, tasks=2, strategy=slow, leaves=True, warmup_replicas=2)
    closed = beats(2, 121 * S - MS) + 20 * S
    moved = simulate(scenario).recoveries[2]
    assert moved["kind"] == "reassigned"
    assert moved["ready_at_s"] == moved["failed_at_s"] == pytest.approx(closed / S, abs=0.002)
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1, "p.1": 2}


def test_a_group_knows_of_planned_stops() -> None:
    stop = [{"kind": "planned_restart", "at": "50 s", "hosts": [1]}]
    assert load("kafka-streams-handover", {"failures": stop}).failures[0].hosts == (1,)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"detector.heartbeat_interval": "50 s"}, "must not be longer than session_timeout"),
        ({"detector.restart": None, "detector.static": True}, "static needs restart"),
        ({"strategy.kind": "aligned_snapshots", "strategy.checkpoint_interval": "5 s"}, "all go back"),
        ({"detector.probing_interval": "60 s"}, "probing_interval needs warmup_replicas"),
        ({"detector.warmup_replicas": 101}, r"warmup_replicas: .*100"),
        ({"detector.warmup_replicas": 1, "strategy": {"kind": "none"}}, "needs the strategy changelog"),
    ],
)
def test_what_does_not_go_together(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        load("kafka-streams-handover", changes)


MEASURED = (43.9, 44.3)
"""Seconds of handovers of Kafka Streams, session.timeout.ms being 45 s (docs/validation.md)."""


@pytest.mark.parametrize("comes_back", [True, False])
def test_kafka_streams_handover_as_measured(comes_back: bool) -> None:
    """Nothing is fitted: the timeout less the age of a heartbeat, 45 - U(0, 3), 43.5 s in the mean; and where
    the process stays away, the time until the other instance hears of it, U(0, 3). Both within 1.5 s of what
    was measured, in the mean of 20; and no handover is outside of [42, 45], or [42, 48].
    """
    changes = {} if comes_back else {"detector.restart": None}
    scenario = load("kafka-streams-handover", {"run.duration": "180 s", "rate": "1/s"} | changes)
    found = []
    for replication in range(20):
        one = World(scenario, replication, judge_windows=False)
        one.run()
        (outage,) = one.outages
        found.append((outage.ready_at - outage.failed_at) / S)
    assert min(found) >= 42
    assert max(found) <= (45 if comes_back else 48)
    assert all(abs(np.mean(found) - each) <= 1.5 for each in MEASURED)


@pytest.mark.parametrize("seed", [2, 4, 5])
def test_who_goes_home_as_soon_as_it_is_assigned_has_begun(seed: int) -> None:
    """q has no state, so it is closed, to go home, at the instant at which it is assigned. What waits for it
    takes no time, is served before that, and is not read again.
    """
    topology = {
        "a": spout("values", values=(1,), repeat=True, gap=1000, parallelism=2),
        "b": spout("values", values=(1,), repeat=True, gap=500, parallelism=2, hosts=(0, 1)),
        "p": bolt(
            "windowed_count", {"a": "fields"}, 100, parallelism=3, hosts=(1, 1, 0), window={"length": 2 * S}
        ),
        "q": bolt("forward", {"b": "all"}, hosts=(0,)),
    }
    times = {"commit_interval": S, "transaction_timeout": S, "abort_interval": 100 * MS}
    detector = ConsumerGroup(
        heartbeat_interval=300 * MS,
        session_timeout=2300 * MS,
        rebalance=Constant(value=150 * MS),
        restart=Constant(value=17 * MS),
        leaves=True,
        warmup_replicas=1,
        probing_interval=3 * S,
    )
    away = fault("planned_restart", 100, hosts=(0,), down=Exponential(mean=1200 * MS))
    more = {"hosts": 2, "links": Links(latency=ms(0), local=ms(100)), "local_state": True}
    scenario = world(topology, "changelog", (away,), 6000, seed, guarantee="exactly_once", **times, **more)
    check(scenario.model_copy(update={"detector": detector}))
