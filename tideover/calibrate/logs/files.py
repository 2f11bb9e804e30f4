"""Files of logs, read line by line in bounded memory, compressed ones too.

A reader asks ``lines``, ``text`` or ``document``; what a file is compressed by is told by its first bytes,
not by its name. Arrow knows the usual formats. Framings that only Java libraries write, and Spark's logs
with them, are read block by block, and each block by Arrow's raw codec:

``LZ4Block``: lz4-java's ``net.jpountz.lz4.LZ4BlockOutputStream``. A block is the magic, a byte whose upper
half says how it is stored (1: as it is, 2: LZ4), then three little-endian integers of four bytes: its size as
it is stored and as it was, and a check; a block of no bytes ends a stream, after which another may follow.

``SNAPPY``: snappy-java's ``org.xerial.snappy.SnappyOutputStream``. A header of the magic and two integers,
then blocks of a big-endian size of four bytes and so many bytes; a header may stand in place of a block.

``LZF``: ``com.ning.compress.lzf.LZFOutputStream`` is known, so that it can be said, and not read.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from tideover.calibrate.logs.findings import Problems

_HEAD = 1 << 16
_BLOCK = 1 << 21
_LITTLE = 1 << 12
"""Bytes that are decompressed at once: of a stream that is cut off no more than these are lost."""
MOST_LINE = 64 << 20
"""Bytes of a line; what is beyond is left out, and said."""
MOST_TEXT = 256 << 20
"""Bytes of a file that is read whole, as JSON of one value."""
_MOST = 1 << 28
"""Bytes of a block: more is a broken size."""
_LZ4, _SNAPPY, _LZF = b"LZ4Block", b"\x82SNAPPY\x00", b"ZV\x01"
_LZ4_BLOCK = struct.Struct("<B3i")
_SIZE = struct.Struct(">i")

Pieces = Callable[[BinaryIO], Iterator[bytes]]
"""The decompressed bytes of a stream, piece by piece, until it ends or raises one of ``BROKEN``."""
BROKEN = (OSError, EOFError, ValueError, pa.ArrowException)


def _plain(raw: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: raw.read(_BLOCK), b"")


def _arrow(codec: str) -> Pieces:
    def pieces(raw: BinaryIO) -> Iterator[bytes]:
        stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), codec)
        while piece := stream.read(_LITTLE):
            yield piece

    return pieces


def _exactly(raw: BinaryIO, size: int) -> bytes:
    found = raw.read(size)
    if len(found) < size:
        raise EOFError("the compressed stream ends within a block")
    return found


def _sized(size: int) -> int:
    if not 0 <= size <= _MOST:
        raise ValueError(f"a block of {size} bytes: the compressed stream is broken")
    return size


def _lz4(raw: BinaryIO) -> Iterator[bytes]:
    codec = pa.Codec("lz4_raw")
    while magic := raw.read(len(_LZ4)):
        if magic != _LZ4:
            raise ValueError("the compressed stream is broken: a block does not begin with LZ4Block")
        token, stored, size, _ = _LZ4_BLOCK.unpack(_exactly(raw, _LZ4_BLOCK.size))
        data = _exactly(raw, _sized(stored))
        if size:
            plain = token & 0xF0 == 0x10
            yield data if plain else codec.decompress(data, decompressed_size=_sized(size), asbytes=True)


def _snappy(raw: BinaryIO) -> Iterator[bytes]:
    codec = pa.Codec("snappy")
    while begin := raw.read(_SIZE.size):
        if begin == _SNAPPY[: _SIZE.size]:
            _exactly(raw, len(_SNAPPY) + 2 * _SIZE.size - len(begin))
            continue
        if len(begin) < _SIZE.size:
            raise EOFError("the compressed stream ends within a block")
        data = _exactly(raw, _sized(_SIZE.unpack(begin)[0]))
        yield codec.decompress(data, decompressed_size=_sized(_varint(data)), asbytes=True)


def _varint(data: bytes) -> int:
    """The size of a raw Snappy block when it is decompressed, with which it begins (seven bits a byte)."""
    found = 0
    for place, byte in enumerate(data[:5]):
        found |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return found


def _lzf(raw: BinaryIO) -> Iterator[bytes]:
    raise ValueError("compressed by LZF, which is not read: zstd, lz4, snappy and gzip are")


COMPRESSED: dict[bytes, Pieces] = {
    b"\x1f\x8b": _arrow("gzip"),
    b"BZh": _arrow("bz2"),
    b"\x28\xb5\x2f\xfd": _arrow("zstd"),
    b"\x04\x22\x4d\x18": _arrow("lz4"),
    _LZ4: _lz4,
    _SNAPPY: _snappy,
    _LZF: _lzf,
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

    def document(self) -> Any:
        """The JSON that the file is; None if it is none, which is said with its line."""
        if (text := self.text()) is None:
            return None
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            where = "ends too soon" if error.pos >= len(text.rstrip()) else error.msg
            self.refuse(error.lineno, f"is no JSON at character {error.colno}: {where}; the file is left out")
        except (ValueError, RecursionError):
            self.refuse(1, "is nested too deeply, or has too long a number; the file is left out")
        return None


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
    with suppress(*BROKEN), path.open("rb") as raw:
        for piece in _pieces(raw):
            found += piece
            if len(found) >= _HEAD:
                break
    return found[:_HEAD]
