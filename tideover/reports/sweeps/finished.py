"""A mark that a sweep's page is what its dataset says: hashes of both."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tideover.reports.parquet import aside

STAMP = ".finished"


def stamp(directory: Path, inputs: str, page: Path) -> None:
    """Say in the directory that the page was made from these inputs."""
    with aside(directory / STAMP) as part:
        part.write_text(json.dumps({"inputs": inputs, page.name: _hash(page)}) + "\n", encoding="utf-8")


def unstamp(directory: Path) -> None:
    """The page is about to be written again."""
    (directory / STAMP).unlink(missing_ok=True)


def finished(directory: Path, inputs: str, page: Path) -> bool:
    """Whether the page was made from these inputs, and is as it was written."""
    try:
        known = json.loads((directory / STAMP).read_text("utf-8"))
        return bool(known == {"inputs": inputs, page.name: _hash(page)})
    except (OSError, ValueError):
        return False


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
