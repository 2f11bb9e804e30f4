"""``python -m benchmarks.before [COMMIT]``: what scenarios without a cluster cost, beside an earlier commit.

The commit is checked out into a temporary worktree of this repository. Both run the same worlds in processes
of their own, in turns; CPU time counts, and of each side the least, since whatever else runs only adds to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.table import Row, show

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "c601689"
"""The last commit before hosts had cores, cards and queues an end."""
SLOWER = 1.05
"""The bar: so many times the time of before."""
ROUNDS = 5
WORLDS = {
    "tandem": "tandem(100_000, 0.7, 10)",
    "word count": "word_count(100_000, 0.7, 5)",
    **{
        f"small, {name}": f"small({name!r})"
        for name in ("none", "source_replay", "rsm", "active_replication", "aligned_snapshots", "micro_batch")
    },
}
PROGRAM = """
import sys, time
from benchmarks.worlds import *
from tideover.models.world import World
def once():
    begin = time.process_time()
    world = World(eval(sys.argv[1]))
    world.run()
    world.balance()
    return time.process_time() - begin
once()
print(min(once() for _ in range(3)))
"""


def cpu(tree: Path, world: str) -> float:
    """CPU seconds of a world (the fastest of three runs) with the package of this tree."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, world],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def rows(commit: str) -> list[Row]:
    """One row a world."""
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            return [row(name, tree) for name in WORLDS]
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def row(name: str, tree: Path) -> Row:
    """A world, in turns."""
    times: dict[Path, list[float]] = {tree: [], ROOT: []}
    for _ in range(ROUNDS):
        for each, found in times.items():
            found.append(cpu(each, WORLDS[name]))
    then, now = (min(found) for found in times.values())
    return Row(name, f"{1e3 * now:.1f} ms", now / then, SLOWER, False, f"before {1e3 * then:.1f} ms")


if __name__ == "__main__":
    print(show(rows(sys.argv[1] if len(sys.argv) > 1 else BEFORE)))
