"""What is said of a column: name, meaning, unit, type, and when a value is undefined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dtype = Literal["string", "int64", "float64", "bool"]


@dataclass(frozen=True)
class Column:
    """One column. ``unit`` is ``""`` for texts and truths; ``undefined`` says when a value is missing."""

    name: str
    meaning: str
    unit: str = ""
    dtype: Dtype = "float64"
    undefined: str = ""


def text(name: str, meaning: str, undefined: str = "") -> Column:
    """A column of texts."""
    return Column(name, meaning, "", "string", undefined)


def count(name: str, meaning: str, unit: str, undefined: str = "") -> Column:
    """A column of whole numbers."""
    return Column(name, meaning, unit, "int64", undefined)


def truth(name: str, meaning: str, undefined: str = "") -> Column:
    """A column of truths."""
    return Column(name, meaning, "", "bool", undefined)


class UnknownColumn(ValueError):
    """A column that the table of columns does not document."""

    def __init__(self, table: str, name: str) -> None:
        super().__init__(f"table {table!r}: column {name!r} is not documented in tideover.reports.columns")
