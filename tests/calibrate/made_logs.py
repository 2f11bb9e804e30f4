"""JobManagers' logs made by hand: a line each with its time, in the words of an engine's version; and what it
takes to read any.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from tideover.calibrate import logs
from tideover.calibrate.logs.findings import Failure, Findings

EPOCH = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
JOB, GRAPH = "a" * 32, "b" * 32
SAMPLE = Path(__file__).parents[2] / "examples" / "flink-logs"


def line(at: float, text: str, layout: str = "{time} INFO  org.apache.flink.runtime.x.Y [] - {text}") -> str:
    """A line at so many seconds after noon of 1 March 2026."""
    moment = datetime.fromtimestamp(EPOCH + at, UTC)
    time = moment.strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    return layout.format(time=time, text=text)


def job(at: float, before: str, after: str, name: str = "count", id: str = JOB) -> str:
    return line(at, f"Job {name} ({id}) switched from state {before} to {after}.")


def task(at: float, sub: int, attempt: int, before: str, after: str, on: str = "", graph: str = GRAPH) -> str:
    where = f" on {on} @ host (dataPort=1)" if on else ""
    text = f"map -> sink ({sub + 1}/2) ({graph}_v_{sub}_{attempt}) switched from {before} to {after}{where}."
    return line(at, text)


def deployed(at: float, attempt: int, on: str = "tm1", graph: str = GRAPH) -> list[str]:
    """Two tasks start within two seconds, one second for each of the states after they have slots."""
    names = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
    found = []
    for sub in (0, 1):
        for step, (before, after) in enumerate(pairwise(names)):
            when = at + max(step - 1, 0) + 0.25 * sub
            found.append((when, task(when, sub, attempt, before, after, graph=graph)))
            if after == "DEPLOYING":
                text = f"Deploying map ({sub + 1}/2) (attempt #{attempt}) with attempt id "
                text += f"{graph}_v_{sub}_{attempt} and vertex id v_{sub} to {on} @ host"
                found.append((at + 0.25 * sub, line(at + 0.25 * sub, text)))
    return [text for _, text in sorted(found, key=lambda one: one[0])]


def running(name: str = "count", id: str = JOB, graph: str = GRAPH) -> list[str]:
    """A job that runs from 2.25 s on; its first checkpoint begins at 3 s, and is complete at 3.5 s."""
    return [
        line(
            -60,
            "Registering TaskManager with ResourceID tm1 (akka.tcp://flink@h1:1/user/rpc/taskmanager_0) at R",
        ),
        line(-1, f"Created execution graph {graph} for job {id}."),
        job(0, "CREATED", "RUNNING", name, id),
        *deployed(0, 0, graph=graph),
        *checkpoint(1, 3, 3.5, id),
    ]


def checkpoint(number: int, at: float, complete: float, id: str = JOB) -> list[str]:
    epoch, lasts = round(1000 * (EPOCH + at)), round(1000 * (complete - at))
    return [
        line(
            at,
            f"Triggering checkpoint {number} (type=CheckpointType{{name='C'}}) @ {epoch} for job {id}.",
        ),
        line(
            complete,
            f"Completed checkpoint {number} for job {id} (1000 bytes, checkpointDuration={lasts} ms, "
            "finalizationTime=1 ms).",
        ),
    ]


def read(folder: Path, *texts: Iterable[str], names: Sequence[str] = ("jm.log",)) -> list[Findings]:
    """What logs in a new folder say."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(names, texts, strict=True):
        (folder / name).write_text("".join(f"{one}\n" for one in text))
    return list(logs.read(folder).found)


def told(failure: Failure) -> list[tuple[str, float]]:
    """Stages, and when, in seconds after noon."""
    return [(stage.name, round(stage.at - EPOCH, 3)) for stage in failure.stages]


_READ = """
import resource, sys
from pathlib import Path
from tideover.calibrate import logs
used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = used()
found = logs.read(Path(sys.argv[1])).found
print(sum(len(one.failures) for one in found), used() - before)
"""


def failures_and_memory(folder: Path) -> tuple[int, int]:
    """How many failures logs tell of, and how much memory (kB) a process of its own took to read them."""
    command = [sys.executable, "-c", _READ, str(folder)]
    failures, kilobytes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(failures), int(kilobytes)
