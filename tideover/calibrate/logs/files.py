"""Files of logs, read line by line in bounded memory, compressed ones too.

A reader asks ``lines`` or ``text``; what a file is compressed by is told by its first bytes, not by its name.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from tideover.calibrate.logs.findings import Problems
from tideover.calibrate.logs.framings import FRAMINGS

_HEAD = 1 << 16
_BLOCK = 1 << 21
_LITTLE = 1 << 12
"""Bytes that are decompressed at once: of a stream that is cut off no more than these are lost."""
MOST_LINE = 64 << 20
"""Bytes of a line; what is beyond is left out, and said."""
MOST_TEXT = 256 << 20
"""Bytes of a file that is read whole, as JSON of one value."""


Pieces = Callable[[BinaryIO], Iterator[bytes]]
"""The decompressed bytes of a stream, piece by piece, until it ends or raises one of ``BROKEN``."""
BROKEN = (OSError, EOFError, ValueError, pa.ArrowException)


def _plain(raw: BinaryIO) -> Iterator[bytes]:
    while piece := raw.read(_BLOCK):
        yield piece


def _arrow(codec: str) -> Pieces:
    def pieces(raw: BinaryIO) -> Iterator[bytes]:
        stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), codec)
        while piece := stream.read(_LITTLE):
            yield piece

    return pieces


COMPRESSED: dict[bytes, Pieces] = {
    b"\x1f\x8b": _arrow("gzip"),
    b"BZh": _arrow("bz2"),
    b"\x28\xb5\x2f\xfd": _arrow("zstd"),
    b"\x04\x22\x4d\x18": _arrow("lz4"),
    **FRAMINGS,
}
"""What the first bytes of a compressed file say, and what reads it."""


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
                before = 0
                for block in _joined(_pieces(raw)):
                    yield block
                    now = self.path.stat().st_size if raw.closed else raw.tell()  # Arrow closes it at its end
                    self.told(now - before)
                    before = now
        except BROKEN as error:
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

    def _whole(self, number: int, line: bytes) -> bytes:
        if len(line) > MOST_LINE:
            self.refuse(number, f"is longer than {MOST_LINE >> 20} MB; the rest of it is left out")
        return line[:MOST_LINE]

    def is_cut(self) -> bool:
        """Whether it is a plain file whose last line has no end."""
        with suppress(OSError), self.path.open("rb") as raw:
            last = raw.read(8)
            if last and not any(last.startswith(begin) for begin in COMPRESSED):
                raw.seek(-1, io.SEEK_END)
                return raw.read() != b"\n"
        return False

    def text(self) -> str | None:
        """The whole file; None if it is too large, which is said."""
        whole = io.BytesIO()
        for block in self.blocks():
            whole.write(block)
            if whole.tell() > MOST_TEXT:
                self.refuse(None, f"is larger than {MOST_TEXT >> 20} MB, and not read", "(file)")
                return None
        return whole.getvalue().decode("utf-8", "replace")


def _pieces(raw: BinaryIO) -> Iterator[bytes]:
    magic = raw.read(8)
    raw.seek(0)
    return next((read(raw) for begin, read in COMPRESSED.items() if magic.startswith(begin)), _plain(raw))


def _joined(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in large blocks; all of them, too, if the stream is broken after them."""
    block = bytearray()
    try:
        for piece in pieces:
            block += piece
            if len(block) >= _BLOCK:
                yield bytes(block)
                block.clear()
    except BROKEN:
        yield bytes(block)
        raise
    yield bytes(block)


def head(path: Path) -> bytes:
    """The first bytes of a file, decompressed; as many as can be read."""
    found = b""
    try:
        with path.open("rb") as raw:
            for piece in _pieces(raw):
                found += piece
                if len(found) >= _HEAD:
                    break
    except BROKEN:
        pass
    return found[:_HEAD]
