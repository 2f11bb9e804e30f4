"""A run as one row of a sweep's dataset, and back.

A run is whole or missing: its recoveries, tasks and seconds are lists inside its row, so no table can have
half of one. `schema` documents every column; what the tidy tables do not hold (histograms, edges, usage) is
in ``detail``, from which `replication_of` gives back exactly what was simulated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from tideover.models.evaluation.bottleneck import Used
from tideover.models.schema.columns import Column
from tideover.models.schema.fields import POINT, ROWS, TABLES
from tideover.models.simulation import Replication
from tideover.sim.histogram import Histogram

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 2
"""Version of what rows and manifest have: runs of another are done again."""

LISTS = ("recoveries", "tasks", "timeline")
"""Tables whose rows are lists inside a run's row."""

RUN = Column(
    "run",
    "hash of the whole scenario, the replication and the model's code: what this row is of",
    dtype="string",
)
REMARKS = Column("remarks", "what an expert would remark on this run", dtype="string")
ENDS = Column(
    "run_ends_at_s",
    "when the run ends; a recovery that is not over by then takes at least from failed_at_s until then",
    "s",
)
DETAIL = Column(
    "detail", "as JSON, what the tables do not have: histograms of latencies, edges, usage", dtype="string"
)

_HISTOGRAMS = ("latency", "end_to_end")
_NOT_KEPT = ("trace", "world")


def own(table: str) -> tuple[Column, ...]:
    """The columns of a table that say something of its own: not which run it is of."""
    shared = {column.name for column in identity()}
    return tuple(column for column in TABLES[table] if column.name not in shared)


@cache
def identity() -> tuple[Column, ...]:
    """The columns that say which run a row is of."""
    names = [column.name for column in TABLES["runs"]]
    return TABLES["runs"][: names.index("replication") + 1]


def schema(swept: Mapping[str, Column]) -> pa.Schema:
    """The columns of the dataset, with units and meanings as metadata; ``swept``: those of the swept keys."""
    import pyarrow as pa

    def nested(table: str) -> pa.Field:
        rows = pa.list_(pa.struct([_field(column) for column in own(table)]))
        return pa.field(table, rows, metadata={"meaning": ROWS[table]})

    return pa.schema(
        [
            *map(_field, (RUN, POINT)),
            *map(_field, swept.values()),
            *(_field(column) for column in TABLES["runs"]),
            pa.field(REMARKS.name, pa.list_(pa.string()), metadata={"meaning": REMARKS.meaning}),
            _field(ENDS),
            *map(nested, LISTS),
            _field(DETAIL),
        ]
    )


def arrow_type(column: Column) -> pa.DataType:
    """The type of a column's values."""
    import pyarrow as pa

    types = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}
    return types[column.dtype]


def _field(column: Column) -> pa.Field:
    import pyarrow as pa

    said = {"meaning": column.meaning, "unit": column.unit, "undefined": column.undefined}
    return pa.field(column.name, arrow_type(column), metadata={k: text for k, text in said.items() if text})


def lists_of(replication: Replication, timeline: bool) -> dict[str, Any]:
    """The nested tables of a run; ``timeline``: with its rows per second."""
    return {
        "recoveries": replication.recoveries,
        "tasks": replication.tasks,
        "timeline": replication.timeline if timeline else None,
    }


def detail(replication: Replication) -> str:
    """What the tables do not have, as JSON."""
    names = [one.name for one in fields(Replication) if one.name not in (*LISTS, *_NOT_KEPT)]
    data = {name: getattr(replication, name) for name in names}
    histograms = {name: data[name].state() for name in _HISTOGRAMS}
    if histograms["end_to_end"] == histograms["latency"]:
        histograms["end_to_end"] = None  # where nothing is replayed, they are the same
    histograms["complete"] = None if replication.complete is None else replication.complete.state()
    optional = {name: _present(getattr(replication, name), name) for name in LISTS}
    return json.dumps(data | histograms | {"optional": optional}, separators=(",", ":"), allow_nan=False)


def _present(rows: Iterable[Mapping[str, Any]], table: str) -> list[str]:
    """Optional columns that the rows have, whether or not they are defined there."""
    names = [column.name for column in TABLES[table] if column.optional]
    return [name for name in names if any(name in row for row in rows)]


def replication_of(row: Mapping[str, Any]) -> Replication:
    """The replication that a row was made of; without a timeline if that was left out."""
    data: dict[str, Any] = json.loads(row[DETAIL.name])
    present = data.pop("optional")
    histograms = {name: Histogram.of_state(data[name] or data["latency"]) for name in _HISTOGRAMS}
    used = None if data["used"] is None else Used(*data["used"])
    complete = None if data["complete"] is None else Histogram.of_state(data["complete"])
    lists = {name: _without(row[name] or [], name, present[name]) for name in LISTS}
    return Replication(**data | histograms | {"used": used, "complete": complete} | lists)


def _without(rows: list[dict[str, Any]], table: str, present: list[str]) -> list[dict[str, Any]]:
    """The rows without the optional columns that they did not have."""
    gone = {column.name for column in TABLES[table] if column.optional and column.name not in present}
    return (
        [{name: value for name, value in row.items() if name not in gone} for row in rows] if gone else rows
    )
