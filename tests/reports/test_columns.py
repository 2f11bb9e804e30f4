"""The table of columns is complete, Parquet carries it, and a directory of files belongs to one command."""

import pyarrow.parquet as pq
import pytest

from tests.reports.made_up import fake_result, joined
from tideover.reports import columns
from tideover.reports.columns import TABLES, UnknownColumn, find
from tideover.reports.parquet import MARKER, prepare, to_arrow, write_tables


@pytest.fixture(scope="module")
def runs():
    return fake_result().runs


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


def test_an_undocumented_column_is_refused(runs):
    with pytest.raises(UnknownColumn, match="surprise"):
        to_arrow("runs", runs.assign(surprise=1))


def test_swept_keys_and_point_are_known():
    assert find("runs", "failures.0.at").meaning == "swept value of this key of the scenario"
    assert find("runs", "point") is columns.POINT
    assert find("runs", "seedling", {"seedling": ""}).name == "seedling"


def test_every_recovery_measure_says_when_it_is_undefined():
    for name in ("state_recovery_s", "catch_up_s", "throughput_90_s", "output_gap_s", "catch_up_stage_s"):
        assert find("recoveries", name).undefined


# Parquet


def test_equal_frames_give_equal_bytes_whose_fields_carry_meaning_and_unit(tmp_path, four):
    tables = {name: joined(four, name) for name in TABLES}
    first = write_tables(tmp_path / "a", tables)
    again = write_tables(tmp_path / "b", {name: t.copy() for name, t in tables.items()})
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    for field in (field for path in first for field in pq.read_schema(path)):
        described = field.metadata or {}
        assert described[b"meaning"]
        assert described.get(b"unit") or str(field.type) == "string"


def test_the_order_of_columns_does_not_matter(runs):
    assert to_arrow("runs", runs[runs.columns[::-1]]).equals(to_arrow("runs", runs), check_metadata=True)


def test_a_sweeps_columns_come_first_and_numbers_stay_numbers(reproduction):
    recoveries = reproduction.recoveries.assign(**{"strategy.checkpoint_interval": 2.5})
    table = to_arrow("recoveries", recoveries)
    assert table.column_names[:2] == ["point", "strategy.kind"]
    assert str(table.schema.field("strategy.checkpoint_interval").type) == "double"
    assert str(table.schema.field("strategy.kind").type) == "string"


def test_a_failed_run_has_nulls():
    runs = fake_result(replications=2).runs
    runs.loc[1, "error"] = "ValueError: it broke"
    numbers = runs.select_dtypes("number").columns.difference(["seed", "replication"])
    runs.loc[1, numbers] = None
    table = to_arrow("runs", runs)
    assert table.column("emitted").to_pylist()[1] is None
    assert table.column("cpu_s").to_pylist()[1] is None
    assert str(table.schema.field("emitted").type) == "int64"


# Directories


def test_somebody_elses_directory_is_left_alone(tmp_path, runs):
    (tmp_path / "chapter.tex").write_text("years of work")
    with pytest.raises(ValueError, match="not empty and was not written by Tideover"):
        write_tables(tmp_path, {"runs": runs})
    assert [path.name for path in tmp_path.iterdir()] == ["chapter.tex"]


def test_our_own_directory_and_an_empty_one_may_be_written_again(tmp_path, runs):
    for _ in range(2):
        write_tables(tmp_path, {"runs": runs})
    assert sorted(path.name for path in tmp_path.iterdir()) == [MARKER, "runs.parquet"]


def test_a_directory_belongs_to_one_command(tmp_path, runs):
    """What another command wrote is neither overwritten nor mixed with; the library takes any mark."""
    out = tmp_path / "out"
    prepare(out, "run")
    prepare(out, "sweep")  # the run left nothing
    write_tables(out, {"runs": runs})
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(ValueError, match=r"out: holds what tideover sweep wrote; name another directory"):
        prepare(out, "calibrate --from")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    prepare(out, "sweep")
    prepare(out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_what_is_no_directory_is_told(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(ValueError, match="not a directory"):
        prepare(tmp_path / "out")
