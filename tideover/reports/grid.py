"""A long table on a page: compact data, and a script that sorts, filters and shows 50 rows at a time."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from tideover.reports.formatting import UNDEFINED, number, size
from tideover.reports.html import Grid
from tideover.reports.tables import Table

MOST_PLAIN = 200
"""Rows that readers without scripts see."""
_FILTERS = (
    "A click on a heading sorts. What is typed below it filters: a part of the text, or > 30, <= 2 kB, != 0, "
    "10..20; of several in one box, as > 10 < 20, each must hold."
)


@dataclass(frozen=True)
class GridColumn:
    """A column: a number in each cell (None: undefined); with ``values``, the place of its text in these.

    numbers    of the ``values``, if they are numbers with units, by which they are sorted and filtered
    is_size    the numbers are bytes
    """

    name: str
    cells: Sequence[Any]
    values: Sequence[str] = ()
    numbers: Sequence[float] = ()
    is_size: bool = False

    def text(self, row: int) -> str:
        """What a reader sees in a cell; the script writes the same."""
        cell = self.cells[row]
        if cell is None:
            return UNDEFINED
        if self.values:
            return self.values[cell]
        return size(cell) if self.is_size else number(cell)

    def head(self) -> dict[str, Any]:
        """What the script knows of the column."""
        found: dict[str, Any] = {"name": self.name}
        found |= {"values": list(self.values)} if self.values else {}
        found |= {"numbers": list(self.numbers)} if len(self.numbers) else {}
        return found | ({"bytes": True} if self.is_size else {})


def grid(columns: Sequence[GridColumn], what: str, notes: Sequence[str] = ()) -> Grid:
    """The table of these columns; ``what``: its rows in a word, as ``points``. The first names a row."""
    rows = list(zip(*(column.cells for column in columns), strict=True))
    content = {"columns": [column.head() for column in columns], "rows": rows, "what": what}
    data = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    script = _script()
    allowed = f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
    first = range(min(MOST_PLAIN, len(rows)))
    plain = Table(
        f"All {what}",
        tuple(column.name for column in columns),
        tuple(tuple(column.text(row) for column in columns) for row in first),
        () if len(rows) <= MOST_PLAIN else (f"The first {MOST_PLAIN} of {len(rows):,}; a script shows all.",),
        1 + max((place for place, column in enumerate(columns) if column.values), default=0),
    )
    # In a script element nothing is an entity, and only "</script" and "<!--" end or change what follows.
    safe = data.replace("<", "\\u003c")
    return Grid(f"All {len(rows):,} {what}", plain, safe, script, allowed, (_FILTERS, *notes))


@cache
def _script() -> str:
    return files("tideover.reports").joinpath("templates", "grid.js").read_text(encoding="utf-8")
