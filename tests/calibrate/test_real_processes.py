"""Only what we started is ended: processes are known by a tag in their environment."""

import os
import subprocess
import sys

import psutil
import pytest

from tideover.calibrate.real import processes, supervisor
from tideover.calibrate.real.processes import TAG, Registry

WAIT = "import sys; print('there', flush=True); sys.stdin.read()"


@pytest.fixture
def start():
    """Starts processes that wait; ends those that are left."""
    started = []

    def begin(tag=None, code=WAIT):
        env = {**os.environ, **({TAG: tag} if tag else {})}
        pipe = subprocess.PIPE
        process = subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, env=env)
        started.append(process)
        assert process.stdout.readline() == b"there\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_what_an_earlier_calibration_left_is_ended_and_nobody_else(start, tmp_path):
    """The tag is on file before the process exists, so even one whose pid was never noted is found."""
    earlier = Registry(tmp_path / "processes.json")
    noted, unnoted = (earlier.new_tag() for _ in range(2))
    ours = [start(noted), start(unnoted)]
    earlier.note(noted, ours[0].pid)
    stranger, another_calibration = start(), start("0" * 32)

    now = Registry(tmp_path / "processes.json")
    assert {entry.get("pid") for entry in now.entries()} == {ours[0].pid, None}
    assert sorted(now.end_leftovers()) == sorted(process.pid for process in ours)
    assert not any(psutil.pid_exists(process.pid) for process in ours)
    assert [stranger.poll(), another_calibration.poll()] == [None, None]
    assert now.entries() == []
    assert now.end_leftovers() == []


def test_children_inherit_the_tag(start, tmp_path):
    registry = Registry(tmp_path / "processes.json")
    tag = registry.new_tag()
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    parent = start(tag, f"import sys; sys.argv.append({WAIT!r}); " + code)
    (child,) = psutil.Process(parent.pid).children()
    assert {process.pid for process in processes.tagged([tag])} == {parent.pid, child.pid}
    assert set(registry.end_leftovers()) == {parent.pid, child.pid}
    assert not psutil.pid_exists(child.pid) or psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE


def test_a_stopped_process_is_ended_too(start, tmp_path):
    registry = Registry(tmp_path / "processes.json")
    process = start(tag := registry.new_tag())
    psutil.Process(process.pid).suspend()
    assert processes.end([tag]) == [process.pid]
    assert not psutil.pid_exists(process.pid)


def test_executors_are_known_by_tag_and_number_the_oldest_first(start):
    """Descendants of the driver that carry the tag on their command line; its other children do not count."""
    code = """
import subprocess, sys
wait = "import sys; sys.stdin.read()"
for words in ("tag --executor-id 10", "tag --executor-id 9", "tag", "x --executor-id 1"):
    subprocess.Popen([sys.executable, "-c", wait, *words.split()])
print("there", flush=True)
sys.stdin.read()
"""
    driver = start(code=code)
    assert list(supervisor.executors(driver.pid, "tag")) == [9, 10]
    for child in psutil.Process(driver.pid).children():
        child.kill()
