"""One column of a table, and how the tables of columns write it down."""

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
