"""Opens the compiled data plane: ``from tideover.sim.plane.library import ffi, lib``.

``lib`` has the functions and constants of ``plane.h``, ``ffi`` is cffi's way to its structs. Both come to be
when they are first asked for; importing this module costs nothing. A library that was not made of the sources
beside it is made anew first, if there is a compiler. In a zip, the library is read out of it.

The environment variable TIDEOVER_PLANE names another library, which is opened as it is: one with sanitizers,
say, or one made of sources that a test has changed.
"""

from __future__ import annotations

import functools
import os
import pkgutil
import re
import tempfile
from pathlib import Path
from typing import Any

from tideover.sim.plane.build import HERE, LIBRARY, NotBuilt, build

OTHER = "TIDEOVER_PLANE"

ffi: Any
lib: Any


class NoDataPlane(ImportError):
    """The library cannot be opened; the message says why, and how to mend it."""


def __getattr__(name: str) -> Any:
    if name not in ("ffi", "lib"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["ffi"], globals()["lib"] = _opened()
    return globals()[name]


def declarations() -> str:
    """What cffi reads of ``plane.h``: all but the preprocessor's lines, of which it knows integers only."""
    return re.sub(r"^\s*#(?!define\s+\w+\s+-?\w+\s*$).*\n", "", _packed("plane.h").decode(), flags=re.M)


@functools.cache
def _opened() -> tuple[Any, Any]:
    """The types of the header, and the library; raises NoDataPlane."""
    from cffi import FFI

    types = FFI()
    types.cdef(declarations())
    if other := os.environ.get(OTHER):
        return types, _open(types, Path(other), f"See what the environment variable {OTHER} names.")
    if not HERE.is_dir():  # in a zip
        return types, _open_packed(types)
    try:
        library = build()
    except NotBuilt as error:
        raise NoDataPlane(str(error)) from error
    return types, _open(types, library, f"Make it anew: python {HERE / 'build.py'} --again")


def _open_packed(types: Any) -> Any:
    """Opens a library that lies in a zip. A library that is open needs its file no longer."""
    with tempfile.TemporaryDirectory(prefix="tideover-plane-") as private:  # nobody else may enter it
        library = Path(private, LIBRARY)
        library.write_bytes(_packed(LIBRARY))
        mend = "If programs may not be run there, let the environment variable TMPDIR name another folder."
        return _open(types, library, mend)


def _open(types: Any, library: Path, mend: str) -> Any:
    try:
        return types.dlopen(str(library.resolve()))
    except OSError as error:
        raise NoDataPlane(f"Tideover's data plane cannot be opened: {error}. {mend}") from error


def _packed(name: str) -> bytes:
    """A file of this package, which may lie in a zip."""
    try:
        content = pkgutil.get_data(__package__, name)
    except OSError as error:
        raise NoDataPlane(f"Tideover's data plane lacks its file {name}: install Tideover anew.") from error
    assert content is not None
    return content
