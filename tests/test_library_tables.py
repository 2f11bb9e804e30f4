"""What the library's results look like in Python: tables without rows, swept numbers, short forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import tideover
from tests.reports.made_up import points_of, read_tables
from tideover.models.schema import TABLES
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.reports.parquet import write_tables
from tideover.reports.sweeps.points import key_tables
from tideover.scenarios import runs

SHORT = {
    "run.duration": "40s",
    "run.warmup": "10s",
    "topology.count.window": "5s",
    "run.replications": 2,
    "failures.0.at": "20s",
    "failures.0.within": "0 s",
}
QUIET = {key: value for key, value in SHORT.items() if not key.startswith("failures.")} | {"failures": []}
SPEC = {"scenario": "wordcount", "set": SHORT}


def documented(table: str) -> dict[str, str]:
    """Columns and dtypes by the table of columns, but for those that only some results have; pandas keeps
    texts as objects.
    """
    shown = [column for column in TABLES[table] if not column.optional]
    return {c.name: "object" if c.dtype == "string" else c.dtype for c in shown}


def dtypes(frame: pd.DataFrame) -> dict[str, str]:
    return {name: str(dtype) for name, dtype in frame.dtypes.items()}


# Tables without rows.


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("strategy", ["none", "rsm"])
def test_every_table_has_the_documented_columns_in_their_types(table: str, strategy: str) -> None:
    """With rows: in the documented order, and in the documented types, even where every value is undefined
    (amnesia replays nothing, so all of ``state_recovery_s`` is NaN).
    """
    found = tideover.run("wordcount", SHORT | {"strategy.kind": strategy})
    assert dtypes(getattr(found, table)) == documented(table)
    assert list(getattr(found, table)) == list(documented(table))
    assert (len(getattr(found, table)) > 0) is (table != "usage")  # there nothing is shared
    assert strategy == "rsm" or found.recoveries["state_recovery_s"].isna().all()


def test_a_run_without_failures_has_the_columns_of_one_with_failures() -> None:
    """No rows, the same columns in the same types: for a run, a comparison and a sweep."""
    run = tideover.run("wordcount", QUIET)
    assert "; no failures, 0 roots lost" in repr(run)
    assert run.headline()["time to recover, s"] is None
    grid = {"topology.sentences.rate": ["10/s"]}
    swept = tideover.sweep({"scenario": "wordcount", "set": QUIET, "grid": grid}, master=None)
    for found in (run, tideover.compare("wordcount", ["none", "rsm"], QUIET)):
        assert found.recoveries.shape == (0, len(documented("recoveries")))
        assert dtypes(found.recoveries) == documented("recoveries")
    more = {"point": "int64", "topology.sentences.rate": "float64"}
    assert dtypes(swept.recoveries) == more | documented("recoveries")
    assert len(swept.recoveries) == 0
    assert swept.recoveries["catch_up_s"].mean() is not None  # can be computed with


def test_a_timeline_that_was_left_out_has_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep over the limit of simulated seconds keeps no timeline."""
    monkeypatch.setattr("tideover.scenarios.sweeps.sweep.MOST_SECONDS", 0)
    found = tideover.sweep(SPEC | {"grid": {"run.seed": [1]}}, master=None)
    assert dtypes(found.timeline) == {"point": "int64", "run.seed": "int64"} | documented("timeline")
    assert len(found.timeline) == 0


@pytest.fixture
def failing() -> Any:
    """A sweep of which every run fails."""

    class Failing(Strategy):
        def protocol(self, world: Any) -> Any:
            raise ValueError("it cannot be done")

    STRATEGIES.register("failing")(Failing)
    runs.code.cache_clear()
    yield tideover.sweep(SPEC | {"grid": {"strategy.kind": ["failing"]}}, master=None)
    STRATEGIES.discard("failing")
    runs.code.cache_clear()


def test_runs_that_all_failed_have_every_column(failing: tideover.Sweep, tmp_path: Path) -> None:
    """What a failed run does not know is undefined: NaN, so whole numbers are floats; they are null in a
    file, which keeps their type.
    """
    frame = failing.runs
    assert list(frame) == ["point", "strategy.kind", *documented("runs")]
    assert frame["error"].str.contains("it cannot be done").all()
    assert frame["emitted"].isna().all()
    assert str(frame["emitted"].dtype) == "float64"
    write_tables(tmp_path / "out", failing.tables, parameters=failing.parameters)
    assert str(pq.read_schema(tmp_path / "out" / "runs.parquet").field("emitted").type) == "int64"


# Swept numbers.

GRID = {
    "failures.0.at": ["20 s", "1500ms", "0.5min"],
    "topology.sentences.rate": ["600/min"],
    "topology.split.tuple_size": ["1 KiB"],
    "store.bandwidth": ["2 kB/s"],
    "run.log_resolution": [None, "1 s"],
    "run.seed": [4],
    "topology.split.service": ["0.2 ms", {"kind": "exponential", "mean": "0.2 ms"}],
    "strategy.kind": ["rsm"],
}
UNITS = {
    "failures.0.at": "s",
    "topology.sentences.rate": "1/s",
    "topology.split.tuple_size": "B",
    "store.bandwidth": "B/s",
    "run.log_resolution": "s",
    "run.seed": "",
    "topology.split.service": "",
    "strategy.kind": "",
}


@pytest.fixture(scope="module")
def swept() -> tideover.Sweep:
    fixed = {key: value for key, value in SHORT.items() if key != "failures.0.at"}
    fixed |= {"run.warmup": "1s", "run.replications": 1}
    return tideover.sweep({"scenario": "wordcount", "set": fixed, "grid": GRID}, master=None)


def test_swept_quantities_are_numbers_in_their_units(swept: tideover.Sweep) -> None:
    """20 s, 1500 ms and half a minute are 20, 1.5 and 30 s; 600/min is 10/s; 1 KiB 1024 B; nothing is NaN.

    A kind stays a text, a count an integer; where one value is no quantity, all stay as they were written.
    """
    assert swept.parameters == UNITS
    for frame in (swept.recoveries, swept.runs, swept.timeline):
        first = frame.groupby("point").first()
        assert first["failures.0.at"].tolist() == [20.0] * 4 + [1.5] * 4 + [30.0] * 4
        assert set(first["topology.sentences.rate"]) == {10.0}
        assert set(first["topology.split.tuple_size"]) == {1024.0}
        assert set(first["store.bandwidth"]) == {2000.0}
        cut = frame.drop_duplicates("point")["run.log_resolution"]
        np.testing.assert_array_equal(cut, [np.nan, np.nan, 1, 1] * 3)
        assert set(first["topology.split.service"]) == {"0.2 ms", '{"kind": "exponential", "mean": "0.2 ms"}'}
        assert str(frame["run.seed"].dtype) == "int64"
        assert set(first["strategy.kind"]) == {"rsm"}


def test_swept_columns_come_first_and_parquet_says_their_units(swept: tideover.Sweep, tmp_path: Path) -> None:
    """``point``, the swept keys as listed, then what a run has; the same in the Parquet files, where numbers
    are doubles with their unit as metadata, and are read back as the same numbers.
    """
    assert list(swept.runs) == ["point", *GRID, *documented("runs")]
    write_tables(tmp_path / "out", swept.tables, parameters=swept.parameters)
    schema = pq.read_schema(tmp_path / "out" / "recoveries.parquet")
    assert schema.names == list(swept.recoveries)
    for key, unit in UNITS.items():
        field = schema.field(key)
        assert field.metadata[b"unit"].decode() == (unit or "as in the scenario")
        assert (str(field.type) == "double") == bool(unit)
    again = read_tables(tmp_path / "out")["recoveries"]
    pd.testing.assert_series_equal(again["failures.0.at"], swept.recoveries["failures.0.at"])


def test_readers_see_swept_numbers_with_their_units(swept: tideover.Sweep) -> None:
    """The table of points has the values as a file writes them, the shortest exact text of each."""
    (table,) = key_tables(points_of(swept.recoveries, swept.runs, swept.parameters))
    at, rate, size, bandwidth, cut = list(zip(*table.rows, strict=True))[:5]
    assert list(dict.fromkeys(at)) == ["20 s", "1.5 s", "30 s"]
    assert {*rate} | {*size} | {*bandwidth} == {"10/s", "1 KiB", "2 kB/s"}
    assert {*cut} == {"–", "1 s"}


def test_a_swept_key_that_is_a_column_already_is_one_column() -> None:
    """``hosts`` is a column of the runs; swept, it has no second one of the same name."""
    found = tideover.sweep(SPEC | {"grid": {"hosts": [3, 4]}}, master=None)
    assert list(found.runs) == ["point", *documented("runs")]
    assert found.recoveries.groupby("point")["hosts"].first().tolist() == [3, 4]


# Short forms.


def table_of(found: Any) -> list[dict[str, str]]:
    """The rows of the table that a notebook shows, by its header."""
    table = ElementTree.fromstring(found._repr_html_())
    head, *rows = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_a_result_shows_itself_in_a_line() -> None:
    """Scenario, strategy, seed, replications, and figures that follow from its tables."""
    found = tideover.run("wordcount", SHORT | {"strategy.kind": "rsm"})
    recovered = found.recoveries["time_to_recover_s"].mean()
    lost, wrong = found.runs["lost"].sum(), found.runs["windows_wrong"].sum()
    assert repr(found) == (
        "<Result 'word count': rsm, seed 1, 2 replications; "
        f"time to recover {recovered:.4g} s (recovered), {lost} roots lost, {wrong} wrong windows>"
    )
    (row,) = table_of(found)
    assert row["strategy"] == "rsm"
    assert row["time to recover, s"] == f"{recovered:.4g}"


def test_a_recovery_that_has_no_end_is_undefined() -> None:
    """A failure 1 s before the end, restarted after it: no mean can be given."""
    crash = {"kind": "crash_task", "at": "39 s", "restart": "5 s", "component": "count"}
    found = tideover.run("wordcount", QUIET | {"failures": [crash]})
    assert "; time to recover undefined (not recovered), " in repr(found)


def test_a_comparison_shows_a_line_a_strategy() -> None:
    """The reference first; each as its result has it."""
    found = tideover.compare("wordcount", ["source_replay", "rsm"], SHORT)
    first, *lines = repr(found).splitlines()
    assert first == "<Comparison 'word count'"
    ends = [repr(result).split("; ")[1] for result in found.results.values()]
    assert lines == [f"  source_replay: {ends[0]}".removesuffix(">"), f"  rsm: {ends[1]}"]
    assert [row["strategy"] for row in table_of(found)] == ["source_replay", "rsm"]


def test_a_sweep_shows_its_points_and_the_range_of_recoveries() -> None:
    """Points, keys, runs, and the least and greatest mean of a point."""
    found = tideover.sweep(SPEC | {"grid": {"strategy.kind": ["none", "rsm"]}}, master=None)
    means = found.recoveries.groupby("point")["time_to_recover_s"].mean()
    assert repr(found) == (
        "<Sweep 'word count': 2 points of strategy.kind; 4 runs, 0 failed; "
        f"time to recover {means.min():.4g} to {means.max():.4g} s>"
    )
    assert [row["strategy.kind"] for row in table_of(found)] == ["none", "rsm"]


def test_names_are_escaped_in_a_notebook() -> None:
    """A scenario's name may come from anywhere."""
    found = tideover.run("wordcount", SHORT | {"name": "<script>alert(1)</script>", "run.replications": 1})
    assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()
