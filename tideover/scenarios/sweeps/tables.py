"""The tidy tables of a dataset's rows: one row a run, a failure, a task or a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tideover.models.schema.columns import Column
from tideover.models.schema.fields import POINT, TABLES
from tideover.scenarios.sweeps import rows

if TYPE_CHECKING:
    import pyarrow as pa

ORDER = [(POINT.name, "ascending"), ("replication", "ascending")]
"""Of the rows of a table; those of one run keep theirs."""


def needed(table: str, swept: Mapping[str, Column]) -> list[str]:
    """The columns of the dataset of which a tidy table is made."""
    columns = [POINT.name, *names(swept), *(column.name for column in TABLES["runs"] if table == "runs")]
    if table != "runs":
        columns += [column.name for column in rows.identity()] + [table]
    return list(dict.fromkeys(columns))


def names(swept: Mapping[str, Column]) -> list[str]:
    """The dataset's columns of the swept keys."""
    return [column.name for column in swept.values()]


def named(found: pa.Table, swept: Mapping[str, Column], others: Iterable[Column]) -> pa.Table:
    """The swept keys' columns by the keys' own names, without those that ``others`` has already."""
    taken = {column.name for column in others}
    keys = {column.name: key for key, column in swept.items()}
    kept = [name for name in found.column_names if keys.get(name) not in taken]
    return found.select(kept).rename_columns([keys.get(name, name) for name in kept])


def tidy(found: pa.Table, table: str, swept: Mapping[str, Column]) -> pa.Table:
    """A tidy table of the dataset's rows: ``point``, the swept keys, then the columns of ``run``; optional
    ones only if anything is there.
    """
    found = named(found.select(needed(table, swept)), swept, TABLES[table])
    found = found.sort_by(ORDER) if found.num_rows else found
    if table != "runs":
        found = exploded(found, table)
    optional = {column.name for column in TABLES[table] if column.optional}
    empty = [n for n in found.column_names if n in optional and found[n].null_count == found.num_rows]
    return found.drop_columns(empty)


def exploded(found: pa.Table, table: str) -> pa.Table:
    """A row for each item of the lists of a column, with the columns of the run that it is of."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # concatenated: compute functions on lists count parents by chunk of memory
    found = found.combine_chunks()
    lists = found[table]
    parents = pc.list_parent_indices(lists)
    items = pc.list_flatten(lists)
    outer = found.drop_columns([table]).take(parents)
    kind = lists.type.value_type
    inner = [pc.struct_field(items, field.name) for field in kind.fields]
    names = [*outer.column_names, *(field.name for field in kind.fields)]
    return pa.table([*outer.columns, *inner], names=names)
