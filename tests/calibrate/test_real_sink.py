"""Input and sink of the real pipelines: a pure function, and a memory that outlives every process."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.calibrate.real.pipelines import (
    MICROSECONDS,
    Content,
    Schedule,
    ScheduleSource,
    Sink,
    choices,
    oldest_unfinished,
    options,
    read_batches,
    read_windows,
)
from tideover.calibrate.real.processes import EventLog, read_events
from tideover.models.operators.kinds import SENTENCES


@st.composite
def schedules(draw):
    """Up to four pieces of whole milliseconds, some without rows."""
    lengths = draw(st.lists(st.integers(1, 3000), min_size=1, max_size=4))
    rates = draw(
        st.lists(st.sampled_from([0, 1, 3, 7, 999, 1000]), min_size=len(lengths), max_size=len(lengths))
    )
    edges = np.concatenate([[0], np.cumsum(lengths)]) / 1000
    return Schedule(1_000_000_000, tuple(zip(edges[:-1].tolist(), rates, strict=True)), float(edges[-1]))


@given(schedules(), st.data())
def test_law_rows_before_a_moment_are_those_with_an_earlier_stamp(schedule, data):
    stamps = schedule.stamps(np.arange(schedule.rows))
    end = round(schedule.end_s * MICROSECONDS)
    near = [int(stamp) + d for stamp in stamps[:3] for d in (-1, 0, 1)]
    for moment in [*near, data.draw(st.integers(-10, end + 10)), end]:
        assert schedule.rows_before(moment) == np.count_nonzero(stamps < moment)


@given(schedules())
def test_law_stamps_ascend_and_each_piece_has_its_rate(schedule):
    """A piece of d µs at r per s holds ceil(d r / 10^6) rows, the first of them at its very beginning."""
    stamps = schedule.stamps(np.arange(schedule.rows))
    assert (np.diff(stamps) >= 0).all()
    starts = [round(start * MICROSECONDS) for start, _ in schedule.pieces]
    ends = [*starts[1:], round(schedule.end_s * MICROSECONDS)]
    for start, end, (_, rate) in zip(starts, ends, schedule.pieces, strict=True):
        inside = stamps[(stamps >= start) & (stamps < end)]
        assert len(inside) == -(-(end - start) * rate // MICROSECONDS)
        assert not len(inside) or inside[0] == start


@pytest.mark.parametrize(
    "pieces", [(), ((1.0, 5),), ((0.0, 5), (0.0, 6)), ((0.0, 5), (9.0, 6)), ((0.0, -1),), ((0.0, 1.5),)]
)
def test_a_schedule_that_makes_no_sense_is_refused(pieces):
    with pytest.raises(ValueError, match="pieces"):
        Schedule(0, pieces, 9.0)


def test_content_does_not_depend_on_how_rows_are_cut():
    rows = np.arange(1000)
    whole = choices(7, rows, 5)
    assert (np.concatenate([choices(7, part, 5) for part in np.split(rows, [1, 500])]) == whole).all()
    assert (choices(8, rows, 5) != whole).any()
    # 1000 draws of five values: each 200 times, give or take 5 standard deviations of 12.6.
    assert np.abs(np.bincount(whole, minlength=5) - 200).max() < 64


def reader(content, schedule):
    source = ScheduleSource(options(schedule, content))
    return source, source.streamReader(source.schema())


@pytest.mark.parametrize(
    "content", [Content(3, 0, 2, SENTENCES, 0), Content(3, 0, 3, (), 40), Content(3, 0, 1, (), 40)]
)
def test_a_batch_read_in_pieces_is_the_batch(content):
    """Whatever the partitions, the rows between two offsets are these rows, with their stamps, in order."""
    schedule = Schedule(1_000_000_000, ((0.0, 100), (1.0, 7)), 9.0)
    source, reads = reader(content, schedule)
    pieces = reads.partitions({"row": 5}, {"row": 130})
    assert len(pieces) == content.partitions
    table = pa.Table.from_batches(batch for piece in pieces for batch in reads.read(piece))
    assert table.num_rows == 125
    stamps = table.column("stamp").cast(pa.int64()).to_numpy() - schedule.t0 * MICROSECONDS
    assert (stamps == schedule.stamps(np.arange(5, 130))).all()
    numbers = content.numbers(np.arange(5, 130))
    if content.sentences:
        assert table.column("sentence").to_pylist() == [SENTENCES[n] for n in numbers]
    else:
        assert table.column("key").to_pylist() == numbers.tolist()
    assert len(source.schema().split(",")) == table.num_columns


def test_the_first_rows_hold_each_key_once():
    numbers = Content(3, 0, 1, (), 40).numbers(np.arange(400))
    assert numbers[:40].tolist() == list(range(40))
    assert set(numbers[40:].tolist()) == set(range(40))


def test_a_query_begins_at_its_start_and_the_offset_never_goes_back():
    """Seen long after its end, the schedule has all its rows; a start beyond them stays."""
    schedule = Schedule(1_000_000_000, ((0.0, 100),), 9.0)
    _, reads = reader(Content(3, 17, 2, SENTENCES, 0), schedule)
    assert reads.initialOffset() == {"row": 17}
    assert reads.latestOffset({"row": 17}, None) == {"row": 900}
    assert reads.latestOffset({"row": 950}, None) == {"row": 950}
    assert list(reads.read(reads.partitions({"row": 5}, {"row": 5})[0])) == []


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
    events = [list(read_events(tmp_path / f"{name}-0.jsonl")) for name in "01"]
    assert [[e["first"] for e in each if e["event"] == "window"] for each in events] == [[True], [False]]
    assert [each[0]["event"] for each in events] == ["in_sink", "in_sink"]


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
