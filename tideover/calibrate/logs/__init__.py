"""What an engine's own logs say of its recoveries: ``read`` finds out what files are, and has them read.

A new kind is a module with ``WHAT``, ``recognises`` and ``read`` (see `Reader`), named in ``READERS``.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from tideover.calibrate import profile as profile_yaml
from tideover.calibrate.logs import flink, series, spark
from tideover.calibrate.logs.files import LogFile, head
from tideover.calibrate.logs.findings import SHARED, Findings, Problems, frames
from tideover.calibrate.logs.together import together
from tideover.scenarios.errors import Problem, ScenarioError, listed, shorten

__all__ = ["Evidence", "is_log", "read"]

MOST_FILES = 10_000
MOST_NAMED = 6


class Reader(Protocol):
    """What a module of a kind of logs offers.

    ``WHAT``: what it reads, in words. ``recognises``: what part a file has in it (``log``, ``checkpoints``…),
    by its first bytes; empty if none. ``read``: what all files with a part say, those of one folder together.
    """

    WHAT: str

    def recognises(self, file: LogFile) -> str: ...

    def read(self, files: Sequence[tuple[str, LogFile]]) -> list[Findings]: ...


READERS: tuple[Reader, ...] = (flink, spark, series)


@dataclass(frozen=True)
class Evidence:
    """All that was found, the files and a digest, lines that could not be read, files that nobody knows."""

    found: tuple[Findings, ...]
    provenance: dict[str, str]
    problems: Problems
    unknown: tuple[str, ...]

    @cached_property
    def frames(self) -> dict[str, pd.DataFrame]:
        return frames(self.found)

    @property
    def profiles(self) -> dict[str, str]:
        """Texts of profiles by file name without suffix."""
        made = [one.profile for one in self.found if one.profile is not None]
        return {str(data["name"]): profile_yaml.text(data, width=120) for data in made}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be read, and what makes the logs say less than it seems."""
        said = [f"{one.source}: {text}" for one in self.found for text in one.remarks]
        if self.unknown:
            named = [shorten(name, 60) for name in self.unknown[:MOST_NAMED]]
            known, more = listed(named), len(self.unknown) - MOST_NAMED
            said.append(f"not read, as of no known kind: {known}{f' and {more} more' if more > 0 else ''}")
        return (*self.problems.lines(), *said)

    def record(self) -> dict[str, Any]:
        long = [name for name in self.frames if name not in SHARED]
        rows = {name: frame.to_dict("records") for name, frame in self.frames.items() if name not in long}
        more = {"profiles": list(self.profiles), "warnings": list(self.warnings)}
        return {"schema": 1, "provenance": self.provenance, **more, **rows}


Report = Callable[[str, int, int], object]
"""Told what is done, how much of it (bytes), and of how much."""


def is_log(path: Path) -> bool:
    """Whether a path is logs rather than a CSV of measurements: a folder, or a file that a reader knows."""
    return path.is_dir() or (path.is_file() and bool(_recognised(_file(path, path.name, Problems()))))


def read(path: Path, report: Report = lambda what, done, of: None) -> Evidence:
    """What a file, or all files in a folder and below it, say; raises ScenarioError if nothing is known,
    or nothing of it can be read.
    """
    problems = Problems()
    paths = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    if len(paths) > MOST_FILES:
        message = f"holds {len(paths):,} files; at most {MOST_FILES:,} are read at once: name a part of it"
        raise ScenarioError([Problem(str(path), None, "(folder)", message)])
    size, done = sum(p.stat().st_size for p in paths), 0

    def told(more: int) -> None:
        nonlocal done
        done += more
        report("reading", done, size)

    files = [_file(p, str(p.relative_to(path)) if path.is_dir() else p.name, problems) for p in paths]
    known: dict[int, list[tuple[str, LogFile]]] = {}
    unknown = []
    for file in files:
        if recognised := _recognised(file):
            which, part = recognised
            known.setdefault(which, []).append((part, replace(file, told=told)))
        else:
            unknown.append(file.name)
    if not known:
        raise ScenarioError([Problem(str(path), None, "(file)", _nothing(path, files))])
    found = [one for which, those in known.items() for one in READERS[which].read(those)]
    if not found:
        nothing = Problem(str(path), None, "(file)", "is of a known kind, but tells of no job and no query")
        raise ScenarioError(problems.told or [nothing])
    named = [file for those in known.values() for _, file in those]
    provenance = {
        "Files": ", ".join(file.name for file in named[:12])
        + (f" and {len(named) - 12} more" * (len(named) > 12)),
        "SHA-256": _digest(named),
    }
    return Evidence(tuple(together(_told_apart(found))), provenance, problems, tuple(unknown))


def _told_apart(found: Sequence[Findings]) -> list[Findings]:
    """With a number in the name of a source that has another's."""
    seen: Counter[str] = Counter()
    made = []
    for one in found:
        seen[one.source] += 1
        if (number := seen[one.source]) > 1:
            data = one.profile and {**one.profile, "name": f"{one.profile['name']}-{number}"}
            one = replace(one, source=f"{one.source} #{number}", profile=data)
        made.append(one)
    return made


def _file(path: Path, name: str, problems: Problems) -> LogFile:
    return LogFile(path, name, problems, head(path))


def _recognised(file: LogFile) -> tuple[int, str] | None:
    parts = ((which, reader.recognises(file)) for which, reader in enumerate(READERS))
    return next(((which, part) for which, part in parts if part), None)


def _nothing(path: Path, files: Sequence[LogFile]) -> str:
    known = "; ".join(reader.WHAT for reader in READERS)
    which = f"none of its {len(files)} files" if path.is_dir() else "it"
    return f"{which} is of a kind that is known. Known are: {known}; and a CSV of measurements"


def _digest(files: Sequence[LogFile]) -> str:
    """Of the files' own digests."""
    whole = hashlib.sha256()
    for file in files:
        with file.path.open("rb") as opened:
            whole.update(hashlib.file_digest(opened, "sha256").digest())
    return whole.hexdigest()
