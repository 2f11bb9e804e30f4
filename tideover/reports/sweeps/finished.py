"""A mark that a sweep's report is complete: hashes of what it was made from, and of what was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tideover.reports.parquet import aside

STAMP = ".finished"


@dataclass(frozen=True)
class Finished:
    """A whole report without failed runs.

    inputs      hash of all that it was made from (`tideover.scenarios.inputs`)
    outputs     hash of each file, by name, the page first
    parameters  the swept keys
    warnings    what was remarked
    """

    inputs: str
    outputs: Mapping[str, str]
    parameters: Any
    warnings: Sequence[str]


def stamp(
    directory: Path, inputs: str, paths: Sequence[Path], parameters: Any, warnings: Sequence[str]
) -> None:
    """Say in the directory that these files are the whole report of these inputs."""
    swept = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
    found = Finished(inputs, {path.name: _hash(path) for path in paths}, swept, list(warnings))
    with aside(directory / STAMP) as part:
        part.write_text(json.dumps(asdict(found), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def unstamp(directory: Path) -> None:
    """The report is about to be written again."""
    (directory / STAMP).unlink(missing_ok=True)


def finished(directory: Path, inputs: str) -> Finished | None:
    """The report in the directory, if it was made from these inputs and all of its files are as they were."""
    try:
        found = Finished(**json.loads((directory / STAMP).read_text("utf-8")))
        whole = found.inputs == inputs and all(
            _hash(directory / name) == known for name, known in found.outputs.items()
        )
    except (AttributeError, OSError, TypeError, ValueError):
        return None
    return found if whole else None


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
