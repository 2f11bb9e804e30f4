"""CSV files of rates."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from tideover.sim.text_files import Unreadable, read_text
from tideover.sim.units import MAX_RATE, MIN_RATE

Header = tuple[str, str]
Row = tuple[int, str, float]
"""Number of the line, what stands in its first column, and the rate (1/s) in the second."""


def rows_of(file: str, headers: Sequence[Header]) -> tuple[Header, list[Row]]:
    """The header that a CSV file of rates has, one of ``headers``, and its rows. ValueError says which line
    is wrong.
    """
    path = Path(file)
    try:
        lines = list(csv.reader(read_text(path).splitlines()))
    except Unreadable as error:
        raise ValueError(f"cannot read {path.name!r}: it {error}; a CSV file is needed") from None
    except csv.Error as error:
        raise ValueError(f"{path.name}: is no CSV file: {error}") from None
    header = tuple(cell.strip() for cell in lines[0]) if lines else ()
    found = next((one for one in headers if one == header), None)
    if found is None:
        wanted = " or ".join(",".join(one) for one in headers)
        raise ValueError(f"{path.name}:1: the first line must be {wanted}")
    rows = [(number, *_row(path.name, number, row)) for number, row in enumerate(lines[1:], 2)]
    if not any(rate > 0 for _, _, rate in rows):
        raise ValueError(f"{path.name}: at least one row with a rate above 0 is needed")
    return found, rows


def _row(name: str, number: int, row: Sequence[str]) -> tuple[str, float]:
    try:
        when, text = row
        rate = float(text)
    except ValueError:
        shown = ",".join(row)[:40]
        raise ValueError(f"{name}:{number}: a time and a rate are needed, found {shown!r}") from None
    if not (rate == 0 or MIN_RATE <= rate <= MAX_RATE):
        raise ValueError(f"{name}:{number}: a rate must be 0/s, or {MIN_RATE:.2g}/s to {MAX_RATE:g}/s")
    return when.strip(), rate
