"""``python -m benchmarks [--quick] [--only NAME ...]``: prints one table."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks import cluster, commands, effort, memory, queues, speed, sweep
from benchmarks.table import Row, show

PROGRAMS: dict[str, Callable[[bool], list[Row]]] = {
    "tandem": lambda quick: [speed.tandem_row(quick)],
    "kernel": speed.kernel_rows,
    "wordcount": speed.word_count_rows,
    "small": speed.small_rows,
    "commands": commands.rows,
    "memory": memory.rows,
    "cluster": cluster.rows,
    "queues": queues.rows,
    "effort": effort.rows,
    "sweep": lambda quick: [sweep.row(quick)],
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="shorter runs: to see that they run, not to quote"
    )
    parser.add_argument(
        "--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), help="some of the programs"
    )
    args = parser.parse_args()
    rows: list[Row] = []
    for name in args.only:
        rows += PROGRAMS[name](args.quick)
    print(show(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
