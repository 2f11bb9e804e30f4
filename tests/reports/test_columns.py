"""The table of columns is complete, and Parquet carries it."""

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tideover.reports import columns
from tideover.reports.columns import TABLES, UnknownColumn, find
from tideover.reports.parquet import MARKER, prepare, read_tables, to_arrow, write_tables


@pytest.mark.parametrize("table", TABLES)
def test_every_column_written_is_documented_and_vice_versa(four, joined, table):
    assert set(joined(four, table).columns) == {c.name for c in TABLES[table] if not c.optional}


@pytest.mark.parametrize("table", TABLES)
def test_names_are_unique_and_meanings_and_units_are_there(table):
    names = [column.name for column in TABLES[table]]
    assert len(names) == len(set(names))
    for column in TABLES[table]:
        assert len(column.meaning) > 5
        assert column.dtype == "string" or column.unit, f"{column.name} is a number without a unit"


@pytest.mark.parametrize(
    ("ending", "unit"), [("_per_s", "tuples/s"), ("_ms", "ms"), ("_bytes", "B"), ("_s", "s")]
)
def test_the_unit_is_that_of_the_name(ending, unit):
    for column in (c for table in TABLES.values() for c in table):
        if column.name.endswith(ending) and not (ending == "_s" and column.name.endswith("_per_s")):
            assert column.unit == unit, column.name


def test_an_undocumented_column_is_refused(make_result):
    frame = make_result().runs.assign(surprise=1)
    with pytest.raises(UnknownColumn, match="surprise"):
        to_arrow("runs", frame)


def test_swept_keys_and_point_are_known():
    assert find("runs", "failures.0.at").meaning == "swept value of this key of the scenario"
    assert find("runs", "point") is columns.POINT
    assert find("runs", "seedling", {"seedling": ""}).name == "seedling"


def test_every_recovery_measure_says_when_it_is_undefined():
    for name in ("state_recovery_s", "catch_up_s", "throughput_90_s", "output_gap_s", "catch_up_stage_s"):
        assert find("recoveries", name).undefined


# Parquet


def _tables(results, joined):
    return {name: joined(results, name) for name in TABLES}


def test_every_field_carries_its_meaning_and_unit(tmp_path, four, joined):
    for path in write_tables(tmp_path / "out", _tables(four, joined)):
        for field in pq.read_schema(path):
            described = field.metadata or {}
            assert described[b"meaning"]
            assert described.get(b"unit") or str(field.type) == "string"


def test_equal_frames_give_equal_bytes(tmp_path, four, joined):
    first = write_tables(tmp_path / "a", _tables(four, joined))
    again = write_tables(tmp_path / "b", {name: t.copy() for name, t in _tables(four, joined).items()})
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_the_order_of_columns_does_not_matter(make_result):
    frame = make_result().runs
    assert to_arrow("runs", frame[frame.columns[::-1]]).equals(to_arrow("runs", frame), check_metadata=True)


def test_what_was_written_is_read_back(tmp_path, four, joined):
    tables = _tables(four, joined)
    write_tables(tmp_path / "out", tables)
    found = read_tables(tmp_path / "out")
    assert list(found) == list(TABLES)
    for name, frame in tables.items():
        ordered = frame[[c.name for c in TABLES[name] if not c.optional]]
        pd.testing.assert_frame_equal(found[name], ordered, check_dtype=False)


def test_a_sweeps_columns_come_first_and_numbers_stay_numbers(reproduction):
    recoveries = reproduction[0].assign(**{"strategy.checkpoint_interval": 2.5})
    table = to_arrow("recoveries", recoveries)
    assert table.column_names[:2] == ["point", "strategy.kind"]
    assert str(table.schema.field("strategy.checkpoint_interval").type) == "double"
    assert str(table.schema.field("strategy.kind").type) == "string"


def test_a_failed_run_has_nulls(make_result):
    runs = make_result(replications=2).runs
    runs.loc[1, "error"] = "ValueError: it broke"
    numbers = runs.select_dtypes("number").columns.difference(["seed", "replication"])
    runs.loc[1, numbers] = None
    table = to_arrow("runs", runs)
    assert table.column("emitted").to_pylist()[1] is None
    assert table.column("cpu_s").to_pylist()[1] is None
    assert str(table.schema.field("emitted").type) == "int64"


def test_somebody_elses_directory_is_left_alone(tmp_path, make_result):
    theirs = tmp_path / "thesis"
    theirs.mkdir()
    (theirs / "chapter.tex").write_text("years of work")
    with pytest.raises(ValueError, match="not empty and was not written by Tideover"):
        write_tables(theirs, {"runs": make_result().runs})
    assert [path.name for path in theirs.iterdir()] == ["chapter.tex"]


def test_our_own_directory_and_an_empty_one_may_be_written_again(tmp_path, make_result):
    empty = tmp_path / "empty"
    empty.mkdir()
    for _ in range(2):
        write_tables(empty, {"runs": make_result().runs})
    assert sorted(path.name for path in empty.iterdir()) == [MARKER, "runs.parquet"]


def test_a_directory_belongs_to_one_command(tmp_path, make_result):
    """What another command wrote is neither overwritten nor mixed with; the library takes any mark."""
    out = tmp_path / "out"
    prepare(out, "run")
    prepare(out, "sweep")  # the run left nothing
    write_tables(out, {"runs": make_result().runs})
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(ValueError, match=r"out: holds what tideover sweep wrote; name another directory"):
        prepare(out, "calibrate --from")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    prepare(out, "sweep")
    prepare(out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(ValueError, match="not a directory"):
        prepare(tmp_path / "out")


def test_reading_a_directory_without_tables_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"runs\.parquet"):
        read_tables(tmp_path)
