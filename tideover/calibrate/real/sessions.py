"""All sessions of a plan, one after the other; what is done already is not done again. Whatever the engine.

`supervisor` of PySpark and that of Flink say what theirs is, by an `Engine`. What is in a directory's files
lets an interrupted calibration go on, so their names and contents stay.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from tideover.calibrate.episodes import Progress
from tideover.calibrate.real.processes import NotPossible, Registry, SessionFailed, locked, requirements
from tideover.calibrate.real.supervision import Supervision
from tideover.models.schema import Column
from tideover.scenarios.java import Java, JavaNotFound, find_java

MEASUREMENTS = "measurements"
"""The directory of the tables, below the one of the calibration."""

_DONE = "done.json"

Tables = dict[str, pd.DataFrame]


class Session(Protocol):
    """A session of a plan, a dataclass; its episodes have ``begin_s``, ``end_s``, ``rate_per_s``, and in
    words what is done in them, ``harm``.
    """

    name: str

    @property
    def episodes(self) -> Sequence[Any]: ...
    @property
    def end_s(self) -> float: ...


class Plan(Protocol):
    @property
    def sessions(self) -> Sequence[Any]: ...
    @property
    def seconds(self) -> float: ...


def without_gaps(name: str, episodes: Sequence[Any]) -> None:
    """Raises ValueError unless a session has episodes, and they follow each other."""
    if not episodes or any(a.end_s != b.begin_s for a, b in pairwise(episodes)):
        raise ValueError(f"session {name}: episodes: must follow each other without gaps")


@dataclass(frozen=True)
class Engine:
    """What is an engine's own.

    supervisor    carries out one session
    overhead_s    that a session takes besides its episodes
    columns       of its tables, ``sessions`` among them
    tables        of a session that began; with why it did not come to its end, or nothing
    described     the row of ``sessions`` of one that never began
    litter        what the tables are made of, and is too large to be kept
    cuts          characters at which it cuts lists of paths, so that no path may have them
    """

    supervisor: Callable[[Any, Path, Registry, Java, Callable[[float], None]], Supervision]
    overhead_s: float
    columns: Mapping[str, tuple[Column, ...]]
    tables: Callable[[Path, str], Tables]
    described: Callable[[Any], dict[str, Any]]
    litter: tuple[str, ...]
    cuts: str


def run(engine: Engine, plan: Plan, out: Path, progress: Progress = lambda fraction, text: None) -> Tables:
    """Carry out what is not done yet, and return the tables of all sessions.

    They are also written to OUT/measurements/<table>.parquet. A session that failed has its reason in the
    column ``error`` of ``sessions``, and is tried again the next time. Raises NotPossible if the machine
    lacks something, or another calibration works in the same directory.
    """
    out = out.resolve()  # the processes work elsewhere
    problems = [
        f"--out: {out}: its path must not have {cut!r} in it." for cut in engine.cuts if cut in str(out)
    ]
    if problems := [*requirements(), *problems]:
        raise NotPossible(" ".join(problems))
    java = find_java()
    if java is None:
        raise JavaNotFound()
    out.mkdir(parents=True, exist_ok=True)
    with locked(out):
        registry = Registry(out / "processes.json")
        registry.end_leftovers()
        write(plan, out / "plan.json")
        passed = 0.0
        for session in plan.sessions:

            def tell(seconds: float, session: Session = session, before: float = passed) -> None:
                told = "starting, warming up" if seconds <= 0 else "settling"
                for number, episode in enumerate(session.episodes, 1):
                    if episode.begin_s <= seconds < episode.end_s:
                        told = f"episode {number} of {len(session.episodes)}, {episode.rate_per_s}/s"
                        told += f", {episode.harm}" if episode.harm else ""
                progress((before + max(0.0, seconds)) / plan.seconds, f"{session.name}: {told}")

            tell(0.0)
            directory = out / "sessions" / session.name
            if not is_done(directory, session):
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir(parents=True)
                _carry_out(engine, session, directory, registry, java, tell)
            passed += session.end_s + engine.overhead_s
        progress(1.0, "all sessions are done")
        return collect(engine, plan, out)


def is_done(directory: Path, session: Session) -> bool:
    path = directory / _DONE
    return path.exists() and path.read_text() == _json(session)


def collect(engine: Engine, plan: Plan, out: Path) -> Tables:
    """The tables of all sessions of the plan that have some, written to OUT/measurements/."""
    found = {}
    (out / MEASUREMENTS).mkdir(exist_ok=True)
    for table, columns in engine.columns.items():
        paths = [out / "sessions" / session.name / f"{table}.parquet" for session in plan.sessions]
        frames = [pd.read_parquet(path) for path in paths if path.exists()]
        found[table] = pd.concat(frames, ignore_index=True) if frames else frame(columns, [])
        found[table].to_parquet(out / MEASUREMENTS / f"{table}.parquet", index=False)
    return found


def frame(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows as a table with all its columns, in their order and with their types; raises KeyError for a
    column that is not described.
    """
    if unknown := {name for row in rows for name in row} - {column.name for column in columns}:
        raise KeyError(f"columns {sorted(unknown)} are not described")
    missing = {"string": ""}
    cells = {c: [row.get(c.name, missing.get(c.dtype, float("nan"))) for row in rows] for c in columns}
    return pd.DataFrame({c.name: pd.Series(values, dtype=c.dtype) for c, values in cells.items()})


def _carry_out(
    engine: Engine,
    session: Session,
    directory: Path,
    registry: Registry,
    java: Java,
    tell: Callable[[float], None],
) -> None:
    error, found = "", {table: frame(columns, []) for table, columns in engine.columns.items()}
    try:
        engine.supervisor(session, directory, registry, java, tell).run()
    except SessionFailed as failed:
        error = str(failed)
    if (directory / "session.json").exists():
        found = engine.tables(directory, error)
    else:  # it never began
        found["sessions"] = frame(engine.columns["sessions"], [engine.described(session) | {"error": error}])
    for table, rows in found.items():
        rows.to_parquet(directory / f"{table}.parquet", index=False)
    # These are large, and all that is known from them is in the tables now.
    for path in (path for pattern in engine.litter for path in directory.glob(pattern)):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
    if not error:
        (directory / _DONE).write_text(_json(session))


def write(plan: Plan, path: Path) -> None:
    path.write_text(_json(plan, indent=1) + "\n", encoding="utf-8")


def _json(planned: Any, **how: Any) -> str:
    return json.dumps(asdict(planned), **how)


# Columns of the tables that sessions leave.


def text(name: str, meaning: str) -> Column:
    return Column(name, meaning, "", "string")


def count(name: str, meaning: str, unit: str = "index") -> Column:
    return Column(name, meaning, unit, "int64")


def time(name: str, meaning: str, undefined: str = "") -> Column:
    return Column(name, f"{meaning}, since the session's t0", "s", "float64", undefined)


def about(engine: str) -> tuple[Column, ...]:
    """The last columns of ``sessions``: when and on what it was measured, and what went wrong."""
    return (
        text("t0", "when the input began, UTC"),
        text(engine.lower(), f"version of {engine}"),
        text("java", "version of Java"),
        text("tideover", "version of Tideover"),
        text("python", "version of Python"),
        text("os", "operating system"),
        text("machine", "processor, cores, memory"),
        text("error", "why the session was not carried out to its end; empty if it was"),
    )
