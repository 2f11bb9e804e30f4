"""Spark's own directory on this machine, and changes of the environment that end with a block."""

from __future__ import annotations

import atexit
import functools
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LOG = "spark.log"


@functools.cache
def scratch() -> Path:
    """Spark's own directory. Spark's process remembers its name, and both go away with this process."""
    directory = tempfile.TemporaryDirectory(prefix="tideover-spark-", ignore_cleanup_errors=True)
    atexit.register(directory.cleanup)
    return Path(directory.name)


def last_words(size: int = 2000) -> str:
    """What Spark's process printed last."""
    return (scratch() / LOG).read_bytes()[-size:].decode(errors="replace").strip() or "(nothing)"


@contextmanager
def changed_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """``os.environ`` with these changes, for the length of the block; None takes a variable out."""
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
