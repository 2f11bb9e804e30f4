"""Runs one session on Flink: starts the cluster and its job, kills TaskManagers when it is planned, starts
their replacements, keeps what Flink tells, and stops all that it started.

`tables` reads the files that it leaves.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from tideover.calibrate.flink.cluster import Cluster, build_job
from tideover.calibrate.flink.plan import OVERHEAD_S, configuration
from tideover.calibrate.flink.tables import TABLES, described, tables
from tideover.calibrate.real import sessions
from tideover.calibrate.real.processes import TAG
from tideover.calibrate.real.supervision import DRAIN_S, START_S, Supervision

TOLD = ("checkpoints", "exceptions", "config")
"""What is asked of Flink's REST about the job when the session ends, each in a file of its own."""


class Supervisor(Supervision):
    """A session's JobManager and TaskManagers."""

    TICK_S = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def running(self) -> Iterable[tuple[str, subprocess.Popen[bytes]]]:
        return self.processes.items()

    def logs(self) -> Iterable[Path]:
        return sorted(self.directory.glob("*manager*.log"))

    def carry_out(self) -> None:
        plan = self.plan
        self._begin()
        for number, episode in enumerate(plan.episodes):
            self._strike(number)
            self.until(episode.end_s)
        self.wait(lambda: self._state() == "FINISHED", DRAIN_S, "the last rows are not counted")
        for name in TOLD:
            answer = self.cluster.ask(f"jobs/{self.job_id}/{name}")
            (self.directory / f"{name}.json").write_text(json.dumps(answer))

    def _begin(self) -> None:
        """Start the cluster with its job; as soon as all of it runs, the log begins."""
        plan, splits = self.plan, self.plan.taskmanagers
        job = self.directory / "job.jar"
        build_job(self.java, job)
        settings = configuration(plan, str(self.scratch))
        self.cluster = Cluster(self.java, job, settings, self.directory, self.scratch)
        pieces = ",".join(f"{from_s}:{rate / splits}" for from_s, rate in plan.pieces)
        arguments = [self.directory, splits, plan.split_rows, plan.keys, plan.row_us, pieces]
        self._start("jobmanager", self.cluster.jobmanager("CountJob", map(str, arguments)))
        self.wait(self.cluster.ready, START_S, "the JobManager is not ready")
        self.names = [f"taskmanager-{number}-0" for number in range(splits)]
        for name in self.names:
            self._start(name, self.cluster.taskmanager(name))
        self.wait(self._running, START_S, "the job does not run")
        self.begin(int(time.time()) + 2)
        (self.directory / "go.new").write_text(str(self.t0 * 1000))
        (self.directory / "go.new").replace(self.directory / "go")

    def _start(self, name: str, command: list[str]) -> None:
        tag = self.registry.new_tag()
        env = os.environ | {TAG: tag}
        self.processes[name] = self.start(tag, command, stdin=subprocess.DEVNULL, cwd=self.scratch, env=env)

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
        self.until(at_s - self.TICK_S)
        time.sleep(max(0.0, self.t0 + at_s - time.time()))
        name = self.names[episode.victim]
        process, at = self.processes.pop(name), time.time()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.log.write("kill", at, episode=number, victim=name)
        self.until(at - self.t0 + self.plan.replace_s)
        place, _, life = name.rpartition("-")
        name = self.names[episode.victim] = f"{place}-{int(life) + 1}"
        self._start(name, self.cluster.taskmanager(name))
        self.log.write("replaced", episode=number, name=name)


ENGINE = sessions.Engine(
    supervisor=Supervisor,
    overhead_s=OVERHEAD_S,
    columns=TABLES,
    tables=tables,
    described=described,
    litter=("out-*.csv", "*_LOG*", "job.jar", "go"),
    cuts=":,",
)
