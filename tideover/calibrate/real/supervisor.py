"""Runs one session: starts the drivers, does harm when it is planned, starts a lost driver anew."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tideover.calibrate.real import faults, processes
from tideover.calibrate.real.events import EventLog, read_events
from tideover.calibrate.real.load import OtherWork
from tideover.calibrate.real.plan import Episode, Fault, SessionPlan
from tideover.calibrate.real.settings import environment, executors_of
from tideover.calibrate.real.spec import DriverSpec
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


class _Query:
    """The driver of one query, in its present life."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.life = -1
        self.tag = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.spec: DriverSpec | None = None


class Supervisor:
    """Carries out one session in a directory of its own.

    directory: of the session, empty. registry: where started processes are noted. java: what Spark runs on.
    progress: called with the seconds since t0 while the session goes on.
    """

    def __init__(
        self,
        plan: SessionPlan,
        directory: Path,
        registry: processes.Registry,
        java: Java,
        progress: Callable[[float], None],
    ) -> None:
        self.plan = plan
        self.directory = directory
        self.scratch = directory / "scratch"
        self.registry = registry
        self.java = java
        self.progress = progress
        self.log = EventLog(directory / "supervisor.jsonl")
        self.queries = [_Query(number) for number in range(plan.queries)]
        self.others = OtherWork()
        self.t0 = 0

    def run(self) -> None:
        """From the start to the end; whatever happens, no process is left.

        Raises:
            SessionFailed: a driver did not start, ended by itself, or did not get done
        """
        try:
            for query in self.queries:
                self._spawn(query)
            self._wait(self._ready, _START_S, "Spark is not ready")
            # The windows are aligned to the epoch, and the first shall begin with the input.
            self.t0 = (int(time.time()) // self.plan.window_s + 1) * self.plan.window_s
            self._write_beginning()
            for query in self.queries:
                self._tell(query)
            for moment, action in self._timeline():
                self._until(moment)
                action()
            self._until(self.plan.end_s)
            self._wait(self._drained, _DRAIN_S, "the last rows are not counted")
        except faults.NoVictim as error:
            raise SessionFailed(f"session {self.plan.name}: {error}") from error
        finally:
            self._end()
            self.log.close()

    # The drivers.

    def _spawn(self, query: _Query) -> None:
        query.life += 1
        query.tag = self.registry.new_tag()
        scratch = self.scratch / f"{query.number}-{query.life}"
        scratch.mkdir(parents=True)
        plan = self.plan
        query.spec = DriverSpec(
            query=query.number,
            life=query.life,
            tag=query.tag,
            directory=self.directory,
            scratch=scratch,
            strategy=plan.strategy,
            pipeline=plan.pipeline,
            master=plan.master,
            executors=executors_of(plan.master)[0],
            keys=plan.keys,
            work=plan.work,
            trigger_s=plan.trigger_s,
            window_s=plan.window_s,
            partitions=plan.partitions,
            seed=plan.seed,
            pieces=plan.pieces,
            end_s=plan.end_s,
        )
        path = scratch / "spec.json"
        path.write_text(json.dumps(query.spec.to_json()))
        self.log.write("spawn", query=query.number, life=query.life)
        with (self.directory / "printed.log").open("ab") as printed:
            query.process = subprocess.Popen(
                [sys.executable, "-m", "tideover.calibrate.real.driver", str(path)],
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=printed,
                env=environment(self.java, query.tag, scratch),
                start_new_session=True,  # a process group of its own, which can be ended as a whole
            )
        self.registry.note(query.tag, query.process.pid)

    def _tell(self, query: _Query) -> None:
        """Tell a driver when the input begins; it reads that when it is ready."""
        assert query.process is not None
        assert query.process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended; whoever looks after it will say so
            query.process.stdin.write(json.dumps({"t0": self.t0}).encode() + b"\n")
            query.process.stdin.flush()

    def _events(self, query: _Query) -> Iterator[dict[str, Any]]:
        assert query.spec is not None
        return read_events(query.spec.events)

    def _ready(self) -> bool:
        return all(any(e["event"] == "ready" for e in self._events(query)) for query in self.queries)

    def _drained(self) -> bool:
        """Whether every query has ended a batch that reaches to the last row."""
        rows = self.plan.schedule(self.t0).rows
        for query in self.queries:
            events = list(self._events(query))
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
        for query in self.queries:
            if query.process is not None and query.process.poll() is not None:
                raise self._failed(f"a driver ended by itself with code {query.process.returncode}")

    def _look_around(self) -> None:
        drivers = [query.process.pid for query in self.queries if query.process is not None]
        cores = self.others.look([os.getpid(), *drivers])
        if cores is not None:
            self.log.write("others", cores=cores)

    def _failed(self, what: str) -> SessionFailed:
        logs = [self.directory / "printed.log", *sorted(self.scratch.glob("*/spark.log"))]
        words = "\n".join(path.read_text(errors="replace")[-1500:] for path in logs if path.exists())
        return SessionFailed(f"session {self.plan.name}: {what}.{PRINTED}\n{words.strip()}")

    # Faults.

    def _timeline(self) -> list[tuple[float, Callable[[], None]]]:
        """What is to be done and when, in s since t0."""
        found: list[tuple[float, Callable[[], None]]] = []
        for number, episode in enumerate(self.plan.episodes):
            if episode.fault is not None:
                moment = episode.begin_s + episode.fault.at_s
                found.append((moment - _LOOK_S, self._strike(number, episode, episode.fault)))
        return found

    def _strike(self, number: int, episode: Episode, fault: Fault) -> Callable[[], None]:
        def act() -> None:
            query = self.queries[fault.query]
            assert query.process is not None
            assert query.spec is not None
            process = query.process
            moment = self.t0 + episode.begin_s + fault.at_s
            if fault.kind == "kill_driver":
                kill = lambda: os.killpg(process.pid, signal.SIGKILL)  # noqa: E731
                struck = faults.strike(moment, -1, kill, query.spec.events)
                self._note(number, fault, query, struck)
                process.wait()
                self._spawn(query)
                self._tell(query)
                return
            victim, executor = faults.oldest(processes.executors(process.pid, query.tag))
            harm = executor.kill if fault.kind == "kill_executor" else executor.suspend
            struck = faults.strike(moment, victim, harm, query.spec.events)
            self._note(number, fault, query, struck)
            if fault.kind == "stop_executor":
                self._until(struck.at - self.t0 + fault.stop_s)
                executor.resume()
                self.log.write("continued", episode=number, query=query.number, executor=victim)

        return act

    def _note(self, episode: int, fault: Fault, query: _Query, struck: faults.Struck) -> None:
        details = asdict(struck)
        at = details.pop("at")
        self.log.write(
            "fault", at, episode=episode, kind=fault.kind, query=query.number, life=query.life, **details
        )

    def _end(self) -> None:
        for query in self.queries:
            if query.process is not None:
                processes.end_group(query.process)
                if query.process.stdin is not None:
                    with suppress(BrokenPipeError):
                        query.process.stdin.close()
        self.registry.end_leftovers()
        shutil.rmtree(self.scratch, ignore_errors=True)
