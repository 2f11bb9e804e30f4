"""The same sweep wherever Spark runs and whatever is killed: the same dataset, its rows byte for byte."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest

from tests.sweeps import as_read
from tideover.scenarios.java import find_java, java_environment

SPARK = Path(pyspark.__file__).parent
START_S = 300.0
_TOGETHER = '("$@" < /dev/null; kill -9 0) & cat > /dev/null; kill -9 0'
"""A shell's program: a command that ends when the shell's input does, with all of its process group."""
_DAEMON = {
    "SPARK_DAEMON_MEMORY": "512m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def standalone(workers: int = 2, python: str = sys.executable, **variables: str) -> Iterator[str]:
    """Spark's own cluster, workers of one core each; gives the master's address.

    ``python``: what the workers run, if nobody says otherwise; ``variables``: of the workers' environment.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        ports = ["--port", "0", "--webui-port", "0"]
        master = stack.enter_context(
            _process(
                scratch / "master.log",
                ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", *ports],
                r"Starting Spark master at (spark://\S+)",
            )
        )
        for number in range(workers):
            directory = scratch / f"worker-{number}"
            # Spark runs no second attempt of a task on the host of the first one, so each has an address.
            host = f"127.0.0.{1 + number}"
            stack.enter_context(
                _process(
                    scratch / f"worker-{number}.log",
                    [
                        "org.apache.spark.deploy.worker.Worker",
                        *("--host", host, *ports),
                        *("--cores", "1", "--memory", "1g", "--work-dir", str(directory)),
                        master,
                    ],
                    r"Successfully registered with master (\S+)",
                    {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": host, **variables},
                )
            )
        yield master


@contextmanager
def connect_server(master: str = "local[2]", **conf: str) -> Iterator[str]:
    """A Spark Connect server with this master; gives its address. ``conf``: settings, __ for each dot."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "INFO",
        **{key.replace("__", "."): value for key, value in conf.items()},
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        command = [
            "org.apache.spark.deploy.SparkSubmit",
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", master),
            *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
            "spark-internal",
        ]
        pattern = r"Spark Connect server started at: (\S+)"
        with _process(Path(scratch) / "server.log", command, pattern) as address:
            yield f"sc://{address}"


@contextmanager
def _process(
    log: Path, command: list[str], ready: str, variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A process of Spark; gives what the pattern finds in what it prints once it is ready.

    It leads a session of its own, and dies with all that it started when the pipe to it closes: at the end of
    the block, and also when this process is killed.
    """
    java = find_java()
    assert java is not None
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))
    }
    environment |= {
        **java_environment(java),
        **_DAEMON,
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        **(variables or {}),
    }
    with log.open("wb") as printed:
        process = subprocess.Popen(
            ["sh", "-c", _TOGETHER, "sh", SPARK / "bin" / "spark-class", *command],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            cwd=log.parent,
            env=environment,
            start_new_session=True,
        )
    try:
        yield _found(ready, log, process)
    finally:
        process.communicate()
        while _session(process.pid):  # the workers' Pythons end when they find that their executor has
            time.sleep(0.05)


def _found(pattern: str, log: Path, process: "subprocess.Popen[bytes]") -> str:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        if match := re.search(pattern, log.read_text(errors="replace")):
            return match[1]
        time.sleep(0.05)
    raise AssertionError(f"Spark's process is not ready:\n{log.read_text(errors='replace')[-3000:]}")


def _session(leader: int) -> list[int]:
    """The processes in a session of processes, those that are only remembered left out."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getsid(process.pid) == leader and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except ProcessLookupError:
            continue
    return found


pytestmark = [pytest.mark.spark, pytest.mark.long]

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
    # By a path that is the same each time: the manifest has a hash of it.
    command = [sys.executable, "-m", "tideover", "sweep", "./sweep.yaml", "--out", str(out), *options]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable} | variables
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return as_read(out / "dataset")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What the sweep gives on one core, embedded."""
    found = dataset(tmp_path_factory.mktemp("here") / "one", "--master", "local[1]")
    assert {"manifest.json", "points/part-00000.parquet"} <= found.keys()
    return found


@contextmanager
def connected_to_a_cluster() -> Iterator[str]:
    with standalone() as master, connect_server(master) as address:
        yield address


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("--master", partial(nullcontext, "local[2,4]")),
        ("--master", partial(nullcontext, "local-cluster[2,1,1024]")),
        ("--master", standalone),
        ("--remote", connect_server),
        ("--remote", connected_to_a_cluster),
    ],
    ids=["processes", "executors of this machine", "cluster", "server", "server before a cluster"],
)
def test_each_place_gives_the_same(here, tmp_path, option, place):
    with place() as address:
        more = ("--conf", "spark.speculation=true") if address.startswith("local") else ()
        assert dataset(tmp_path / "there", option, address, *more) == here


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


def test_bare_workers_of_a_cluster_need_nothing_but_the_archive(here, tmp_path, bare, archive):
    with standalone(1, PATH=bare) as master:
        options = ["--master", master, "--archive", str(archive)]
        assert dataset(tmp_path / "with", *options, PYSPARK_PYTHON=PYTHON) == here
        with pytest.raises(AssertionError, match="No module named"):
            dataset(tmp_path / "without", *options[:2], PYSPARK_PYTHON=PYTHON)


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


SPEC = {
    "scenario": "wordcount",
    "set": {
        "run.duration": "60 s",
        "run.warmup": "10 s",
        "failures.0.at": "30 s",
        "failures.0.within": "5 s",
    },
    "grid": {
        "strategy.kind": ["source_replay", "rsm", "none"],
        "topology.sentences.rate": [f"{rate}/s" for rate in range(10, 50, 2)],
    },
    "replications": 3,
}
SMALL_JOBS = """
import json, sys
import tideover
from tideover.scenarios.sweeps import on_spark, survey
survey.CHUNK_S, on_spark.JOB_S = 0.2, 0.4
tideover.sweep(json.loads(sys.argv[1]), master=sys.argv[2], data=sys.argv[3])
"""
LONGEST_S = 300
"""A sweep that takes longer hangs."""


def begun(place: Path, master: str = "local[2,4]") -> subprocess.Popen[bytes]:
    """A sweep in a process of its own, and a group of its own."""
    command = [sys.executable, "-c", SMALL_JOBS, json.dumps(SPEC), master, str(place)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)


def ended(sweep: subprocess.Popen[bytes]) -> int:
    """Its exit code."""
    try:
        return sweep.wait(LONGEST_S)
    finally:
        os.killpg(sweep.pid, signal.SIGKILL) if sweep.poll() is None else None


def content(place: Path) -> dict[str, bytes]:
    """What counts: the rows of all files, and the manifest; not what dead processes wrote aside."""
    return {path: text for path, text in as_read(place).items() if not path.startswith(".")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The dataset of a sweep that nothing disturbed."""
    place = tmp_path_factory.mktemp("undisturbed") / "data"
    assert ended(begun(place)) == 0
    return place


@pytest.fixture(scope="module")
def undisturbed(whole):
    found = content(whole)
    assert len(found) > 20
    return found


def chunks(place: Path) -> int:
    return len(list(place.glob("data/*.parquet")))


def test_the_driver_is_killed_at_fifty_moments(undisturbed, tmp_path):
    """At random, from its start on; what is there then is never taken back. When all is done it begins anew,
    so that no kill hits a sweep that has nothing to do.
    """
    luck = random.Random(1)
    place, rounds, before = tmp_path / "data", 0, 0
    for _ in range(50):
        sweep = begun(place)
        try:
            sweep.wait(luck.uniform(0.5, 20))
        except subprocess.TimeoutExpired:
            os.killpg(sweep.pid, signal.SIGKILL)
            sweep.wait()
        assert chunks(place) >= before
        before = chunks(place)
        if sweep.returncode == 0:
            assert content(place) == undisturbed
            shutil.rmtree(place)
            rounds, before = rounds + 1, 0
    assert ended(begun(place)) == 0
    assert content(place) == undisturbed


def killing(sweep: subprocess.Popen[bytes], victim: Callable[[psutil.Process], bool], count: int) -> int:
    """Kill so many descendants of a sweep, one after the other, at random; returns how many were."""
    luck, killed = random.Random(2), 0
    driver = psutil.Process(sweep.pid)
    while sweep.poll() is None and killed < count:
        time.sleep(luck.uniform(0.05, 0.6))  # the moment of the next kill
        try:
            found = [one for one in driver.children(recursive=True) if victim(one)]
            if found:
                luck.choice(found).kill()
                killed += 1
        except psutil.NoSuchProcess:
            continue
    return killed


def is_python_worker(process: psutil.Process) -> bool:
    """A fork of PySpark's daemon, which does a task."""
    command = " ".join(process.cmdline())
    parent = process.parent()
    return (
        "pyspark.daemon" in command and parent is not None and "pyspark.daemon" in " ".join(parent.cmdline())
    )


def is_executor(process: psutil.Process) -> bool:
    return "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())


@pytest.mark.parametrize(
    ("victim", "master"),
    [(is_python_worker, "local[2,4]"), (is_executor, "local-cluster[2,1,1024]")],
    ids=["python workers", "executors"],
)
def test_twenty_workers_are_killed(undisturbed, tmp_path, victim, master):
    """Sweep by sweep until there were twenty; each ends by itself, or is gone on with."""
    killed = number = 0
    while killed < 20:
        place = tmp_path / f"{number}" / "data"
        place.parent.mkdir()
        sweep = begun(place, master)
        killed += killing(sweep, victim, 20 - killed)
        if ended(sweep) != 0:  # Spark gave up: too many in too short a time
            assert ended(begun(place, master)) == 0
        assert content(place) == undisturbed
        number += 1


@pytest.fixture
def small_disk(whole, tmp_path):
    """A file system with room for two thirds of the runs."""
    place = tmp_path / "disk"
    place.mkdir()
    pages = [-(-path.stat().st_size // 4096) for path in (whole / "data").iterdir()]
    size = f"size={4096 * sum(pages) * 2 // 3}"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place)], capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs here: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_ends_it_and_with_more_room_it_goes_on(undisturbed, small_disk):
    place = small_disk / "data"
    assert ended(begun(place)) == 1
    there = {path: text for path, text in content(place).items() if path.startswith("data/")}
    assert there
    assert all(undisturbed[path] == text for path, text in there.items())
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert ended(begun(place)) == 0
    assert content(place) == undisturbed


def test_two_resume_at_once(undisturbed, tmp_path):
    """Of a sweep that was killed half-way."""
    place = tmp_path / "data"
    sweep = begun(place)
    while chunks(place) < 5:
        assert sweep.poll() is None
    os.killpg(sweep.pid, signal.SIGKILL)
    both: list[Any] = [begun(place), begun(place)]
    assert [ended(one) for one in both] == [0, 0]
    assert content(place) == undisturbed
