"""Runs one session: starts the drivers, does harm when it is planned, stops all that it started.

`campaign` makes a `Supervisor` for each session. The events that it writes are read by `tables`; whatever is
started has to be in the `Registry` first.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

import tideover
from tideover.calibrate.real.pipelines import EventLog, read_events
from tideover.calibrate.real.plan import SPEC, TAG, DriverSpec, Fault, SessionPlan, environment
from tideover.scenarios.java import Java, JavaNotFound, find_java

# Each life of a driver gets a tag, a long random name in its environment, which all its descendants
# inherit. The tags are in a file before the process is started. So whatever happens to us, the next start
# finds what is left, and a stranger's process is never taken for ours.

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


def executors(driver: int, tag: str) -> dict[int, psutil.Process]:
    """The executors of the driver with this pid and tag, by their number, the oldest first."""
    found = {}
    for process in psutil.Process(driver).children(recursive=True):
        with suppress(psutil.Error):
            words = process.cmdline()
            if "--executor-id" in words and any(tag in word for word in words):
                found[int(words[words.index("--executor-id") + 1])] = process
    return dict(sorted(found.items()))


def _progress(checkpoint: Path | None) -> dict[str, float]:
    """The batches of a query that were ``logged`` last and ``committed`` last (-1: none), and ``logged_at``
    (unix time of the former).
    """
    found: dict[str, float] = {"logged": -1, "committed": -1, "logged_at": float("nan")}
    if checkpoint is not None:
        for key, name in (("logged", "offsets"), ("committed", "commits")):
            names = [path.name for path in (checkpoint / name).glob("*")]
            found[key] = max((int(name) for name in names if name.isdigit()), default=-1)
        with suppress(OSError):
            found["logged_at"] = (checkpoint / "offsets" / str(found["logged"])).stat().st_mtime
    return found


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


NEEDED_BYTES = 3 * 2**30
"""Free memory for two queries of a driver and two executors each."""


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


def requirements() -> list[str]:
    """What keeps this machine from running a calibration, each as a sentence; nothing if all is well."""
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


_TICK_S = 0.2
_START_S = 180.0
"""A driver that is not ready by then, on however slow a machine, will not be."""

_DRAIN_S = 90.0
"""How long after the end of the input its last results may take."""

_LOOK_S = 0.3
"""Looking for a victim takes a moment, so it begins this long before the strike."""

PRINTED = " It printed last:"
"""Ends the line that says why a session failed; what follows was printed by Spark."""


class SessionFailed(RuntimeError):
    """A session could not be carried out. The message ends with what Spark printed last."""


@dataclass(eq=False)
class Supervisor:
    """Carries out one session in an empty directory of its own; started processes are noted in the registry,
    and ``progress`` is called with the seconds since t0 while the session goes on.
    """

    plan: SessionPlan
    directory: Path
    registry: Registry
    java: Java
    progress: Callable[[float], None]

    def __post_init__(self) -> None:
        self.scratch = self.directory / "scratch"
        self.log = EventLog(self.directory / "supervisor.jsonl")
        self.queries: dict[int, tuple[DriverSpec, subprocess.Popen[bytes]]] = {}  # in their present lives
        self.others = OtherWork()
        self.t0 = 0

    def run(self) -> None:
        """From the start to the end; whatever happens, no process is left. Raises SessionFailed if a driver
        did not start, ended by itself, had nothing to kill, or did not get done.
        """
        plan = self.plan
        try:
            for number in range(plan.queries):
                self._spawn(number, life=0)
            self._wait(self._ready, _START_S, "Spark is not ready")
            # The windows are aligned to the epoch, and the first shall begin with the input.
            self.t0 = (int(time.time()) // plan.window_s + 1) * plan.window_s
            begun = {"t0": self.t0, "java": f"{self.java.version}", "plan": asdict(plan)}
            (self.directory / "session.json").write_text(json.dumps(begun, indent=1))
            for number in self.queries:
                self._tell(number)
            for number, episode in enumerate(plan.episodes):
                if episode.fault is not None:
                    self._strike(number, episode.begin_s + episode.fault.at_s, episode.fault)
            self._until(plan.end_s)
            self._wait(self._drained, _DRAIN_S, "the last rows are not counted")
        finally:
            for _, process in self.queries.values():
                if process.poll() is None:  # as long as it is not waited for, its number is nobody else's
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                if process.stdin is not None:
                    with suppress(BrokenPipeError):
                        process.stdin.close()
            self.registry.end_leftovers()
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.log.close()

    def _spawn(self, number: int, life: int) -> None:
        scratch = self.scratch / f"{number}-{life}"
        scratch.mkdir(parents=True)
        spec = DriverSpec(self.plan, number, life, self.registry.new_tag(), self.directory, scratch)
        path = scratch / "spec.json"
        path.write_bytes(SPEC.dump_json(spec))
        self.log.write("spawn", query=number, life=life)
        with (self.directory / "printed.log").open("ab") as printed:
            process = subprocess.Popen(
                [sys.executable, "-m", "tideover.calibrate.real.driver", str(path)],
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=printed,
                env=environment(self.java, spec.tag, scratch),
                start_new_session=True,  # a process group of its own, which can be ended as a whole
            )
        self.queries[number] = spec, process
        self.registry.note(spec.tag, process.pid)

    def _tell(self, number: int) -> None:
        """Tell a driver when the input begins; it reads that when it is ready."""
        _, process = self.queries[number]
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, as _look_after will say
            process.stdin.write(json.dumps({"t0": self.t0}).encode() + b"\n")
            process.stdin.flush()

    def _ready(self) -> bool:
        specs = [spec for spec, _ in self.queries.values()]
        return all(any(e["event"] == "ready" for e in read_events(spec.events)) for spec in specs)

    def _drained(self) -> bool:
        rows = self.plan.schedule(self.t0).rows
        for spec, _ in self.queries.values():
            events = list(read_events(spec.events))
            last = [e["batch"] for e in events if e["event"] == "in_sink" and e["end_row"] == rows]
            if not any(e["event"] == "progress" and e["progress"]["batchId"] in last for e in events):
                return False
        return True

    def _wait(self, condition: Callable[[], bool], limit_s: float, otherwise: str) -> None:
        begun = time.time()
        while not condition():
            self._look_after()
            if time.time() - begun > limit_s:
                raise self._failed(f"{otherwise} after {limit_s:.0f} s")
            time.sleep(_TICK_S)

    def _until(self, moment_s: float) -> None:
        while (left := self.t0 + moment_s - time.time()) > 0:
            self._look_after()
            cores = self.others.look([os.getpid(), *(process.pid for _, process in self.queries.values())])
            if cores is not None:
                self.log.write("others", cores=cores)
            self.progress(moment_s - left)
            time.sleep(min(left, _TICK_S))

    def _look_after(self) -> None:
        for _, process in self.queries.values():
            if process.poll() is not None:
                raise self._failed(f"a driver ended by itself with code {process.returncode}")

    def _failed(self, what: str) -> SessionFailed:
        logs = [self.directory / "printed.log", *sorted(self.scratch.glob("*/spark.log"))]
        words = "\n".join(path.read_text(errors="replace")[-1500:] for path in logs if path.exists())
        return SessionFailed(f"session {self.plan.name}: {what}.{PRINTED}\n{words.strip()}")

    def _strike(self, number: int, at_s: float, fault: Fault) -> None:
        """Do what the fault of an episode is, ``at_s`` s after t0, and what follows from it."""
        self._until(at_s - _LOOK_S)
        spec, process = self.queries[fault.query]
        if fault.kind == "kill_driver":
            self._harm(number, at_s, fault, -1, lambda: os.killpg(process.pid, signal.SIGKILL))
            process.wait()
            self._spawn(fault.query, spec.life + 1)
            self._tell(fault.query)
            return
        there = executors(process.pid, spec.tag)
        if not there:
            what = "there is no executor that could be killed or stopped"
            raise SessionFailed(f"session {self.plan.name}: {what}")
        # The one that is there longest is the one that holds state, since state stays where it is.
        victim, executor = next(iter(there.items()))
        if fault.kind == "kill_executor":
            self._harm(number, at_s, fault, victim, executor.kill)
            return
        struck = self._harm(number, at_s, fault, victim, executor.suspend)
        self._until(struck - self.t0 + fault.stop_s)
        executor.resume()
        self.log.write("continued", episode=number, query=fault.query, executor=victim)

    def _harm(self, number: int, at_s: float, fault: Fault, victim: int, harm: Callable[[], None]) -> float:
        """Wait for the moment, look at the query's logs, do harm at once, and note it with the victim (number
        of the executor; -1: the driver); returns when it was done (unix time).
        """
        spec, _ = self.queries[fault.query]
        begun = [event["checkpoint"] for event in read_events(spec.events) if event["event"] == "query"]
        time.sleep(max(0.0, self.t0 + at_s - time.time()))
        progress = _progress(Path(begun[-1]) if begun else None)
        at = time.time()
        harm()
        about = {"episode": number, "kind": fault.kind, "query": spec.query, "life": spec.life}
        self.log.write("fault", at, **about, victim=victim, **progress)
        return at
