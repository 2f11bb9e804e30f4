"""Opens the compiled data plane, with what cffi makes of ``plane.h`` kept."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pkgutil
import re
import tempfile
from pathlib import Path
from typing import Any

from tideover.sim.plane.build import HERE, LIBRARY, NoDataPlane, build

# What cffi makes of ``plane.h``, kept: to read the header again takes each process a tenth of a second.
#
# This needs cffi and the standard library only: the package's own build runs it as well.

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


# Opens the compiled data plane: ``from tideover.sim.plane.library import ffi, lib``.
#
# ``lib`` has the functions and constants of ``plane.h``, ``ffi`` is cffi's way to its structs. Both come to
# be when they are first asked for; importing this module costs nothing. A library that was not made of the
# sources beside it is made anew first, if there is a compiler. In a zip, the library is read out of it.
#
# The environment variable TIDEOVER_PLANE names another library, which is opened as it is: one with
# sanitizers, say, or one made of sources that a test has changed.

OTHER = "TIDEOVER_PLANE"

ffi: Any
lib: Any


def __getattr__(name: str) -> Any:
    if name not in ("ffi", "lib"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["ffi"], globals()["lib"] = _opened()
    return globals()[name]


def made_by() -> tuple[str, str]:
    """The compiler that made the library, and the digest of its sources; raises NoDataPlane."""
    types, library = __getattr__("ffi"), __getattr__("lib")
    return tuple(types.string(told()).decode() for told in (library.plane_made_by, library.plane_sources))


def make_ready() -> Path:
    """The library, made of the sources beside it as they are now; raises NoDataPlane."""
    library = build()
    _declared()
    return library


def _opened() -> tuple[Any, Any]:
    """The types of the header, and the library; raises NoDataPlane."""
    if other := os.environ.get(OTHER):
        library, mend = Path(other), f"The environment variable {OTHER} names it."
    elif _is_packed():
        return _opened_packed()
    else:
        library, mend = make_ready(), f"Make it anew: python {HERE / 'build.py'} --again"
    return _open(library, mend)


def _opened_packed() -> tuple[Any, Any]:
    """From a zip. A library that is open needs its file no longer."""
    with tempfile.TemporaryDirectory(prefix="tideover-plane-") as private:  # nobody else may enter it
        library = Path(private, LIBRARY)
        library.write_bytes(_packed(LIBRARY))
        kind = "The zip has to come from the same kind of machine."
        rights = "Where no programs may lie in that folder, the environment variable TMPDIR names another."
        return _open(library, f"{kind} {rights}")


def _open(library: Path, mend: str) -> tuple[Any, Any]:
    space: dict[str, Any] = {}
    exec(compile(_declared(), KEPT, "exec"), space)
    types = space["ffi"]
    try:
        return types, types.dlopen(str(library.resolve()))
    except OSError as error:
        raise NoDataPlane(f"Tideover's compiled data plane cannot be opened: {error}", mend) from error


def _declared() -> bytes:
    """The code that makes ``ffi``, as it is kept; else, if the header has changed, as it is now."""
    header = _packed(HEADER)
    try:
        kept = _packed(KEPT)
    except NoDataPlane:
        kept = b""
    return kept if is_of(kept, header) else declare(header, None if _is_packed() else HERE)


def _is_packed() -> bool:
    """Whether this package lies in a zip."""
    return not HERE.is_dir()


def _packed(name: str) -> bytes:
    """A file of this package, which may lie in a zip."""
    try:
        content = pkgutil.get_data(__package__, name)
    except OSError as error:
        raise NoDataPlane(
            f"{HERE / name}: Tideover's data plane lacks this file", "Install it anew."
        ) from error
    assert content is not None
    return content
