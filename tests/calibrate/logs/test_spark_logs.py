"""Spark's logs: batches, and failures with their stages, by hand and from a real query."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calibrate.made_logs import failures_and_memory
from tideover.calibrate import logs
from tideover.calibrate.logs import spark_batches
from tideover.calibrate.logs.findings import Findings, instant
from tideover.calibrate.logs.spark_batches import PARTITIONS

REAL = Path(__file__).parents[2] / "data" / "spark"
T0 = 1_800_000_000
LISTENER = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"

Event = dict[str, Any]


def event(kind: str, **fields: object) -> Event:
    return {"Event": kind, **{name.replace("_", " "): value for name, value in fields.items()}}


def ms(at: float) -> int:
    return round((T0 + at) * 1000)


def joined(at: float, executor: int) -> Event:
    return event("SparkListenerExecutorAdded", Timestamp=ms(at), Executor_ID=str(executor), Executor_Info={})


def lost(at: float, executor: int, reason: str = "Command exited with code 137") -> Event:
    about: Event = {"Executor_ID": str(executor), "Removed_Reason": reason}
    return event("SparkListenerExecutorRemoved", Timestamp=ms(at), **about)


def task(at: float, executor: int, reason: str = "Success") -> Event:
    info = {"Launch Time": ms(at - 0.1), "Executor ID": str(executor), "Finish Time": ms(at), "Failed": False}
    return event("SparkListenerTaskEnd", Stage_ID=1, Task_End_Reason={"Reason": reason}, Task_Info=info)


def begun(at: float, run: str = "one") -> Event:
    stamp = instant(T0 + at).replace(" ", "T") + "Z"
    return {"Event": f"{LISTENER}StartedEvent", "id": "query", "runId": run, "timestamp": stamp}


def ended(run: str = "one", error: str | None = None) -> Event:
    return {"Event": f"{LISTENER}TerminatedEvent", "id": "query", "runId": run, "exception": error}


def progress(
    number: int, start: float, lasts: float, rows: int = 100, run: str = "one", behind: int = 0
) -> Event:
    """One source, one stateful operator; all but 0.1 s of the batch is in its stages."""
    source = {"endOffset": '{"log": {"0": 500}}', "latestOffset": json.dumps({"log": {"0": 500 + behind}})}
    whole = round(lasts * 1000)
    spent = {"triggerExecution": whole, "addBatch": whole - 100, "queryPlanning": 60}
    return {
        "id": "query",
        "runId": run,
        "name": None,
        "timestamp": instant(T0 + start).replace(" ", "T") + "Z",
        "batchId": number,
        "durationMs": {**spent, "commitOffsets": 40},
        "stateOperators": [{"numRowsTotal": 7}],
        "sources": [{**source, "numInputRows": rows}],
    }


def batch(*args: Any, **more: Any) -> Event:
    return {"Event": f"{LISTENER}ProgressEvent", "progress": progress(*args, **more)}


def on_time(numbers: Iterable[int], run: str = "one") -> list[Event]:
    """Batches of half a second at every second."""
    return [batch(number, float(number), 0.5, run=run) for number in numbers]


def text(events: Sequence[Event]) -> str:
    return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in events)


def found(path: Path) -> Findings:
    (one,) = logs.read(path).found
    return one


def stages(one: Findings) -> list[list[tuple[str, float, int]]]:
    """Of each failure: name of a stage, when (s since T0), and the line."""
    return [[(s.name, round(s.at - T0, 3), s.mark.line) for s in f.stages] for f in one.failures]


def without_costs(path: Path) -> logs.Evidence:
    """The same evidence without the fit of costs, which takes most of the time and changes no stage."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_batches, "fit", lambda *args: None)
        return logs.read(path)


LOST = [
    joined(-2, 0),
    joined(-1, 1),
    begun(0),
    *on_time(range(20)),  # lines 4 to 23
    task(20.1, 0),
    task(20.4, 1),
    task(20.6, 1, "ExecutorLostFailure"),  # 26: the first sign
    lost(20.7, 1),  # 27
    batch(20, 20.0, 3.0),  # 28: ends at 23, and is late
    batch(21, 23.0, 1.5, rows=300),  # 29: its rows have waited since 20; ends at 24.5
    joined(24.0, 2),  # 30
    batch(22, 24.5, 0.6, rows=150),  # 31: its oldest row came at 23: 2.1 s
    batch(23, 26.0, 0.5),  # 32: the trigger at 25 was missed, so again 2 s; the next are on time
    *on_time(range(27, 31)),
]
BY_HAND = [
    ("failed", 20.6, 26),
    ("detected", 20.7, 27),
    ("restored", 23.0, 28),
    ("slots", 24.0, 30),
    ("caught_up", 26.5, 32),
]
"""On time: 1.25 times 1.5 s, from the trigger before to the results; batches 20 to 23 are late."""


def test_a_lost_executor_by_hand(tmp_path: Path) -> None:
    """Definition: every stage, its moment and its line; and of a batch, how late it is."""
    (tmp_path / "log").write_text(text(LOST))
    one = found(tmp_path / "log")
    assert stages(one) == [BY_HAND]
    assert (one.failures[0].kind, one.failures[0].cause) == (
        "kill",
        "executor 1 was lost: Command exited with code 137",
    )
    told = {quantity.name: quantity for quantity in one.quantities}
    assert (told["trigger_interval"].value, told["rate"].value) == (1.0, 100.0)
    assert (told["detection"].identified, round(told["detection"].high, 3)) == (False, 0.3)  # since 20.4
    assert told["executor_restart"].value == pytest.approx(3.3)
    table = one.tables["batches"]
    assert table["rows"].tolist()[19:23] == [100, 100, 300, 150]
    assert table["duration_s"].tolist()[19:23] == pytest.approx([0.5, 3.0, 1.5, 0.6])
    assert table["late_s"].tolist()[19:23] == pytest.approx([1.5, 4.0, 4.5, 2.1])


@pytest.mark.parametrize("reason", ["Executor killed by driver.", "Executor decommission: spot instance"])
def test_what_spark_takes_away_itself_is_no_failure(reason: str, tmp_path: Path) -> None:
    """Law: no failure, no recovery; that executors went is said."""
    (tmp_path / "log").write_text(text([joined(-1, 0), *on_time(range(12)), lost(5.2, 0, reason)]))
    one = found(tmp_path / "log")
    assert one.failures == ()
    assert "Spark took 1 executor away itself (first at log:14), which is no failure" in one.remarks


def test_a_query_that_fails_and_begins_again(tmp_path: Path) -> None:
    """Definition: a query that ended by an exception has failed when the last line before it says, and is
    restored with the first batch of its next run.
    """
    again = [batch(n, n + 5.0, 0.5, run="two") for n in range(13, 20)]
    failing = [task(12.3, 0, "ExceptionFailure"), ended(error="boom"), begun(16.0, "two")]
    (tmp_path / "log").write_text(text([begun(0), *on_time(range(12)), *failing, *again]))
    one = found(tmp_path / "log")
    assert stages(one) == [
        [("failed", 12.3, 15), ("restart_tried", 16.0, 16), ("restored", 18.5, 17), ("caught_up", 18.5, 17)]
    ]
    assert (one.failures[0].kind, one.failures[0].cause) == ("task", "the query ended: boom")
    stopped = [begun(0), *on_time(range(12)), task(12.3, 0), ended(), begun(16.0, "two"), *again]
    (tmp_path / "log").write_text(text(stopped))
    assert [failure.kind for failure in found(tmp_path / "log").failures] == ["stop"]


def test_a_driver_that_is_gone(tmp_path: Path) -> None:
    """Definition: the log of the first application ends in the middle of a line; another application goes on
    with the query, which keeps its id. Its results are there at 33, with all that had waited; then it is on
    time.
    """
    started = "SparkListenerApplicationStart"
    first = [event(started, Timestamp=ms(-9), App_ID="a"), begun(0), *on_time(range(12))]
    (tmp_path / "a").write_text(text([*first, task(12.2, 0)]) + '{"Event":"SparkListenerTaskE')
    second = [event(started, Timestamp=ms(20), App_ID="b"), begun(27, "two")]
    second += [batch(12, 28.0, 5.0, rows=1700, run="two"), *on_time(range(33, 40), run="two")]
    (tmp_path / "b").write_text(text(second))
    evidence = logs.read(tmp_path)
    assert stages(evidence.found[0]) == [
        [
            ("failed", 12.2, 15),
            ("restart_tried", 20.0, 1),
            ("deployed", 27.0, 2),
            ("restored", 33.0, 3),
            ("caught_up", 33.5, 4),  # batch 33 has what came since 28
        ]
    ]
    assert {problem.line for problem in evidence.problems.told} == {16}  # which is cut off


def test_a_cap_on_batches_keeps_what_is_behind_in_view(tmp_path: Path) -> None:
    """Law: batches that are on time, but leave rows in the source, have not caught up."""
    behind = [batch(n, float(n), 0.5, behind=(16 - n) * 200) for n in range(13, 17)]
    hit = [lost(11.7, 1), batch(12, 12.0, 0.5, behind=2000), *behind, *on_time(range(17, 22))]
    (tmp_path / "log").write_text(text([joined(-1, 1), *on_time(range(12)), *hit]))
    one = found(tmp_path / "log")
    assert one.failures[0].after("restored") == pytest.approx(12.5 - 11.7)
    # Of 2000, 600, 400, 200 and 0 rows that are left behind, the last are no more than a batch has, 100.
    assert one.failures[0].after("caught_up") == pytest.approx(15.5 - 11.7)


def test_batches_are_the_same_in_every_form(tmp_path: Path) -> None:
    """Law: as events, as lines of JSON, and as a driver prints them, a query's batches are the same."""
    told = [progress(n, float(n), 0.5 + 0.01 * n, rows=100 + n) for n in range(8)]
    made = "Streaming query made progress:"
    printed = "".join(
        f"26/11/28 22:42:58 INFO MicroBatchExecution: {made} {json.dumps(p, indent=2)}\n"
        "26/11/28 22:42:58 INFO CheckpointFileManager: Renamed a file\n"
        for p in told
    )
    forms = {
        "events": text([{"Event": f"{LISTENER}ProgressEvent", "progress": p} for p in told]),
        "lines": text(told),
        "printed": printed,
    }
    tables = []
    for name, content in forms.items():
        (tmp_path / name).write_text(content)
        evidence = logs.read(tmp_path / name)
        assert not evidence.problems, name
        tables.append(evidence.found[0].tables["batches"].drop(columns=["file", "line"]))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


def test_progress_of_older_versions_is_read(tmp_path: Path) -> None:
    """Spark 3.1 tells no time of the commit log, no newest offset and no rows of all sources together."""
    told = [progress(n, float(n), 0.5, rows=100 + n) for n in range(4)]
    for one in told:
        del one["durationMs"]["commitOffsets"], one["sources"][0]["latestOffset"]
        one |= {"batchDuration": 500, "eventTime": {}, "sink": {"description": "ConsoleTable"}}
    (tmp_path / "log").write_text(text([{"Event": f"{LISTENER}ProgressEvent", "progress": p} for p in told]))
    table = found(tmp_path / "log").tables["batches"]
    assert table["rows"].tolist() == [100, 101, 102, 103]
    assert table["duration_s"].tolist() == [0.5] * 4
    assert table[["behind", "commit_ms"]].isna().all(axis=None)


def test_files_of_a_rolled_log_are_read_in_their_order(tmp_path: Path) -> None:
    """Law: the tenth file comes after the ninth, and not after the first: the query that ended in its first
    line has failed when the last line of the ninth says.
    """
    again = [batch(n, n + 5.0, 0.5, run="two") for n in range(13, 20)]
    parts = [[begun(0)], *([one] for one in on_time(range(7))), [*on_time(range(7, 12)), task(12.3, 0)]]
    parts += [[ended(error="boom"), begun(16.0, "two")], again]
    folder = tmp_path / "eventlog_v2_app"
    folder.mkdir()
    (folder / "appstatus_app.inprogress").write_text("")
    for number, part in enumerate(parts, 1):
        (folder / f"events_{number}_app").write_text(text(part))
    for path in (folder, tmp_path):
        (failure,) = found(path).failures
        assert [(s.name, round(s.at - T0, 3), str(s.mark)) for s in failure.stages][:2] == [
            ("failed", 12.3, "events_10_app:1"),
            ("restart_tried", 16.0, "events_10_app:2"),
        ]


def test_progress_alone_shows_gaps(tmp_path: Path) -> None:
    """Definition: a batch that is twice as late as what still is on time, 1.875 s, is a failure, from its
    trigger on; the next one has its rows, and is late, too.
    """
    slow = [progress(20, 20.0, 4.0), progress(21, 24.0, 1.0, rows=400), progress(22, 25.0, 0.5)]
    rows = [one["progress"] for one in on_time(range(20))] + slow
    rows += [one["progress"] for one in on_time(range(26, 32))]
    (tmp_path / "log").write_text(text(rows))
    one = found(tmp_path / "log")
    assert stages(one) == [[("failed", 20.0, 21), ("restored", 24.0, 21), ("caught_up", 25.0, 22)]]
    assert one.failures[0].kind == "gap"


RUBBISH = st.sampled_from(["}", "[1]", '{"a"', '{"Event":"', "\x00", "x"])


@settings(max_examples=25)
@given(rubbish=st.lists(st.tuples(st.integers(1, len(LOST)), RUBBISH), max_size=4))
def test_broken_lines_change_no_stage(
    rubbish: list[tuple[int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Law: whatever stands between the lines of a log, its stages are the same, at the lines where they are;
    and each line that could not be read is told.
    """
    path = tmp_path_factory.getbasetemp() / "broken.log"
    rows = text(LOST).splitlines()
    for place, line in sorted(rubbish, reverse=True):
        rows.insert(place, line)
    path.write_text("\n".join(rows) + "\n")
    evidence = without_costs(path)
    (one,) = evidence.found
    assert [(name, at) for name, at, _ in stages(one)[0]] == [(name, at) for name, at, _ in BY_HAND]
    places = [rows.index(json.dumps(LOST[line - 1], separators=(",", ":"))) + 1 for _, _, line in BY_HAND]
    assert [line for _, _, line in stages(one)[0]] == places
    assert sum(evidence.problems.counts.values()) == len(rubbish)


@settings(max_examples=25)
@given(cut=st.integers(60, len(text(LOST)) - 1))
def test_a_log_cut_off_anywhere_is_read_so_far(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Law: the stages whose lines are whole are there; no other line than the last is told to be broken."""
    path = tmp_path_factory.getbasetemp() / "cut.log"
    path.write_text(text(LOST)[:cut])
    evidence = without_costs(path)
    lines = text(LOST)[: cut + 1].count("\n")
    told = {(name, line) for one in evidence.found for failure in stages(one) for name, _, line in failure}
    certain = {(name, line) for name, _, line in BY_HAND if line <= lines and name in ("detected", "slots")}
    assert certain <= told or lines < 4
    assert {problem.line for problem in evidence.problems.told} <= {text(LOST)[:cut].count("\n") + 1}


def test_costs_are_those_of_a_straight_law(tmp_path: Path) -> None:
    """Law: if a batch lasts 0.3 s and 2 ms a row, that is what is found: 500 rows/s with a backlog; and a
    profile for the scenario has it, for its two tasks.
    """
    sizes = [100, 200, 400, 300, 150, 250] * 4
    events = [batch(n, 10.0 * n, 0.3 + 0.002 * rows, rows=rows) for n, rows in enumerate(sizes)]
    (tmp_path / "log").write_text(text(events))
    evidence = logs.read(tmp_path / "log")
    told = {quantity.name: quantity for quantity in evidence.found[0].quantities}
    assert told["fixed_cost"].value == pytest.approx(0.3, rel=0.01)
    assert told["row_cost"].value == pytest.approx(0.002, rel=0.01)
    assert told["catch_up_capacity"].value == pytest.approx(500, rel=0.01)
    (profile,) = evidence.profiles.values()
    service = re.search(r"split_words: {service: ([0-9.]+) ms}", profile)
    assert service is not None
    assert float(service[1]) == pytest.approx(1000 * 0.002 * PARTITIONS, rel=0.01)


def test_batches_of_one_size_do_not_tell_what_a_row_costs(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text(on_time(range(20))))
    one = found(tmp_path / "log")
    assert {q.name for q in one.quantities if not q.identified} >= {"row_cost", "catch_up_capacity"}
    assert one.profile is None
    assert one.most_help.startswith("batches of different size")


def test_a_real_query_whose_executor_and_driver_were_killed() -> None:
    """The kills were at 23:06:06.259 and 23:06:41.604 (README.md): the first is noticed by a task within
    half a second; the second is after the last line of its driver, and before the next one's first.
    """
    evidence = logs.read(REAL)
    (one,) = evidence.found
    assert not evidence.problems
    executor, driver = one.failures
    kills = T0 - 4_092_833.741, T0 - 4_092_798.396
    names = [[stage.name for stage in failure.stages] for failure in (executor, driver)]
    assert names[0] == ["failed", "detected", "restored", "slots", "caught_up"]
    assert names[1] == ["failed", "restart_tried", "deployed", "restored"]
    assert 0 < executor.began - kills[0] < 0.5
    assert 0 < (executor.at("detected") or 0) - kills[0] < 0.6
    assert driver.began < kills[1] < (driver.at("restart_tried") or 0)
    batches = one.tables["batches"].set_index("batch")
    assert batches["rows"][16:20].tolist() == [1601, 1600, 1600, 1599]  # 800 a second, every 2 s
    assert batches["duration_s"][25] == pytest.approx(3.236)  # which was hit
    told = {quantity.name: quantity for quantity in one.quantities}
    assert told["trigger_interval"].value == 2.0
    assert told["rate"].value == pytest.approx(600, rel=0.05)
    assert not told["catch_up_capacity"].identified  # batches differ by more than their rows explain


@pytest.mark.long
def test_a_gigabyte_in_bounded_memory(tmp_path: Path) -> None:
    """22,800 batches of 40 tasks each, whose metrics make them 1 kB long, packed; every 40 s an executor is
    lost. Kept are the batches and the stages of 600 failures, in less than 400 MB.
    """
    failures, size = 600, 0
    with gzip.open(tmp_path / "log.gz", "wt", compresslevel=1) as file:
        file.write(text([joined(-1, 0), begun(0)]))
        for k in range(failures):
            at = 40.0 * k
            hit = [task(at + 20.6, k, "ExecutorLostFailure"), lost(at + 20.7, k), joined(at + 24, k + 1)]
            for n in (*range(21), *range(23, 40)):
                now, late = at + n, n == 20
                done = [task(now + 0.4, k + (n > 20)) | {"Task Metrics": "m" * 900}] * 40
                written = text([*done, *(hit if late else ()), batch(int(now), now, 3.0 if late else 0.5)])
                size += file.write(written)
    assert size > 9.9e8
    told, kilobytes = failures_and_memory(tmp_path)
    assert told == failures
    assert kilobytes < 400_000
