"""Whatever is killed, however often: the dataset ends as that of an undisturbed sweep, byte for byte."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.sweeps import as_read

pytestmark = [pytest.mark.spark, pytest.mark.long]

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
SWEEP = """
import json, sys
import tideover
from tideover.scenarios.sweeps import chunks, on_spark
chunks.CHUNK_S, on_spark.JOB_S = 0.2, 0.4
tideover.sweep(json.loads(sys.argv[1]), master=sys.argv[2], data=sys.argv[3])
"""
LONGEST_S = 300
"""A sweep that takes longer hangs."""


def begun(place: Path, master: str = "local[2,4]") -> subprocess.Popen[bytes]:
    """A sweep in a process of its own, and a group of its own."""
    command = [sys.executable, "-c", SWEEP, json.dumps(SPEC), master, str(place)]
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
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of a sweep that nothing disturbed."""
    place = tmp_path_factory.mktemp("undisturbed") / "data"
    assert ended(begun(place)) == 0
    return place


@pytest.fixture(scope="module")
def undisturbed(whole: Path) -> dict[str, bytes]:
    found = content(whole)
    assert len(found) > 20
    return found


def chunks(place: Path) -> int:
    return len(list(place.glob("data/*.parquet")))


def test_the_driver_is_killed_at_fifty_moments(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
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
def test_twenty_workers_are_killed(
    undisturbed: dict[str, bytes], tmp_path: Path, victim: Callable[[psutil.Process], bool], master: str
) -> None:
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
def small_disk(whole: Path, tmp_path: Path) -> Iterator[Path]:
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


def test_a_full_disk_ends_it_and_with_more_room_it_goes_on(
    undisturbed: dict[str, bytes], small_disk: Path
) -> None:
    place = small_disk / "data"
    assert ended(begun(place)) == 1
    there = {path: text for path, text in content(place).items() if path.startswith("data/")}
    assert there
    assert all(undisturbed[path] == text for path, text in there.items())
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert ended(begun(place)) == 0
    assert content(place) == undisturbed


def test_two_resume_at_once(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    """Of a sweep that was killed half-way."""
    place = tmp_path / "data"
    sweep = begun(place)
    while chunks(place) < 5:
        assert sweep.poll() is None
    os.killpg(sweep.pid, signal.SIGKILL)
    both: list[Any] = [begun(place), begun(place)]
    assert [ended(one) for one in both] == [0, 0]
    assert content(place) == undisturbed
