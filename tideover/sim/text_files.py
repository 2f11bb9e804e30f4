"""Files that users name: read with a bound, and only if regular: a pipe might never end, or begin.

Scenarios, profiles, plugins and `events` are read by it. Who reads another sort of file gives its bound.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

MOST_BYTES = 64 * 2**20
"""Of a table; a trace of a rate a second fills it in two months."""


class Unreadable(ValueError):
    """Says why a file cannot be used; ``line``: where it is at fault, if it is its content."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def is_file(path: Path) -> bool:
    """Whether there is a regular file; never raises."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most so many bytes; raises Unreadable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise Unreadable("is a directory")
            if not stat.S_ISREG(mode):
                raise Unreadable("is not a regular file")
            with open(descriptor, "rb", closefd=False) as stream:
                data = stream.read(most + 1)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise Unreadable("does not exist") from None
    except (OSError, ValueError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > most:
        raise Unreadable(f"is larger than {most // 2**20} MiB")
    return data


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The same of a file in UTF-8, as a text; raises Unreadable."""
    data = read_bytes(path, most)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("is not UTF-8 text", data.count(b"\n", 0, error.start) + 1) from None
