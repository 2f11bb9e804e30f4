"""The light installation: without Spark all but real runs of it works, and that is said once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import tideover

ROOT = Path(__file__).parents[1]
SHORT = ["--set", "run.replications=1", "--set", "run.duration=100s"]
ABSENT = 'Spark is not installed; pip install "tideover[spark]" brings it'
SPEC = """
name: two points
scenario: wordcount
set: {run.duration: 100 s, strategy.kind: rsm}
grid: {topology.sentences.rate: [5/s, 10/s]}
replications: 1
"""


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Python as if PySpark were not installed."""
    folder = tmp_path_factory.mktemp("without")
    absent = "import sys\nsys.modules['pyspark'] = sys.modules['py4j'] = None\n"
    (folder / "sitecustomize.py").write_text(absent)
    return os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def call(env: dict[str, str], folder: Path, *args: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "tideover", *args]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "wordcount", "--strategies", "source_replay,rsm", *SHORT, "--out", "out"],
        ["explore", "--export", "page.html", "--grid", "moment=70", "--strategies", "rsm,none"],
        ["calibrate", "--from", str(ROOT / "examples" / "recoveries.csv"), "--out", "fitted"],
        ["doctor"],
    ],
    ids=lambda command: command[0],
)
def test_what_needs_no_spark_says_nothing_of_it(
    env: dict[str, str], tmp_path: Path, command: list[str]
) -> None:
    code, out, err = call(env, tmp_path, *command)
    assert code == 0, err
    assert out or (tmp_path / "page.html").exists()
    assert "pip install" not in err


def test_a_sweep_is_done_here_and_that_is_said_once(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(SPEC)
    code, out, err = call(env, tmp_path, "sweep", "grid.yaml", "--json")
    assert code == 0, err
    assert err.count(f"Note: runs are done in this process, one after another: {ABSENT}") == 1
    asked = ("sweep", "grid.yaml", "--json", "--no-spark")
    same = call(os.environ | {"PYTHONPATH": str(ROOT)}, tmp_path, *asked)
    assert json.loads(out) == json.loads(same[1])
    assert "Spark" not in call(env, tmp_path, *asked)[2]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["sweep", "wordcount-sweep", "--master", "local[2]"], "--master: "),
        (["sweep", "wordcount-sweep", "--remote", "sc://localhost:1"], "--remote: "),
        (["plan", str(ROOT / "examples" / "small-plan.yaml"), "--conf", "spark.cores.max=2"], "--conf: "),
        (["sweep", "--package", "measured"], "--package: "),
        (["calibrate", "--quick", "--out", "measured"], "calibrate: it measures on Spark, unless --from "),
    ],
)
def test_what_needs_spark_says_how_to_have_it(
    env: dict[str, str], tmp_path: Path, command: list[str], said: str
) -> None:
    code, out, err = call(env, tmp_path, *command)
    assert (code, out) == (2, "")
    assert err.startswith(said)
    assert err.endswith(f"{ABSENT}\n")
    assert not (tmp_path / "measured").exists()


def test_texts_as_pandas_3_has_them_change_nothing() -> None:
    """Its own type for texts, with NaN for what is missing; older ones have it as an option."""

    def found() -> tuple[object, ...]:
        grid = {"queues": [None, 100], "strategy.kind": ["active_replication", "none"]}
        spec = {"scenario": "ksafety-throughput", "grid": grid, "replications": 1}
        swept = tideover.sweep(spec, master=None)
        return swept.to_list(), swept.differences.to_csv(), swept.runs.to_csv(), swept.recoveries.to_csv()

    before = found()
    assert [point["swept"]["queues"] for point in before[0]] == [None, None, "100", "100"]
    with pd.option_context("future.infer_string", True):
        assert found() == before


def test_python_warns_and_goes_on(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(SPEC)
    program = (
        "import warnings, tideover\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    print(len(tideover.sweep('grid.yaml').runs))\n"
        "print([str(one.message) for one in said if one.category is UserWarning])\n"
        "for asked in dict(master='local[2]'), dict(conf={'spark.cores.max': 2}), dict(archive='x.tar.gz'):\n"
        "    try: tideover.sweep('grid.yaml', **asked)\n"
        "    except RuntimeError as error: print(error)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)
    warned = str([f"runs are done in this process, one after another: {ABSENT}"])
    assert done.stdout.splitlines() == ["2", warned, *[ABSENT] * 3], done.stderr
