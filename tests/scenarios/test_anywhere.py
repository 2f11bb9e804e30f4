"""The same sweep wherever Spark runs: the same tables, byte for byte."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scenarios.clusters import connect_server, standalone

SWEEP = """\
name: anywhere
scenario: wordcount
set: {run.duration: 65 s, run.warmup: 30 s, failures.0.within: 0 s}
grid:
  strategy.kind: [none, rsm]
  failures.0.at: [40 s, 50 s]
replications: 2
"""


def tables(directory: Path, *options: str, **variables: str) -> dict[str, bytes]:
    """The tables that the command writes, by name. In a process of its own: it has a session of its own."""
    directory.mkdir()
    (directory / "sweep.yaml").write_text(SWEEP)
    out = directory / "out"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tideover",
            "sweep",
            str(directory / "sweep.yaml"),
            "--out",
            str(out),
            *options,
        ],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.parquet"))}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What the sweep gives without Spark."""
    found = tables(tmp_path_factory.mktemp("here") / "without", "--no-spark")
    assert {"runs.parquet", "recoveries.parquet"} <= found.keys()
    return found


@pytest.mark.spark
def test_a_connect_server_gives_the_same(here, tmp_path):
    with connect_server() as address:
        assert tables(tmp_path / "connect", "--remote", address) == here


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("master", ["local[2,4]", "local-cluster[2,1,1024]"])
def test_processes_of_this_machine_give_the_same(here, tmp_path, master):
    options = ["--master", master, "--conf", "spark.speculation=true"]
    assert tables(tmp_path / "local", *options) == here


@pytest.mark.long
@pytest.mark.spark
def test_a_cluster_of_sparks_own_gives_the_same(here, tmp_path):
    with standalone() as master:
        assert tables(tmp_path / "standalone", "--master", master) == here


@pytest.mark.long
@pytest.mark.spark
def test_a_connect_server_before_a_cluster_gives_the_same(here, tmp_path):
    with standalone() as master, connect_server(master) as address:
        assert tables(tmp_path / "connect", "--remote", address) == here
