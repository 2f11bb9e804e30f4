"""All sessions of a plan, one after the other; what is done already is not done again.

``tideover calibrate`` calls ``run``. What is in a directory's files lets an interrupted calibration go on, so
their names and contents stay.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from tideover.calibrate.episodes import Progress
from tideover.calibrate.real.plan import OVERHEAD_S, Plan, SessionPlan
from tideover.calibrate.real.processes import NotPossible, Registry, SessionFailed, locked, requirements
from tideover.calibrate.real.supervisor import NEEDED_BYTES, Supervisor
from tideover.calibrate.real.tables import TABLES, described, frame, tables
from tideover.scenarios.java import JavaNotFound, find_java

MEASUREMENTS = "measurements"
"""The directory of the tables, below the one of the calibration."""

_DONE = "done.json"


def run(plan: Plan, out: Path, progress: Progress = lambda fraction, text: None) -> dict[str, pd.DataFrame]:
    """Carry out what is not done yet, and return the tables of all sessions (see `tables.TABLES`).

    They are also written to OUT/measurements/<table>.parquet. A session that failed has its reason in the
    column ``error`` of ``sessions``, and is tried again the next time. Raises NotPossible if the machine
    lacks something, or another calibration works in the same directory.
    """
    if problems := requirements(NEEDED_BYTES):
        raise NotPossible(" ".join(problems))
    java = find_java()
    if java is None:
        raise JavaNotFound()
    out = out.resolve()  # Spark's processes work elsewhere
    out.mkdir(parents=True, exist_ok=True)
    with locked(out):
        registry = Registry(out / "processes.json")
        registry.end_leftovers()
        plan.write(out / "plan.json")
        passed = 0.0
        for session in plan.sessions:

            def tell(seconds: float, session: SessionPlan = session, before: float = passed) -> None:
                told = "starting Spark, warming up" if seconds <= 0 else "settling"
                for number, episode in enumerate(session.episodes, 1):
                    if episode.begin_s <= seconds < episode.end_s:
                        fault = f", {episode.fault.kind.replace('_', ' ')}" if episode.fault else ""
                        told = f"episode {number} of {len(session.episodes)}, {episode.rate_per_s}/s{fault}"
                progress((before + max(0.0, seconds)) / plan.seconds, f"{session.name}: {told}")

            tell(0.0)
            directory = out / "sessions" / session.name
            if not is_done(directory, session):
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir(parents=True)
                _carry_out(Supervisor(session, directory, registry, java, tell), session, directory)
            passed += session.end_s + OVERHEAD_S
        progress(1.0, "all sessions are done")
        return collect(plan, out)


def is_done(directory: Path, session: SessionPlan) -> bool:
    path = directory / _DONE
    return path.exists() and path.read_text() == json.dumps(asdict(session))


def collect(plan: Plan, out: Path) -> dict[str, pd.DataFrame]:
    """The tables of all sessions of the plan that have some, written to OUT/measurements/."""
    found = {}
    (out / MEASUREMENTS).mkdir(exist_ok=True)
    for table in TABLES:
        paths = [out / "sessions" / session.name / f"{table}.parquet" for session in plan.sessions]
        frames = [pd.read_parquet(path) for path in paths if path.exists()]
        found[table] = pd.concat(frames, ignore_index=True) if frames else frame(table, [])
        found[table].to_parquet(out / MEASUREMENTS / f"{table}.parquet", index=False)
    return found


def _carry_out(supervisor: Supervisor, session: SessionPlan, directory: Path) -> None:
    error, found = "", {table: frame(table, []) for table in TABLES}
    try:
        supervisor.run()
    except SessionFailed as failed:
        error = str(failed)
    if (directory / "session.json").exists():
        found = tables(directory, error)
    else:  # it never began
        found["sessions"] = frame("sessions", [described(session) | {"error": error}])
    for table, rows in found.items():
        rows.to_parquet(directory / f"{table}.parquet", index=False)
    # These are large, and all that is known from them is in the tables now.
    for path in ("checkpoints", "spark-events", "sink/batches"):
        shutil.rmtree(directory / path, ignore_errors=True)
    if not error:
        (directory / _DONE).write_text(json.dumps(asdict(session)))
