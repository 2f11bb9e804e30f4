"""A field of a result is one entry of the schema, and everything that shows results has it from there."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from tests.sweeps import as_kept
from tideover.models.results import Result
from tideover.models.schema import RECORD, TABLES, Column, block
from tideover.reports import pages
from tideover.reports.html import render
from tideover.reports.parquet import write_tables
from tideover.reports.tables import overview
from tideover.scenarios import runs
from tideover.scenarios.loader import load
from tideover.scenarios.reference import markdown

DISK = "how long tuples went to disk"
SPILLED = Column("spilled_s", DISK, "s", undefined="no disk", record=("spilled_s",), label="spill")
PAUSE = Column("pause_s", "stage: the pause", "s", record=("stages_s", "pause"), label="paused")
ASIDE = {"record": ("ledger", "parked"), "label": "put aside", "pool": "sum"}
PARKED = Column("parked", "roots put aside", "roots", "int64", **ASIDE)
ENERGY = Column("energy_j", "energy used", "J", record=("cost", "energy_j"), label="energy", pool="mean")
TURNS = Column("turns", "how often the task got the processor", "number", "int64")
ADDED = {"recoveries": (SPILLED, PAUSE), "runs": (PARKED, ENERGY), "tasks": (TURNS,)}


@pytest.fixture(scope="module")
def measured() -> Result:
    """Two replications that computed the added fields as well, one of them not in every case."""
    found = runs.run(load("wordcount", ["strategy.kind=rsm", "run.replications=2"]))
    done = [
        replace(
            one,
            recoveries=[row | {"spilled_s": spilled, "pause_s": 1.25} for row in one.recoveries],
            ledger=one.ledger | {"parked": 3},
            cost=one.cost | {"energy_j": 7.0 + one.number},
            tasks=[row | {"turns": 11} for row in one.tasks],
        )
        for one, spilled in zip(found.replications, (2.5, None), strict=True)
    ]
    return Result(found.scenario, done, found.document)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for table, columns in ADDED.items():
        monkeypatch.setitem(TABLES, table, (*TABLES[table], *columns))


def test_a_registered_field_is_in_the_record(registered: None, measured: Result) -> None:
    """Where its entry says: on its own, in a block, and made one of both replications' figures."""
    record = json.loads(measured.to_json())
    assert [row["spilled_s"] for row in record["recoveries"]] == [2.5, None]
    assert [row["stages_s"]["pause"] for row in record["recoveries"]] == [1.25, 1.25]
    assert record["ledger"]["parked"] == 6
    assert record["cost"]["energy_j"] == 7.5


def test_a_registered_field_is_a_column_of_files(registered: None, measured: Result, tmp_path) -> None:
    """With its type, unit, meaning, and why it may be missing."""
    frames = {table: getattr(Result(measured.scenario, measured.replications), table) for table in ADDED}
    write_tables(tmp_path, frames)
    for table, columns in ADDED.items():
        schema = pq.read_schema(tmp_path / f"{table}.parquet")
        for column in columns:
            field = schema.field(column.name)
            described = {key.decode(): text.decode() for key, text in field.metadata.items()}
            wanted = {"meaning": column.meaning, "unit": column.unit, "undefined": column.undefined}
            assert described == {key: text for key, text in wanted.items() if text}
            assert str(field.type) == {"float64": "double", "int64": "int64"}[column.dtype]
    assert pq.read_table(tmp_path / "runs.parquet").column("parked").to_pylist() == [3, 3]


def test_a_registered_field_is_in_the_tables_that_readers_see(registered: None, measured: Result) -> None:
    """Under its label, in its place, with the reason why it may be undefined; and in the glossary."""
    table = overview([measured.to_dict()], brief=True)
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["spill, s"] == ("2.50 (1 of 2)",)
    assert rows["paused"] == ("1.25",)
    assert rows["put aside"] == ("6",)
    assert rows["energy"] == ("7.50",)
    places = [
        list(rows).index(name) for name in ("Its stages, s", "paused", "Other measures of the recovery")
    ]
    assert places == sorted(places)
    assert "– undefined (spill, s): no disk" in table.notes
    page = render(pages.run_page(Result(measured.scenario, measured.replications, measured.document)))
    assert all(column.meaning in page for columns in ADDED.values() for column in columns)


def test_a_registered_field_is_in_the_reference(registered: None) -> None:
    """Each with its place in the record, its unit and its meaning."""
    lines = markdown().splitlines()
    assert "| `pause_s` | `stages_s.pause` | s | stage: the pause |" in lines
    assert "| `spilled_s` | `spilled_s` | s | how long tuples went to disk; undefined if no disk |" in lines
    assert "| `turns` | – | number | how often the task got the processor |" in lines


def test_a_registered_field_is_kept_on_disk(registered: None, measured: Result) -> None:
    """What a sweep keeps of a run gives the same result again."""
    again = [as_kept(one) for one in measured.replications]
    wanted = Result(measured.scenario, measured.replications).to_json()
    assert Result(measured.scenario, again).to_json() == wanted


def test_the_record_has_the_documented_keys_and_no_others(measured: Result) -> None:
    """At the top, in each block, and in each recovery."""
    record = measured.to_dict()
    assert list(record) == [entry.name for entry in RECORD]
    for name in ("latency_ms", "end_to_end_ms", "throughput_per_s", "ledger", "windows", "cost"):
        assert list(record[name]) == [column.key for column in block("runs", name)]
    for name in ("stages_s", "state", "latency_ms", "end_to_end_ms"):
        assert list(record["recoveries"][0][name]) == [column.key for column in block("recoveries", name)]


def test_each_field_has_a_place_of_its_own_and_says_how_several_are_made_one() -> None:
    """What the record has of runs is summed, averaged, pooled, or the extreme."""
    for columns in TABLES.values():
        places = [column.record for column in columns if column.record]
        assert len(set(places)) == len(places)
    for column in TABLES["runs"]:
        assert bool(column.pool) == (len(column.record) == 2), column.name
