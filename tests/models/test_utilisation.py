"""How busy tasks and other resources are: over the time in which they are up, and of which a run is short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.models.chain import ONES
from tests.oracle.worlds import MS, bolt, fault, queued, spout, world
from tests.sweeps import as_kept
from tideover.models.evaluation.bottleneck import Load, Used, mean_loads, sentence
from tideover.models.results import Result
from tideover.models.schema import SHARED_RECORD
from tideover.models.simulation import simulate
from tideover.models.world import World
from tideover.reports.tables import blocked_table, overview


def rows(scenario: Any) -> dict[str, dict[str, Any]]:
    return {row["task"]: row for row in simulate(scenario).tasks}


def line(service: float, *failures: Any, until: float = 100, **more: Any) -> Any:
    """s (every 10 ms, at 10, 20, …) ──▶ p."""
    topology = {"s": spout(**ONES), "p": bolt("forward", {"s": "shuffle"}, service)}
    return world(topology, more.pop("strategy", "none"), failures, until, **more)


def test_a_task_is_busy_with_its_tuples() -> None:
    """Ten tuples of 4 ms; the one of 100 begins when the run ends, and waits for all of its 4 ms."""
    row = rows(line(4))["p.0"]
    assert (row["busy_s"], row["up_s"]) == (0.036, 0.1)
    assert row["utilisation"] == pytest.approx(0.36)
    assert (row["queued"], row["queued_s"]) == (1, 0.004)


def test_an_overloaded_task_is_busy_all_the_time_and_no_longer() -> None:
    """Tuples of 25 ms at 10, …, 100: busy from 10 on, done at 35, 60, 85; seven are left, 175 ms of work."""
    row = rows(line(25))["p.0"]
    assert row["utilisation"] == pytest.approx(0.9)
    assert (row["queued"], row["queued_s"]) == (7, 0.175)


def test_what_a_crash_destroys_keeps_nobody_busy_and_down_time_does_not_count() -> None:
    """Tuples of 25 ms: busy from 10 to the crash at 40; down to 70, when the tuple of 70 has just been lost
    (data come first); then busy from 80 to 100. 50 ms of the 70 that it was up.
    """
    row = rows(line(25, fault("crash_task", 40, component="p", detection=10, restart=20)))["p.0"]
    assert (row["busy_s"], row["up_s"]) == (0.05, 0.07)
    still_down = rows(line(25, fault("crash_task", 40, component="p", restart=500)))["p.0"]
    assert (still_down["busy_s"], still_down["up_s"]) == (0.03, 0.04)
    never = rows(line(25, fault("crash_task", 0, component="p", restart=500)))["p.0"]
    assert never["utilisation"] is None


def test_processor_time_is_that_of_work_that_was_done() -> None:
    """The same crash: 50 ms, not the 150 or more that the tuples ask for which it has got."""
    run = simulate(line(25, fault("crash_task", 40, component="p", detection=10, restart=20)))
    assert run.cost["cpu_s"] == pytest.approx(0.05)


def test_a_stopped_process_is_not_busy() -> None:
    """Stopped from 22 to 42: the tuple of 20 (4 ms) has 2 of them before and 2 after. Ten tuples, as without
    a stop, but for the one of 100.
    """
    assert rows(line(4, fault("pause", 22, component="p", duration=20 * MS)))["p.0"]["busy_s"] == 0.036


def test_in_batches_a_task_is_busy_while_it_runs() -> None:
    """Triggers at 40, 80, 120 (the log is empty at 0). In each batch p takes 5 + 4 x 1 (tuples of 10 … 40, of
    50 … 80): 9 ms; the batch of 120 has run for 5 of them at the end, 125.
    """
    batch = {"trigger_interval": 40 * MS, "task_time": 5 * MS}
    row = rows(line(1, until=125, strategy="micro_batch", **batch))["p.0"]
    assert row["busy_s"] == pytest.approx(0.009 + 0.009 + 0.005)


def test_a_result_has_the_mean_of_each_task_and_the_peak() -> None:
    """Two runs: 0.36; in the other (p crashes at 50, for good) 16 of 50 ms: the tuples of 10 … 40."""
    one = simulate(line(4))
    other = simulate(line(4, fault("crash_task", 50, component="p", restart=500)), 1)
    found = Result(line(4), [one, other])
    told = found.to_dict()["utilisation"]
    assert told["tasks"] == {"p.0": pytest.approx((0.36 + 0.32) / 2)}
    assert (told["busiest"], told["peak"]) == ("p.0", pytest.approx(0.36))
    assert found.tasks[["replication", "task", "queued"]].values.tolist() == [[0, "p.0", 1], [1, "p.0", 0]]
    assert as_kept(one).tasks == one.tasks


def test_lumps_change_only_the_grain() -> None:
    """A lump of 2 of half the rate and twice the work: as busy as without; counts are of real tuples."""
    scenario = line(4, until=10_000)
    coarsened = scenario.model_copy(update={"run": scenario.run.model_copy(update={"lump": 2})})
    one, two = rows(scenario)["p.0"], rows(coarsened)["p.0"]
    assert two["utilisation"] == pytest.approx(one["utilisation"], abs=0.002)
    assert two["queued"] % 2 == 0


def chain(at_q: float, length: int | None, until: float, *failures: Any) -> Any:
    """s (every 10 ms, at 10, 20, …) ──▶ p (4 ms) ──▶ q, whose queue has so many places."""
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 4),
        "q": queued(bolt("forward", {"p": "shuffle"}, at_q), length, "block"),
    }
    return world(topology, "none", failures, until)


def slow_end(length: int | None, *failures: Any) -> Any:
    """q takes 15 ms."""
    return chain(15, length, 95, *failures)


def busy_end(*failures: Any) -> Any:
    """q takes 9 ms."""
    return chain(9, None, 200, *failures)


def test_a_task_is_blocked_while_a_full_queue_keeps_what_it_has_made() -> None:
    """q begins at 14, 29, 44, …, when a place is free. p is done at 54, 64, 78 and 93 with tuples for which
    there is none before 59, 74, 89 and the end: 5 + 10 + 11 + 2 ms, besides eight times 4 ms of work.
    """
    found = rows(slow_end(1))
    assert (found["p.0"]["blocked_s"], found["p.0"]["busy_s"]) == (0.028, 0.032)
    assert found["q.0"]["blocked_s"] == 0


def test_what_a_crash_destroys_in_a_line_blocks_no_longer() -> None:
    """p is blocked from 54 to 59, from 64 to 74, and from 78 to the crash at 84; at 94 there is room."""
    found = rows(slow_end(1, fault("crash_task", 84, component="p", restart=5)))
    assert (found["p.0"]["blocked_s"], found["p.0"]["up_s"]) == (0.021, 0.09)


def test_results_say_who_is_blocked_where_queues_have_an_end() -> None:
    """In the record, the tasks' table, the overview, and a table of its own; elsewhere nothing of it."""
    result = Result(slow_end(1), [simulate(slow_end(1))])
    record = result.to_dict()
    assert record["utilisation"]["blocked"] == {"p.0": pytest.approx(28 / 95), "q.0": 0}
    assert result.tasks["blocked_s"].tolist() == [0.028, 0]
    assert ("most blocked task", "0.295 (p.0)") in overview([record]).rows
    assert blocked_table(record).rows[0] == ("p.0", "33.7 %", "29.5 %", "36.8 %")
    roomy = Result(slow_end(9), [simulate(slow_end(9))])
    assert ("most blocked task", "0") in overview([roomy.to_dict()]).rows
    again = Result(slow_end(1), [as_kept(one) for one in result.replications])
    assert again.to_json() == result.to_json()
    plain = Result(slow_end(None), [simulate(slow_end(None))])
    assert "blocked" not in plain.to_dict()["utilisation"]
    assert "blocked_s" not in plain.tasks.columns
    assert not blocked_table(plain.to_dict()).rows
    assert "most blocked task" not in {row[0] for row in overview([plain.to_dict()]).rows}


def used(scenario: Any) -> Used:
    found = World(scenario, looks=200)
    found.run()
    return Used.of(found.usage)


def test_each_look_sees_the_work_done_by_then() -> None:
    """200 looks in 200 ms, one a millisecond. p works in [10k, 10k + 4], q in [10k + 4, 10k + 13], so from 14
    on without end but for the ninth millisecond of each ten… that is [13, 14], [23, 24], ….
    """
    found = used(busy_end())
    assert found.times == [i * MS for i in range(201)]
    p, q = (next(i for i, name in enumerate(found.resources) if name[0] == task) for task in ("p.0", "q.0"))
    assert [name[1] for name in found.resources] == ["task"] * 3
    for i, moment in enumerate(found.times):
        rounds, rest = divmod(moment // MS - 10, 10)
        done = max(0, rounds) * 4 + (min(4, rest) if rounds >= 0 else 0)
        assert found.busy[i][p] == done * MS
        rounds, rest = divmod(moment // MS - 14, 10)
        done = max(0, rounds) * 9 + (min(9, rest) if rounds >= 0 else 0)
        assert found.busy[i][q] == done * MS


def test_a_look_changes_nothing() -> None:
    """The same tuples at the same times with 200 looks and with none, failures included."""
    failing = busy_end(fault("crash_task", 95, component="q", detection=10, restart=20))
    traces = []
    for looks in (200, 0):
        found = World(failing, trace=True, looks=looks)
        found.run()
        traces.append(sorted(found.trace.processed))
    assert traces[0] == traces[1]


def test_the_busiest_is_named_and_the_next() -> None:
    """Over [100, 200]: q is busy nine tenths of the time, p four tenths."""
    loads = mean_loads([used(busy_end()).loads(100 * MS, 200 * MS)])
    assert [(load.words, load.busy) for load in loads] == [
        ("task q.0", pytest.approx(0.9)),
        ("task p.0", pytest.approx(0.4)),
        ("task s.0", 0.0),
    ]
    assert sentence(loads) == "task q.0 is 90.0 % busy; next: task p.0, 40.0 %"
    assert sentence([]) == "nothing was measured"


def test_loads_are_means_over_replications() -> None:
    """Busy 0.2 and 0.6: 0.4; the one that only one replication has counts as it was there."""
    one = [Load("a.0", "task", 0, 0.2), Load("b.0", "task", 1, 0.3)]
    assert mean_loads([one, [Load("a.0", "task", 0, 0.6)]]) == [
        Load("a.0", "task", 0, pytest.approx(0.4)),  # type: ignore[arg-type]
        Load("b.0", "task", 1, 0.3),
    ]


def test_no_stretch_no_load() -> None:
    """Two looks make a stretch."""
    found = used(busy_end())
    assert found.loads(100 * MS, 100 * MS) == []
    assert found.loads(300 * MS, 400 * MS) == []


@pytest.fixture(scope="module")
def shared() -> Result:
    scenario = busy_end()
    return Result(scenario, [replace(simulate(scenario), used=used(scenario))])


def test_a_result_has_it_where_it_was_measured(shared: Result) -> None:
    """In the record, as a table with a row a stretch and resource; elsewhere the record has nothing of it."""
    record = shared.to_dict()
    assert record["resources"][0] == {
        "name": "q.0",
        "kind": "task",
        "host": 2,
        "busy": pytest.approx((200 - 14 - 18) / 200),
    }
    assert record["bottleneck"].startswith("task q.0 is 84.0 % busy; next: task p.0")
    assert len(shared.usage) == 200 * 3
    rows = shared.usage[shared.usage.resource == "p.0"]
    assert rows.busy.mean() == pytest.approx(76 / 200)
    plain = Result(shared.scenario, [replace(one, used=None) for one in shared.replications])
    assert set(record) - set(plain.to_dict()) == {entry.name for entry in SHARED_RECORD}
    assert not len(plain.usage)


def test_it_is_kept_on_disk(shared: Result) -> None:
    """What a sweep keeps of a run gives the same record again."""
    again = Result(shared.scenario, [as_kept(one) for one in shared.replications])
    assert again.to_json() == shared.to_json()
    assert again.usage.equals(shared.usage)
