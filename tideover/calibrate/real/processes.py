"""What calibrations on real engines share: the processes that they start, and how to be rid of them.

A supervisor of an engine starts processes with a tag from a `Registry`, notes what happens in an `EventLog`,
and looks at what else the machine does (`OtherWork`).
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import sys
import threading
import time
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

import tideover
from tideover.scenarios.java import JavaNotFound, find_java

TAG = "TIDEOVER_TAG"
"""The environment variable by which a process is known as ours."""

# Each process gets a tag, a long random name in its environment, which all its descendants inherit. The tags
# are in a file before the process is started. So whatever happens to us, the next start finds what is left,
# and a stranger's process is never taken for ours.

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
        rest = [entry for entry in self.entries() if entry["tag"] != tag]
        created = None
        with suppress(psutil.NoSuchProcess):
            created = psutil.Process(pid).create_time()
        self._write([*rest, {"tag": tag, "pid": pid, "created": created}])

    def entries(self) -> list[dict[str, Any]]:
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
        # Else it has ended, or belongs to somebody else: not ours in any case.
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(TAG) in tags:
                found.append(process)
    return found


def end(tags: Collection[str]) -> list[int]:
    """SIGKILL all processes with one of the tags, and wait until they are gone; returns their pids. Raises
    RuntimeError if one of them does not go away.
    """
    ended: list[int] = []
    while tags and (found := tagged(tags)):
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.kill()  # psutil compares the creation time first
        _, left = psutil.wait_procs(found, timeout=_PATIENCE_S)
        if left:
            raise RuntimeError(f"these processes of the calibration cannot be ended: {left}")
        ended += [process.pid for process in found]
    return ended


class EventLog:
    """Appends events to a file, the raw record of a session: one JSON object a line, with its unix time (s).
    Several threads may do so. A process that is killed loses none of them.
    """

    def __init__(self, path: Path, **always: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()
        self._always = always

        self.close = self._file.close

    def write(self, event: str, at: float | None = None, **details: Any) -> None:
        at = time.time() if at is None else at
        line = json.dumps({"event": event, "at": at, **self._always, **details})
        with self._lock:
            self._file.write(line + "\n")


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a file. A last line that was cut off by a kill is left out."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


class OtherWork:
    """Tells how many cores were busy, on average since the last look, with processes that are not ours, which
    disturb what is measured. Looking takes some ms.
    """

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._busy = _busy()
        self._ours: dict[tuple[int, float], float] | None = None

    def look(self, roots: Iterable[int]) -> float | None:
        """Cores busy with others; None at the first look, and less than a second after the last. ``roots``:
        the pids of our processes; their descendants are ours too.
        """
        now = time.monotonic()
        if now - self._at < 1.0:
            return None
        busy, ours = _busy(), _spent(roots)
        others = None
        if self._ours is not None:
            own = sum(spent - self._ours.get(process, 0.0) for process, spent in ours.items())
            others = max(0.0, (busy - self._busy - own) / (now - self._at))
        self._at, self._busy, self._ours = now, busy, ours
        return others


def _busy() -> float:
    """CPU time, in s, that all cores have spent on anything."""
    times = psutil.cpu_times()
    return sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))


def _spent(roots: Iterable[int]) -> dict[tuple[int, float], float]:
    """CPU time, in s, of these processes and their descendants, by pid and time of creation."""
    found = {}
    for root in roots:
        with suppress(psutil.Error):
            parent = psutil.Process(root)
            for process in [parent, *parent.children(recursive=True)]:
                with suppress(psutil.Error):
                    times = process.cpu_times()
                    found[process.pid, process.create_time()] = times.user + times.system
    return found


def machine() -> dict[str, str]:
    memory = psutil.virtual_memory().total / 2**30
    processor = platform.processor() or platform.machine()
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        processor = next(models, processor)
    return {
        "tideover": tideover.__version__,
        "python": platform.python_version(),
        "os": platform.system(),
        "machine": f"{processor}, {psutil.cpu_count()} cores, {memory:.0f} GiB",
    }


NEEDED_BYTES = 3 * 2**30
"""Free memory for two queries of a driver and two executors each; or for a JobManager and three TaskManagers,
of which one is ending."""


def requirements() -> list[str]:
    """What keeps this machine from running a calibration, each as a sentence."""
    problems = []
    if platform.system() not in ("Linux", "Darwin"):
        problems.append(
            f"A calibration stops and kills processes by POSIX signals, which {platform.system()} "
            "does not have; Linux and macOS do."
        )
    if find_java() is None:
        problems.append(str(JavaNotFound()))
    free = psutil.virtual_memory().available
    if free < NEEDED_BYTES:
        problems.append(
            f"A calibration needs {NEEDED_BYTES / 2**30:.0f} GiB of free memory, and there are "
            f"{free / 2**30:.1f} GiB: close other programs, or calibrate on another machine."
        )
    return problems


class NotPossible(RuntimeError):
    """A calibration cannot run here, or not now. The message says why."""


PRINTED = " It printed last:"
"""Ends the line that says why a session failed; what follows was printed by the engine."""


class SessionFailed(RuntimeError):
    """A session could not be carried out. The message says why."""


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold this directory for the length of the block; the lock goes away with the process, however it ends.
    Raises NotPossible if somebody else holds it.
    """
    with (out / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise NotPossible(
                f"{out}: another calibration is at work there; wait, or choose --out"
            ) from error
        yield
