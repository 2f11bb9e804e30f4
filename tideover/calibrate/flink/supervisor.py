"""Runs one session on Flink: starts the cluster and its job, kills TaskManagers when it is planned, starts
their replacements, keeps what Flink tells, and stops all that it started.

`campaign` makes a `Supervisor` for each session; `tables` reads the files that it leaves.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tideover.calibrate.flink.cluster import Cluster, Failed
from tideover.calibrate.flink.plan import SessionPlan, configuration
from tideover.calibrate.real.processes import PRINTED, EventLog, OtherWork, Registry, SessionFailed
from tideover.scenarios.java import Java

_TICK_S = 0.1
_START_S = 180.0
"""A cluster that is not ready by then, on however slow a machine, will not be."""
_DRAIN_S = 90.0
"""How long after the end of the input its last results may take."""
TOLD = ("checkpoints", "exceptions", "config")
"""What is asked of Flink's REST about the job when the session ends, each in a file of its own."""


@dataclass
class Supervisor:
    """Carries out one session; what it leaves in the directory is read by `tables`."""

    plan: SessionPlan
    directory: Path
    registry: Registry
    java: Java
    job: Path
    progress: Callable[[float], None]

    def run(self) -> None:
        """Raises SessionFailed. Nothing that was started is left, whatever happens."""
        plan = self.plan
        self.log = EventLog(self.directory / "supervisor.jsonl")
        self.others = OtherWork()
        self.scratch = Path(tempfile.mkdtemp(prefix="tideover-flink-"))
        settings = configuration(plan, str(self.scratch))
        self.cluster = Cluster(self.java, self.job, settings, self.directory, self.scratch, self.registry)
        try:
            self._begin()
            for number, episode in enumerate(plan.episodes):
                self._strike(number)
                self._until(episode.end_s)
            self._wait(lambda: self._state() == "FINISHED", _DRAIN_S, "the last rows are not counted")
            for name in TOLD:
                answer = self.cluster.ask(f"jobs/{self.job_id}/{name}")
                (self.directory / f"{name}.json").write_text(json.dumps(answer))
        except Failed as failed:
            raise self._failed(str(failed)) from None
        finally:
            self.cluster.end()
            self.registry.end_leftovers()
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.log.close()

    def _begin(self) -> None:
        """Start the cluster with its job; as soon as all of it runs, the log begins."""
        plan, splits = self.plan, self.plan.taskmanagers
        pieces = ",".join(f"{from_s}:{rate / splits}" for from_s, rate in plan.pieces)
        arguments = [self.directory, splits, plan.split_rows, plan.keys, plan.row_us, pieces]
        self.cluster.start_jobmanager("CountJob", [str(argument) for argument in arguments], _START_S)
        self.names = [f"taskmanager-{number}-0" for number in range(splits)]
        for name in self.names:
            self.cluster.start_taskmanager(name)
        self._wait(self._running, _START_S, "the job does not run")
        self.t0 = int(time.time()) + 2
        begun = {"t0": self.t0, "java": f"{self.java.version}", "plan": asdict(plan)}
        (self.directory / "session.json").write_text(json.dumps(begun, indent=1))
        (self.directory / "go.new").write_text(str(self.t0 * 1000))
        (self.directory / "go.new").replace(self.directory / "go")

    def _state(self) -> str:
        jobs = (self.cluster.ask("jobs/overview") or {}).get("jobs", [])
        if not jobs:
            return ""
        self.job_id = jobs[0]["jid"]
        return str(jobs[0]["state"])

    def _running(self) -> bool:
        if self._state() != "RUNNING":
            return False
        vertices = (self.cluster.ask(f"jobs/{self.job_id}") or {}).get("vertices", [])
        return bool(vertices) and all(vertex["status"] == "RUNNING" for vertex in vertices)

    def _strike(self, number: int) -> None:
        """Kill the TaskManager of an episode, and start another one in its place."""
        episode = self.plan.episodes[number]
        at_s = episode.begin_s + episode.kill_s
        self._until(at_s - _TICK_S)
        time.sleep(max(0.0, self.t0 + at_s - time.time()))
        name = self.names[episode.victim]
        at = self.cluster.kill(name)
        self.log.write("kill", at, episode=number, victim=name)
        self._until(at - self.t0 + self.plan.replace_s)
        place, _, life = name.rpartition("-")
        self.names[episode.victim] = f"{place}-{int(life) + 1}"
        self.cluster.start_taskmanager(self.names[episode.victim])
        self.log.write("replaced", episode=number, name=self.names[episode.victim])

    def _until(self, moment_s: float) -> None:
        while (left := self.t0 + moment_s - time.time()) > 0:
            self.cluster.look_after()
            cores = self.others.look([os.getpid(), *(p.pid for p in self.cluster.processes.values())])
            if cores is not None:
                self.log.write("others", cores=cores)
            self.progress(moment_s - left)
            time.sleep(min(left, _TICK_S))

    def _wait(self, condition: Callable[[], bool], limit_s: float, otherwise: str) -> None:
        begun = time.monotonic()
        while not condition():
            self.cluster.look_after()
            if time.monotonic() - begun > limit_s:
                raise Failed(f"{otherwise} after {limit_s:.0f} s")
            time.sleep(_TICK_S)

    def _failed(self, what: str) -> SessionFailed:
        logs = [self.directory / "printed.log", *sorted(self.directory.glob("*manager*.log"))]
        words = "\n".join(path.read_text(errors="replace")[-1500:] for path in logs if path.exists())
        return SessionFailed(f"session {self.plan.name}: {what}.{PRINTED}\n{words.strip()}")
