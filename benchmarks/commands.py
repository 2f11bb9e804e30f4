"""What a user waits for besides the simulation: imports, and a comparison with its verdict."""

from __future__ import annotations

import resource
import subprocess
import sys

from benchmarks.table import Row

IMPORTS = """
import sys
from tideover.cli.app import main
import tideover.reports.terminal
from tideover.scenarios import runs
class Enough(BaseException): pass
def enough(*_, **__): raise Enough
runs.simulate = enough
sys.argv = ["tideover", "run", "wordcount"]
try: main()
except Enough: pass
"""
"""A run, with what shows it, up to where the first replication would begin."""


def rows(quick: bool) -> list[Row]:
    """Processor time of processes of their own."""
    few = ("--set", "run.replications=1") if quick else ()
    return [
        _row("compare wordcount", ("-m", "tideover", "compare", "wordcount", *few), 8),
        _row("tideover --help", ("-m", "tideover", "--help"), 0.5),
        _row("import tideover; tideover.run", ("-c", "import tideover; tideover.run"), 0.5),
        _row("imports of tideover run", ("-c", IMPORTS), 0.5),
    ]


def _row(name: str, arguments: tuple[str, ...], target: float) -> Row:
    """The least of three rounds, after one in which what is imported is compiled."""
    least = min([_cpu(arguments) for _ in range(4)][1:])
    return Row(name, f"{least:.2f} s", least, target, False)


def _cpu(arguments: tuple[str, ...]) -> float:
    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    before = used()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return used() - before
