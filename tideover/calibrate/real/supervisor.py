"""Runs one session: starts the drivers, does harm when it is planned, stops all that it started.

`campaign` makes a `Supervisor` for each session. The events that it writes are read by `tables`; whatever is
started has to be in the `Registry` first.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from tideover.calibrate.real.plan import SPEC, DriverSpec, Fault, SessionPlan, environment
from tideover.calibrate.real.processes import (
    PRINTED,
    EventLog,
    OtherWork,
    Registry,
    SessionFailed,
    read_events,
)
from tideover.scenarios.java import Java


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


NEEDED_BYTES = 3 * 2**30
"""Free memory for two queries of a driver and two executors each."""


_TICK_S = 0.2
_START_S = 180.0
"""A driver that is not ready by then, on however slow a machine, will not be."""

_DRAIN_S = 90.0
"""How long after the end of the input its last results may take."""

_LOOK_S = 0.3
"""Looking for a victim takes a moment, so it begins this long before the strike."""


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
