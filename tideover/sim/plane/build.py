"""Builds the compiled data plane beside its sources, opens it, and keeps what cffi makes of ``plane.h``.

`library` and the installation call it; by hand it compiles with checks of memory. Flags and compilers are
changed here.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY = "libplane.dylib" if sys.platform == "darwin" else "libplane.so"
FLAGS = [
    *("-std=c11", "-O2", "-g0", "-ffp-contract=off"),
    *("-Wall", "-Wextra", "-Werror"),
    *("-fPIC", "-shared", "-fvisibility=hidden"),
]
SANITIZERS = ["-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
ZIG = [sys.executable, "-m", "ziglang"]
_INSTALL = (
    "Install one (Debian, Ubuntu: sudo apt install gcc libc6-dev; macOS: xcode-select --install), "
    "or take the one from PyPI, which needs no rights: pip install ziglang."
)
_PROBE = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\nint64_t probe(void) { return 1; }\n"
_WORDS = b"tideover-plane-sources:"


class NoDataPlane(Exception):
    """Why there is no library, how to mend it, and what the compiler said."""

    def __init__(self, why: str, mend: str, said: str = "") -> None:
        super().__init__(why, mend, said)
        self.why, self.mend, self.said = why, mend, said

    def __str__(self) -> str:
        return f"{self.why}. {self.mend}" + (f"\n{self.said}" if self.said else "")


def sources(folder: Path = HERE) -> list[Path]:
    """All C files and headers in a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".c", ".h"))


def digest(folder: Path = HERE, flags: Sequence[str] = FLAGS) -> str:
    """SHA-256 of what a library is made of: names and contents of the sources, flags, kind of machine."""
    told = hashlib.sha256()
    for part in (*flags, sys.platform, os.uname().machine):
        told.update(part.encode() + b"\0")
    for path in sources(folder):
        content = path.read_bytes()
        told.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return told.hexdigest()


def digest_of(library: Path) -> str | None:
    """The digest of the sources that a library was made of; None if it does not say, or is not there."""
    try:
        content = library.read_bytes()
    except OSError:
        return None
    found = re.search(re.escape(_WORDS) + rb"([0-9a-f]{64})\0", content)
    return found[1].decode() if found else None


def build(
    out: Path = HERE,
    compiler: Sequence[str] | None = None,
    sanitized: bool = False,
    folder: Path = HERE,
    again: bool = False,
) -> Path:
    """The library made of the sources in ``folder``, in the folder ``out``; raises NoDataPlane.

    Nothing is done if it is there already, unless it is to be made ``again``. It takes its place at once, so
    that several processes can do this at the same time. ``compiler``: its command; by default, the first that
    works. ``sanitized``: with checks of memory and of undefined behaviour.
    """
    library = out / LIBRARY
    flags = [*FLAGS, *(SANITIZERS if sanitized else ())]
    made_of = digest(folder, flags)
    if not again and digest_of(library) == made_of:
        return library
    chosen = list(compiler) if compiler else find_compiler()
    if chosen is None:
        state = "has to be made anew" if library.exists() else "is missing"
        tried = os.environ.get("CC", "")
        named = f"the C compiler that CC names ({tried}) does not work"
        which = named if tried else "no C compiler works here"
        raise NoDataPlane(f"{library}: Tideover's compiled data plane {state}, and {which}", _INSTALL)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=out) as scratch:
            made = Path(scratch) / LIBRARY
            macros = {"PLANE_SOURCES": made_of, "PLANE_COMPILER": version(chosen)}
            flags += [f'-D{name}="{text}"' for name, text in macros.items()]
            names = [path.name for path in sources(folder) if path.suffix == ".c"]
            _compile(chosen, [*flags, *names, "-o", str(made.resolve()), "-lm"], folder)
            made.replace(library)
    except OSError as error:
        why = f"{library}: Tideover's compiled data plane cannot be written ({error.strerror})"
        raise NoDataPlane(why, "Install Tideover where you may write.") from error
    return library


def find_compiler() -> list[str] | None:
    """The command of the first C compiler that works here; None: there is none."""
    named = shlex.split(os.environ.get("CC", ""))
    found = [named] if named else [[path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))]
    if not named and importlib.util.find_spec("ziglang"):
        found.append([*ZIG, "cc"])
    return next((command for command in found if _works(tuple(command))), None)


def version(compiler: Sequence[str]) -> str:
    """A compiler's name and version, as it says them itself, in characters that a macro can hold."""
    said = _output([*compiler, "--version"]).splitlines()[:1]
    if _is_zig(compiler):
        said = [f"zig {_output([*ZIG, 'version']).strip()}", *said]
    return re.sub(r'["\\]|[^ -~]', "?", ", ".join(said)) or shlex.join(compiler)


@functools.cache
def _works(compiler: tuple[str, ...]) -> bool:
    """Whether it makes libraries: one without headers, or a stub that asks for an installation, does not."""
    if _is_zig(compiler):
        return True  # has all that it needs, and takes seconds to begin
    with tempfile.TemporaryDirectory(prefix="tideover-cc-") as scratch:
        Path(scratch, "probe.c").write_text(_PROBE)
        try:
            _compile(compiler, [*FLAGS, "probe.c", "-o", "probe.so", "-lm"], Path(scratch))
        except NoDataPlane:
            return False
    return True


def _compile(compiler: Sequence[str], arguments: Sequence[str], folder: Path) -> None:
    # zig compiles for this very processor unless told otherwise, and the library goes to others. Its
    # vectoriser crashes for ARM (0.17), and it optimises across files (a twentieth faster) for some machines
    # only.
    own = ["-mcpu=baseline", "-fno-vectorize"] if _is_zig(compiler) else ["-flto"]
    try:
        done = _run([*compiler, *own, *arguments], folder)
    except OSError as error:
        raise NoDataPlane(f"{compiler[0]}: cannot be run ({error.strerror})", _INSTALL) from error
    if done.returncode:
        raise NoDataPlane(
            f"{folder}: {shlex.join(compiler)} does not compile Tideover's data plane",
            "The environment variable CC can name another C compiler; this one says, when run by build.py:",
            f"{shlex.join(done.args)}\n{(done.stderr + done.stdout).strip()}",
        )


def _is_zig(compiler: Sequence[str]) -> bool:
    return list(compiler[: len(ZIG)]) == ZIG


def _output(command: Sequence[str]) -> str:
    try:
        return _run(command, HERE).stdout
    except OSError:
        return ""


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """What zig keeps for itself stays in a folder that goes away, and not in the user's home."""
    with tempfile.TemporaryDirectory(prefix="tideover-cc-") as cache:
        place = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache} | os.environ
        return subprocess.run(command, cwd=folder, env=place, capture_output=True, text=True)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Build as the command line says; the exit code."""
    import argparse  # for whoever runs this alone

    parser = argparse.ArgumentParser(description="Compile Tideover's data plane.")
    add = parser.add_argument
    add("--out", type=Path, default=HERE, help="folder for the library (default: its sources')")
    add("--compiler", help="command of the compiler, or 'zig' for that of the package ziglang")
    add("--sanitized", action="store_true", help="check memory and undefined behaviour as it runs")
    add("--again", action="store_true", help="also if the library is there already")
    given = parser.parse_args(arguments)
    try:
        compiler = [*ZIG, "cc"] if given.compiler == "zig" else shlex.split(given.compiler or "")
        library = build(given.out, compiler, given.sanitized, again=given.again)
    except NoDataPlane as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{library}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
