"""``tideover sweep``: what it prints and leaves behind, and that only what has changed is made anew."""

import json
import re
from functools import partial

import pytest

import tideover as package
from tests.contract import CONTRACT, check, strict
from tideover.cli import output, sweeps
from tideover.scenarios import library, runs
from tideover.scenarios.sweeps import engine, files
from tideover.scenarios.sweeps.files import Files

SWEEP = """\
scenario: mine.yaml
set: {run.duration: 65 s, run.warmup: 30 s, failures.0.within: 0 s, name: größer}
grid:
  strategy.kind: [none, rsm]
  failures.0.at: [40 s, 50 s]
replications: 2
"""


@pytest.fixture
def sweep_file(tmp_path):
    (tmp_path / "mine.yaml").write_text(library.text("wordcount"))
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    return tmp_path / "sweep.yaml"


@pytest.fixture
def sweep(tmp_path, tideover, sweep_file):
    """The command, with a sweep file, its scenario, and ``--out``; returns exit code, output, errors."""
    return partial(tideover, "sweep", sweep_file, "--no-spark", "--out", tmp_path / "out")


def test_a_sweep_without_spark_and_dry_runs_that_list_and_count(sweep, tmp_path):
    code, out, err = sweep("--dry-run")
    assert (code, err) == (0, "")
    assert "4 points, 8 runs; nothing was written" in out
    assert "8 would be simulated: nothing is there yet" in out
    assert re.search(r"about .* of one core, .*[MG]B of memory", out)
    _, out, _ = sweep("--dry-run", "--json", "--set", "failures.0.at=[41s]")
    assert [point["swept"]["failures.0.at"] for point in strict(out)["points"]] == ["41s", "41s"]
    code, out, err = sweep()
    assert (code, err) == (0, "")
    assert "Points of the sweep" in out
    for record in strict(sweep("--json")[1]):
        check(record, CONTRACT)
    found = package.load(tmp_path / "out")
    assert len(found.runs) == len(found.recoveries) == 8
    assert set(found.runs["failures.0.at"]) == {40.0, 50.0}
    _, out, _ = sweep("--dry-run")
    assert "8 are there already" in out
    assert "Nothing is left to be simulated." in out
    _, out, _ = sweep("--dry-run", "--set", "run.seed=2")
    assert "8 would be simulated: the scenario, its points or the number of replications have changed" in out


def test_a_sweep_with_spark_says_the_same(spark, tideover, sweep_file, tmp_path):
    plain = tideover("sweep", sweep_file, "--no-spark", "--out", tmp_path / "plain")
    code, out, err = tideover("sweep", sweep_file, "--out", tmp_path / "spark")
    assert (code, err) == (0, "")
    assert out.replace(str(tmp_path / "spark"), "") == plain[1].replace(str(tmp_path / "plain"), "")
    pages = [(tmp_path / name / "report.html").read_bytes() for name in ("plain", "spark")]
    assert pages[0] == pages[1]


def test_the_dataset_may_lie_elsewhere(tideover, sweep_file, tmp_path):
    """A directory or a URL; over Spark Connect not where it cannot rename."""
    code, _, _ = tideover("sweep", sweep_file, "--no-spark", "--data", (tmp_path / "data").as_uri())
    assert code == 0
    assert len(package.load(tmp_path / "data").runs) == 8
    far = ["--remote", "sc://no-such-host:1", "--data", "hdfs://name/sweep"]
    code, _, err = tideover("sweep", sweep_file, *far)
    assert code == 2
    assert "--data: hdfs://name/sweep: cannot be written over Spark Connect" in err


@pytest.fixture
def made(monkeypatch):
    """How often a sweep was simulated, or its kept runs were read, since the last look."""
    calls = []
    real = sweeps.simulated
    monkeypatch.setattr(sweeps, "simulated", lambda *given, **more: calls.append(1) or real(*given, **more))

    def since():
        count = len(calls)
        calls.clear()
        return count

    return since


def times(directory):
    return {path.name: path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()}


def test_a_finished_sweep_says_the_same_again_and_writes_nothing(sweep, made, tmp_path):
    """The second call neither checks points nor writes a file; both streams are the same byte for byte."""
    first, as_json = sweep(), sweep("--json")
    assert (first[0], made()) == (0, 1)
    before = times(tmp_path / "out")
    assert (sweep(), sweep("--json")) == (first, as_json)
    assert made() == 0
    assert times(tmp_path / "out") == before
    records = json.loads(as_json[1])
    assert [record["point"] for record in records] == [0, 1, 2, 3]
    assert records[0]["scenario"]["name"] == "größer"
    assert as_json[1].isascii()


def test_whatever_it_depends_on_makes_it_anew(sweep, made, tmp_path, monkeypatch):
    """A setting, the sweep's file, the scenario that it names, a file of the dataset that is gone, and the
    code: after each it is done again, as far as it has to be, and then stays.
    """
    out = tmp_path / "out"
    sweep()
    changes = [
        lambda: (tmp_path / "sweep.yaml").write_text(SWEEP.replace("50 s", "60 s")),
        lambda: (tmp_path / "mine.yaml").write_text((tmp_path / "mine.yaml").read_text() + "\n"),
        lambda: (out / "dataset" / files.read(Files(out / "dataset")).files[0]).unlink(),
        lambda: (out / "dataset" / "manifest.json").unlink(),
        lambda: monkeypatch.setattr(runs, "code", lambda: "another"),
    ]
    made()
    for change in changes:
        change()
        assert sweep()[0] == 0
        assert made() == 1
    assert sweep("--set", "run.seed=2")[0] == 0
    assert made() == 1
    assert sweep("--set", "run.seed=2")[0] == 0
    assert made() == 0


def test_a_manifest_that_cannot_be_used_is_what_the_message_is_about(sweep, made, tmp_path):
    """One that is cut is made anew; one of another program is not touched."""
    first = sweep()
    path = tmp_path / "out" / "dataset" / "manifest.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    made()
    code, out, err = sweep()
    assert (code, out, made(), path.read_bytes()) == (0, first[1], 1, whole)
    assert err.startswith(f"Warning: {path}: is cut or damaged (")
    path.write_text("{}")
    said = f"{path}: is not a manifest of Tideover; give another directory\n"
    assert sweep() == (2, "", said)
    assert path.read_text() == "{}"


def test_a_page_that_was_changed_is_made_anew_from_the_dataset(sweep, made, tmp_path):
    sweep()
    page = tmp_path / "out" / "report.html"
    whole = page.read_bytes()
    made()
    for change in (lambda: page.write_text("mine"), page.unlink, (tmp_path / "out" / ".finished").unlink):
        change()
        assert sweep()[0] == 0
        assert page.read_bytes() == whole
    assert made() == 0


def test_a_failed_run_is_told_and_done_again_if_that_is_asked(sweep, made, tideover, tmp_path, monkeypatch):
    """It makes the exit code 1, each time."""
    simulate = runs.simulate

    def fail(scenario, number, **more):
        if number == 1 and scenario.failures[0].at == 50_000_000_000:
            raise ArithmeticError("so it is")
        return simulate(scenario, number, **more)

    monkeypatch.setattr(engine, "simulate", fail)
    first = "point 1, replication 1: ArithmeticError: so it is"
    told = sweep()
    assert (told[0], told[2]) == (1, f"tideover: 2 of 8 runs failed; the first: {first}\n")
    assert "1/2" in told[1]
    assert package.load(tmp_path / "out").runs["error"].notna().sum() == 2
    monkeypatch.setattr(engine, "simulate", simulate)
    assert made() == 1
    assert sweep() == told
    assert made() == 0
    assert "2 of those that are there failed" in sweep("--dry-run")[1]
    assert sweep("--retry-failed")[0] == 0
    assert made() == 1
    assert sweep()[0] == 0
    assert made() == 0
    monkeypatch.setattr(engine, "simulate", fail)
    code, _, err = tideover("sweep", tmp_path / "sweep.yaml", "--no-spark", "--fail-fast")
    assert (code, err) == (1, "tideover: 2 of 8 runs failed, and no more were begun\n")
    monkeypatch.setattr(runs, "simulate", fail)
    said = tideover("run", "wordcount", "--set", "failures.0.at=50s", "--set", "run.replications=2")
    assert said == (1, "", "tideover: replication 1: ArithmeticError: so it is\n")


MORRIS = """\
scenario: mine.yaml
set: {run.duration: 90 s, run.warmup: 30 s, failures.0.within: 0 s, failures.0.at: 40 s, strategy.kind: rsm}
sample:
  design: morris
  size: 4
  factors:
    failures.0.detection: {from: 1 s, to: 9 s}
    failures.0.restart: {from: 1 s, to: 3 s}
replications: 1
"""


def test_a_sample_for_indices_says_what_matters(sweep, tmp_path):
    """Detection, over 8 s, against restart, over 2: in the terminal, and as a picture on the page."""
    (tmp_path / "sweep.yaml").write_text(MORRIS)
    code, out, _ = sweep()
    assert code == 0
    table = out[out.index("What the time to recover depends on") :].splitlines()
    first, second = (line.split() for line in table if line.startswith("failures.0."))
    assert (first[0], second[0]) == ("failures.0.detection", "failures.0.restart")
    assert float(first[1]) == pytest.approx(4 * float(second[1]), rel=0.3)
    assert "elementary effects of the mean time to recover" in (tmp_path / "out" / "report.html").read_text()
    assert sweep()[1] == out


def test_what_is_done_after_the_last_run_is_told_too(sweep, monkeypatch, tmp_path):
    """All runs are done long before a great sweep's page is there: summaries and the page have names."""
    said = []
    for module in (sweeps, output):
        bar = type("Bar", (output.Bar,), {"__call__": lambda self, *state: said.append(state)})
        monkeypatch.setattr(module, "Bar", lambda *what, bar=bar: said.append(what) or bar(*what))
    sweep()
    folders = ("points", "summary", "remarks", "differences")
    told = [(f"summarising {folder}", done, 4) for done, folder in enumerate(folders)]
    said = [state for state in said if state]  # a bar without a word of its own
    last = max(place for place, state in enumerate(said) if state[0] == "simulating")
    assert said[last][1] == said[last][2] > 0
    assert said[last + 1 :] == [*told, ("making the page",)]


def test_a_point_that_is_no_scenario_is_told_by_file_and_line(sweep, tmp_path):
    """And not as if the option for its dataset were wrong."""
    lines = (tmp_path / "sweep.yaml").read_text().splitlines()
    number = next(at for at, line in enumerate(lines, 1) if line.startswith("grid:"))
    lines[number - 1 : number] = ["grid:", "  nope: [1]"]
    (tmp_path / "sweep.yaml").write_text("\n".join(lines) + "\n")
    code, out, err = sweep()
    assert (code, out) == (2, "")
    assert err.startswith(f"{tmp_path / 'sweep.yaml'}:{number + 1}: grid.nope: unknown key; ")
