"""``tideover sweep``: what it prints, and what it leaves behind."""

import re

import pytest

import tideover as package
from tests.contract import CONTRACT, check, strict

SWEEP = """\
scenario: wordcount
set: {run.duration: 100 s, run.warmup: 30 s}
grid:
  strategy.kind: [none, rsm]
  failures.0.at: [40 s, 50 s]
replications: 2
"""


@pytest.fixture
def sweep_file(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP)
    return path


def test_dry_run_lists_and_counts(tideover, sweep_file):
    code, out, err = tideover("sweep", sweep_file, "--dry-run")
    assert (code, err) == (0, "")
    assert "4 points, 8 runs; nothing was written" in out
    assert "8 would be simulated: nothing is there yet" in out
    assert re.search(r"about .* of one core, .*[MG]B of memory", out)
    code, out, _ = tideover("sweep", sweep_file, "--dry-run", "--json", "--set", "failures.0.at=[41s]")
    assert [point["swept"]["failures.0.at"] for point in strict(out)["points"]] == ["41s", "41s"]


def test_a_sweep_without_spark(tideover, sweep_file, tmp_path):
    code, out, err = tideover("sweep", sweep_file, "--no-spark", "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "Points of the sweep" in out
    code, out, _ = tideover("sweep", sweep_file, "--no-spark", "--json", "--out", tmp_path / "out")
    records = strict(out)
    assert [record["point"] for record in records] == [0, 1, 2, 3]
    for record in records:
        check(record, CONTRACT)
    found = package.load(tmp_path / "out")
    assert len(found.runs) == len(found.recoveries) == 8
    assert set(found.runs["failures.0.at"]) == {40.0, 50.0}
    code, out, _ = tideover("sweep", sweep_file, "--dry-run", "--out", tmp_path / "out")
    assert "8 are there already" in out
    assert "Nothing is left to be simulated." in out
    code, out, _ = tideover(
        "sweep", sweep_file, "--dry-run", "--out", tmp_path / "out", "--set", "run.seed=2"
    )
    assert "8 would be simulated: the scenario, its points or the number of replications have changed" in out


def test_a_sweep_with_spark_says_the_same(spark, tideover, sweep_file, tmp_path):
    plain = tideover("sweep", sweep_file, "--no-spark", "--out", tmp_path / "plain")
    code, out, err = tideover("sweep", sweep_file, "--out", tmp_path / "spark")
    assert (code, err) == (0, "")
    assert out.replace(str(tmp_path / "spark"), "") == plain[1].replace(str(tmp_path / "plain"), "")
    pages = [(tmp_path / name / "report.html").read_bytes() for name in ("plain", "spark")]
    assert pages[0] == pages[1]


def test_the_dataset_may_lie_elsewhere(tideover, sweep_file, tmp_path):
    """A directory or a URL; without Spark only a directory of this machine."""
    code, _, _ = tideover("sweep", sweep_file, "--no-spark", "--data", (tmp_path / "data").as_uri())
    assert code == 0
    assert len(package.load(tmp_path / "data").runs) == 8
    code, _, err = tideover("sweep", sweep_file, "--no-spark", "--data", "s3a://bucket/sweep")
    assert (code, err) == (
        2,
        "--data: s3a://bucket/sweep: only Spark reaches that; name a directory of this machine\n",
    )
    address = "sc://no-such-host:1"
    code, _, err = tideover("sweep", sweep_file, "--remote", address, "--data", "hdfs://name/sweep")
    assert code == 2
    assert "--data: hdfs://name/sweep: cannot be written over Spark Connect" in err


def test_a_failed_run_is_told_and_makes_the_exit_code_1(tideover, sweep_file, tmp_path, monkeypatch):
    from tideover.scenarios import runs
    from tideover.scenarios.sweeps import engine

    simulate = runs.simulate

    def fail(scenario, number, **more):
        if number == 1 and scenario.failures[0].at == 50_000_000_000:
            raise ArithmeticError("so it is")
        return simulate(scenario, number, **more)

    monkeypatch.setattr(engine, "simulate", fail)
    code, out, err = tideover("sweep", sweep_file, "--no-spark", "--out", tmp_path / "out")
    assert code == 1
    first = "point 1, replication 1: ArithmeticError: so it is"
    assert err == f"tideover: 2 of 8 runs failed; the first: {first}\n"
    assert "1/2" in out
    assert package.load(tmp_path / "out").runs["error"].notna().sum() == 2
    monkeypatch.setattr(engine, "simulate", simulate)
    again = ["sweep", sweep_file, "--no-spark", "--out", tmp_path / "out"]
    assert tideover(*again)[0] == 1
    assert "2 of those that are there failed" in tideover(*again, "--dry-run")[1]
    assert tideover(*again, "--retry-failed")[0] == 0
    assert tideover(*again)[0] == 0
    monkeypatch.setattr(engine, "simulate", fail)
    code, _, err = tideover("sweep", sweep_file, "--no-spark", "--fail-fast")
    assert (code, err) == (1, "tideover: 2 of 8 runs failed, and no more were begun\n")
    monkeypatch.setattr(runs, "simulate", fail)
    code, out, err = tideover("run", "wordcount", "--set", "failures.0.at=50s", "--set", "run.replications=2")
    assert (code, out, err) == (1, "", "tideover: replication 1: ArithmeticError: so it is\n")
