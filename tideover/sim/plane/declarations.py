"""What cffi makes of ``plane.h``, kept: to read the header again takes each process a tenth of a second.

This needs cffi and the standard library only: the package's own build runs it as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
from pathlib import Path

HEADER = "plane.h"
KEPT = "plane.cffi"


def readable(header: bytes) -> str:
    """A header without the preprocessor's lines, of which cffi knows integers only: ``#define NAME 1``."""
    return re.sub(r"^[ \t]*#(?!define\s+\w+\s+-?\w+[ \t]*$).*\n", "", header.decode(), flags=re.MULTILINE)


def is_of(kept: bytes, header: bytes) -> bool:
    """Whether what is kept was made of this header."""
    return kept.startswith(_first_line(header))


def declare(header: bytes, keep_in: Path | None = None) -> bytes:
    """Python code that makes ``ffi``; it is kept in the folder ``keep_in``, if it may be."""
    from cffi import FFI
    from cffi.recompiler import make_py_source

    types = FFI()
    types.cdef(readable(header))
    with tempfile.TemporaryDirectory(prefix="tideover-declared-") as scratch:
        made = Path(scratch, KEPT)
        make_py_source(types, "declared", str(made))  # as emit_python_code does, which prints, too
        code = _first_line(header) + made.read_bytes()
    if keep_in is not None:
        with (
            contextlib.suppress(OSError),
            tempfile.TemporaryDirectory(prefix=".making-", dir=keep_in) as beside,
        ):
            made = Path(beside, KEPT)
            made.write_bytes(code)
            made.replace(keep_in / KEPT)
    return code


def _first_line(header: bytes) -> bytes:
    return b"# Made of plane.h with SHA-256 " + hashlib.sha256(header).hexdigest().encode() + b"\n"
