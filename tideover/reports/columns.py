"""Every column of every table that is written: those of results (`tideover.models.schema`), and those of
calibrations, which ``columns.toml`` lists. Parquet files and the glossaries of pages are made from it: a
further column of a calibration is a line there.
"""

from __future__ import annotations

import tomllib
from collections import ChainMap
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

from tideover.models import schema
from tideover.models.schema import POINT, TABLES, Column

if TYPE_CHECKING:
    import pandas as pd

Tables = dict[str, tuple[Column, ...]]


class UnknownColumn(ValueError):
    """A column that the table of columns does not document."""

    def __init__(self, table: str, name: str) -> None:
        super().__init__(f"table {table!r}: column {name!r} is not documented in tideover.reports.columns")


def _read() -> dict[str, Tables]:
    groups = tomllib.loads(files("tideover.reports").joinpath("columns.toml").read_text(encoding="utf-8"))
    shared = groups.pop("shared")
    found: dict[str, Tables] = {}
    for group, tables in groups.items():
        found[group] = {}
        for table, columns in tables.items():
            entries = []
            for name, given in columns.items():
                dtype, unit, meaning, undefined, optional = (*(given or shared[name]), "", "")[:5]
                entries.append(Column(name, meaning, unit, dtype, undefined, optional=bool(optional)))
            found[group][table] = tuple(entries)
    return found


_GROUPS = _read()
CALIBRATION, RECOVERY_FITS = _GROUPS["calibration"], _GROUPS["recovery_fits"]
CAPACITY_FITS, LOG_FINDINGS = _GROUPS["capacity_fits"], _GROUPS["log_findings"]
"""What a calibration on real runs found; what a fit to somebody else's recoveries, or capacities, did; what
logs say.
"""
DOCUMENTED: Mapping[str, tuple[Column, ...]] = ChainMap(
    TABLES, CALIBRATION, CAPACITY_FITS, RECOVERY_FITS, LOG_FINDINGS
)
"""Every table that is written."""


def find(table: str, name: str, swept: Mapping[str, str] | None = None) -> Column:
    """The entry of a column. A sweep's tables have more: ``point``, and swept keys of the scenario.

    ``swept``: the swept keys, and the unit of each; a key with a dot (``failures.0.at``) is known as one.
    """
    for column in DOCUMENTED[table]:
        if column.name == name:
            return column
    if name == POINT.name:
        return POINT
    units = swept or {}
    if "." in name or name in units:
        unit = units.get(name, "")
        meaning = "swept value of this key of the scenario"
        return Column(name, meaning, unit or "as in the scenario", "float64" if unit else "string")
    raise UnknownColumn(table, name)


def conform(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as the table is documented; see `tideover.models.schema`."""
    return schema.conform(frame, DOCUMENTED[table])
