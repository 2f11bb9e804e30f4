"""Grids are checked before anything runs; a sweep's rows depend on nothing but what was asked."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tideover import api
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.reports.parquet import write_tables
from tideover.scenarios import library, runs, sweep, work
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.scenarios.sweeps import grid

SHORT = [
    "run.duration=40s",
    "run.warmup=10s",
    "failures.0.at=20s",
    "failures.0.within=5s",
    "topology.count.window=5s",
]
SPEC = {
    "scenario": "wordcount",
    "set": dict(setting.split("=") for setting in SHORT),
    "grid": {"strategy.kind": ["source_replay", "rsm"], "topology.sentences.rate": ["10/s", "20/s"]},
    "replications": 3,
}
FILE = """\
scenario: wordcount
set: {run.duration: 180 s}
grid:
  strategy.kind: [source_replay, rsm]
  topology.sentences.rate: [10/s, 20/s]
  failures.0.at:
    - 65 s
    - 75 s
replications: 3
"""


def written(found: sweep.Sweep, directory: Path) -> dict[str, bytes]:
    paths = write_tables(directory, found.tables, parameters=found.parameters)
    files = {path.name: path.read_bytes() for path in paths}
    return files | {"json": json.dumps(found.to_list()).encode()}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The sweep in this process, without Spark and without anything kept."""
    return written(api.sweep(SPEC, master=None), tmp_path_factory.mktemp("reference"))


# Grids.


def read_file(tmp_path: Path, text: str, *settings: str) -> grid.Grid:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    return grid.read(str(path), settings)


def test_points_are_the_product_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = read_file(tmp_path, FILE)
    units = {"strategy.kind": "", "topology.sentences.rate": "1/s", "failures.0.at": "s"}
    assert (list(found.parameters), found.parameters) == (list(units), units)
    assert [tuple(point.values.values()) for point in found.points] == [
        (kind, rate, at)
        for kind in ("source_replay", "rsm")
        for rate in ("10/s", "20/s")
        for at in ("65 s", "75 s")
    ]
    assert [point.number for point in found.points] == list(range(8))
    assert found.runs == 24
    last = found.points[-1].scenario
    expected = ["strategy.kind=rsm", "topology.sentences.rate=20/s", "failures.0.at=75s"]
    same = load("wordcount", ["run.duration=180s", "run.replications=3", *expected])
    assert last == same


def test_the_command_line_changes_keys_of_all_points_and_values_of_the_grid(tmp_path: Path) -> None:
    found = read_file(tmp_path, FILE, "failures.0.at=[70 s]", "run.seed=9", "strategy.kind=none")
    assert [tuple(point.values.values()) for point in found.points] == [
        ("none", "10/s", "70 s"),
        ("none", "20/s", "70 s"),
    ]
    assert {point.scenario.run.seed for point in found.points} == {9}


def test_the_scenario_may_be_a_file_beside_it_or_stand_inside(tmp_path: Path) -> None:
    inside = tmp_path / "deeper"
    inside.mkdir()
    text = (Path(runs.__file__).parent / "library" / "wordcount.yaml").read_text()
    (inside / "mine.yaml").write_text(text)
    (inside / "sweep.yaml").write_text("scenario: mine.yaml\ngrid: {run.seed: [1, 2]}\n")
    beside = grid.read(inside / "sweep.yaml")
    indented = "".join(f"  {line}\n" for line in text.splitlines())
    within = read_file(tmp_path, f"scenario:\n{indented}grid: {{run.seed: [1, 2]}}\n")
    assert [p.scenario for p in beside.points] == [p.scenario for p in within.points]


# What is replaced in the file, by what, then line, key, part of the message.
BROKEN = [
    ("scenario: wordcount", "scenario: wordcont", 1, "scenario", "did you mean 'wordcount'"),
    ("scenario: wordcount", "scenario: ./no.yaml", 1, "scenario", "does not exist"),
    ("scenario: wordcount", "scenario: 3", 1, "scenario", "neither a name nor a path"),
    ("scenario: wordcount\n", "", 1, "scenario", "is missing"),
    ("set:", "sett:", 2, "sett", "did you mean 'set'"),
    ("180 s", "180", 2, "set.run.duration", "has no unit"),
    ("run.duration", "run.durration", 2, "set.run.durration", "did you mean 'duration'"),
    ("{run.duration: 180 s}", "[1]", 2, "set", "must be a mapping"),
    ("rsm]", "rms]", 4, "grid.strategy.kind", "did you mean 'rsm'"),
    ("20/s]", "20]", 5, "grid.topology.sentences.rate", "has no unit"),
    ("[10/s, 20/s]", "10/s", 5, "grid.topology.sentences.rate", "must be a list"),
    ("[10/s, 20/s]", "[]", 5, "grid.topology.sentences.rate", "an empty list"),
    ("20/s]", "10/s]", 5, "grid.topology.sentences.rate", "twice"),
    ("sentences.rate", "sentence.rate", 5, "grid.topology.sentence.rate", "did you mean 'sentences'"),
    ("- 75 s", "- 200 s", 8, "grid.failures.0.at", "not within the run"),
    ("failures.0", "failures.1", 7, "grid.failures.1.at", "no entry '1'"),
    ("replications: 3", "replications: 0", 9, "replications", "at least 1"),
    ("replications: 3", "seed: -1", 9, "seed", "at least 0"),
    ("replications: 3", "replications: 3\nreplications: 4", 10, "replications", "given twice"),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "says"), BROKEN)
def test_a_broken_sweep_file_is_refused_in_its_line(
    old: str, new: str, line: int, key: str, says: str, tmp_path: Path
) -> None:
    assert FILE.count(old) == 1
    with pytest.raises(ScenarioError) as caught:
        read_file(tmp_path, FILE.replace(old, new))
    found = caught.value.problems
    assert any((p.line, p.key) == (line, key) and says in p.message for p in found), str(caught.value)
    assert all(p.file == str(tmp_path / "sweep.yaml") for p in found)


def test_overlapping_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"grid\.strategy: is swept, so strategy\.kind"):
        read_file(tmp_path, FILE.replace("grid:", "grid:\n  strategy: [rsm, none]"))


def test_a_grid_that_is_too_large_is_refused_at_once() -> None:
    values = list(range(1, 400))
    with pytest.raises(ScenarioError, match="159,201 combinations"):
        grid.read({"scenario": "wordcount", "grid": {"run.seed": values, "strategy.k": values}})


def test_an_unknown_sweep_names_the_known_ones() -> None:
    with pytest.raises(ScenarioError, match=r"neither a file nor a built-in sweep; .*wordcount-sweep"):
        grid.read("nothing-like-it")
    with pytest.raises(ScenarioError, match="did you mean 'wordcount-sweep'"):
        grid.read("wordcount")


@pytest.mark.parametrize("name", library.sweeps())
def test_built_in_sweeps_are_small_and_no_scenarios(name: str) -> None:
    found = grid.read(name)
    assert 4 <= found.runs <= 200
    assert "strategy.kind" in found.parameters
    with pytest.raises(
        ScenarioError, match=f"is a sweep, not a scenario; use it as in tideover sweep {name}"
    ):
        load(name)


def test_a_built_in_sweep_takes_settings() -> None:
    found = grid.read("wordcount-sweep", ["strategy.kind=rsm", "failures.0.at=[70 s]", "run.replications=1"])
    assert [tuple(point.values.values()) for point in found.points] == [
        ("rsm", "10/s", "70 s"),
        ("rsm", "50/s", "70 s"),
    ]
    assert found.runs == 2


# Records.


def test_a_record_gives_the_same_result_back() -> None:
    from tideover.models.results.result import Result

    scenario = load("wordcount", SHORT)
    done = [simulate(scenario, number) for number in range(2)]
    again = [runs.decode(runs.encode(replication)) for replication in done]
    assert Result(scenario, again).to_dict() == Result(scenario, done).to_dict()
    for table in ("recoveries", "runs", "timeline", "tasks"):
        first, second = (getattr(Result(scenario, which), table) for which in (done, again))
        pd.testing.assert_frame_equal(first, second)


def test_a_record_may_leave_the_timeline_out() -> None:
    record = runs.encode(simulate(load("wordcount", SHORT)), timeline=False)
    assert not runs.has_timeline(record)
    assert runs.decode(record).timeline == []


def test_a_key_depends_on_what_the_result_depends_on() -> None:
    base = load("wordcount")
    same = load("wordcount", ["name=another", "run.replications=50"])
    assert runs.keys(same)[:5] == runs.keys(base)
    others = [load("wordcount", [setting]) for setting in ("run.seed=2", "strategy.kind=rsm", "hosts=9")]
    assert len({key for scenario in [base, *others] for key in runs.keys(scenario)}) == 20


# The same rows, however they come about.


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_spark_gives_the_same_bytes_for_any_number_of_partitions(spark, reference, partitions, tmp_path):
    assert written(api.sweep(SPEC, partitions=partitions), tmp_path) == reference


def test_spark_in_jobs_of_its_own_choice_gives_the_same_bytes(spark, reference, tmp_path):
    heard = []
    found = api.sweep(SPEC, out=tmp_path / "kept", report=lambda *said: heard.append(said))
    assert written(found, tmp_path / "tables") == reference
    assert heard[-1] == ("simulating", 12, 12)
    assert [file.name for file in (tmp_path / "kept" / api.KEPT).iterdir()] == ["runs.parquet"]


def test_another_process_gives_the_same_bytes(reference, tmp_path):
    code = (
        "import json, sys, tideover; from tideover.reports.parquet import write_tables\n"
        "found = tideover.sweep(json.loads(sys.argv[1]), master=None)\n"
        "write_tables(sys.argv[2], found.tables, parameters=found.parameters)"
    )
    done = [sys.executable, "-c", code, json.dumps(SPEC), str(tmp_path / "other")]
    subprocess.run(done, check=True, timeout=120, env={"PYTHONHASHSEED": "77"})
    for name, content in reference.items():
        assert name == "json" or (tmp_path / "other" / name).read_bytes() == content


def test_a_point_says_what_run_says():
    found = api.sweep(SPEC, master=None)
    settings = [*SHORT, "strategy.kind=rsm", "topology.sentences.rate=20/s", "run.replications=3"]
    alone = api.run("wordcount", settings).to_dict()
    last = found.to_list()[-1]
    assert {key: last[key] for key in alone} == alone
    late = {
        "scenario": "wordcount",
        "set": {"strategy.message_timeout": "10 s"},
        "grid": {"run.seed": [1, 2]},
    }
    swept = api.sweep(late | {"replications": 2}, master=None)
    told = api.run("wordcount", ["strategy.message_timeout=10 s", "run.replications=2"]).warnings
    assert swept.to_list()[0]["warnings"] == told
    assert [text.partition(":")[0] for text in told] == ["message_timeout 10 s", "false timeouts", "windows"]
    more = [text.partition(":")[0] for text in swept.warnings if text.endswith("(and 1 more of this kind)")]
    assert more == ["false timeouts"]
    assert last["swept"] == {"strategy.kind": "rsm", "topology.sentences.rate": "20/s"}
    assert last["errors"] == []


# Failed runs.


@pytest.fixture
def failing():
    """A sweep of two strategies, one of which fails. Its class is local, so it goes to Spark by value."""

    class Failing(Strategy):
        def protocol(self, world):
            raise ValueError("it cannot\nbe done")

    STRATEGIES.register("failing")(Failing)
    runs.code.cache_clear()
    yield grid.read(
        {"scenario": "wordcount", "grid": {"strategy.kind": ["none", "failing"]}, "replications": 2}
    )
    STRATEGIES.discard("failing")
    runs.code.cache_clear()


def failed_rows(found: sweep.Sweep) -> None:
    frame = found.runs
    assert list(frame["point"]) == [0, 0, 1, 1]
    assert list(frame["replication"]) == [0, 1, 0, 1]
    assert frame["error"].isna().tolist() == [True, True, False, False]
    assert frame["error"].iloc[2] == "replication 0: ValueError: it cannot be done"
    assert frame["emitted"].isna().tolist() == [False, False, True, True]
    assert frame["scenario_json"].notna().all()
    assert [error[:2] for error in found.failed] == [(1, 0), (1, 1)]
    assert len(found.to_list()[1]["errors"]) == 2


def test_a_failed_run_is_a_row_with_its_error(failing):
    failed_rows(sweep.sweep(failing, master=None))


def test_a_failed_run_does_not_end_the_spark_job(spark, failing, tmp_path):
    found = sweep.sweep(failing, keep=tmp_path / "kept")
    failed_rows(found)
    assert len(write_tables(tmp_path / "tables", found.tables, parameters=found.parameters)) == 4


# Going on.


def test_what_is_there_is_not_done_again(reference, tmp_path, monkeypatch):
    first = dict(SPEC, replications=2)
    api.sweep(first, master=None, out=tmp_path / "out")
    done = []
    attempt = work.attempt
    monkeypatch.setattr(work, "attempt", lambda *given: done.append(given[1]) or attempt(*given))
    found = api.sweep(SPEC, master=None, out=tmp_path / "out")
    assert done == [2, 2, 2, 2]
    assert written(found, tmp_path / "tables") == reference
    api.sweep(SPEC, master=None, out=tmp_path / "out")
    assert len(done) == 4


def test_a_broken_file_is_done_again(reference, tmp_path):
    api.sweep(SPEC, master=None, out=tmp_path)
    (tmp_path / api.KEPT / "runs.parquet").write_bytes(b"PAR1 but not really")
    (tmp_path / api.KEPT / "part-0.parquet").write_bytes(b"")
    assert written(api.sweep(SPEC, master=None, out=tmp_path), tmp_path / "tables") == reference


KILLED = """
import json, os, signal, sys, tideover
from pathlib import Path
from tideover.scenarios import work

def report(what, done, of):
    if len(list(Path(sys.argv[2]).glob(".runs/part-*.parquet"))) == 5:
        os.kill(os.getpid(), signal.SIGKILL)

work._SAVE_EVERY_S = -1.0  # each run in a file of its own
tideover.sweep(json.loads(sys.argv[1]), master=None, out=sys.argv[2], report=report)
"""


def test_a_killed_sweep_goes_on_to_the_same_table(tmp_path):
    """It is killed as soon as five of the sixteen runs are kept."""
    spec = dict(SPEC, replications=4)
    out = tmp_path / "out"
    killed = subprocess.run([sys.executable, "-c", KILLED, json.dumps(spec), str(out)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(out.glob(".runs/part-*.parquet"))) == 5
    resumed = written(api.sweep(spec, master=None, out=out), tmp_path / "resumed")
    assert resumed == written(api.sweep(spec, master=None), tmp_path / "fresh")
    assert [path.name for path in (out / api.KEPT).iterdir()] == ["runs.parquet"]
