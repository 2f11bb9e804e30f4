"""What workers elsewhere get from here: Tideover, and, if they lack them, the packages that it needs."""

from __future__ import annotations

import functools
import gzip
import importlib.metadata
import io
import platform
import re
import shutil
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.spark.scratch import scratch
from tideover.scenarios.spark.settings import PACKAGE
from tideover.sim.plane.library import make_ready
from tideover.sim.text_files import Unreadable

FOR_RUNS = ("cffi", "numpy", "pandas", "pyarrow", "pydantic", "ruamel.yaml", "scipy", "simpy")
"""What a run needs of what Tideover depends on; the rest draws, prints, or is Spark's."""

NAME = "tideover-packages"
"""What the archive is called where workers unpack it, in their own directory."""

PYTHON = f"{NAME}/bin/python"
"""The Python that workers run then: their own, with the archive's packages."""

_MADE_FOR = "made-for"
_LAUNCHER = """\
#!/bin/sh
# The worker's own Python, with the packages beside this file.
here=$(cd "$(dirname "$0")/.." && pwd)
PYTHONPATH="$here/packages${PYTHONPATH:+:$PYTHONPATH}" exec "${TIDEOVER_PYTHON:-%s}" "$@"
"""
_ALLOWED = "an archive that tideover sweep --package has made here"
_LONGEST = 1000
"""Of what says for whom an archive was made, in bytes."""
_LEFT_OUT = {"__pycache__", "tests", "include"}


@functools.cache
def zipped() -> Path:
    """Tideover as a zip that Python imports from, with the compiled data plane in it."""
    make_ready()
    return Path(shutil.make_archive(str(scratch() / "tideover"), "zip", PACKAGE.parent, PACKAGE.name))


def write_archive(path: Path) -> list[str]:
    """Pack Tideover and what its runs need, as installed here; returns the packages, each with its version.

    The archive (``.tar.gz``) holds the same bytes each time. It is good for workers with the same version of
    Python, system and processor as here; it holds no Python.
    """
    make_ready()
    distributions = list(_needed(FOR_RUNS))
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=1) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        _add(archive, _MADE_FOR, _here().encode())
        _add(archive, "bin/python", (_LAUNCHER % _python()).encode(), 0o755)
        for name, file in sorted(_files(distributions)):
            _add(archive, f"packages/{name}", file.read_bytes(), file.stat().st_mode & 0o755)
    return [f"{found.name} {found.version}" for found in distributions]


def check_archive(path: Path, of: str) -> Path:
    """The archive's whole path; raises ScenarioError, which calls it ``of``, if it is not for our workers."""
    try:
        made_for = _made_for_of(path)
    except (OSError, tarfile.TarError, Unreadable) as error:
        said = f"cannot be read ({getattr(error, 'strerror', None) or error}); allowed: {_ALLOWED}"
        raise ScenarioError([Problem(of, None, str(path), said)]) from error
    if made_for == _here():
        return path.resolve()
    said = "is another archive" if made_for is None else f"was made for {made_for}, and this is {_here()}"
    raise ScenarioError([Problem(of, None, str(path), f"{said}; allowed: {_ALLOWED}")])


def _made_for_of(path: Path) -> str | None:
    """For which workers an archive was made; None: for none. Raises OSError, TarError, Unreadable."""
    if path.exists() and not path.is_file():
        raise Unreadable("is not a regular file")
    with tarfile.open(path) as archive:
        first = archive.next()
        content = archive.extractfile(first) if first is not None and first.name == _MADE_FOR else None
        return None if content is None else content.read(_LONGEST).decode(errors="replace")


def is_archive(path: Path) -> bool:
    """Whether a file is an archive that was made here, for whomever."""
    try:
        return _made_for_of(path) is not None
    except (OSError, tarfile.TarError, Unreadable):
        return False


def _python() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _here() -> str:
    """What packages with compiled parts depend on, as a worker's Python has to have it as well."""
    return f"{_python()}, {platform.system()} {platform.machine()}"


def _needed(names: Iterable[str]) -> Iterator[importlib.metadata.Distribution]:
    """These packages and what they need, as they are installed here, by name."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # needed elsewhere: on another system, with an older Python
        needs = [need for need in found[name].requires or () if "extra ==" not in need]
        waiting += [match[0] for need in needs if (match := re.match(r"[\w.-]+", need))]
    return iter(found[name] for name in sorted(found))


def _files(distributions: Iterable[importlib.metadata.Distribution]) -> Iterator[tuple[str, Path]]:
    """The files of these packages and of Tideover, each with its path in the archive."""
    for file in PACKAGE.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            yield str(file.relative_to(PACKAGE.parent)), file
    for distribution in distributions:
        for name in distribution.files or ():
            file = Path(str(distribution.locate_file(name)))
            if ".." not in name.parts and not _LEFT_OUT & set(name.parts) and file.is_file():
                yield str(name), file


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
