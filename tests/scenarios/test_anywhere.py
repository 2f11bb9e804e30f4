"""The same sweep wherever Spark runs: the same dataset, its rows byte for byte."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.scenarios.clusters import connect_server, standalone
from tests.sweeps import as_read

SWEEP = """\
name: anywhere
scenario: wordcount
set: {run.duration: 65 s, run.warmup: 30 s, failures.0.within: 0 s}
grid:
  strategy.kind: [none, rsm]
  failures.0.at: [40 s, 50 s]
replications: 2
"""


def dataset(directory: Path, *options: str, **variables: str) -> dict[str, bytes]:
    """The files of the dataset that the command writes, in a process that has a session of its own."""
    directory.mkdir()
    (directory / "sweep.yaml").write_text(SWEEP)
    out = directory / "out"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tideover",
            "sweep",
            "./sweep.yaml",  # by a path that is the same each time: the manifest has a hash of it
            "--out",
            str(out),
            *options,
        ],
        cwd=directory,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return as_read(out / "dataset")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What the sweep gives on one core, embedded."""
    found = dataset(tmp_path_factory.mktemp("here") / "one", "--master", "local[1]")
    assert {"manifest.json", "points/part-00000.parquet"} <= found.keys()
    return found


@pytest.mark.long
@pytest.mark.spark
def test_a_connect_server_gives_the_same(here, tmp_path):
    with connect_server() as address:
        assert dataset(tmp_path / "connect", "--remote", address) == here


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("master", ["local[2,4]", "local-cluster[2,1,1024]"])
def test_processes_of_this_machine_give_the_same(here, tmp_path, master):
    options = ["--master", master, "--conf", "spark.speculation=true"]
    assert dataset(tmp_path / "local", *options) == here


@pytest.mark.long
@pytest.mark.spark
def test_a_cluster_of_sparks_own_gives_the_same(here, tmp_path):
    with standalone() as master:
        assert dataset(tmp_path / "standalone", "--master", master) == here


@pytest.mark.long
@pytest.mark.spark
def test_a_connect_server_before_a_cluster_gives_the_same(here, tmp_path):
    with standalone() as master, connect_server(master) as address:
        assert dataset(tmp_path / "connect", "--remote", address) == here


@pytest.fixture
def bare(tmp_path):
    """Where commands are found by workers whose Python has no package at all."""
    venv.create(tmp_path / "bare", with_pip=False)
    return f"{tmp_path / 'bare' / 'bin'}:{os.defpath}"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "workers.tar.gz"
    command = [sys.executable, "-m", "tideover", "sweep", "--package", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.long
@pytest.mark.spark
def test_bare_workers_of_a_cluster_need_nothing_but_the_archive(here, tmp_path, bare, archive):
    with standalone(1, PATH=bare) as master:
        options = ["--master", master, "--archive", str(archive)]
        assert dataset(tmp_path / "with", *options, PYSPARK_PYTHON=PYTHON) == here
        with pytest.raises(AssertionError, match="No module named"):
            dataset(tmp_path / "without", *options[:2], PYSPARK_PYTHON=PYTHON)


@pytest.mark.long
@pytest.mark.spark
def test_bare_workers_of_a_server_need_nothing_but_the_archive(here, tmp_path, bare, archive, monkeypatch):
    monkeypatch.setenv("PATH", bare)
    with connect_server() as address:
        assert dataset(tmp_path / "with", "--remote", address, "--archive", str(archive)) == here


SPECULATION = """
import sys, time
from pathlib import Path
from tideover.scenarios.spark.session import spark_session

out, seen = Path(sys.argv[1]), Path(sys.argv[2])

def slow_at_first(frames):
    from pyspark import TaskContext
    attempt, part = TaskContext.get().attemptNumber(), TaskContext.get().partitionId()
    for frame in frames:
        (seen / f"{part}-{attempt}").touch()
        while part == 3 and attempt == 0 and not (seen / "3-1").exists():
            time.sleep(0.02)
        yield frame  # of the fourth part, from both attempts at once

conf = {"spark.speculation": True, "spark.speculation.interval": "50ms", "spark.speculation.quantile": 0.5,
        "spark.speculation.multiplier": 1.1, "spark.speculation.minTaskRuntime": "50ms"}
with spark_session(sys.argv[3], conf=conf) as spark:
    numbers = spark.range(0, 400, 1, 4).mapInPandas(slow_at_first, "id long")
    numbers.write.parquet(out.as_uri())
    print(sorted(row.id for row in spark.read.parquet(out.as_uri()).collect()) == list(range(400)))
    print(sorted(path.name for path in seen.iterdir()))
    print(len(list(out.glob("part-*.parquet"))))
"""


@pytest.mark.long
@pytest.mark.spark
def test_speculation_doubles_no_row(tmp_path):
    """A task's first attempt waits for its second one, so both write, and end together; one counts."""
    (tmp_path / "seen").mkdir()
    with standalone() as master:
        done = subprocess.run(
            [sys.executable, "-c", SPECULATION, str(tmp_path / "out"), str(tmp_path / "seen"), master],
            env=os.environ | {"PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    rows, attempts, files = done.stdout.splitlines()
    assert rows == "True", done.stderr
    assert "'3-0', '3-1'" in attempts
    assert files == "4"
