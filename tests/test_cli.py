"""The command line: what goes to which stream, exit codes, and the contract of ``--json``."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.contract import CONTRACT, check, strict
from tideover import __version__
from tideover.reports.parquet import read_tables
from tideover.scenarios import java
from tideover.scenarios.java import Java
from tideover.scenarios.loader import load, load_text
from tideover.sim.plane.build import NoDataPlane

SHORT = ["--set", "run.duration=100s", "--set", "run.warmup=30s", "--set", "run.replications=2"]


def process(*args, **more):
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tideover", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **more)


# run


def test_run_prints_a_screen_and_with_details_all(tideover):
    code, out, err = tideover("run", "wordcount", *SHORT)
    assert (code, err) == (0, "")
    assert out.startswith("word count: seed 1, 2 replications\n")
    assert "state recovery, s" not in out
    assert "state recovery, s" in tideover("run", "wordcount", "--details", *SHORT)[1]


def test_run_prints_one_json_object_that_keeps_the_contract(tideover):
    code, out, err = tideover("run", "wordcount", "--json", "--set", "strategy.kind=rsm", *SHORT)
    assert (code, err) == (0, "")
    found = strict(out)
    check(found, CONTRACT)
    assert found["version"] == __version__
    assert len(found["recoveries"]) == 2
    ledger = found["ledger"]
    assert ledger["emitted"] == ledger["completed"] + ledger["in_flight"] + ledger["lost"]


def test_the_scenario_of_a_result_can_be_run_again(tideover, tmp_path):
    _, out, _ = tideover("run", "wordcount", "--json", *SHORT)
    (tmp_path / "again.yaml").write_text(json.dumps(json.loads(out)["scenario"]))
    assert tideover("run", tmp_path / "again.yaml", "--json")[1] == out


def test_undefined_is_null(tideover):
    _, out, _ = tideover("run", "wordcount", "--json", "--set", "strategy.kind=none", *SHORT)
    found = strict(out)
    assert found["recoveries"][0]["state_recovery_s"] is None


def test_a_run_without_failures_has_no_recoveries(tideover, tmp_path):
    settings = ["--set", "failures=[]", *SHORT]
    code, out, _ = tideover("run", "wordcount", "--json", "--out", tmp_path / "out", *settings)
    assert code == 0
    check(strict(out), CONTRACT)
    assert strict(out)["recoveries"] == []
    assert "state_recovery_s" in read_tables(tmp_path / "out")["recoveries"].columns
    assert tideover("run", "wordcount", *settings)[0] == 0


def test_warnings_go_to_standard_error_with_json(tideover):
    timeout = ["--set", "strategy.message_timeout=10s"]
    code, out, err = tideover("run", "wordcount", "--json", *timeout, *SHORT)
    assert code == 0
    texts = strict(out)["warnings"]
    assert err == "".join(f"Warning: {text}\n" for text in texts)
    about = [text.partition(":")[0].split(" at ")[0] for text in texts]
    assert about == ["message_timeout 10 s", "false timeouts", "windows", "failure"]


def test_the_same_seed_gives_the_same_bytes_in_every_process(tideover, tmp_path):
    here = tideover("run", "wordcount", "--json", "--out", tmp_path / "here", *SHORT)[1]
    environment = os.environ | {"PYTHONHASHSEED": "5"}
    there = process("run", "wordcount", "--json", "--out", tmp_path / "there", *SHORT, env=environment)
    assert there.stdout == here
    files = {path.name for path in (tmp_path / "here").iterdir()}
    assert {"report.html", "result.json", "runs.parquet", "recoveries.parquet", "timeline.parquet"} < files
    for name in files:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name


def test_out_keeps_what_json_prints(tideover, tmp_path):
    code, out, err = tideover("run", "wordcount", "--json", "--out", tmp_path / "out", *SHORT)
    assert code == 0
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == json.loads(out)
    assert f"Report: {tmp_path}" in err
    assert len(read_tables(tmp_path / "out")["runs"]) == 2


def test_trace_prints_the_protocol_in_order(tideover):
    at = ["--set", "failures.0.at=75s", "--set", "failures.0.within=0s"]
    code, out, _ = tideover("run", "wordcount", "--trace", "--set", "strategy.kind=rsm", *at, *SHORT)
    assert code == 0
    times = [float(found[1]) for found in re.finditer(r"^ *(\d+\.\d{6}) s  ", out, re.M)]
    assert times == sorted(times)
    assert len(times) > 10
    assert "75.000000 s  count: fault lose_state" in out
    assert "count.0: window 1:" in out
    assert "roots emitted" in out
    _, out, _ = tideover("run", "wordcount", "--trace", "--json", *SHORT)
    assert {"replication", "at_s", "event"} == strict(out)["trace"][0].keys()


# compare


def test_compare_begins_with_a_verdict(tideover, tmp_path):
    args = ["compare", "wordcount", "--strategies", "source_replay,rsm", "--set", "run.replications=2"]
    code, out, err = tideover(*args, "--details", "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "Paired differences" in out
    assert "R+SM recovers" in " ".join(out.split())
    code, out, _ = tideover(*args, "--json")
    records = strict(out)
    assert [record["strategy"] for record in records] == ["source_replay", "rsm"]
    for record in records:
        check(record, CONTRACT)
        assert record["verdict"].splitlines()[1].startswith("R+SM recovers")
        assert record["best"] == "rsm"
    assert records[1]["differences"][0]["minus"] == "source_replay"
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == records


def test_a_setting_that_not_all_know_says_where_it_goes(tideover):
    args = ["--set", "strategy.checkpoint_interval=15s", "--json", *SHORT]
    _, _, err = tideover("compare", "wordcount", "--strategies", "none,rsm,source_replay", *args)
    assert "Note: strategy.checkpoint_interval=15s goes to rsm, not to none and source_replay\n" in err
    _, _, err = tideover("run", "wordcount", "--set", "strategies.rsm.replay_cost=1ms", *SHORT)
    assert "Note: strategies.rsm.replay_cost=1ms has no effect" in err
    _, _, err = tideover("run", "kill-host", "--set", "strategy.kind=none", *SHORT)
    assert "Note: the file's strategy is another than none, which does not have its k: left out" in err
    assert (
        "Note" not in tideover("run", "wordcount", "--set", "strategies.source_replay.ack_cost=0s", *SHORT)[2]
    )


# reproduce


def test_reproduce_sets_the_published_beside_the_simulated(tideover, tmp_path):
    args = ["reproduce", "stableford-phase2", "--no-spark", "--set", "run.replications=1"]
    code, out, err = tideover(*args)
    assert (code, err) == (0, "")
    assert "published" in out
    assert "Why source replay takes this long" in out
    assert re.search(r"\d+ of 12 published recovery times are met", out)
    code, out, _ = tideover(*args, "--json", "--out", tmp_path / "out")
    records = strict(out)
    assert len(records) == 18
    for record in records:
        check(record, CONTRACT)
    assert records[0]["published"]["published_s"] == 59
    assert abs(records[0]["published"]["error_s"]) <= 1.5
    assert records[-1]["published"]["published_s"] is None
    assert (tmp_path / "out" / "report.html").stat().st_size > 100_000


# scenarios, doctor, version


def test_short_parameters_are_listed_with_what_they_mean(tideover):
    """What is printed is still the scenario: the list is a comment."""
    listed = {entry["name"]: entry for entry in strict(tideover("scenarios", "list", "--json")[1])}
    assert listed["flink-recovery"]["parameters"][:2] == ["rate", "checkpoint_interval"]
    assert listed["wordcount"]["parameters"] == []
    assert "rate=…, checkpoint_interval=…" in tideover("scenarios", "list")[1]
    shown = tideover("scenarios", "show", "flink-recovery")[1]
    assert re.search(r"^#   checkpoint_interval +60 s +time between two snapshots$", shown, re.M)
    assert load_text(shown) == load("flink-recovery").model_copy(update={"name": load_text(shown).name})
    code, _, err = tideover("run", "flink-recovery", "--set", "checkpoint_intervall=60 s")
    assert code == 2
    assert "did you mean 'checkpoint_interval'?" in err


def test_built_in_scenarios_are_listed_shown_and_copied(tideover, tmp_path):
    code, out, _ = tideover("scenarios", "list")
    assert code == 0
    assert "wordcount" in out
    assert tideover("scenarios")[1] == out
    listed = strict(tideover("scenarios", "list", "--json")[1])
    assert {"name", "sort", "description", "parameters"} == listed[0].keys()
    shown = tideover("scenarios", "show", "wordcount")[1]
    code, out, _ = tideover("scenarios", "copy", "wordcount", tmp_path)
    assert code == 0
    assert (tmp_path / "wordcount.yaml").read_text() == shown
    code, out, err = tideover("scenarios", "copy", "wordcount", tmp_path)
    assert (code, out) == (2, "")
    assert err == f"{tmp_path / 'wordcount.yaml'}: is there already; name another file, or remove it\n"
    assert tideover("scenarios", "copy", "wordcount", tmp_path / "no" / "such.yaml")[0] == 2
    code, out, _ = tideover("scenarios", "copy", "wordcount-sweep", tmp_path / "mine.yaml")
    assert (code, out.splitlines()[1]) == (0, f"Try: tideover sweep {tmp_path / 'mine.yaml'}")
    assert tideover("sweep", tmp_path / "mine.yaml", "--dry-run")[0] == 0
    code, _, err = tideover("scenarios", "show", "wordcout")
    assert code == 2
    assert "did you mean 'wordcount'" in err


def test_the_schema_is_json(tideover):
    code, out, _ = tideover("scenarios", "schema")
    assert code == 0
    assert strict(out)["title"]


def test_doctor_tells_what_works(tideover):
    code, out, _ = tideover("doctor", "--no-spark", "--json")
    found = strict(out)
    assert code == (0 if found["ok"] else 1)
    names = [entry["name"] for entry in found["checks"]]
    assert {"tideover", "Python", "memory", "Java", "data plane", "engine"} <= set(names)
    assert "Everything works." in tideover("doctor", "--no-spark")[1] or not found["ok"]


def test_doctor_says_why_there_is_no_data_plane(tideover, monkeypatch):
    def refused():
        raise NoDataPlane("libplane.so is missing", "Install a compiler.")

    assert "data plane" in tideover("doctor", "--no-spark")[1]
    monkeypatch.setattr("tideover.sim.plane.library.made_by", refused)
    code, out, _ = tideover("doctor", "--no-spark")
    assert code == 1
    assert re.search(r"NO  data plane +libplane.so is missing\n +Install a compiler\.", out)


def test_doctor_starts_spark(spark, tideover):
    _, out, _ = tideover("doctor", "--json")
    (found,) = [entry for entry in strict(out)["checks"] if entry["name"] == "Spark"]
    assert found["ok"], found


@pytest.mark.parametrize(
    "depth", [0, 8, *(pytest.param(depth, marks=pytest.mark.long) for depth in (1, 2, 3, 5))]
)
def test_doctor_says_how_to_mend_what_is_missing(tideover, monkeypatch, depth):
    """Wherever Java and Python live: what is to be copied into a shell is on one line."""
    home = Path("/" + "a-directory/" * depth)
    missing = Java(home / "jdk", 11, "JAVA_HOME")
    monkeypatch.setattr("tideover.scenarios.java.find_java", lambda: None)
    monkeypatch.setitem(java._PLACES, "JAVA_HOME", lambda: missing)
    code, out, _ = tideover("doctor", "--no-spark")
    assert code == 1
    assert "NO  Java" in out
    assert 'pip install "tideover[java]"' in out


def test_little_memory_is_told_by_doctor_and_by_calibrate(tideover, monkeypatch, tmp_path):
    little = SimpleNamespace(available=2**30, total=2**31)
    monkeypatch.setattr("psutil.virtual_memory", lambda: little)
    code, out, _ = tideover("doctor", "--no-spark")
    assert code == 1
    assert "NO  calibrate" in out
    assert "3 GiB of free memory" in out
    code, out, err = tideover("calibrate", "--quick", "--out", str(tmp_path / "out"))
    assert (code, out) == (2, "")
    assert "3 GiB of free memory" in err
    assert "Traceback" not in err
    monkeypatch.setattr("tideover.scenarios.spark.settings.has_spark", lambda: False)
    code, out, _ = tideover("doctor")
    assert code == 0
    assert "NO" not in out


def test_calibrate_says_what_goes_together(tideover, tmp_path):
    for arguments, message in (
        ((), "--out: is missing"),
        (("--quick", "--from", str(tmp_path / "x.csv")), "--quick: goes without --from"),
    ):
        code, out, err = tideover("calibrate", *arguments)
        assert (code, out) == (2, "")
        assert message in err


def test_version(tideover):
    assert tideover("--version") == (0, f"tideover {__version__}\n", "")


# What can go wrong.


@pytest.mark.parametrize(
    "args",
    [
        ["frobnicate"],
        ["run"],
        ["run", "wordcount", "--frob"],
        ["sweep", "x.yaml", "--master"],
        ["run", "a", "b"],
    ],
)
def test_wrong_usage_ends_with_2(tideover, args):
    code, out, err = tideover(*args)
    assert (code, out) == (2, "")
    assert "Error" in err


BAD = [
    (
        ["run", "wordcout"],
        "wordcout:1: (file): neither a file nor a built-in scenario; did you mean 'wordcount'?",
    ),
    (["run", "no/such.yaml"], "no/such.yaml:1: (file): does not exist"),
    (
        ["run", "wordcount", "--set", "strategy.kind=rms"],
        "--set: strategy.kind: unknown strategy 'rms'; did you",
    ),
    (["run", "wordcount", "--set", "run.duration"], "--set: run.duration: must be key=value"),
    (
        ["compare", "wordcount", "--strategies", "rsm,rms"],
        "--strategies: strategy.kind: unknown strategy 'rms'; di",
    ),
    (
        ["compare", "wordcount", "--strategies", "rsm"],
        "--strategies: a comparison needs at least two strategies",
    ),
    (["compare", "wordcount", "--strategies", "rsm,rsm"], "--strategies: a strategy is named twice"),
    (["sweep", "no-such-sweep"], "no-such-sweep:1: (file): neither a file nor a built-in sweep"),
    (["sweep", "wordcount"], "wordcount:1: (file): neither a file nor a built-in sweep"),
    (
        ["sweep", "x.yaml", "--master", "lokal"],
        "--master: 'lokal': is not one of Spark's masters; allowed: local",
    ),
    (
        ["sweep", "x.yaml", "--master", "spark://host"],
        "--master: 'spark://host': is not one of Spark's masters",
    ),
    (["reproduce", "stableford-phase2", "--master", "local[0]"], "--master: 'local[0]': is not one of"),
    (["reproduce", "stableford"], "PAPER: 'stableford' is not known; did you mean 'stableford-phase2'?"),
    (["run", "wordcount", "--out", "/dev/null"], "--out: /dev/null: is a file, not a directory"),
    (["run", "wordcount", "--out", "/dev/null/x"], "--out: /dev/null/x: "),
    (["run", "wordcount", "--out", "."], "--out: .: is not empty and was not written by Tideover"),
]


@pytest.mark.parametrize(("args", "says"), BAD)
def test_bad_input_ends_with_2_and_one_line(tideover, args, says):
    code, out, err = tideover(*args)
    assert (code, out) == (2, "")
    assert err.startswith(says)
    assert err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_to(tideover, tmp_path):
    tmp_path.chmod(0o500)
    code, _, err = tideover("run", "wordcount", "--out", tmp_path / "out")
    assert code == 2
    assert "cannot be written to: Permission denied" in err
