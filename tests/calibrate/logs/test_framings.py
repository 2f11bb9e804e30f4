"""Compressed logs are read as plain ones are, and as far as they go where they are cut off."""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tideover.calibrate.logs.files import LogFile, head
from tideover.calibrate.logs.findings import Problems

LZ4_RAW, SNAPPY_RAW = pa.Codec("lz4_raw"), pa.Codec("snappy")
LINES = [b'{"Event":"%d"}' % (i * 7919) for i in range(2000)]
TEXT = b"\n".join(LINES)
SIZE = 1000


def lz4_java(data: bytes) -> list[bytes]:
    """As ``LZ4BlockOutputStream`` writes it: every third block, which it could not make smaller, as it is."""
    made = []
    for number in range(0, len(data), SIZE):
        block = data[number : number + SIZE]
        plain = number % (3 * SIZE) == 0
        stored = block if plain else LZ4_RAW.compress(block, asbytes=True)
        check = zlib.crc32(block)  # of another kind than the format's: nobody looks at it
        about = struct.pack("<BiiI", 0x15 if plain else 0x25, len(stored), len(block), check)
        made.append(b"LZ4Block" + about + stored)
    return [*made, b"LZ4Block" + struct.pack("<B3i", 0x15, 0, 0, 0)]


def snappy_java(data: bytes) -> list[bytes]:
    """As ``SnappyOutputStream`` writes it: its header goes with the first block."""
    made = []
    for number in range(0, len(data), SIZE):
        stored = SNAPPY_RAW.compress(data[number : number + SIZE], asbytes=True)
        made.append(struct.pack(">i", len(stored)) + stored)
    made[0] = b"\x82SNAPPY\x00" + struct.pack(">2i", 1, 1) + made[0]
    return made


def parts(data: bytes) -> Iterator[bytes]:
    yield from (data[i : i + SIZE] for i in range(0, len(data), SIZE))


WAYS: dict[str, Callable[[bytes], list[bytes]]] = {
    "lz4": lz4_java,
    "snappy": snappy_java,
    "zstd": lambda data: [pa.Codec("zstd").compress(part, asbytes=True) for part in parts(data)],
    "gzip": lambda data: [gzip.compress(part) for part in parts(data)],
    "bzip2": lambda data: [bz2.compress(part) for part in parts(data)],
    "lz4 frames": lambda data: [pa.Codec("lz4").compress(part, asbytes=True) for part in parts(data)],
}
FRAMES = {way: made(TEXT) for way, made in WAYS.items()}


def read(path: Path, data: bytes) -> tuple[list[bytes], list[str]]:
    path.write_bytes(data)
    problems = Problems()
    found = list(LogFile(path, "log", problems).lines())
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    told = [line for line in problems.lines() if "has no end" not in line]  # which TEXT has not, either
    return [line for _, line in found], told


@pytest.mark.parametrize("way", WAYS)
def test_a_compressed_log_is_its_text(way: str, tmp_path: Path) -> None:
    """Law: compressing changes no line, also where one stream follows another."""
    half = len(TEXT) // 2
    assert read(tmp_path / "log", b"".join(FRAMES[way])) == (LINES, [])
    assert head(tmp_path / "log") == TEXT[: 1 << 16]
    twice = [b"".join(WAYS[way](part)) for part in (TEXT[:half], TEXT[half:])]
    assert read(tmp_path / "log", b"".join(twice)) == (LINES, [])


@pytest.mark.parametrize("way", ["lz4", "snappy"])
@settings(max_examples=40)
@given(cut=st.integers(9, len(b"".join(FRAMES["snappy"])) - 1), rubbish=st.binary(max_size=40))
def test_what_is_whole_before_a_break_is_read(
    way: str, cut: int, rubbish: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Law: a stream that is cut off gives all its whole blocks; so does one that goes on with rubbish, whose
    size is less than none (snappy) or which begins no block (lz4), and that is said.
    """
    path = tmp_path_factory.getbasetemp() / f"broken.{way}"
    ends = list(accumulate(map(len, FRAMES[way])))
    whole = sum(end <= cut for end in ends)
    found, problems = read(path, b"".join(FRAMES[way])[:cut])
    assert b"\n".join(found) == TEXT[: whole * SIZE].removesuffix(b"\n")
    assert len(problems) == (cut not in ends)
    found, (problem,) = read(path, b"".join(FRAMES[way][: whole + 1]) + b"\xff\xff\xff\xff" + rubbish)
    assert b"\n".join(found) == TEXT[: (whole + 1) * SIZE].removesuffix(b"\n")
    assert problem.startswith("log: (file): cannot be read to its end: ")


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_cut_in_two_ends_there(way: str, tmp_path: Path) -> None:
    """Law: whatever wrote it, what is read of it is how it begins, and that it was cut is said."""
    whole = b"".join(FRAMES[way])
    found, problems = read(tmp_path / "log", whole[: len(whole) // 2])
    assert TEXT.startswith(b"\n".join(found))
    assert len(found) > len(LINES) // 4
    assert len(problems) == 1


def test_a_kind_that_is_not_read_is_named(tmp_path: Path) -> None:
    lines, (problem,) = read(tmp_path / "log", b"ZV\x01\x00\x10\x00\x20 and more")
    assert (lines, head(tmp_path / "log")) == ([], b"")
    assert problem.startswith("log: (file): cannot be read to its end: compressed by LZF, which is not read")
