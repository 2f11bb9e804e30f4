"""A small sweep in this process, and what it leaves."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tideover.scenarios.sweeps.completing import Options, complete
from tideover.scenarios.sweeps.dataset import Sweep
from tideover.scenarios.sweeps.files import LocalFiles
from tideover.scenarios.sweeps.in_process import InProcess
from tideover.scenarios.sweeps.recipe import Recipe

SHORT = {
    "run.duration": "40s",
    "run.warmup": "10s",
    "failures.0.at": "20s",
    "failures.0.within": "5s",
    "topology.count.window": "5s",
}


def done(asked: Recipe, place: Path, **options: bool) -> Sweep:
    """The sweep, in a directory of this machine."""
    files = LocalFiles(place)
    return Sweep(complete(asked, InProcess(files), options=Options(**options)), files)


def content(place: Path) -> dict[str, str]:
    """A hash of every file of a dataset, hidden ones too, by its path."""
    files = (path for path in place.rglob("*") if path.is_file())
    return {str(p.relative_to(place)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
