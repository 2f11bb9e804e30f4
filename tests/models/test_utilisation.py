"""How busy each task is: measured in the run, by task, over the time in which it is up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kept import as_kept
from tests.oracle.worlds import MS, bolt, fault, queued, spout, world
from tideover.models.results import Result
from tideover.models.simulation import simulate
from tideover.reports.tables import blocked_table, overview

ONES: dict[str, Any] = {"kind": "values", "values": (1,), "repeat": True}


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


def chain(length: int | None, *failures: Any) -> Any:
    """s (every 10 ms) ──▶ p (4 ms) ──▶ q (15 ms), whose queue has so many places."""
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 4),
        "q": queued(bolt("forward", {"p": "shuffle"}, 15), length, "block"),
    }
    return world(topology, "none", failures, 95)


def test_a_task_is_blocked_while_a_full_queue_keeps_what_it_has_made() -> None:
    """q begins at 14, 29, 44, …, when a place is free. p is done at 54, 64, 78 and 93 with tuples for which
    there is none before 59, 74, 89 and the end: 5 + 10 + 11 + 2 ms, besides eight times 4 ms of work.
    """
    found = rows(chain(1))
    assert (found["p.0"]["blocked_s"], found["p.0"]["busy_s"]) == (0.028, 0.032)
    assert found["q.0"]["blocked_s"] == 0


def test_what_a_crash_destroys_in_a_line_blocks_no_longer() -> None:
    """p is blocked from 54 to 59, from 64 to 74, and from 78 to the crash at 84; at 94 there is room."""
    found = rows(chain(1, fault("crash_task", 84, component="p", restart=5)))
    assert (found["p.0"]["blocked_s"], found["p.0"]["up_s"]) == (0.021, 0.09)


def test_results_say_who_is_blocked_where_queues_have_an_end() -> None:
    """In the record, the tasks' table, the overview, and a table of its own; elsewhere nothing of it."""
    result = Result(chain(1), [simulate(chain(1))])
    record = result.to_dict()
    assert record["utilisation"]["blocked"] == {"p.0": pytest.approx(28 / 95), "q.0": 0}
    assert result.tasks["blocked_s"].tolist() == [0.028, 0]
    assert ("most blocked task", "0.295 (p.0)") in overview([record]).rows
    assert blocked_table(record).rows[0] == ("p.0", "33.7 %", "29.5 %", "36.8 %")
    roomy = Result(chain(9), [simulate(chain(9))])
    assert ("most blocked task", "0") in overview([roomy.to_dict()]).rows
    again = Result(chain(1), [as_kept(one) for one in result.replications])
    assert again.to_json() == result.to_json()
    plain = Result(chain(None), [simulate(chain(None))])
    assert "blocked" not in plain.to_dict()["utilisation"]
    assert "blocked_s" not in plain.tasks.columns
    assert not blocked_table(plain.to_dict()).rows
    assert "most blocked task" not in {row[0] for row in overview([plain.to_dict()]).rows}
