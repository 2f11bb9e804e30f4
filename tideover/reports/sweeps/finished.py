"""A sweep that has been reported already: what it was made from, and what was written, stand beside it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
    aside = directory / f"{STAMP}.part"
    aside.write_text(json.dumps(asdict(found), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    os.replace(aside, directory / STAMP)


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
