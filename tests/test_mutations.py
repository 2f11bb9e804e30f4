"""The tests tested: each of these small changes to the code must make the tests beside it fail.

Each change is made to a copy of the package, whose compiled data plane is made anew if it has changed. A text
that is not in the package, or more than once, is an error: whoever changes the code brings the list up to
date. Where the text stands does not matter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mutations.base import Mutation
from tests.mutations.engine import ENGINE
from tests.mutations.plane import PLANE
from tests.mutations.protocols import PROTOCOLS
from tideover.sim.plane.build import build

ROOT = Path(__file__).parents[1]
MUTATIONS = (*PROTOCOLS, *ENGINE, *PLANE)
SOURCES = ("*.py", "*.[ch]")


def place_of(mutation: Mutation, root: Path) -> Path:
    """The one file of the package in which the mutation's text stands, once."""
    files = (path for pattern in SOURCES for path in (root / "tideover").rglob(pattern))
    times = {path: n for path in files if (n := path.read_text().count(mutation.old))}
    assert list(times.values()) == [1], f"{mutation.old!r} stands in {times}, not once in one file"
    return next(iter(times))


def test_each_mutation_has_its_place() -> None:
    assert all(place_of(mutation, ROOT) for mutation in MUTATIONS)


@contextmanager
def mutated(mutation: Mutation, copy: Path, out: Path) -> Iterator[dict[str, str]]:
    """Make the change in a copy; gives the environment of processes that run it. A data plane that has
    changed is made in ``out``.
    """
    file = place_of(mutation, copy)
    text, about = file.read_text(), file.stat()
    found = os.environ | {"PYTHONPATH": str(copy)}
    file.write_text(text.replace(mutation.old, mutation.new))
    try:
        if file.suffix != ".py":
            found["TIDEOVER_PLANE"] = str(build(out, folder=file.parent))
        yield found
    finally:
        file.write_text(text)
        os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))  # what was compiled of it is good still


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_a_mutation_is_caught(mutation: Mutation, package: Path, tmp_path: Path) -> None:
    with mutated(mutation, package, tmp_path) as environment:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", *mutation.caught_by],
            cwd=package,
            env=environment,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 1, f"nobody has noticed that {mutation.what}:\n{done.stdout[-2000:]}"
