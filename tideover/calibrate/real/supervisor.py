"""Runs one session on PySpark: starts the drivers, does harm when it is planned, stops all that it started.

The events that it writes are read by `tables`; whatever is started has to be in the `Registry` first.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from tideover.calibrate.real import sessions
from tideover.calibrate.real.plan import OVERHEAD_S, SPEC, DriverSpec, Fault, environment
from tideover.calibrate.real.processes import SessionFailed, read_events
from tideover.calibrate.real.supervision import DRAIN_S, START_S, Supervision
from tideover.calibrate.real.tables import TABLES, described, tables


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


_LOOK_S = 0.3
"""Looking for a victim takes a moment, so it begins this long before the strike."""


class Supervisor(Supervision):
    """A session's drivers, one a query."""

    TICK_S = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.queries: dict[int, tuple[DriverSpec, subprocess.Popen[bytes]]] = {}  # in their present lives

    def running(self) -> Iterable[tuple[str, subprocess.Popen[bytes]]]:
        return [("a driver", process) for _, process in self.queries.values()]

    def logs(self) -> Iterable[Path]:
        return sorted(self.scratch.glob("*/spark.log"))

    def carry_out(self) -> None:
        """Raises SessionFailed if a driver did not start, ended by itself, had nothing to kill, or did not
        get done.
        """
        plan = self.plan
        for number in range(plan.queries):
            self._spawn(number, life=0)
        self.wait(self._ready, START_S, "Spark is not ready")
        # The windows are aligned to the epoch, and the first shall begin with the input.
        self.begin((int(time.time()) // plan.window_s + 1) * plan.window_s)
        for number in self.queries:
            self._tell(number)
        for number, episode in enumerate(plan.episodes):
            if episode.fault is not None:
                self._strike(number, episode.begin_s + episode.fault.at_s, episode.fault)
        self.until(plan.end_s)
        self.wait(self._drained, DRAIN_S, "the last rows are not counted")

    def _spawn(self, number: int, life: int) -> None:
        scratch = self.scratch / f"{number}-{life}"
        scratch.mkdir(parents=True)
        tag = self.registry.new_tag()
        spec = DriverSpec(self.plan, number, life, tag, self.directory, scratch)
        path = scratch / "spec.json"
        path.write_bytes(SPEC.dump_json(spec))
        self.log.write("spawn", query=number, life=life)
        command = [sys.executable, "-m", "tideover.calibrate.real.driver", str(path)]
        env = environment(self.java, tag, scratch)
        self.queries[number] = spec, self.start(tag, command, stdin=subprocess.PIPE, env=env)

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

    def _strike(self, number: int, at_s: float, fault: Fault) -> None:
        """Do what the fault of an episode is, ``at_s`` s after t0, and what follows from it."""
        self.until(at_s - _LOOK_S)
        spec, process = self.queries[fault.query]
        if fault.kind == "kill_driver":
            self._harm(number, at_s, fault, -1, lambda: os.killpg(process.pid, signal.SIGKILL))
            process.wait()
            self._spawn(fault.query, spec.life + 1)
            self._tell(fault.query)
            return
        there = executors(process.pid, spec.tag)
        if not there:
            raise SessionFailed("there is no executor that could be killed or stopped")
        # The one that is there longest is the one that holds state, since state stays where it is.
        victim, executor = next(iter(there.items()))
        if fault.kind == "kill_executor":
            self._harm(number, at_s, fault, victim, executor.kill)
            return
        struck = self._harm(number, at_s, fault, victim, executor.suspend)
        self.until(struck - self.t0 + fault.stop_s)
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


ENGINE = sessions.Engine(
    supervisor=Supervisor,
    overhead_s=OVERHEAD_S,
    columns=TABLES,
    tables=tables,
    described=described,
    litter=("checkpoints", "spark-events", "sink/batches"),
    cuts=",",
)
