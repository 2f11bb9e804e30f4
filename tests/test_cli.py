"""The command line: what goes to which stream, exit codes, and the contract of ``--json``."""

import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli_worlds import DIAGRAM
from tests.contract import CONTRACT, check, strict
from tests.reports.made_up import read_tables
from tideover import __version__
from tideover.cli import validation
from tideover.scenarios import java
from tideover.scenarios.java import Java
from tideover.scenarios.loader import load, load_text
from tideover.sim.plane.build import NoDataPlane

SHORT = ["--set", "run.duration=100s", "--set", "run.warmup=30s", "--set", "run.replications=2"]


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
    assert strict(out)["recoveries"][0]["state_recovery_s"] is None


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
    command = [sys.executable, "-m", "tideover", "run", "wordcount", "--json", "--out", tmp_path / "there"]
    environment = os.environ | {"PYTHONHASHSEED": "5"}
    there = subprocess.run([*command, *SHORT], capture_output=True, text=True, timeout=120, env=environment)
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
    known = ["--set", "strategies.source_replay.ack_cost=0s"]
    assert "Note" not in tideover("run", "wordcount", *known, *SHORT)[2]


# run --diagram


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(DIAGRAM)
    return path


def ticks(path):
    """What stands at the axis, s."""
    texts = (element.text or "" for element in ET.parse(path).iter() if element.tag.endswith("text"))
    return [float(text.removesuffix(" s")) for text in texts if text.endswith(" s") and text[0].isdigit()]


def test_a_small_run_is_drawn_as_a_whole(tideover, small, tmp_path):
    code, out, _ = tideover("run", small, "--diagram", tmp_path / "d.svg")
    assert (code, out.splitlines()[-1]) == (0, f"Diagram: {tmp_path / 'd.svg'}")
    assert (min(ticks(tmp_path / "d.svg")), max(ticks(tmp_path / "d.svg"))) == (0, 6)
    assert "small: source replay, seed 1, replication 0" in (tmp_path / "d.svg").read_text()


def test_a_large_one_from_its_first_failure_to_the_end_of_the_recovery(tideover, tmp_path):
    """The failure strikes between 65 s and 95 s; no recovery ends within 100 s."""
    one = ["--set", "run.replications=1"]
    code, _, _ = tideover("run", "wordcount", "--diagram", tmp_path / "d.svg", *SHORT, *one)
    assert code == 0
    found = ticks(tmp_path / "d.svg")
    assert 60 < min(found) < 95
    assert max(found) > 96
    assert "count: fault lose_state" in (tmp_path / "d.svg").read_text()


def test_a_stretch_and_components(tideover, small, tmp_path):
    stretch = ["--from", "1200ms", "--to", "1.6s", "--components", "split, count"]
    code, out, err = tideover("run", small, "--json", "--diagram", tmp_path / "d.svg", *stretch)
    assert (code, err.splitlines()[-1]) == (0, f"Diagram: {tmp_path / 'd.svg'}")
    assert out.startswith("{")
    assert (min(ticks(tmp_path / "d.svg")), max(ticks(tmp_path / "d.svg"))) == (1.2, 1.6)
    assert "sentences.0</text>" not in (tmp_path / "d.svg").read_text()


def test_the_report_has_it(tideover, small, tmp_path):
    code, _, _ = tideover("run", small, "--out", tmp_path / "out")
    assert code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Who sends what to whom" in page
    assert "root 0 of sentences.0" in page


# audit


QUICK = ("--no-spark", "--no-second", "--each", "1", "--kinds", "lose_state", "--until", "20.02 s")
QUICK += ("--set", "run.duration=42s")


def test_a_strategy_is_audited_and_each_example_can_be_run_again(tideover):
    code, out, _ = tideover("audit", "none", *QUICK, "--json")
    found = json.loads(out)
    assert (code, found["claimed"], found["observed"]) == (0, "at most once", "at most once")
    example = found["examples"][0]
    assert example["harm"] == "lost"
    _, *command = [one for one in shlex.split(example["replay"]) if one != "--trace"]
    code, again, _ = tideover(*command, "--json")
    assert code == 0
    assert json.loads(again)["ledger"]["lost"] > 0


def test_several_are_audited_at_once(tideover):
    code, out, _ = tideover("audit", "none,rsm", *QUICK)
    assert code == 0
    rows = [line.split("  ") for line in out.splitlines() if line.startswith(("none (amnesia)  ", "R+SM  "))]
    told = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert told[0][1:5] == ["at most once", "at most once", "–", "all"]
    assert told[1][1:5] == ["exactly once", "exactly once", "–", "all"]
    assert out.startswith("2 of 2 keep their word.\n")
    assert "lost: lose_state of count." not in out  # it is allowed, and the page has it


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


def test_reproduce_all_says_what_is_predicted_fitted_and_failed(tideover, tmp_path, monkeypatch):
    """Of two studies: one that the package carries, and one whose measurements it does not."""
    few = {name: validation.STUDIES[name] for name in ("detection", "khaos")}
    monkeypatch.setattr(validation, "STUDIES", few)
    code, out, err = tideover("reproduce", "--all", "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    assert out.startswith("Of 3 published figures: 3 predicted, 0 fitted, 0 failed.\n")
    assert "--from khaos_flink_recovery_calibration.csv" in out
    page = (tmp_path / "out" / "validation.md").read_text()
    assert page.count("\n## ") == 2
    assert "|predicted|the timeout|" in page
    assert "3 predicted" in (tmp_path / "out" / "report.html").read_text()
    records = strict(tideover("reproduce", "--all", "--json")[1])
    assert [record["verdict"] for record in records] == ["predicted"] * 3


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


def test_built_in_scenarios_are_listed_shown_and_copied(tideover, tmp_path):
    code, out, _ = tideover("scenarios", "list")
    assert code == 0
    assert "wordcount" in out
    assert tideover("scenarios")[1] == out
    assert strict(tideover("scenarios", "schema")[1])["title"]
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
    monkeypatch.setattr(java, "_look", lambda origin: missing if origin == "JAVA_HOME" else None)
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


def test_version(tideover):
    assert tideover("--version") == (0, f"tideover {__version__}\n", "")
