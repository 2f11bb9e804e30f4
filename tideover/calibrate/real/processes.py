"""Finding and ending the processes that we started, and no others.

Each life of a driver gets a tag, a long random name in its environment, which all its descendants inherit.
The tags are in a file before the process is started. So whatever happens to us, the next start finds what is
left, and a stranger's process is never taken for ours.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tideover.calibrate.real.settings import TAG

_PATIENCE_S = 20.0


class Registry:
    """The file that names the processes that were started: pid, creation time, tag."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def new_tag(self) -> str:
        """A tag, noted before anything carries it."""
        tag = uuid.uuid4().hex
        self._write([*self.entries(), {"tag": tag}])
        return tag

    def note(self, tag: str, pid: int) -> None:
        """The process that was started with this tag."""
        rest = [entry for entry in self.entries() if entry["tag"] != tag]
        try:
            created = psutil.Process(pid).create_time()
        except psutil.NoSuchProcess:
            created = None
        self._write([*rest, {"tag": tag, "pid": pid, "created": created}])

    def entries(self) -> list[dict[str, Any]]:
        """What was started and not yet known to have ended."""
        return json.loads(self.path.read_text()) if self.path.exists() else []

    def end_leftovers(self) -> list[int]:
        """End what carries one of the tags, and forget them; returns the pids. Others are left alone."""
        ended = end({entry["tag"] for entry in self.entries()})
        self._write([])
        return ended

    def _write(self, entries: list[dict[str, Any]]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        aside = self.path.with_suffix(".new")
        aside.write_text(json.dumps(entries, indent=1))
        aside.replace(self.path)


def tagged(tags: Collection[str]) -> list[psutil.Process]:
    """All living processes whose environment holds one of the tags."""
    found = []
    for process in psutil.process_iter():
        if process.pid != os.getpid() and _environment(process).get(TAG) in tags:
            found.append(process)
    return found


def end(tags: Collection[str]) -> list[int]:
    """SIGKILL all processes with one of the tags, and wait until they are gone; returns their pids.

    Raises:
        RuntimeError: one of them does not go away
    """
    ended: list[int] = []
    while tags and (found := tagged(tags)):
        for process in found:
            _kill(process)
        _, left = psutil.wait_procs(found, timeout=_PATIENCE_S)
        if left:
            raise RuntimeError(f"these processes of the calibration cannot be ended: {left}")
        ended += [process.pid for process in found]
    return ended


def executors(driver: int, tag: str) -> dict[int, psutil.Process]:
    """The executors of the driver with this pid and tag, by their number, the oldest first."""
    found = {}
    for process in psutil.Process(driver).children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if "--executor-id" in words and any(tag in word for word in words):
            found[int(words[words.index("--executor-id") + 1])] = process
    return dict(sorted(found.items()))


def end_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL the process group that this process leads: the machine of the driver is gone."""
    if process.poll() is None:  # as long as it is not waited for, its number is nobody else's
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return dict(process.environ())
    except (psutil.Error, OSError):  # it has ended, or it belongs to somebody else: not ours in any case
        return {}


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()  # psutil compares the creation time first
