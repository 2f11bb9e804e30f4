"""Stops that change numbers of tasks: who has which keys then, and what it restores. Times in milliseconds.

The small world is   s ──▶ p (0) ──▶ count (3 a root), grouped by key   with roots 0, 1, … at 10, 20, …, whose
keys are drawn from two. Windows of 100 end by marker; nothing else takes any time.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given

from tests.models.test_aligned_snapshots import job
from tests.models.test_exactness import FEW, check
from tests.models.test_planned_restart import moments, planned
from tests.oracle.layout import Layout
from tests.oracle.random_changes import SNAPSHOTS, rescaled
from tests.oracle.random_changes import planned as stopped
from tests.oracle.worlds import MS, bolt, fault, queued, spout
from tideover.models.config import Scenario
from tideover.models.conformance import END, first_windows, long_enough, word_count
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.models.job.stores import Memory
from tideover.models.operators.base import Stateful
from tideover.models.operators.kinds import RunningCount, WindowedCount
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.sim.draws import Draws


def small(failures: tuple[Any, ...] = (), tasks: int = 1, until: float = 130, **more: Any) -> Scenario:
    inputs, window = {"p": "fields"}, {"length": 100 * MS}
    count = bolt("windowed_count", inputs, 3, window=window, parallelism=tasks, max_parallelism=2)
    if "state" in more:
        count = count.model_copy(update={"state": more.pop("state")})
    topology = {"s": spout("keys", keys=2), "p": bolt("forward", {"s": "shuffle"}), "count": count}
    return job(topology, failures, until, **more)


def keys(scenario: Scenario, roots: int) -> list[int]:
    """Of the first roots, as they are drawn."""
    layout = Layout(scenario, Draws(scenario.run.seed, 0))
    found = [layout.root("s", 0, number) for number in range(roots)]
    return [root.key for root in found if root is not None]


def served(run: Replication) -> list[tuple[int, int, float]]:
    """(task, root, when) of what was counted."""
    assert run.trace is not None
    return [(row[1], row[3], row[6] / MS) for row in run.trace.processed if row[0] == "count"]


def windows(run: Replication) -> list[tuple[int, int, float, dict[int, int]]]:
    """(task, number, when, sums)."""
    assert run.trace is not None
    return sorted((task, number, at / MS, sums) for _, task, _, number, at, sums in run.trace.windows)


def to(tasks: int, at: float = 55, down: float = 30) -> Any:
    return planned(at, down, parallelism={"count": tasks})


def test_the_keys_of_a_second_task_are_its_own_with_what_was_counted_of_them() -> None:
    """Down from 55 to 85: roots 5, 6 and 7 (60, 70, 80) wait. Until then task 0 has all; then key 1 goes to
    task 1, and each serves its own one after the other from 85 on. The window of 100 is put out by both, each
    with all of its key, whoever had counted it: of roots 0 … 9, as the marker of 100 comes behind root 9.
    """
    scenario = small((to(2),))
    key, run = keys(scenario, 12), simulate(scenario, trace=True)
    assert {0, 1} == set(key[:5]) == set(key[5:8])  # both sides have something to move, and to do
    expected = [(0, n, 10 * n + 13) for n in range(5)]
    free = {0: 85, 1: 85}
    for root in range(5, 12):
        task = key[root]
        free[task] = max(free[task], 10 * root + 10) + 3
        expected.append((task, root, free[task]))
    assert sorted(served(run)) == sorted(expected)
    sums = Counter(key[:10])
    assert [row[:2] + row[3:] for row in windows(run)] == [(0, 1, {0: sums[0]}), (1, 1, {1: sums[1]})]
    assert moments(run) == [("job", 55, 85)]
    assert (run.ledger["lost"], run.ledger["duplicated"], run.ledger["replayed"]) == (0, 0, 0)
    assert run.windows == {"emitted": 2, "correct": 2, "wrong": 0, "missing": 0}
    check(scenario)


def test_the_first_task_takes_over_what_the_second_had() -> None:
    """From two tasks to one: the window of 100 comes out of task 0, whole, and nobody serves as task 1."""
    scenario = small((to(1),), tasks=2)
    key, run = keys(scenario, 10), simulate(scenario, trace=True)
    assert {(task, root) for task, root, _ in served(run) if root < 5} == set(
        zip(key, range(5), strict=False)
    )
    assert {task for task, root, _ in served(run) if root >= 5} == {0}
    (row,) = windows(run)
    assert (row[:2], row[3]) == ((0, 1), dict(Counter(key)))
    check(scenario)


@pytest.mark.parametrize(("tasks", "reads"), [(1, 10), (2, 5)])
def test_each_task_restores_its_share_of_a_state(tasks: int, reads: int) -> None:
    """10 entries of one task, or 5 of each of two at once, at 4 an entry: with the return of 85 the job runs
    at 125 or at 105. Of the counts themselves are one or two entries: 4 more where a task has one.
    """
    scenario = small((to(tasks),), until=200, state=Memory(entries=10), restore_cost=4)
    first = min(when for _, root, when in served(simulate(scenario, trace=True)) if root >= 5)
    assert round(first, 3) == 85 + 4 * (reads + 2 // tasks) + 3
    check(scenario)


def test_a_crash_afterwards_goes_back_to_the_new_tasks() -> None:
    """Snapshots come every 1000, so the crash of 97 goes back to the savepoint: what was read since 85 is
    read again by two tasks, and the window has the same sums.
    """
    crash = fault("crash_task", 97, component="count", task=1)
    scenario = small((to(2), crash))
    key, run = keys(scenario, 10), simulate(scenario, trace=True)
    assert {task for task, root, _ in served(run) if root >= 5} == {0, 1}
    sums = Counter(key)
    assert [row[3] for row in windows(run)] == [{0: sums[0]}, {1: sums[1]}]
    check(scenario)


def test_what_leaves_twice_is_there_twice_whichever_task_it_leaves() -> None:
    """s ──▶ p (3) ──▶ q, which has no state. The crash of 45 has all four roots read again. The stop of 46
    lets what p is at leave (48), and is over at 53: then what has key 1 leaves task 1, after task 0 before.
    """
    q = bolt("forward", {"p": "fields"}, max_parallelism=2)
    topology = {"s": spout("keys", keys=2), "p": bolt("forward", {"s": "shuffle"}, 3), "q": q}
    stop = planned(46, 5, parallelism={"q": 2})
    scenario = job(topology, (fault("crash_task", 45, component="q"), stop), 80)
    run = simulate(scenario, trace=True)
    assert run.trace is not None
    left = {(row[1], row[3]) for row in run.trace.processed if row[0] == "q" and row[3] < 4}
    key = keys(scenario, 4)
    assert left == {(0, root) for root in range(4)} | {(1, root) for root in range(1, 4) if key[root]}
    assert run.ledger["duplicated"] == 4
    check(scenario)


def test_what_does_not_work_yet_fails_for_nobody() -> None:
    """Task 1 has a host of its own, 3: a crash of it at 30 hits nothing; at 100, when it works, the job."""
    crashes = tuple(fault("crash_host", at, host=3) for at in (30, 100))
    run = simulate(small((crashes[0], to(2), crashes[1])), trace=True)
    assert [bool(row["ended"] == "not affected") for row in run.recoveries] == [True, False, False]


def test_nobody_misses_a_task_that_does_not_work() -> None:
    """Host 3, of task 1, is not heard from 20 to 50, and from 100 to 130; only then it takes the job."""
    cuts = [fault("partition", at, hosts=(3,), others=(0,), duration=30 * MS) for at in (20, 100)]
    detector = Heartbeats(interval=4 * MS, timeout=10 * MS, listener=0)
    scenario = small((cuts[0], to(2), cuts[1]), until=150).model_copy(update={"detector": detector})
    kinds = [row["kind"] for row in simulate(scenario).recoveries]
    assert kinds == ["partition", "planned_restart", "partition", "false_detection"]


def test_scaling_out_behind_an_outage_pays_as_the_lag_over_the_spare_capacity_says() -> None:
    """100 roots a second for one task that can do 125. The crash of 12,500 goes back to the snapshot of
    10,000, and the job is back at 32,500, with a lag of 2,250, which would take it 2,250 / (125 - 100) =
    90 s. At 33,500 it is asked to stop, and goes on after 1 s with three tasks: these work off (375 - 100) a
    second of what is left of the lag when it goes down, and of the 100 of that second. Queues of 60 are
    hardly ever empty.
    """
    topology = {
        "s": spout("keys", keys=2),
        "p": bolt("forward", {"s": "shuffle"}),
        "work": queued(bolt("forward", {"p": "shuffle"}, 8, max_parallelism=3), 60, "block"),
    }
    crash = fault("crash_task", 12_500, component="work", restart=20_000)
    stop = planned(33_500, 1_000, parallelism={"work": 3})
    run = simulate(job(topology, (crash, stop), 60_000, checkpoint_interval=5_000), trace=True)
    assert run.trace is not None
    down = moments(run)[1][1] / 1e3
    left = 100 * 22.5 - (125 - 100) * (down - 32.5) + 100 * 1
    done = sorted((row[6] / MS, row[3]) for row in run.trace.processed if row[0] == "work")
    caught_up = next(at for at, root in done if at > 1e3 * down and at - 10 * (root + 1) < 50) / 1e3
    assert caught_up == pytest.approx(down + 1 + left / (375 - 100), rel=0.02)


def law(failures: tuple[Any, ...], of: type[Stateful]) -> Replication:
    kind = STRATEGIES["aligned_snapshots"]
    strategy = kind.model_validate(kind.typical, context={"border": True})
    scenario = word_count(strategy, failures, bolt=of, duration=long_enough(strategy))
    topology = dict(scenario.topology)
    topology["count"] = topology["count"].model_copy(update={"max_parallelism": 3})
    return simulate(scenario.model_copy(update={"topology": topology}), trace=True)


@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize("of", [WindowedCount, RunningCount])
def test_law_of_sums_that_move(of: type[Stateful], tasks: int) -> None:
    """Whoever puts a window out, it has the sums of all keys that it has where nothing is stopped; all that
    was emitted is counted once.
    """
    stop = planned(END / MS + 2_000, 2_000, parallelism={"count": tasks})
    found = []
    for run in (law((stop,), of), law((), of)):
        sums: Counter[tuple[int, int]] = Counter()
        for (_, _, number), counts in first_windows(run).items():
            sums.update({(number, key): count for key, count in counts.items()})
        found.append(sums)
        assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)
        assert (run.windows["wrong"], run.windows["missing"]) == (0, 0)
    assert found[0] == found[1]


@FEW
@given(rescaled(stopped(SNAPSHOTS)))
def test_what_moves_is_neither_lost_nor_counted_twice(scenario: Scenario) -> None:
    """Whatever the job, whenever it is stopped: with these stops alone nothing is lost or sent again."""
    stops = tuple(each for each in scenario.failures if hasattr(each, "parallelism"))
    run = simulate(scenario.model_copy(update={"failures": stops}))
    assert (run.ledger["lost"], run.ledger["duplicated"], run.ledger["replayed"]) == (0, 0, 0)
    assert (run.windows["wrong"], run.windows["missing"]) == (0, 0)


@pytest.mark.parametrize(
    ("key", "more", "said"),
    [
        ({"max_parallelism": 1}, {"stop": {"parallelism": {"count": 1}}}, "must be at least parallelism"),
        ({"max_parallelism": 4, "from": {"s": "shuffle"}}, {}, "parallelism.count: reads a spout"),
        ({"max_parallelism": 4, "from": {"s": "shuffle"}}, {"stop": {"parallelism": {}}}, "that read bolts"),
        ({"max_parallelism": 4, "from": {"p": "all"}}, {}, "shuffle, fields and global"),
        ({"max_parallelism": 4, "from": {"p": "shuffle"}}, {}, "moves state by key"),
        ({"max_parallelism": 4, "window": {"tuples": 5}}, {}, "moves state by key"),
        ({"max_parallelism": 4}, {"strategy": {"kind": "none"}}, "does not go with the strategy none"),
        ({}, {}, "needs topology.count.max_parallelism, at least 3"),
        ({"max_parallelism": 2}, {}, "needs topology.count.max_parallelism, at least 3"),
        ({"max_parallelism": 4}, {"stop": {"hosts": [0]}}, "leave hosts out"),
        ({"max_parallelism": 4}, {"detector": {"kind": "storm"}}, "parallelism: .*detector: storm"),
        ({"max_parallelism": 4}, {"stop": {"parallelism": {"cuont": 2}}}, "there is no component 'cuont'"),
        ({"max_parallelism": 4}, {"stop": {"parallelism": {"s": 2}}}, "parallelism.s: is a spout"),
        ({"max_parallelism": 4}, {"stop": {"parallelism": {"count": 0}}}, "at least 1"),
    ],
)
def test_bad_input(key: dict[str, Any], more: dict[str, Any], said: str) -> None:
    count = {"bolt": "windowed_count", "from": {"p": {"fields": ["key"]}}, "window": "1 s", "service": "1 ms"}
    stop = {"kind": "planned_restart", "at": "1 s", "parallelism": {"count": 3}} | more.get("stop", {})
    text = {
        "name": "x",
        "topology": {
            "s": {"spout": "keys", "rate": "10/s"},
            "p": {"bolt": "forward", "from": {"s": "shuffle"}, "service": "1 ms"},
            "count": count | {"parallelism": 2} | key,
        },
        "strategy": more.get("strategy", {"kind": "aligned_snapshots", "checkpoint_interval": "1 s"}),
        "failures": [stop],
        "run": {"duration": "10 s"},
    } | {key: value for key, value in more.items() if key == "detector"}
    with pytest.raises(ScenarioError, match=said):
        load(text)
