"""Runs one session: starts the drivers, does harm when it is planned, starts a lost driver anew."""

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
from typing import Any

from tideover.calibrate.real import faults, processes
from tideover.calibrate.real.events import EventLog, read_events
from tideover.calibrate.real.load import OtherWork
from tideover.calibrate.real.plan import SPEC, DriverSpec, Fault, SessionPlan
from tideover.calibrate.real.settings import environment
from tideover.scenarios.java import Java

_TICK_S = 0.02
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


@dataclass(frozen=True)
class _Query:
    """The driver of one query, in its present life."""

    spec: DriverSpec
    process: subprocess.Popen[bytes]


@dataclass(eq=False)
class Supervisor:
    """Carries out one session in a directory of its own.

    directory: of the session, empty. registry: where started processes are noted. java: what Spark runs on.
    progress: called with the seconds since t0 while the session goes on.
    """

    plan: SessionPlan
    directory: Path
    registry: processes.Registry
    java: Java
    progress: Callable[[float], None]

    def __post_init__(self) -> None:
        self.scratch = self.directory / "scratch"
        self.log = EventLog(self.directory / "supervisor.jsonl")
        self.queries: dict[int, _Query] = {}
        self.others = OtherWork()
        self.t0 = 0

    def run(self) -> None:
        """From the start to the end; whatever happens, no process is left.

        Raises:
            SessionFailed: a driver did not start, ended by itself, or did not get done
        """
        try:
            for number in range(self.plan.queries):
                self._spawn(number, life=0)
            self._wait(self._ready, _START_S, "Spark is not ready")
            # The windows are aligned to the epoch, and the first shall begin with the input.
            self.t0 = (int(time.time()) // self.plan.window_s + 1) * self.plan.window_s
            self._write_beginning()
            for query in self.queries.values():
                self._tell(query)
            for number, episode in enumerate(self.plan.episodes):
                if episode.fault is not None:
                    self._strike(number, episode.begin_s + episode.fault.at_s, episode.fault)
            self._until(self.plan.end_s)
            self._wait(self._drained, _DRAIN_S, "the last rows are not counted")
        except faults.NoVictim as error:
            raise SessionFailed(f"session {self.plan.name}: {error}") from error
        finally:
            self._end()
            self.log.close()

    # The drivers.

    def _spawn(self, number: int, life: int) -> None:
        """Start the driver of a query, in this life of it."""
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
        self.queries[number] = _Query(spec, process)
        self.registry.note(spec.tag, process.pid)

    def _tell(self, query: _Query) -> None:
        """Tell a driver when the input begins; it reads that when it is ready."""
        assert query.process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, as _look_after will say
            query.process.stdin.write(json.dumps({"t0": self.t0}).encode() + b"\n")
            query.process.stdin.flush()

    def _events(self) -> list[list[dict[str, Any]]]:
        """What each query's driver has noted in its present life."""
        return [list(read_events(query.spec.events)) for query in self.queries.values()]

    def _ready(self) -> bool:
        return all(any(e["event"] == "ready" for e in events) for events in self._events())

    def _drained(self) -> bool:
        """Whether every query has ended a batch that reaches to the last row."""
        rows = self.plan.schedule(self.t0).rows
        for events in self._events():
            last = [e["batch"] for e in events if e["event"] == "in_sink" and e["end_row"] == rows]
            if not any(e["event"] == "progress" and e["progress"]["batchId"] in last for e in events):
                return False
        return True

    def _write_beginning(self) -> None:
        found = {"t0": self.t0, "java": f"{self.java.version}", "plan": asdict(self.plan)}
        (self.directory / "session.json").write_text(json.dumps(found, indent=1))

    # Time.

    def _wait(self, condition: Callable[[], bool], limit_s: float, otherwise: str) -> None:
        begun = time.time()
        while not condition():
            self._look_after()
            if time.time() - begun > limit_s:
                raise self._failed(f"{otherwise} after {limit_s:.0f} s")
            time.sleep(10 * _TICK_S)

    def _until(self, moment_s: float) -> None:
        while (left := self.t0 + moment_s - time.time()) > 0:
            self._look_after()
            self._look_around()
            self.progress(moment_s - left)
            time.sleep(min(left, 10 * _TICK_S))

    def _look_after(self) -> None:
        for query in self.queries.values():
            if query.process.poll() is not None:
                raise self._failed(f"a driver ended by itself with code {query.process.returncode}")

    def _look_around(self) -> None:
        drivers = [query.process.pid for query in self.queries.values()]
        cores = self.others.look([os.getpid(), *drivers])
        if cores is not None:
            self.log.write("others", cores=cores)

    def _failed(self, what: str) -> SessionFailed:
        logs = [self.directory / "printed.log", *sorted(self.scratch.glob("*/spark.log"))]
        words = "\n".join(path.read_text(errors="replace")[-1500:] for path in logs if path.exists())
        return SessionFailed(f"session {self.plan.name}: {what}.{PRINTED}\n{words.strip()}")

    # Faults.

    def _strike(self, number: int, at_s: float, fault: Fault) -> None:
        """Do what the fault of an episode is, ``at_s`` s after t0, and what follows from it."""
        self._until(at_s - _LOOK_S)
        query = self.queries[fault.query]
        process = query.process
        if fault.kind == "kill_driver":
            self._harm(number, at_s, fault, -1, lambda: os.killpg(process.pid, signal.SIGKILL))
            process.wait()
            self._spawn(fault.query, query.spec.life + 1)
            self._tell(self.queries[fault.query])
            return
        victim, executor = faults.oldest(processes.executors(process.pid, query.spec.tag))
        if fault.kind == "kill_executor":
            self._harm(number, at_s, fault, victim, executor.kill)
            return
        struck = self._harm(number, at_s, fault, victim, executor.suspend)
        self._until(struck - self.t0 + fault.stop_s)
        executor.resume()
        self.log.write("continued", episode=number, query=fault.query, executor=victim)

    def _harm(self, number: int, at_s: float, fault: Fault, victim: int, harm: Callable[[], None]) -> float:
        """Do it at its moment, and note it; returns when it was done (unix time)."""
        spec = self.queries[fault.query].spec
        struck = faults.strike(self.t0 + at_s, victim, harm, spec.events)
        at = struck.pop("at")
        about = {"episode": number, "kind": fault.kind, "query": spec.query, "life": spec.life}
        self.log.write("fault", at, **about, **struck)
        return at

    def _end(self) -> None:
        for query in self.queries.values():
            processes.end_group(query.process)
            if query.process.stdin is not None:
                with suppress(BrokenPipeError):
                    query.process.stdin.close()
        self.registry.end_leftovers()
        shutil.rmtree(self.scratch, ignore_errors=True)
