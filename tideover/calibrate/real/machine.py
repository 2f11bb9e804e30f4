"""The machine and the versions that a measurement was made with, and what a machine needs."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import psutil

import tideover
from tideover.scenarios.java import JavaNotFound, find_java

NEEDED_BYTES = 3 * 2**30
"""Free memory for two queries of a driver and two executors each."""

_SYSTEMS = ("Linux", "Darwin")


def machine() -> dict[str, str]:
    """Versions of Tideover and Python, operating system, and a line about the hardware."""
    memory = psutil.virtual_memory().total / 2**30
    return {
        "tideover": tideover.__version__,
        "python": platform.python_version(),
        "os": platform.system(),
        "machine": f"{_processor()}, {psutil.cpu_count()} cores, {memory:.0f} GiB",
    }


def requirements() -> list[str]:
    """What keeps this machine from running a calibration, each as a sentence; nothing if all is well."""
    problems = []
    if platform.system() not in _SYSTEMS:
        problems.append(
            f"A calibration stops and kills processes by POSIX signals, which {platform.system()} "
            "does not have; Linux and macOS do."
        )
    if find_java() is None:
        problems.append(str(JavaNotFound()))
    free = psutil.virtual_memory().available
    if free < NEEDED_BYTES:
        problems.append(
            f"A calibration needs {NEEDED_BYTES / 2**30:.0f} GiB of free memory, and there are "
            f"{free / 2**30:.1f} GiB: close other programs, or calibrate on another machine."
        )
    return problems


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
