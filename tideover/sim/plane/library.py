"""Opens the compiled data plane: ``from tideover.sim.plane.library import ffi, lib``.

``lib`` has the functions and constants of ``plane.h``, ``ffi`` is cffi's way to its structs. Both come to
be when they are first asked for; importing this module costs nothing. A library that was not made of the
sources beside it is made anew first, if there is a compiler. In a zip, the library is read out of it.

The environment variable TIDEOVER_PLANE names another library, which is opened as it is: one with
sanitizers, say, or one made of sources that a test has changed.
"""

from __future__ import annotations

import os
import pkgutil
import tempfile
from pathlib import Path
from typing import Any

from tideover.sim.plane.build import HEADER, HERE, KEPT, LIBRARY, NoDataPlane, build, declare, is_of

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
        return _open(Path(other), f"The environment variable {OTHER} names it.")
    if not _is_packed():
        return _open(make_ready(), f"Make it anew: python {HERE / 'build.py'} --again")
    # From a zip. A library that is open needs its file no longer.
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
        found = pkgutil.get_data(__package__, name)
    except OSError:
        found = None
    if found is None:
        raise NoDataPlane(f"{HERE / name}: Tideover's data plane lacks this file", "Install it anew.")
    return found
