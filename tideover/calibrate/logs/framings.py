"""Framings of compressed streams that only Java libraries write, and Spark's event logs with them.

Both are read block by block, and each block by Arrow's raw codec.

``LZ4Block``: lz4-java's ``net.jpountz.lz4.LZ4BlockOutputStream``. A block is the magic, a byte whose upper
half says how it is stored (1: as it is, 2: LZ4), then three little-endian integers of four bytes: its size as
it is stored and as it was, and a check; a block of no bytes ends a stream, after which another may follow.

``SNAPPY``: snappy-java's ``org.xerial.snappy.SnappyOutputStream``. A header of the magic and two integers,
then blocks of a big-endian size of four bytes and so many bytes; a header may stand in place of a block.

``LZF``: ``com.ning.compress.lzf.LZFOutputStream`` is known, so that it can be said, and not read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

LZ4, SNAPPY, LZF = b"LZ4Block", b"\x82SNAPPY\x00", b"ZV\x01"
MOST = 1 << 28
"""Bytes of a block: more is a broken size."""
_LZ4_BLOCK = struct.Struct("<B3i")
_SIZE = struct.Struct(">i")


def _exactly(raw: BinaryIO, size: int) -> bytes:
    found = raw.read(size)
    if len(found) < size:
        raise EOFError("the compressed stream ends within a block")
    return found


def _sized(size: int) -> int:
    if not 0 <= size <= MOST:
        raise ValueError(f"a block of {size} bytes: the compressed stream is broken")
    return size


def _lz4(raw: BinaryIO) -> Iterator[bytes]:
    codec = pa.Codec("lz4_raw")
    while magic := raw.read(len(LZ4)):
        if magic != LZ4:
            raise ValueError("the compressed stream is broken: a block does not begin with LZ4Block")
        token, stored, size, _ = _LZ4_BLOCK.unpack(_exactly(raw, _LZ4_BLOCK.size))
        data = _exactly(raw, _sized(stored))
        if size:
            plain = token & 0xF0 == 0x10
            yield data if plain else codec.decompress(data, decompressed_size=_sized(size), asbytes=True)


def _snappy(raw: BinaryIO) -> Iterator[bytes]:
    codec = pa.Codec("snappy")
    while begin := raw.read(_SIZE.size):
        if begin == SNAPPY[: _SIZE.size]:
            _exactly(raw, len(SNAPPY) + 2 * _SIZE.size - len(begin))
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


FRAMINGS = {LZ4: _lz4, SNAPPY: _snappy, LZF: _lzf}
"""What the first bytes say, and what reads such a stream; broken ones raise EOFError or ValueError."""
