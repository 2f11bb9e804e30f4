"""What a column of a result is, and how frames are brought into the form of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Dtype = Literal["string", "int64", "float64", "bool"]
Pool = Literal["", "sum", "mean", "min", "max", "histogram"]


@dataclass(frozen=True)
class Column:
    """A field of a result: a column of a table, and its place in the record.

    name        of the column
    meaning     what it says, in words
    unit        ``""`` for texts and truths
    undefined   when a value is missing; ``""``: never
    record      where the record has it: a key, or a block and the key in it (``("ledger", "lost")``); nowhere
                if it is empty
    label       what readers' tables call it; they leave it out if it is empty
    brief       the short form of these tables has it, too
    pool        how the record makes one figure of all replications'
    optional    only results that have it show it
    """

    name: str
    meaning: str
    unit: str = ""
    dtype: Dtype = "float64"
    undefined: str = ""
    record: tuple[str, ...] = ()
    label: str = ""
    brief: bool = True
    pool: Pool = ""
    optional: bool = False

    @property
    def label_with_unit(self) -> str:
        """``time to recover, s``; units other than seconds go with the figures."""
        return f"{self.label}, s" if self.unit == "s" else self.label

    @property
    def key(self) -> str:
        """Its key in its block of the record."""
        return self.record[-1]


def text(name: str, meaning: str, undefined: str = "") -> Column:
    return Column(name, meaning, "", "string", undefined)


def count(name: str, meaning: str, unit: str, undefined: str = "", **more: Any) -> Column:
    return Column(name, meaning, unit, "int64", undefined, **more)


def truth(name: str, meaning: str, undefined: str = "") -> Column:
    return Column(name, meaning, "", "bool", undefined)


def conform(frame: pd.DataFrame, documented: Iterable[Column]) -> pd.DataFrame:
    """The frame with a fresh index, the documented columns first, each in its type, undefined where it was
    missing; optional ones only if there are any.

    An undefined number is NaN, so a column of whole numbers that has one holds floats. Texts are objects.
    """
    import pandas as pd

    found: dict[str, Any] = {}
    for column in documented:
        if column.optional and column.name not in frame.columns:
            continue
        values = frame[column.name] if column.name in frame.columns else pd.Series(None, frame.index, object)
        found[column.name] = values.astype(_dtype(column, values))
    others = {name: frame[name] for name in frame.columns if name not in found}
    return pd.DataFrame(found | others, index=frame.index).reset_index(drop=True)


def _dtype(column: Column, values: pd.Series[Any]) -> Any:
    if column.dtype in ("int64", "bool") and values.isna().any():
        return "float64" if column.dtype == "int64" else object
    return object if column.dtype == "string" else column.dtype


def at_top(*columns: Column) -> tuple[Column, ...]:
    """The columns, each a key of the record by its own name."""
    return tuple(replace(column, record=(column.name,)) for column in columns)


def nested(row: Mapping[str, Any], columns: Iterable[Column]) -> dict[str, Any]:
    """A row as the record has it: the columns that stand there, each in its block."""
    found: dict[str, Any] = {}
    for column in columns:
        if column.record and not (column.optional and column.name not in row):
            *blocks, key = column.record
            place = found
            for name in blocks:
                place = place.setdefault(name, {})
            place[key] = row[column.name]
    return found


def in_lumps(columns: Iterable[Column]) -> list[Column]:
    """Those that count tuples or roots: a run with ``run.lump`` simulates several of these as one."""
    return [column for column in columns if column.unit in ("tuples", "roots", "tuples/s")]
