"""The sink outlives every process: the first result of a window stays, and batches overwrite themselves."""

import json

import pyarrow as pa
import pytest

from tideover.calibrate.real.pipelines import (
    EventLog,
    Schedule,
    Sink,
    oldest_unfinished,
    read_batches,
    read_events,
    read_windows,
)

SCHEDULE = Schedule(1000, ((0.0, 10),), 6.0)
"""Windows of 2 s hold 20 rows each: 0-19, 20-39, 40-59."""


class Results:
    """What Spark hands to the sink."""

    def __init__(self, counts):
        starts = [1000 + 2 * window for window, _ in counts]
        words = [word for _, word in counts]
        self.table = pa.table({"start": starts, "word": words, "count": list(counts.values())})

    def toArrow(self):
        return self.table


@pytest.fixture
def sink(tmp_path):
    """Makes sinks on one directory, whose batches end where ``ends`` says."""

    def make(name="0", first=0, ends=(), window_s=2, life=0):
        log = EventLog(tmp_path / f"{name}-{life}.jsonl")
        return Sink(tmp_path, name, SCHEDULE, window_s, first, 0, lambda batch: ends[batch], log)

    return make


def test_a_window_is_finished_when_all_its_rows_are_read(sink, tmp_path):
    take = sink(ends=[19, 20, 59, 60])
    take(Results({(0, "a"): 19}), 0)
    assert read_windows(tmp_path) == {}
    take(Results({(0, "a"): 20}), 1)
    assert read_windows(tmp_path) == {0: {"a": 20}}
    take(Results({(1, "a"): 5, (1, "b"): 15, (2, "b"): 19}), 2)
    take(Results({(2, "b"): 20}), 3)
    assert read_windows(tmp_path) == {0: {"a": 20}, 1: {"a": 5, "b": 15}, 2: {"b": 20}}
    assert oldest_unfinished(tmp_path) == 3
    finished = [e["window"] for e in read_events(tmp_path / "0-0.jsonl") if e["event"] == "window"]
    assert finished == [0, 1, 2]


def test_the_first_result_of_a_window_stays_and_the_second_is_dropped(sink, tmp_path):
    sink("0", ends=[20])(Results({(0, "a"): 20}), 0)
    sink("1", ends=[20])(Results({(0, "a"): 7}), 0)
    assert read_windows(tmp_path) == {0: {"a": 20}}
    first = [next(read_events(tmp_path / f"{name}-0.jsonl"), None) for name in "01"]
    kept = [
        [e["first"] for e in read_events(tmp_path / f"{name}-0.jsonl") if e["event"] == "window"]
        for name in "01"
    ]
    assert kept == [[True], [False]]
    assert all(event["event"] == "in_sink" for event in first)


def test_the_next_life_knows_what_was_counted_before(sink, tmp_path):
    """Updates hold only the words that came: the others' counts are in the batches of the life before."""
    sink(ends=[10])(Results({(0, "a"): 4, (0, "b"): 6}), 0)
    sink(ends=[10, 20], life=1)(Results({(0, "b"): 16}), 1)
    assert read_windows(tmp_path) == {0: {"a": 4, "b": 16}}


def test_a_batch_that_runs_again_overwrites_itself(sink, tmp_path):
    take = sink(ends=[20, 40])
    take(Results({(0, "a"): 20}), 0)
    take(Results({(1, "a"): 3}), 1)
    again = sink(first=1, ends=[20, 40], life=1)
    again(Results({(1, "a"): 20}), 1)
    found = read_batches(tmp_path / "batches" / "0")
    assert [(end, table.column("count").to_pylist()) for end, table in found] == [(20, [20]), (40, [20])]


def test_a_run_from_the_oldest_unfinished_window_finishes_that_one_next(sink, tmp_path):
    sink("0-0-0", ends=[20])(Results({(0, "a"): 20}), 0)
    take = sink("0-0-1", first=oldest_unfinished(tmp_path), ends=[45])
    take(Results({(1, "a"): 20, (2, "a"): 5}), 0)
    assert read_windows(tmp_path) == {0: {"a": 20}, 1: {"a": 20}}


def test_without_windows_only_batches_are_kept(sink, tmp_path):
    take = sink(window_s=None, ends=[7])

    class Keys:
        def toArrow(self):
            return pa.table({"key": [1, 2], "count": [3, 4]})

    take(Keys(), 0)
    ((end, table),) = read_batches(tmp_path / "batches" / "0")
    assert (end, table.to_pydict()) == (7, {"key": [1, 2], "count": [3, 4]})
    assert read_windows(tmp_path) == {}


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path):
    log = EventLog(tmp_path / "log.jsonl", query=1)
    log.write("a", 1.5, value=2)
    log.close()
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write(json.dumps({"event": "b"})[:5])
    assert list(read_events(tmp_path / "log.jsonl")) == [{"event": "a", "at": 1.5, "query": 1, "value": 2}]
    assert list(read_events(tmp_path / "none.jsonl")) == []
