"""``tideover doctor``: what works on this machine, and how to mend what does not.

`app` adds it to the program. A new check is a function that the list of steps in `doctor` names.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata

import typer

from tideover import __version__
from tideover.cli.output import PRINT, Bar, Printed, print_json, show
from tideover.scenarios.spark import settings

PACKAGES = ("cffi", "numpy", "pandas", "pyarrow", "pydantic", "seaborn", "simpy")
CONNECT = ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard")
"""What ``--remote`` needs beside PySpark; the extra ``connect`` names the same."""
LEAST_MEMORY = 2 * 2**30


@dataclass(frozen=True)
class Check:
    """``ok``: None for what is merely told. ``mend``: what to do if it is not ok."""

    name: str
    ok: bool | None
    found: str
    mend: str = ""


def doctor(results: Printed = PRINT, no_spark: bool = False) -> None:
    """Check Java, Python, versions and memory, and start Spark; say how to mend what does not work.

    --no-spark: Do not try to start Spark.
    """
    steps: list[Callable[[], Iterator[Check]]] = [_software, _machine, _data_plane, _engine]
    if settings.has_spark():
        steps += [_for_spark, *([] if no_spark else [_spark])]
    checks: list[Check] = []
    with Bar("checking") as bar:
        for number, step in enumerate(steps):
            bar(f"checking{step.__name__.replace('_', ' ')}", number, len(steps))
            checks += step()
    works = all(check.ok is not False for check in checks)
    if results.json:
        print_json({"checks": [asdict(check) for check in checks], "ok": works})
    else:
        from rich.text import Text

        marks = {True: ("ok", "green"), False: ("NO", "bold red"), None: ("  ", "")}
        width = max(len(check.name) for check in checks)
        for check in checks:
            said = Text.assemble(marks[check.ok], f"  {check.name:<{width}}  {check.found}")
            show(said, whole_lines=True)
            if check.ok is False:
                show(Text(f"    {check.mend}", style="yellow"), whole_lines=True)
        if works:
            show(Text("Everything works.", style="bold"))
    if not works:
        raise typer.Exit(1)


def _software() -> Iterator[Check]:
    yield Check("tideover", True, __version__)
    found = f"{platform.python_version()} ({sys.executable})"
    yield Check("Python", sys.version_info >= (3, 11), found, "Install Python 3.11 or newer.")
    if not settings.has_spark():
        yield Check("Spark", None, f"only sweeps, plans and calibration use it: {settings.ABSENT}")
    for package in (*PACKAGES, *(["pyspark"] if settings.has_spark() else [])):
        version = _version(package)
        if version is None:
            yield Check(package, False, "is missing", f"pip install {package}")
        elif package == "pandas" and settings.has_spark() and int(version.split(".")[0]) >= 3:
            yield Check(package, False, version, 'PySpark needs an older one: pip install "pandas<3"')
        else:
            yield Check(package, True, version)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _machine() -> Iterator[Check]:
    import psutil

    yield Check("system", None, platform.platform())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Check("cores", None, str(cores))
    memory = psutil.virtual_memory().available
    enough = memory >= LEAST_MEMORY or (False if settings.has_spark() else None)
    mend = "Simulations are fine, but Spark may not start: close other programs, or use --no-spark."
    yield Check("memory", enough, f"{memory / 2**30:.1f} GiB free", mend)


def _data_plane() -> Iterator[Check]:
    from tideover.sim.plane.build import NoDataPlane
    from tideover.sim.plane.library import made_by

    try:
        compiler, sources = made_by()
    except NoDataPlane as error:
        yield Check("data plane", False, error.why, error.mend)
    else:
        yield Check("data plane", True, f"compiled by {compiler} from sources {sources[:12]}")


def _engine() -> Iterator[Check]:
    from tideover.models.simulation import simulate
    from tideover.scenarios.loader import load

    try:
        scenario = load("wordcount")
        begun = time.perf_counter()
        simulate(scenario)
    except Exception as error:
        yield Check("engine", False, f"{type(error).__name__}: {error}", "Install Tideover anew.")
        return
    yield Check("engine", True, f"simulated wordcount in {1000 * (time.perf_counter() - begun):.0f} ms")


def _for_spark() -> Iterator[Check]:
    from tideover.calibrate.real.processes import requirements
    from tideover.scenarios.java import JavaNotFound, find_java

    found, missing = f"grpcio {_version('grpcio')}", [one for one in CONNECT if _version(one) is None]
    if missing:
        found = f'no {", ".join(missing)}; only --remote needs them: pip install "tideover[connect]"'
    yield Check("Spark Connect", None if missing else True, found)
    java = find_java()
    if java is None:
        yield Check("Java", False, "none that Spark can use", str(JavaNotFound()))
    else:
        yield Check("Java", True, f"{java.version} ({java.origin}: {java.home})")
    problems = requirements()
    able = f"real runs are {'not ' if problems else ''}possible here"
    yield Check("calibrate", not problems, able, " ".join(problems))


def _spark() -> Iterator[Check]:
    begun = time.perf_counter()
    try:
        from tideover.scenarios.spark.session import spark_session

        with spark_session(settings.LOCAL) as spark:
            counted = spark.range(0, 1000, 1, 2).count()
        assert counted == 1000
    except Exception as error:
        mend = "Mend Java first, if it is missing above; without Spark, sweeps run with --no-spark."
        yield Check("Spark", False, " ".join(str(error).split())[:400], mend)
        return
    yield Check("Spark", True, f"started and counted in {time.perf_counter() - begun:.1f} s")
