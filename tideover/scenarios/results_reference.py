"""The reference of results, as Markdown: what ``run --json`` prints, and the columns of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tideover.models.schema.columns import Column
from tideover.models.schema.fields import RECORD, ROWS, TABLES
from tideover.models.schema.shared import SHARED_RECORD

_INTRODUCTION = """\
What a run says. `tideover run --json` prints one object (the *record*); `compare` and `sweep` print a list of
them, with more keys. `--out` writes it as `result.json`, and each of the tables below as a Parquet file that
holds units and meanings, too; `tideover.run` has them as data frames. What is undefined is null in JSON and
missing in a table."""


_WHERE_SHARED = "Where tasks share something (cores, cards, stores of a cluster), there is more:"
_COMBINED = (
    "The record has one figure of all replications: sums in `ledger` and `windows`, means in `cost`, pooled "
    "latencies, and of throughput the mean and the extremes."
)
_MORE = {
    "recoveries": "In the record, `recoveries` has an object for each of these rows.",
    "runs": _COMBINED,
    "timeline": "Not in the record.",
    "tasks": "The record has `utilisation` of it.",
    "usage": "The record has `resources` of it, and `bottleneck`.",
}


def results_reference() -> str:
    """Sections for the record and for each table, made from the schema (`tideover.models.schema.fields`)."""
    keys = [(f"`{key.name}`", key.unit, _meaning(key)) for key in RECORD]
    parts = ["## Results", "", _INTRODUCTION, "", "### The record", ""]
    parts += [*_table(("key", "unit", "meaning"), keys), "", _WHERE_SHARED, ""]
    shared = [(f"`{key.name}`", key.unit, _meaning(key)) for key in SHARED_RECORD]
    parts += [*_table(("key", "unit", "meaning"), shared), ""]
    for table, columns in TABLES.items():
        rows = [(f"`{one.name}`", _place(one), one.unit, _meaning(one)) for one in columns]
        parts += [f"### `{table}`", "", f"{ROWS[table]} {_MORE[table]}", ""]
        parts += [*_table(("column", "in the record", "unit", "meaning"), rows), ""]
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _place(column: Column) -> str:
    return f"`{'.'.join(column.record)}`" if column.record else "–"


def _meaning(column: Column) -> str:
    return f"{column.meaning}; undefined if {column.undefined}" if column.undefined else column.meaning
