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

import pytest

from tests.mutations.base import Mutation
from tests.mutations.engine import ENGINE
from tests.mutations.protocols import PROTOCOLS

ROOT = Path(__file__).parents[1]
MUTATIONS = (*PROTOCOLS, *ENGINE)


def place_of(mutation: Mutation, root: Path) -> Path:
    """The one file of the package in which the mutation's text stands, once."""
    files = (root / "tideover").rglob("*.py")
    times = {path: n for path in files if (n := path.read_text().count(mutation.old))}
    assert list(times.values()) == [1], f"{mutation.old!r} stands in {times}, not once in one file"
    return next(iter(times))


def test_each_mutation_has_its_place() -> None:
    assert all(place_of(mutation, ROOT) for mutation in MUTATIONS)


def mutated(mutation: Mutation, copy: Path) -> None:
    """Make a copy of the package and its tests, and the change in it."""
    for name in ("tideover", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    file = place_of(mutation, copy)
    file.write_text(file.read_text().replace(mutation.old, mutation.new))


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
