"""The tests tested: each of these small changes to a protocol's code must make the tests beside it fail.

Each change is made to a copy of the package. A text that is not in the package, or more than once, is an
error: whoever changes the code brings the list up to date. Where the text stands does not matter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
CONFORMANCE = "tests/models/test_conformance.py"


class Mutation(NamedTuple):
    """``old`` is replaced by ``new``; ``caught_by``: arguments of pytest that choose the tests."""

    what: str
    old: str
    new: str
    caught_by: tuple[str, ...]


MUTATIONS = (
    Mutation(
        "no checkpoint at the end of a window by tick",
        "if task.ends_by_tick:\n",
        "if False:\n",
        (CONFORMANCE, "-k", "rsm and between_ticks"),
    ),
)


def mutated(mutation: Mutation, copy: Path) -> None:
    """Make a copy of the package and its tests, and the change in it."""
    for name in ("tideover", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    files = [path for path in (copy / "tideover").rglob("*.py") if mutation.old in path.read_text()]
    assert len(files) == 1, f"{mutation.old!r} stands in {[str(path) for path in files]}, not in one file"
    text = files[0].read_text()
    assert text.count(mutation.old) == 1, (
        f"{mutation.old!r} stands {text.count(mutation.old)} times in {files[0]}"
    )
    files[0].write_text(text.replace(mutation.old, mutation.new))


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_a_mutation_is_caught(mutation: Mutation, tmp_path: Path) -> None:
    mutated(mutation, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", *mutation.caught_by],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, f"nobody has noticed that {mutation.what}:\n{done.stdout[-2000:]}"
