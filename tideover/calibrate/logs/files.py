"""Files of logs, read line by line in bounded memory, compressed ones too.

A reader asks ``lines`` or ``text``; what a file is compressed by is told by its first bytes, not by its name.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from tideover.calibrate.logs.findings import Problems

_HEAD = 1 << 16
_BLOCK = 1 << 21
MOST_LINE = 64 << 20
"""Bytes of a line; what is beyond is left out, and said."""
MOST_TEXT = 256 << 20
"""Bytes of a file that is read whole, as JSON of one value."""


def _arrow(codec: str) -> Callable[[BinaryIO], BinaryIO]:
    return lambda raw: cast("BinaryIO", pa.CompressedInputStream(pa.PythonFile(raw, "r"), codec))


COMPRESSED: dict[bytes, Callable[[BinaryIO], BinaryIO]] = {
    b"\x1f\x8b": _arrow("gzip"),
    b"BZh": _arrow("bz2"),
    b"\x28\xb5\x2f\xfd": _arrow("zstd"),
    b"\x04\x22\x4d\x18": _arrow("lz4"),
}
"""What the first bytes of a compressed file say, and what opens it."""


@dataclass(frozen=True)
class LogFile:
    """A file that was given or found in a folder. ``name``: what messages call it; ``head``: its first bytes,
    decompressed; ``told``: called with bytes of the file itself that have been read since the last call.
    """

    path: Path
    name: str
    problems: Problems = field(repr=False, compare=False)
    head: bytes = field(default=b"", repr=False, compare=False)
    told: Callable[[int], None] = field(default=lambda size: None, repr=False, compare=False)

    def refuse(self, line: int | None, message: str, key: str = "(line)") -> None:
        self.problems.add(self.name, line, key, message)

    def blocks(self) -> Iterator[bytes]:
        """The file's bytes, decompressed; what is broken ends it, and is said."""
        try:
            with self.path.open("rb") as raw:
                opened = _opened(raw)
                before = 0
                while block := opened.read(_BLOCK):
                    yield block
                    self.told(raw.tell() - before)
                    before = raw.tell()
        except (OSError, EOFError, ValueError, pa.ArrowException) as error:
            self.refuse(None, f"cannot be read to its end: {error}", "(file)")

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines, from 1, without their ends; a line that is too long is cut, and said."""
        number, rest = 1, b""
        for block in self.blocks():
            first, *more = block.split(b"\n")
            if len(rest) < MOST_LINE:
                rest += first
            if not more:
                continue
            yield number, self._whole(number, rest)
            number += 1
            *whole, rest = more
            yield from enumerate(whole, number)
            number += len(whole)
        if rest:
            yield number, self._whole(number, rest)
            self.refuse(number, "has no end: the file is cut off, or was being written")

    def _whole(self, number: int, line: bytes) -> bytes:
        if len(line) > MOST_LINE:
            self.refuse(number, f"is longer than {MOST_LINE >> 20} MB; the rest of it is left out")
        return line[:MOST_LINE]

    def text(self) -> str | None:
        """The whole file; None if it is too large, which is said."""
        whole = io.BytesIO()
        for block in self.blocks():
            whole.write(block)
            if whole.tell() > MOST_TEXT:
                self.refuse(None, f"is larger than {MOST_TEXT >> 20} MB, and not read", "(file)")
                return None
        return whole.getvalue().decode("utf-8", "replace")


def _opened(raw: BinaryIO) -> BinaryIO:
    magic = raw.read(8)
    raw.seek(0)
    return next((opener(raw) for begin, opener in COMPRESSED.items() if magic.startswith(begin)), raw)


def head(path: Path) -> bytes:
    """The first bytes of a file, decompressed; as many as can be read."""
    try:
        with path.open("rb") as raw:
            return _opened(raw).read(_HEAD)
    except (OSError, EOFError, ValueError, pa.ArrowException):
        return b""
