"""A sweep's dataset: whole runs, found again by their names, the same bytes whatever happened on the way."""

import inspect
import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars
import pyarrow.parquet as pq
import pytest

from tests.sweeps import SHORT, content, done
from tideover.models.results import Result
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios import runs
from tideover.scenarios.loader import load
from tideover.scenarios.sweeps import engine, files, rows, sweep_file
from tideover.scenarios.sweeps.dataset import Sweep
from tideover.scenarios.sweeps.engine import Engine
from tideover.scenarios.sweeps.files import ASIDE, Damaged, Files, HadoopFiles, NoDataset, aside
from tideover.scenarios.sweeps.reduction import METRICS
from tideover.scenarios.sweeps.sweep import RunsFailed, complete
from tideover.scenarios.sweeps.sweep_file import Recipe

CORES = {"machines": {"node": {"count": 2, "cores": 2}}}
RATE = "topology.sentences.rate"
KIND = "strategy.kind"
Runs = list[tuple[str, int]]


def recipe(
    kinds: tuple[str, ...] = ("none", "rsm"), rates: tuple[str, ...] = ("10/s", "20/s"), **more: Any
) -> Recipe:
    spec = {"scenario": "wordcount", "set": SHORT, "replications": 2}
    return sweep_file.read(spec | {"grid": {"strategy.kind": list(kinds), RATE: list(rates)}} | more)


@pytest.fixture(autouse=True, scope="module")
def small_chunks():
    """One run in each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tideover.scenarios.sweeps.survey.CHUNK_S", 0.01)
        yield


@pytest.fixture
def simulated(monkeypatch):
    """Which runs were simulated: strategy and replication."""
    made: Runs = []
    really = engine.simulate

    def noted(scenario: Any, replication: int) -> Any:
        made.append((scenario.strategy.kind, replication))
        return really(scenario, replication)

    monkeypatch.setattr(engine, "simulate", noted)
    return made


# A run as a row.


@pytest.mark.parametrize(
    "settings",
    [{}, {"strategy.kind": "rsm", "queues": 1000}, {"strategy.kind": "none", "hosts": CORES}],
)
def test_a_row_gives_the_replication_back(settings, tmp_path):
    scenario = load("wordcount", SHORT | settings | {"run.replications": 2})
    spec = {"scenario": "wordcount", "set": SHORT | settings}
    found = done(sweep_file.read(spec | {"grid": {"run.seed": [1]}, "replications": 2}), tmp_path)
    again = found.result(0)
    first = Result(scenario, [simulate(scenario, number) for number in range(2)])
    assert again.to_dict() | {"scenario": 0} == first.to_dict() | {"scenario": 0}
    for table in ("recoveries", "runs", "timeline", "tasks", "usage"):
        both = [getattr(one, table).drop(columns="scenario_json", errors="ignore") for one in (again, first)]
        pd.testing.assert_frame_equal(*both)


def test_a_point_says_what_run_says(tmp_path):
    found = done(recipe(), tmp_path)
    text = [f"{key}={value}" for key, value in SHORT.items()]
    last = list(found.records())[-1]
    alone = runs.run(load("wordcount", [*text, "strategy.kind=rsm", f"{RATE}=20/s", "run.replications=2"]))
    said = alone.to_dict()
    del said["warnings"]
    assert last.items() >= said.items()
    assert last["swept"] == {"strategy.kind": "rsm", RATE: "20/s"}
    assert (last["point"], last["errors"]) == (3, [])


def test_a_run_has_the_name_of_what_its_result_depends_on():
    base = load("wordcount")
    model = runs.code()
    same = load("wordcount", ["name=another", "run.replications=50"])
    assert runs.digest(same, model) == runs.digest(base, model)
    others = [load("wordcount", [setting]) for setting in ("run.seed=2", "strategy.kind=rsm", "hosts=9")]
    names = {runs.digest(one, model) for one in [base, *others]} | {runs.digest(base, "another code")}
    assert len(names) == 5


def test_a_run_has_another_name_with_another_engine(tmp_path, monkeypatch):
    """Whatever of it changes: what is kept of the one before is not taken for its own."""
    for room in ("sim", "models"):
        shutil.copytree(Path(runs.__file__).parents[1] / room, tmp_path / room)
    monkeypatch.setattr(runs, "files", lambda package: tmp_path)
    names = [runs.code()]
    assert runs.code.__wrapped__() == names[0]
    for source in ("models/strategies/rsm.py", "sim/plane/buffers.c", "sim/plane/plane.h"):
        (tmp_path / source).write_bytes((tmp_path / source).read_bytes() + b"\n")
        names.append(runs.code.__wrapped__())
    assert len({*names}) == 4


# The same bytes, whatever happened.


def test_a_sweep_that_is_done_is_not_done_again(tmp_path, simulated):
    first = done(recipe(), tmp_path)
    assert sorted(simulated) == sorted([(kind, n) for kind in ("none", "rsm") for n in (0, 1)] * 2)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = done(recipe(), tmp_path)
    assert (len(simulated), again.manifest) == (8, first.manifest)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_what_a_dead_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    dead = aside().replace(f"-{os.getpid()}-", f"-{int(ended.stdout)}-")
    for name in (dead, aside(), f"{ASIDE}another-machine-1-00"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "part.parquet").write_bytes(b"half")
    done(recipe(), tmp_path)
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith(ASIDE)]
    assert len(left) == 2
    assert dead not in left


def test_two_sweeps_at_once_in_one_place_end_with_the_same_bytes(tmp_path):
    """As processes of their own, started together."""
    spec = {"scenario": "wordcount", "set": SHORT, "grid": {RATE: ["10/s", "20/s"]}, "replications": 2}
    done(sweep_file.read(spec), tmp_path / "alone")
    code = (
        "import json, sys, tideover\nfrom tideover.scenarios.sweeps import survey\nsurvey.CHUNK_S = 0.01\n"
        "tideover.sweep(json.loads(sys.argv[1]), master=None, data=sys.argv[2])"
    )
    asked = [sys.executable, "-c", code, json.dumps(spec), str(tmp_path / "both")]
    both = [subprocess.Popen(asked) for _ in range(2)]
    assert [one.wait(120) for one in both] == [0, 0]
    assert content(tmp_path / "both") == content(tmp_path / "alone")


def test_a_changed_grid_reuses_the_runs_that_it_shares(tmp_path, simulated):
    """Another strategy, another order, a new name: only what is new is simulated, and the bytes are those of
    a sweep that never knew the old ones.
    """
    done(recipe(), tmp_path / "here")
    simulated.clear()
    wider = recipe(("source_replay", "rsm", "none"), ("20/s", "10/s"), set=SHORT | {"name": "wider"})
    done(wider, tmp_path / "here")
    assert sorted(simulated) == sorted([("source_replay", n) for n in (0, 1)] * 2)
    done(wider, tmp_path / "fresh")
    fresh = content(tmp_path / "fresh")
    assert {path: text for path, text in content(tmp_path / "here").items() if path in fresh} == fresh
    assert set(Sweep.open(tmp_path / "here").runs["scenario"]) == {"wider"}


def test_more_replications_add_to_those_that_are_there(tmp_path, simulated):
    done(recipe(), tmp_path)
    simulated.clear()
    done(recipe(replications=3), tmp_path)
    assert sorted(simulated) == sorted([(kind, 2) for kind in ("none", "rsm")] * 2)


# Failed runs.


@pytest.fixture
def failing():
    """A strategy that fails as long as the list says so."""
    asked = [True]

    class Failing(Strategy):
        def protocol(self, world: Any) -> Any:
            if asked[0]:
                raise ValueError("it cannot\nbe done")
            return super().protocol(world)

    STRATEGIES.register("failing")(Failing)
    runs.code.cache_clear()
    yield asked
    STRATEGIES.discard("failing")
    runs.code.cache_clear()


def test_a_failed_run_is_a_row_with_its_error(failing, tmp_path):
    found = done(recipe(("none", "failing"), ("10/s",)), tmp_path)
    frame = found.runs
    assert list(zip(frame["point"], frame["replication"], strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert frame["error"].isna().tolist() == [True, True, False, False]
    assert frame["error"].iloc[2] == "replication 0: ValueError: it cannot be done"
    assert frame["emitted"].isna().tolist() == [False, False, True, True]
    assert frame["scenario_json"].notna().all()
    assert found.failed == [(1, n, f"replication {n}: ValueError: it cannot be done") for n in (0, 1)]
    assert found.points["failed"].tolist() == [0, 2]
    assert [len(record["errors"]) for record in found.records()] == [0, 2]


def test_failed_runs_are_done_again_only_if_that_is_asked(failing, tmp_path, simulated):
    asked = recipe(("none", "failing"), ("10/s",))
    done(asked, tmp_path)
    simulated.clear()
    failing[0] = False
    assert len(done(asked, tmp_path).failed) == 2
    assert simulated == []
    done(asked, tmp_path, retry_failed=True)
    assert simulated == [("failing", 0), ("failing", 1)]


def test_fail_fast_ends_with_the_first_failed_run(failing, tmp_path, simulated):
    with pytest.raises(RunsFailed):
        done(recipe(("failing", "none"), ("10/s",)), tmp_path, fail_fast=True)
    assert {kind for kind, _ in simulated} == {"failing"}
    with pytest.raises(NoDataset, match="has not ended"):
        Sweep.open(tmp_path)


# Readers.


def test_others_read_it_by_its_manifest(tmp_path):
    """DuckDB, Polars and pandas know nothing of Tideover; all find what ``Sweep.open`` does."""
    done(recipe(), tmp_path)
    known = json.loads((tmp_path / "manifest.json").read_text())
    paths = [str(tmp_path / chunk["file"]) for chunk in known["chunks"]]
    found = Sweep.open(tmp_path)
    emitted = int(found.runs["emitted"].sum())
    assert duckdb.sql("SELECT sum(emitted) FROM read_parquet($f)", params={"f": paths}).fetchall() == [
        (emitted,)
    ]
    query = "SELECT sum(r.catch_up_s) FROM (SELECT unnest(recoveries) AS r FROM read_parquet($f))"
    ((caught_up,),) = duckdb.sql(query, params={"f": paths}).fetchall()
    assert caught_up == pytest.approx(found.recoveries["catch_up_s"].sum())
    lazy = polars.scan_parquet(paths).select("point", "recoveries").explode("recoveries").unnest("recoveries")
    assert lazy.collect()["catch_up_s"].sum() == pytest.approx(caught_up)
    whole = pd.concat(map(pd.read_parquet, paths))
    assert int(whole["emitted"].sum()) == emitted
    described = {column["name"]: column for column in known["columns"]}
    assert set(whole.columns) == {name for name in described if "." not in name or name in known["swept"]}
    assert described["recoveries.catch_up_s"]["unit"] == "s"
    assert described[RATE]["unit"] == "1/s"


def test_another_file_system_is_asked_for_all_that_a_directory_is():
    """What looks into this machine's directory is not inherited by what is kept elsewhere."""
    own = {name: inspect.getsource(each) for name, each in vars(Files).items() if inspect.isfunction(each)}
    local = {name for name, source in own.items() if "self.directory" in source}
    assert {"read", "remove", "table", "_create"} <= local <= vars(HadoopFiles).keys()


def test_a_place_without_a_dataset_is_refused(tmp_path):
    with pytest.raises(NoDataset, match=r"holds no dataset .*manifest\.json is missing"):
        Sweep.open(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"format": rows.FORMAT}))
    with pytest.raises(NoDataset, match="is not a manifest of Tideover"):
        Sweep.open(tmp_path)


def test_a_dataset_of_other_columns_is_one_of_another_version(tmp_path):
    """One column less, or one of another type; what is said of them makes no difference."""
    done(recipe(("none",), ("10/s",)), tmp_path)
    manifest = tmp_path / "manifest.json"
    kept = json.loads(manifest.read_text())
    kept["columns"][-1]["meaning"] = "in other words"
    manifest.write_text(json.dumps(kept))
    assert len(Sweep.open(tmp_path).runs) == 2
    for columns in (kept["columns"][:-1], [*kept["columns"][:-1], kept["columns"][-1] | {"type": "list"}]):
        manifest.write_text(json.dumps(kept | {"columns": columns}))
        with pytest.raises(NoDataset, match="another version of Tideover wrote it"):
            Sweep.open(tmp_path)


def test_a_sweep_of_many_seconds_keeps_no_timeline(tmp_path, monkeypatch):
    monkeypatch.setattr("tideover.scenarios.sweeps.sweep.MOST_SECONDS", 300)
    found = done(recipe(), tmp_path)
    assert (len(found.timeline), len(found.runs)) == (0, 8)
    assert set(rows.LISTS) <= set(found.scan().column_names)


# Summaries.


def test_differences_are_those_of_pairs_of_replications(tmp_path):
    """Between strategies by themselves, between other values when asked for; each as by hand."""
    found = done(recipe(("none", "rsm"), ("10/s", "20/s"), replications=4), tmp_path)
    for key, frame in ((KIND, found.differences), (RATE, found.differences_of(RATE))):
        other = RATE if key == KIND else KIND
        assert len(frame) == 2 * 8
        for row in frame.to_dict("records"):
            table = found.recoveries if row["metric"] in METRICS["recoveries"] else found.runs
            mine = table[table[other] == row[other]]
            sides = [mine[mine[key].astype(str) == row[name]] for name in ("first", "second")]
            values = [side.set_index("replication")[row["metric"]] for side in sides]
            by_hand = values[0] - values[1]
            assert row["n"] + row["undefined"] == 4
            if row["n"] == 4:
                assert row["mean"] == pytest.approx(by_hand.mean())
                assert row["std"] == pytest.approx(by_hand.std())
    with pytest.raises(KeyError, match="was not swept"):
        found.differences_of("run.seed")


# What a disk or a copy has damaged.


def two() -> Recipe:
    return recipe(("none",), ("10/s", "11/s"), replications=1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("whole")
    done(two(), place)
    return place


@pytest.fixture
def place(whole, tmp_path):
    """A copy."""
    shutil.copytree(whole, tmp_path / "place")
    return tmp_path / "place"


def flip(path: Path, at: int) -> None:
    """Change one byte."""
    found = bytearray(path.read_bytes())
    found[at] ^= 0x10
    path.write_bytes(found)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def change_a_value(path: Path) -> None:
    """Change a byte such that a reader finds another number there, and no fault."""
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    before = pq.read_table(path)["emitted"]
    flip(path, columns["emitted"].data_page_offset - 8)  # where its page of distinct values ends: an int64
    assert pq.read_table(path)["emitted"] != before


def test_any_changed_byte_of_any_file_is_found_and_the_file_named(place):
    """Each file at twelve places from its first to its last byte, headers, pages and footers."""
    files = sorted(place.rglob("*.parquet"))
    assert {path.parent.name for path in files} == {"data", "points", "summary"}
    for path in files:
        before = path.read_bytes()
        for part in range(12):
            flip(path, (len(before) - 1) * part // 11)
            with pytest.raises(Damaged, match=f"{path.parent.name}/{path.name}"):
                Sweep.open(place)
            path.write_bytes(before)
    assert Sweep.open(place).manifest.complete


@pytest.mark.parametrize(
    ("folder", "runs"), [("data", 1), ("summary", 0), ("points", 0)], ids=lambda v: str(v)
)
@pytest.mark.parametrize(
    "damage",
    [cut, lambda path: flip(path, 100), lambda path: path.write_bytes(b"not ours"), Path.unlink],
    ids=["cut", "changed", "no Parquet", "gone"],
)
def test_what_is_damaged_is_named_and_alone_made_anew(whole, place, simulated, folder, runs, damage):
    path = next((place / folder).iterdir())
    damage(path)
    with pytest.raises(Damaged, match=f"{folder}/{path.name}"):
        Sweep.open(place)
    warned = pytest.warns(UserWarning, match=f"damaged: {folder}/{path.name}")
    with warned if path.exists() else nullcontext():
        done(two(), place)
    assert len(simulated) == runs
    assert content(place) == content(whole)


@pytest.mark.parametrize("folder", ["data", "summary"])
def test_a_file_in_the_place_of_a_folder_is_damage(place, folder):
    """As a copy leaves it that knows no folders: what was in it is missing."""
    shutil.rmtree(place / folder)
    (place / folder).touch()
    with pytest.raises(Damaged, match=f"damaged or missing: {folder}/"):
        Sweep.open(place)


def test_a_manifest_that_is_cut_is_named_and_made_anew_from_the_data(whole, place, simulated):
    cut(place / files.NAME)  # the line end: it still is one
    assert Sweep.open(place).manifest.complete
    cut(place / files.NAME)
    with pytest.raises(Damaged, match=r"manifest\.json: is cut or damaged"):
        Sweep.open(place)
    with pytest.warns(UserWarning, match=r"manifest\.json: is cut or damaged .* is made anew"):
        done(two(), place)
    assert not simulated
    assert content(place) == content(whole)


def test_another_programs_manifest_is_left_alone(place):
    (place / files.NAME).write_text("[]\n")
    with pytest.raises(NoDataset, match="is not a manifest of Tideover; give another directory"):
        done(two(), place)
    assert (place / files.NAME).read_text() == "[]\n"


def test_without_a_manifest_the_pages_own_checksums_tell(whole, place, simulated):
    """And what is said of points is made anew from the runs."""
    (place / files.NAME).unlink()
    shutil.rmtree(place / "points")
    path = next((place / "data").iterdir())
    change_a_value(path)
    with pytest.warns(UserWarning, match=f"damaged: data/{path.name}; its runs are simulated anew"):
        done(two(), place)
    assert len(simulated) == 1
    assert content(place) == content(whole)


def test_a_sweep_that_was_interrupted_knows_what_it_has_written(whole, tmp_path, simulated):
    """Its manifest has the checksum of the one chunk that was done, so a changed footer is found, too."""

    def end(what: str, runs: float, total: int) -> None:
        if list(tmp_path.glob("data/*.parquet")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete(two(), Engine(Files(tmp_path)), report=end)
    known = json.loads((tmp_path / files.NAME).read_text())
    (path,) = (tmp_path / "data").iterdir()
    assert {chunk["file"]: bool(chunk["sha256"]) for chunk in known["chunks"]}[f"data/{path.name}"]
    assert sum(bool(chunk["sha256"]) for chunk in known["chunks"]) == 1
    flip(path, path.stat().st_size - 200)
    simulated.clear()
    with pytest.warns(UserWarning, match=f"damaged: data/{path.name}"):
        done(two(), tmp_path)
    assert len(simulated) == 2
    assert content(tmp_path) == content(whole)


def test_no_run_is_taken_over_from_a_damaged_file(place, simulated, tmp_path):
    """Another grid, which shares one run with the one that is there: a page of it was changed."""
    for path in (place / "data").iterdir():
        change_a_value(path)
    (place / files.NAME).unlink()
    asked = recipe(("none",), ("12/s", "10/s"), replications=1, set=SHORT | {"name": "another"})
    with pytest.warns(UserWarning, match="damaged: data/"):
        found = done(asked, place)
    assert len(simulated) == 2
    assert found.runs.equals(done(asked, tmp_path / "fresh").runs)
