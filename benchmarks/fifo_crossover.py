"""(e) Up to which length of train a FIFO's scalar loop is faster than numpy: ``tideover.sim.fifo.SMALL``."""

from __future__ import annotations

import timeit

import numpy as np

from benchmarks.table import Row
from tideover.sim import fifo

LENGTHS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)


def per_call(n: int, small: bool, repeats: int = 400) -> float:
    """Microseconds per train of n tuples by one of the two ways."""
    rng = np.random.default_rng(n)
    arrival = np.cumsum(rng.integers(1, 20_000, n))
    service = rng.integers(1, 14_000, n)
    kept, fifo.SMALL = fifo.SMALL, n if small else 0
    try:
        timer = timeit.Timer(lambda: fifo.departures(arrival, service.copy(), 0))
        return min(timer.repeat(7, repeats)) / repeats * 1e6
    finally:
        fifo.SMALL = kept


def crossover() -> tuple[list[tuple[int, float, float]], int]:
    """(length, us by the loop, us by numpy), and the first length at which numpy is faster."""
    rows = [(n, per_call(n, True), per_call(n, False)) for n in LENGTHS]
    return rows, next(n for n, loop, arrays in rows if arrays < loop)


def row(quick: bool) -> Row:
    rows, first = crossover()
    at = {n: (loop, arrays) for n, loop, arrays in rows}
    loop, arrays = (
        at[fifo.SMALL] if fifo.SMALL in at else (per_call(fifo.SMALL, True), per_call(fifo.SMALL, False))
    )
    return Row(
        "FIFO crossover",
        f"numpy wins from {first} tuples",
        max(loop, arrays) / min(loop, arrays),
        1.5,
        False,
        f"the slower way / the faster at SMALL = {fifo.SMALL}",
        "  ".join(f"{n}: {a:.1f}/{b:.1f}" for n, a, b in rows) + " us (loop/numpy)",
    )


if __name__ == "__main__":
    for n, loop, arrays in crossover()[0]:
        print(f"{n:4d} tuples  loop {loop:6.2f} us  numpy {arrays:6.2f} us")
