"""A sweep as Spark jobs: the same rows as in this process, the same bytes however Spark does it."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from typing import Any, ClassVar

import pandas as pd
import pytest

from tests.sweeps import SHORT, as_read
from tideover import api
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios import runs
from tideover.scenarios.sweeps import on_spark, survey, sweep_file
from tideover.scenarios.sweeps.dataset import Sweep
from tideover.scenarios.sweeps.sweep import sweep

pytestmark = pytest.mark.spark

SPEC = {
    "scenario": "wordcount",
    "set": SHORT,
    "grid": {"strategy.kind": ["source_replay", "rsm"], "topology.sentences.rate": ["10/s", "20/s"]},
    "replications": 2,
}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """One or two runs in each, and a few in a job."""
    monkeypatch.setattr("tideover.scenarios.sweeps.survey.CHUNK_S", 0.04)
    monkeypatch.setattr(on_spark, "JOB_S", 0.1)


@pytest.fixture(scope="module")
def reference(spark, tmp_path_factory):
    """The dataset of the sweep, undisturbed."""
    place = tmp_path_factory.mktemp("reference")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tideover.scenarios.sweeps.survey.CHUNK_S", 0.04)
        sweep(sweep_file.read(SPEC), place)
    return as_read(place)


def same(one: Sweep, other: Sweep) -> None:
    for table in ("points", "summary", "runs", "recoveries", "timeline", "tasks"):
        pd.testing.assert_frame_equal(getattr(one, table), getattr(other, table))
    assert (one.failed, one.warnings, one.to_list()) == (other.failed, other.warnings, other.to_list())
    assert one.manifest == other.manifest


def test_spark_finds_what_this_process_finds(spark, tmp_path):
    heard: list[Any] = []
    found = api.sweep(SPEC, out=tmp_path, report=lambda *said: heard.append(said))
    same(found, api.sweep(SPEC, master=None))
    assert ("simulating", 8, 8) in heard
    same(api.load(tmp_path), found)


@pytest.mark.parametrize("partitions", [1, 3])
def test_the_bytes_do_not_depend_on_jobs_and_tasks(spark, reference, tmp_path, partitions, monkeypatch):
    """All in one job or each chunk in one of its own; with points that are looked at on the executors."""
    monkeypatch.setattr(on_spark, "JOB_S", 1e9 if partitions == 1 else 0.0)
    monkeypatch.setattr(on_spark, "_PARTITIONS", partitions)
    monkeypatch.setattr(on_spark, "FEW_POINTS", 0)
    sweep(sweep_file.read(SPEC), tmp_path)
    assert as_read(tmp_path) == reference


def test_a_changed_grid_reuses_what_is_there(spark, tmp_path):
    """Old runs get the new point's number and values, and the same bytes as if they had been made anew."""
    narrow = SPEC | {"grid": SPEC["grid"] | {"strategy.kind": ["rsm"]}}
    sweep(sweep_file.read(narrow), tmp_path / "here")
    wider = SPEC | {"set": SHORT | {"name": "wider"}}
    sweep(sweep_file.read(wider), tmp_path / "here")
    sweep(sweep_file.read(wider), tmp_path / "fresh")
    fresh = as_read(tmp_path / "fresh")
    assert {path: text for path, text in as_read(tmp_path / "here").items() if path in fresh} == fresh


def test_a_run_that_several_files_have_is_taken_once(spark, tmp_path, monkeypatch):
    """The third sweep needs the one file of each of the others, and both have the runs of one strategy."""
    monkeypatch.setattr(survey, "CHUNK_S", 1e9)
    for kinds in (["none", "rsm"], ["rsm", "source_replay"], ["none", "rsm", "source_replay"]):
        grid = {"strategy.kind": kinds, "run.seed": [1]}
        found = sweep(sweep_file.read(SPEC | {"grid": grid}), tmp_path)
    assert found.runs.groupby(["point", "replication"]).size().tolist() == [1] * 6


# Runs that fail, and processes that die.


@pytest.fixture
def failing():
    """A strategy that fails, and one that ends its process. They are local: Spark gets them by value."""

    class Failing(Strategy):
        survives: ClassVar[frozenset[str]] = frozenset({"lose_state"})

        def protocol(self, world: Any) -> Any:
            raise ValueError("it cannot\nbe done")

    class Deadly(Strategy):
        def protocol(self, world: Any) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

    kinds = {"failing": Failing, "deadly": Deadly}
    for kind, one in kinds.items():
        STRATEGIES.register(kind)(one)
    runs.code.cache_clear()
    yield
    for kind in kinds:
        STRATEGIES.discard(kind)
    runs.code.cache_clear()


def test_a_failed_run_does_not_end_the_job(spark, failing, tmp_path):
    asked = sweep_file.read(SPEC | {"grid": {"strategy.kind": ["none", "failing"]}})
    found = sweep(asked, tmp_path)
    assert found.failed == [(1, n, f"replication {n}: ValueError: it cannot be done") for n in range(2)]
    assert found.points["failed"].tolist() == [0, 2]


def test_of_a_point_whose_runs_all_fail_nothing_is_said(spark, failing, tmp_path):
    """What the last sweep in this place said of it is gone."""
    sweep(sweep_file.read(SPEC | {"grid": {"strategy.kind": ["rsm"]}}), tmp_path)
    found = sweep(sweep_file.read(SPEC | {"grid": {"strategy.kind": ["failing"]}}), tmp_path)
    assert (found.points["failed"].tolist(), len(found.summary), found.warnings) == ([2], 0, [])


def test_a_run_that_ends_its_process_is_a_row_with_its_error(spark, failing, tmp_path):
    """Those that were in the same job are done all the same."""
    asked = sweep_file.read(SPEC | {"grid": {"strategy.kind": ["none", "deadly"]}, "replications": 1})
    found = sweep(asked, tmp_path)
    assert found.failed == [(1, 0, "replication 0: the process that simulated it ended")]
    assert found.runs["error"].isna().tolist() == [True, False]


KILLED = """
import json, os, signal, sys
from pathlib import Path
import tideover
from tideover.scenarios.sweeps import on_spark, survey

survey.CHUNK_S = on_spark.JOB_S = 0.04

def report(what, done, of):
    if len(list(Path(sys.argv[2]).glob("data/*.parquet"))) >= 2:
        os.kill(os.getpid(), signal.SIGKILL)

tideover.sweep(json.loads(sys.argv[1]), master="local[2,4]", data=sys.argv[2], report=report)
"""


@pytest.mark.long
def test_a_killed_driver_leaves_what_it_had_and_no_more_is_lost(spark, reference, tmp_path):
    """It is killed as soon as two chunks are there; what it wrote aside is removed by the next."""
    killed = subprocess.run([sys.executable, "-c", KILLED, json.dumps(SPEC), str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    there = {f"data/{name}": text for name, text in as_read(tmp_path / "data").items()}
    assert 2 <= len(there) < sum(path.startswith("data/") for path in reference)
    assert all(reference[path] == text for path, text in there.items())
    times = {path: (tmp_path / path).stat().st_mtime_ns for path in there}
    deadline = time.monotonic() + 60
    while subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True).stdout:
        assert time.monotonic() < deadline  # its Java goes when it sees that nobody is there
    sweep(sweep_file.read(SPEC), tmp_path)
    assert as_read(tmp_path) == reference
    assert {path: (tmp_path / path).stat().st_mtime_ns for path in there} == times


# Other file systems.


@pytest.fixture
def elsewhere(spark, tmp_path):
    """A file system that only Hadoop knows: its names stand for a directory of this machine."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    key = "fs.viewfs.mounttable.default.link./data"
    (tmp_path / "far").mkdir()
    conf.set(key, (tmp_path / "far").as_uri())
    spark.conf.set(f"spark.hadoop.{key}", (tmp_path / "far").as_uri())
    yield "viewfs://default/data/sweep"
    conf.unset(key)
    spark.conf.unset(f"spark.hadoop.{key}")


def test_any_file_system_of_hadoops_holds_a_dataset(spark, reference, elsewhere, tmp_path):
    found = sweep(sweep_file.read(SPEC), elsewhere)
    far = tmp_path / "far" / "sweep"
    kept = {path: text for path, text in as_read(far).items() if not path.endswith(".crc")}
    assert kept == reference
    assert len(found.points) == 4
    chunk = next((far / "data").glob("*.parquet"))
    before = chunk.read_bytes()
    chunk.unlink()
    assert len(sweep(sweep_file.read(SPEC), elsewhere).summary) == len(found.summary)
    assert chunk.read_bytes() == before
    # what is damaged is found by the manifest, and without it by the pages' own checksums
    second = sorted((far / "data").glob("*.parquet"))[1]
    summary = next((far / "summary").glob("*.parquet"))
    for paths, manifest in (((chunk, summary), True), ((second,), False)):
        for path in paths:
            path.write_bytes(path.read_bytes()[:-30])
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's own
        if not manifest:
            (far / "manifest.json").unlink()
        with pytest.warns(UserWarning, match="damaged") as told:
            sweep(sweep_file.read(SPEC), elsewhere)
        said = "\n".join(str(one.message) for one in told)
        assert all(f"damaged: {path.parent.name}/{path.name}" in said for path in paths)
        kept = {path: text for path, text in as_read(far).items() if not path.endswith(".crc")}
        assert kept == reference


def test_points_are_looked_at_on_the_executors_as_they_are_here(spark, tmp_path):
    recipe = sweep_file.read(SPEC | {"grid": {"run.seed": list(range(40))}})
    here = list(survey.survey(recipe, range(40), runs.code()))
    with on_spark.on_spark(nullcontext(spark), str(tmp_path), print) as engine:
        found = engine.survey(recipe, range(40), lambda what, done: None)
        assert sorted(found, key=lambda one: one[0]) == here
