"""Planned stops, by exact lists of (who, when), and by laws. Times in milliseconds.

The small world is that of test_aligned_snapshots.py:   s ──▶ count   with roots 0 … 7 at 1 … 8, and 3 a root:
nothing in the way, root n is counted at 4 + 3n.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.chain import counted
from tests.models.test_aligned_snapshots import EIGHT, counts, crash, queue
from tests.models.test_exactness import FEW
from tests.oracle.random_changes import both
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.conformance import END, first_windows, long_enough, word_count
from tideover.models.detectors.base import FixedDelay
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.sim.distributions import Exponential
from tideover.sim.draws import Draws
from tideover.sim.faults import FAULTS, Site
from tideover.sim.units import S


def planned(at: float, down: float = 0, **more: Any) -> Any:
    return fault("planned_restart", at, down=ms(down), **more)


def moments(run: Any) -> list[tuple[str, float, float]]:
    """What went down, when, and when it was back."""
    rows = run.recoveries
    return [(r["component"], round(r["failed_at_s"] * 1e3, 3), round(r["ready_at_s"] * 1e3, 3)) for r in rows]


# -- a savepoint ---------------------------------------------------------------------------------------------


def test_a_savepoint_has_all_and_nothing_is_read_again() -> None:
    """Stop at 5: roots 0 (4) and 1 (in service until 7) are in the savepoint, whose copy takes 2: at 9 the
    job goes down, and at 19 it is back. All others waited in the log: root 2 is counted at 22.
    """
    run = simulate(queue((planned(5, 10),), snapshot_time=2), trace=True)
    assert counted(run) == [(0, 4), (1, 7), *((n, 19 + 3 * (n - 1)) for n in range(2, 8))]
    assert moments(run) == [("job", 9, 19)]
    (recovery,) = run.recoveries
    assert (recovery["kind"], recovery["restored"], run.ledger["replayed"]) == ("planned_restart", 2, 0)


def test_a_savepoint_comes_behind_the_snapshot_under_way_and_waits_for_no_pause() -> None:
    """The snapshot of 5 is copied from 7 to 9. The stop of 6 has its savepoint at 9, behind root 2 (12, since
    the copy kept the task), and goes down at 14; a pause of 100 would have it at 109.
    """
    run = simulate(queue((planned(6, 10),), checkpoint_phase=5, snapshot_time=2, min_pause=100), trace=True)
    assert counted(run)[:4] == [(0, 4), (1, 7), (2, 12), (3, 27)]
    assert moments(run) == [("job", 14, 24)]


def test_a_failure_before_the_savepoint_is_complete_ends_the_attempt() -> None:
    """Stop at 5, copied from 7 on for 2; the crash of 8 takes all back to the beginning, where the job reads
    its log once more, until 32. It is asked for again a second after the crash: down from 1010 on.
    """
    run = simulate(queue((planned(5, 10), crash(8)), 1100, snapshot_time=2), trace=True)
    assert counted(run) == [(0, 4), (1, 7), *((n, 11 + 3 * n) for n in range(8))]
    assert moments(run) == [("count", 8, 8), ("job", 1010, 1020)]


def test_a_failure_at_the_instant_of_the_savepoint_ends_the_attempt_too() -> None:
    """It is complete at 9, when count crashes: nothing is read again. At 1009 it is asked for again."""
    crashed = crash(9, turn="before batch")
    run = simulate(queue((planned(5, 10), crashed), 1100, snapshot_time=2), trace=True)
    assert counted(run) == [(0, 4), (1, 7), *((n, 9 + 3 * (n - 1)) for n in range(2, 8))]
    assert moments(run) == [("count", 9, 9), ("job", 1011, 1021)]


def test_windows_that_end_while_it_is_down_come_out_whole() -> None:
    """Windows of 10 by marker: the first has roots 0 … 7. Down from 7 to 17, it is counted at 35, once."""
    topology = {"s": spout(**EIGHT), "count": counts("s", 3, length=10, parallelism=1)}
    run = simulate(world(topology, "aligned_snapshots", (planned(5, 10),), 60, checkpoint_interval=MS * 1000))
    assert (run.windows["wrong"], run.windows["missing"], run.ledger["lost"]) == (0, 0, 0)


# -- between two batches -------------------------------------------------------------------------------------


def batches(failures: tuple[Any, ...] = (), **more: Any) -> Scenario:
    """The same world in batches, triggered every 5, that take 3 a root, and 4 until they are committed."""
    topology = {"s": spout(**EIGHT), "count": counts("s", 3)}
    more = {"trigger_interval": 5 * MS, "commit_time": 4 * MS} | more
    return world(topology, "micro_batch", failures, 100, **more)


def test_a_query_is_stopped_between_two_batches() -> None:
    """The batch of 5 has roots 0 … 4 (of 1 … 5): it is out at 20, and committed at 24. A stop at 6 waits for
    that; from 34 on the query runs again with what came meanwhile, its first batch 7 later: out at 50.
    """
    run = simulate(batches((planned(6, 10),), cold_time=7 * MS), trace=True)
    assert counted(run) == [*((n, 20) for n in range(5)), *((n, 50) for n in range(5, 8))]
    assert moments(run) == [("job", 24, 34)]
    assert (run.ledger["replayed"], run.ledger["lost"], run.ledger["duplicated"]) == (0, 0, 0)


# -- one host after the other --------------------------------------------------------------------------------


def two_hosts(failures: tuple[Any, ...], strategy: str = "aligned_snapshots", **more: Any) -> Scenario:
    topology = {
        "s": spout("values", 10, values=(1,), repeat=True, hosts=(2,)),
        "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(0,)),
        "count": counts("p", 1, hosts=(1,)),
    }
    if strategy == "aligned_snapshots":
        more.setdefault("checkpoint_interval", 5_000 * MS)
    return world(topology, strategy, failures, 3_000, hosts=3, **more)


def test_hosts_go_one_after_the_other_as_single_stops_do() -> None:
    """From the return of host 0, at 205, it is 300 until host 1 is stopped (and 1 ns, which the store took to
    write the savepoint).
    """
    rolling = two_hosts((planned(105, 100, hosts=(0, 1), pause=300 * MS),))
    single = two_hosts((planned(105, 100, hosts=(0,)), planned(505.000001, 100, hosts=(1,))))
    one, other = simulate(rolling, trace=True), simulate(single, trace=True)
    assert moments(one) == moments(other) == [("host 0", 105, 205), ("host 1", 505, 605)]
    assert (sorted(one.trace.processed), one.ledger) == (sorted(other.trace.processed), other.ledger)


def test_the_next_host_waits_until_the_job_runs() -> None:
    """Restored 2500 after the return of 205, the job is not there at 505, nor at 1505, 2505: asked for again
    each second it would be stopped at 3505. No host is forgotten because the one before takes long.
    """
    slow = two_hosts((planned(105, 100, hosts=(0, 1), pause=300 * MS),), restore_time=2_500 * MS)
    run = slow.run.model_copy(update={"duration": 4_000 * MS})
    rows = moments(simulate(slow.model_copy(update={"run": run})))
    assert rows == [("host 0", 105, 205), ("host 1", 3505, 3605)]


def test_a_host_without_a_task_stops_nothing() -> None:
    run = simulate(two_hosts((planned(105, 100, hosts=(2,)),)), trace=True)
    quiet = simulate(two_hosts(()), trace=True)
    assert sorted(run.trace.processed) == sorted(quiet.trace.processed)
    assert [row["ended"] for row in run.recoveries] == ["not affected"]


@pytest.mark.parametrize("downs", [(100, 50), (50, 100), (100, 100)])
def test_stops_at_the_same_instant_are_one(downs: tuple[int, int]) -> None:
    """One savepoint is enough for both; the job goes on when the second host is back, too."""
    both = two_hosts(tuple(planned(105, down, hosts=(host,)) for host, down in enumerate(downs)))
    one, other = (simulate(each, trace=True) for each in (both, two_hosts((planned(105, 100, hosts=(0,)),))))
    assert sorted(moments(one)) == [("host 0", 105, 205), ("host 1", 105, 205)]
    assert (sorted(one.trace.processed), one.ledger) == (sorted(other.trace.processed), other.ledger)
    steps = [step.what for step in one.trace.steps if "savepoint" in step.what]
    assert steps == ["savepoint triggered"]


def test_stops_that_wait_for_a_batch_come_after_the_same() -> None:
    """As above, where the stops of 6 and 7 wait for the batch that is committed at 24."""
    run = simulate(batches((planned(6, 10), planned(7, 5)), cold_time=7 * MS))
    assert moments(run) == [("job", 24, 34)] * 2


# -- drained, where nothing is saved -------------------------------------------------------------------------


@pytest.mark.parametrize(("drain", "lost"), [(0, 1), (10, 0)])
def test_a_drained_topology_has_nothing_in_its_queues_to_lose(drain: float, lost: int) -> None:
    """s ──▶ p (4) ──▶ out: roots at 3 and 6; at 8 the second is with p, until 11. Who waits 10 stops p when
    it has none. The spout is silent from 8 until p is back, after 100 or 110, and goes on with a gap of 3.
    """
    topology = {
        "s": spout("values", 3, values=(1,), repeat=True),
        "p": bolt("forward", {"s": "shuffle"}, 4),
        "out": bolt("forward", {"p": "shuffle"}),
    }
    run = simulate(world(topology, "none", (planned(8, 100, drain=drain * MS),), 140), trace=True)
    emitted = [row[4] / MS for row in run.trace.emitted]
    assert (run.ledger["lost"], emitted[:2]) == (lost, [3, 6])
    assert round(emitted[2], 3) == 8 + drain + 100 + 3


def test_who_survives_a_host_is_not_said_to_lose_anything_where_hosts_are_stopped() -> None:
    """Replicas survive one host after the other, and not a stop of all of them."""
    one, all_of_them = (
        two_hosts((planned(105, 100, **where),), "active_replication") for where in ({"hosts": (0, 1)}, {})
    )
    said = [
        any("does not promise to survive" in text for text in warnings(each)) for each in (one, all_of_them)
    ]
    assert said == [False, True]


# -- who notices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["none", "aligned_snapshots"])
def test_who_listens_to_heartbeats_is_told_and_counts_restarts_anew(strategy: str) -> None:
    """There is one restart, which the crash of 10 takes; after the stop there is one again. From 205 on there
    is a heartbeat each 20, the last at 985: the crash of 1000 is noticed at 1035, and over at 1042.
    """
    failures = (fault("crash_task", 10, component="p"), planned(105, 100, hosts=(0,)))
    failures = (*failures, fault("crash_task", 1_000, component="p"))
    detector = Heartbeats(
        interval=20 * MS, timeout=50 * MS, launch=ms(7), restarts=FixedDelay(delay=0, attempts=1)
    )
    done = simulate(two_hosts(failures, strategy).model_copy(update={"detector": detector}))
    assert moments(done)[1:] == [("host 0", 105, 205), ("p", 1_000, 1_042)]
    assert done.recoveries[1]["detected_at_s"] == done.recoveries[1]["failed_at_s"]


# -- wrong input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "more", "said"),
    [
        ({"detection": "1 s"}, {}, "lasts for `down`: leave detection and restart out"),
        ({"hosts": [0, 0]}, {}, "name it once"),
        ({"hosts": [7]}, {}, "host"),
        ({"drain": "5 s"}, {}, "drain: aligned_snapshots reads a log"),
        ({"down": "soon"}, {}, "down: 'soon' is not a duration"),
    ],
)
def test_bad_input(stop: dict[str, Any], more: dict[str, Any], said: str) -> None:
    text = {
        "name": "x",
        "topology": {
            "s": {"spout": "keys", "rate": "10/s"},
            "p": {"bolt": "forward", "from": {"s": "shuffle"}},
        },
        "strategy": {"kind": "aligned_snapshots", "checkpoint_interval": "1 s"},
        "failures": [{"kind": "planned_restart", "at": "1 s"} | stop],
        "run": {"duration": "10 s"},
    }
    text["topology"]["p"]["service"] = "1 ms"
    with pytest.raises(ScenarioError, match=said):
        load(text | more)


# -- laws ----------------------------------------------------------------------------------------------------

STOPS = st.builds(planned, st.integers(100, 5_000), st.integers(0, 2_000))


def alone(scenario: Scenario, stop: Any) -> Scenario:
    return scenario.model_copy(update={"failures": (stop,)})


@FEW
@given(st.one_of(both("aligned_snapshots"), both("micro_batch")), STOPS)
def test_what_is_stopped_on_purpose_loses_and_repeats_nothing(scenario: Scenario, stop: Any) -> None:
    """Whatever the job, whenever it is stopped; and no window comes out another one because of it."""
    if getattr(scenario.strategy, "recovery", "") != "replay":
        run, quiet = simulate(alone(scenario, stop)), simulate(scenario.model_copy(update={"failures": ()}))
        for name in ("lost", "duplicated", "replayed"):
            assert run.ledger[name] == quiet.ledger[name] == 0
        assert run.ledger["emitted"] == quiet.ledger["emitted"]


WAIT = 5 * S
"""As long as a window: what is under way has been put out by then."""


@pytest.mark.parametrize(
    ("kind", "drain"),
    [
        *((kind, 0) for kind in ("aligned_snapshots", "micro_batch", "batch_rerun", "trident")),
        *((kind, WAIT) for kind in ("rsm", "passive_standby", "upstream_backup", "source_replay", "estorm")),
        ("storm_checkpoint", WAIT),
    ],
)
def test_law_of_a_stop_of_all_at_once(kind: str, drain: int) -> None:
    """Who saves what is there, or sends it again, loses nothing and counts nothing twice, though all stops.
    No replica, and no memory of senders, would survive that: there spouts are silent first.
    """
    strategy = STRATEGIES[kind].model_validate(STRATEGIES[kind].typical, context={"border": True})
    stop = planned(END / MS + 2_000, 2_000, drain=drain)
    done = simulate(word_count(strategy, (stop,), duration=long_enough(strategy)))
    assert (done.ledger["lost"], done.ledger["duplicated"], done.recoveries[0]["missing"]) == (0, 0, 0)
    assert drain or (done.ledger["replayed"], done.windows["wrong"], done.windows["missing"]) == (0, 0, 0)


@pytest.mark.parametrize(("drain", "lost"), [(0, 8), (2, 8), (5, 0)])
def test_rsm_has_what_its_last_checkpoint_has(drain: int, lost: int) -> None:
    """All buffers go down with their senders. Checkpoints are taken at 10 and 15 s, and of the four roots a
    second eight come from 10 to 12 s, when it is to be stopped.
    """
    strategy = STRATEGIES["rsm"].model_validate({"checkpoint_interval": 5 * S})
    stop = planned(END / MS + 2_000, 2_000, drain=drain * S)
    assert simulate(word_count(strategy, (stop,), duration=long_enough(strategy))).ledger["lost"] == lost


@pytest.mark.parametrize("kind", ["aligned_snapshots", "micro_batch"])
def test_a_stop_that_takes_no_time_changes_nothing_but_latencies(kind: str) -> None:
    """The same tuples pass the same tasks, once each, and every window has the sums that it has without."""
    strategy = STRATEGIES[kind].model_validate(STRATEGIES[kind].typical, context={"border": True})
    stop = planned(END / MS + 2_000)
    done, quiet = (simulate(word_count(strategy, some), trace=True) for some in ((stop,), ()))
    assert first_windows(done) == first_windows(quiet)
    assert sorted(row[:5] for row in done.trace.processed) == sorted(row[:5] for row in quiet.trace.processed)
    assert done.ledger == quiet.ledger


def test_each_stop_is_down_for_a_draw_of_its_own() -> None:
    """Six stops of three strikes, by an exponential distribution: no two alike, the same under each seed."""
    down, hour = Exponential(mean=1_000 * MS), 3_600_000 * MS
    one = FAULTS["planned_restart"](at=0, times=3, period=hour, hosts=(4, 2), down=down)
    rows = list(one.strikes(0, Draws(1, 0), Site(10 * hour, 5)))
    stops = [stop for _, struck in rows for stop in struck.stops]
    assert [stop.host for stop in stops] == [4, 2] * 3
    assert len({stop.down for stop in stops}) == 6
    assert rows == list(one.strikes(0, Draws(1, 0), Site(10 * hour, 5)))
