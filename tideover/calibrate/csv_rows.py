"""The rows of somebody else's CSV file: read with care; what is wrong is collected, with its line."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tideover.scenarios import yaml_source
from tideover.scenarios.errors import Problem, ScenarioError, is_misspelt, shorten, suggest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

Line = tuple[int, list[str]]
"""Where a row begins, and its cells."""


def lines_of(path: Path) -> list[Line]:
    """The rows of a file without those that begin with #; raises ScenarioError if it cannot be read."""
    text = yaml_source.text_of(path, "give a CSV file of measurements")
    rows = Rows(str(path), (), {})
    found = list(rows.split(text))
    rows.check()
    return found


class Rows:
    """Reads rows of ``workload`` and numbers; what is wrong is collected.

    ``numbers``: the names of their columns; ``allowed``: the lowest and the highest of each. Beyond it is a
    slip of the pen, or another unit.
    """

    def __init__(self, file: str, numbers: Sequence[str], allowed: Mapping[str, tuple[float, float]]) -> None:
        self.file, self.numbers, self.allowed = file, tuple(numbers), allowed
        self.problems: list[Problem] = []

    def refuse(self, line: int, column: str, message: str) -> None:
        self.problems.append(Problem(self.file, line, column, message))

    def check(self) -> None:
        """Raise ScenarioError if anything is wrong so far."""
        if self.problems:
            raise ScenarioError(self.problems)

    def split(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """The cells of each row without blanks around them, and the line that it begins in."""
        if control := re.search(r"[^\t\n\r\x20-\x7e\x80-\U0010ffff]", text):
            line = text.count("\n", 0, control.start()) + 1
            self.refuse(line, "(row)", f"holds the control character {control[0]!r}; save it as UTF-8 text")
            return
        lines = csv.reader(io.StringIO(text, newline=""))
        begins = 1
        try:
            for row in lines:
                if not (row and row[0].startswith("#")):
                    yield begins, [cell.strip() for cell in row]
                begins = lines.line_num + 1
        except csv.Error as error:
            self.refuse(begins, "(row)", f"is no row of a CSV file: {error}")

    def header(self, lines: Sequence[Line], optional: Sequence[str] = ()) -> list[str]:
        """The names of the columns."""
        line, header = lines[0] if lines else (1, [])
        columns = ("workload", *self.numbers)
        if not any(name in columns or is_misspelt(name, columns) for name in header):
            self.refuse(line, "(file)", f"has none of the columns {', '.join(columns)}: it is no such table")
            self.check()
        for name in (*columns, *optional):
            if header.count(name) > 1:
                self.refuse(line, name, "is the name of two columns; each is needed once")
            elif name in columns and name not in header:
                hint = suggest(name, [other for other in header if other not in (*columns, *optional)])
                self.refuse(line, name, f"is missing; the columns are {', '.join(columns)} ({hint})")
        self.check()
        return header

    def row(self, line: int, header: list[str], row: list[str]) -> tuple[str, tuple[float, ...]]:
        """Workload and numbers of a row."""
        if len(row) != len(header):
            self.refuse(line, "(row)", f"has {len(row)} cells; the first line has {len(header)}")
            return "", ()
        cells = dict(zip(header, row, strict=True))
        name = cells["workload"]
        if not _NAME.fullmatch(name):
            message = f"{shorten(name, 40)!r} cannot be the name of a file; letters, digits, _, - and . can"
            self.refuse(line, "workload", message)
        return name, tuple(self._number(line, column, cells[column]) for column in self.numbers)

    def _number(self, line: int, column: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        low, high = self.allowed[column]
        if not math.isfinite(value) or value <= 0 < low:
            self.refuse(line, column, f"must be a number above 0, not {shorten(text, 40)!r}")
        elif not low <= value <= high:
            self.refuse(line, column, f"must be from {low:g} to {high:,.0f}, not {shorten(text, 40)!r}")
        return value
