"""From raw events to tables, on sessions written down by hand."""

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from tideover.calibrate.real.plan import CLUSTER, Episode, Fault, SessionPlan
from tideover.calibrate.real.processes import EventLog
from tideover.calibrate.real.tables import TABLES, frame, keys_until, tables, words_of_window

T0 = 1_000_000_000


class Recorded:
    """Writes a session's raw events; all times in s since t0. 10 rows/s, for 20 s; a trigger each second."""

    def __init__(self, directory, fault, **changes):
        episodes = (
            Episode(2.0, 10.0, 10, "recovery", held_out=True, fault=fault),
            Episode(10.0, 20.0, 10, "steady"),
        )
        details = {"strategy": "micro_batch", "pipeline": "word_count", "keys": 0, **changes}
        self.plan = SessionPlan("s", master=CLUSTER, seed=1, episodes=episodes, **details)
        self.directory = directory
        found = {"t0": T0, "java": "17", "plan": asdict(self.plan)}
        (directory / "session.json").write_text(json.dumps(found))
        self.logs = {}
        self.supervisor = EventLog(directory / "supervisor.jsonl")

    def log(self, life=0, query=0):
        path = self.directory / f"driver-{query}-{life}.jsonl"
        return self.logs.setdefault(path, EventLog(path, query=query, life=life))

    def query(self, at, run=0, start_row=0, life=0):
        log = self.log(life)
        log.write("query", T0 + at, run=run, run_id=f"run-{run}", start_row=start_row, checkpoint="")

    def batch(self, number, start, sink, end, rows, run=0, ended=True, life=0):
        """A batch of the rows [rows[0], rows[1]) that had its results in the sink, and perhaps ended."""
        log = self.log(life)
        log.write("in_sink", T0 + sink, run=run, batch=number, end_row=rows[1], results=1)
        if not ended:
            return
        stamp = datetime.fromtimestamp(T0 + start, UTC).isoformat().replace("+00:00", "Z")
        source = {"startOffset": {"row": rows[0]} if rows[0] else None, "endOffset": {"row": rows[1]}}
        state = {"numRowsTotal": 5, "customMetrics": {"rocksdbSstFileSize": 77}}
        progress = {
            "batchId": number,
            "runId": f"run-{run}",
            "timestamp": stamp,
            "numInputRows": rows[1] - rows[0],
            "durationMs": {"triggerExecution": round((end - start) * 1000), "addBatch": 3},
            "sources": [source],
            "stateOperators": [state],
        }
        log.write("progress", T0 + end, progress=progress)

    def fault(self, at, kind, query=0, life=0, logged=-1, committed=-1, logged_at=math.nan):
        details = {"query": query, "life": life, "logged": logged, "committed": committed, "victim": 0}
        self.supervisor.write("fault", T0 + at, episode=0, kind=kind, logged_at=T0 + logged_at, **details)

    def tables(self):
        return tables(self.directory)


@pytest.fixture
def recorded(tmp_path):
    """Makes a session whose query is there at 0.1, and whose first ``batches`` begin at 1, 2 and so on."""

    def begin(kind="kill_executor", batches=0, **changes):
        session = Recorded(tmp_path, Fault(kind, 3.0), **changes)
        session.query(0.1)
        for n in range(batches):
            session.batch(n, start=n + 1.0, sink=n + 1.4, end=n + 1.5, rows=(10 * n, 10 * n + 10))
        return session

    return begin


def test_a_batch_has_its_phases_its_rows_and_its_moment_in_the_sink(recorded):
    session = recorded(batches=2)
    batches = session.tables()["batches"]
    assert batches.start_s.tolist() == [1.0, 2.0]
    assert batches.end_s.tolist() == [1.5, 2.5]
    assert batches.sink_s.tolist() == pytest.approx([1.4, 2.4])
    assert batches.first_row.tolist() == [0, 10]
    assert batches.last_row.tolist() == [10, 20]
    assert batches.add_batch_ms.tolist() == [3.0, 3.0]
    assert batches.rocksdb_bytes.tolist() == [77.0, 77.0]
    assert batches.wal_ms.isna().all()


def test_results_of_a_batch_that_never_ended_are_kept_and_it_runs_again_in_the_next_life(recorded):
    """Batch 1 is in the sink at 2.4 and its driver is killed at 2.45: the next life runs it again."""
    session = recorded("kill_driver", batches=1)
    session.batch(1, start=2.0, sink=2.4, end=2.5, rows=(10, 20), ended=False)
    session.fault(2.45, "kill_driver", logged=1, committed=0, logged_at=2.03)
    session.supervisor.write("spawn", T0 + 2.5, query=0, life=1)
    session.query(9.0, life=1)
    session.batch(1, start=9.5, sink=10.4, end=10.5, rows=(10, 20), life=1)
    found = session.tables()
    batches = found["batches"]
    assert batches[["life", "batch"]].to_numpy().tolist() == [[0, 0], [0, 1], [1, 1]]
    assert batches.first_row.tolist() == [0, 10, 10]
    assert batches.rows.tolist() == [10, 10, 10]
    assert batches.end_s.isna().tolist() == [False, True, False]
    (fault,) = found["faults"].itertuples()
    # Logged 0.03 s after the whole second: that was the trigger.
    assert (fault.batch_running, fault.in_batch_s) == (1.0, pytest.approx(0.45))
    assert fault.logged
    assert (fault.detected_s, fault.ready_s) == (pytest.approx(2.5), pytest.approx(9.0))
    assert fault.first_batch_s == pytest.approx(10.4)


def test_a_fault_between_batches(recorded):
    session = recorded("kill_driver", batches=1)
    session.fault(1.7, "kill_driver", logged=0, committed=0, logged_at=1.03)
    (fault,) = session.tables()["faults"].itertuples()
    assert math.isnan(fault.batch_running)
    assert math.isnan(fault.in_batch_s)
    assert math.isnan(fault.first_batch_s)
    assert not fault.logged


@pytest.mark.parametrize(("strategy", "ready"), [("micro_batch", 4.0), ("source_replay", 2.7)])
def test_after_a_lost_executor_ready_is_what_the_strategy_waits_for(strategy, ready, recorded):
    """A new executor; or, where the query is started anew, that."""
    session = recorded(strategy=strategy, batches=1)
    session.batch(1, start=2.0, sink=3.4, end=3.5, rows=(10, 20))
    session.fault(2.2, "kill_executor")
    session.log().write("executor_removed", T0 + 2.3, executor="0")
    session.query(2.7, run=1, start_row=0)
    session.log().write("executor_added", T0 + 4.0, executor="2")
    (fault,) = session.tables()["faults"].itertuples()
    assert (fault.batch_running, fault.in_batch_s) == (1.0, pytest.approx(0.2))
    assert (fault.detected_s, fault.ready_s) == (pytest.approx(2.3), pytest.approx(ready))


def test_windows_are_compared_with_the_truth_word_by_word(recorded):
    """Windows 1 to 4 lie in the first episode: one is right, one lacks 2 words, one has 3 too many, and of
    one there is no result.
    """
    session = recorded()
    plan, schedule = session.plan, session.plan.schedule(T0)
    true = {window: dict(words_of_window(plan, schedule, window)) for window in range(10)}
    got = {window: dict(true[window]) for window in (1, 2, 3)}
    word = max(true[2], key=true[2].get)
    got[2][word] -= 2
    got[3][word] = got[3].get(word, 0) + 3
    windows = session.directory / "sink" / "windows"
    windows.mkdir(parents=True)
    for window, counts in got.items():
        (windows / f"{window:06}.json").write_text(json.dumps(counts))
        session.log().write("window", T0 + 2 * window + 2.4, run=0, window=window, first=True)
    found = session.tables()
    assert found["windows"].right.tolist() == [True, False, False]
    assert found["windows"].end_s.tolist() == [4.0, 6.0, 8.0]
    first = found["episodes"].iloc[0]
    words = sum(sum(true[window].values()) for window in (1, 2, 3, 4))
    assert first.emitted == words
    assert first.missing == 2 + sum(true[4].values())
    assert first.extra == 3
    assert first.counted_right == words - first.missing
    assert (first.windows, first.windows_right) == (4, 1)


def test_keys_are_compared_with_the_truth_and_each_mistake_counts_once(recorded):
    """4 keys, 10 rows/s: after the episode's 100 rows one key has one too few, and that stays so."""
    session = recorded(pipeline="running_count", keys=4)
    directory = session.directory / "sink" / "batches" / "0"
    directory.mkdir(parents=True)
    for batch, (end, wrong) in enumerate([(50, 0), (100, 1), (200, 1)]):
        counts = keys_until(session.plan, end) - np.array([wrong, 0, 0, 0])
        table = pa.table({"key": range(4), "count": counts}).replace_schema_metadata({"end_row": str(end)})
        with pa.ipc.new_file(str(directory / f"{batch:06}.arrow"), table.schema) as writer:
            writer.write_table(table)
    episodes = session.tables()["episodes"]
    assert episodes.emitted.tolist() == [80, 100]
    assert episodes.missing.tolist() == [1, 0]
    assert episodes.extra.tolist() == [0, 0]
    assert episodes.counted_right.tolist() == [79, 100]


def test_latency_is_from_the_stamp_to_the_first_time_in_the_sink(recorded):
    """Rows 20 to 99 of the episode [2, 10): row i has the stamp i/10. All are in the sink at 10, but 20 to 29
    first at 3, and again at 10: latencies 0.1 ... 1.0, and 0.1 ... 7.0.
    """
    session = recorded()
    session.batch(0, start=2.9, sink=3.0, end=3.1, rows=(20, 30))
    session.batch(1, start=9.0, sink=10.0, end=10.1, rows=(20, 100))
    latencies = [*(k / 10 for k in range(1, 11)), *(k / 10 for k in range(1, 71))]
    first = session.tables()["episodes"].iloc[0]
    assert first.latency_p50_s == pytest.approx(np.percentile(latencies, 50), abs=1e-4)
    assert first.latency_p95_s == pytest.approx(np.percentile(latencies, 95), abs=1e-4)


def test_an_episode_says_how_busy_others_were(recorded):
    """Looks at 3 and 9 lie in the episode [2, 10), the one at 10 does not."""
    session = recorded()
    for at, cores in [(1.0, 9.0), (3.0, 0.5), (9.0, 1.5), (10.0, 0.0)]:
        session.supervisor.write("others", T0 + at, cores=cores)
    assert session.tables()["episodes"].others_cores.tolist() == [1.0, 0.0]


def test_a_column_that_is_not_described_is_refused():
    with pytest.raises(KeyError, match="speed"):
        frame("faults", [{"speed": 3.0}])


def test_every_column_says_what_it_is():
    for columns in TABLES.values():
        assert all(column.meaning for column in columns)
        assert list(frame("faults", []).columns) == [column.name for column in TABLES["faults"]]
