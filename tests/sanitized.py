"""The data plane with checks of memory and of undefined behaviour, in a process of its own.

Python itself has no such checks, so the checker's own library has to be there before Python begins.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tideover.sim.plane.build import HERE, build, find_compiler


def environment(out: Path, folder: Path = HERE) -> dict[str, str]:
    """What a process finds in its environment that shall run with a checked library, made in ``out``.

    Such a process ends at the first fault, and says where it was. Skips where the compiler has no checks.
    """
    compiler = find_compiler()
    checkers = [_library(compiler, name) for name in ("libasan.so", "libstdc++.so")] if compiler else []
    if not checkers or None in checkers:
        pytest.skip("needs gcc with its sanitizers")
    return os.environ | {
        "TIDEOVER_PLANE": str(build(out, compiler, sanitized=True, folder=folder)),
        # C++ too: its exceptions, which numpy's friends throw, go through the checker.
        "LD_PRELOAD": " ".join(map(str, checkers)),
        # Python's own way to give memory out hides where an array ends.
        "PYTHONMALLOC": "malloc",
        # What Python has not freed at its end is no fault.
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def _library(compiler: list[str], name: str) -> Path | None:
    """Where a compiler has one of its own libraries."""
    said = subprocess.run([*compiler, f"-print-file-name={name}"], capture_output=True, text=True).stdout
    path = Path(said.strip())
    return path if path.is_absolute() and path.exists() else None
