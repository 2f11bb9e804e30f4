"""One row a program, and how it is timed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

Timed = Callable[[], int]
"""Runs a program once; returns how much it did (hops)."""


@dataclass
class Row:
    """One figure beside its target; ``at_least``: the target is a lower bound."""

    program: str
    figure: str
    value: float
    target: float
    at_least: bool
    reference: str = ""
    notes: str = ""

    @property
    def met(self) -> bool:
        return self.value >= self.target if self.at_least else self.value <= self.target


def rate(program: Timed) -> float:
    """What a program does per second of processor time."""
    gc.collect()
    begin = time.process_time()
    done = program()
    return done / (time.process_time() - begin)


def side_by_side(program: Timed, reference: Timed, rounds: int) -> tuple[float, float]:
    """Rates of a program and of its reference, run in turns; the best of each, which disturbs least."""
    ours, theirs = [], []
    program()
    for _ in range(rounds):
        theirs.append(rate(reference))
        ours.append(rate(program))
    return max(ours), max(theirs)


def show(rows: list[Row]) -> str:
    """The rows as a table of plain text."""
    cells = [("program", "figure", "reference", "result", "target", "")]
    for row in rows:
        sign = ">=" if row.at_least else "<="
        verdict = "met" if row.met else "MISSED"
        cells.append(
            (row.program, row.figure, row.reference, f"{row.value:,.4g}", f"{sign} {row.target:g}", verdict)
        )
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [f"{row.program}: {row.notes}" for row in rows if row.notes]
    return "\n".join([*lines, "", *notes])
