"""From failures to replications: what happens in one run is not independent, so it makes one value."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tideover.models.schema.columns import Column

NOTHING = "nothing was replayed"
"""Columns that are undefined for this reason say nothing of a failure, not that it lasted too long."""


def of_replications(found: Iterable[tuple[Hashable, float | None]], column: Column) -> list[float | None]:
    """One value for each replication, in the order in which they come first: the mean of its failures.

    ``found``: the replication and the value of each failure; None and NaN are undefined. If one of them is
    undefined, so is the replication's, since a mean of the others would favour what recovers only sometimes;
    but where the column's reason is that nothing was replayed, those in which something was are averaged.
    """
    values: dict[Hashable, list[float]] = {}
    undefined: set[Hashable] = set()
    for replication, value in found:
        mine = values.setdefault(replication, [])
        if value is None or value != value:
            undefined.add(replication)
        else:
            mine.append(float(value))
    lenient = column.undefined.startswith(NOTHING)
    return [
        None if not mine or (one in undefined and not lenient) else sum(mine) / len(mine)
        for one, mine in values.items()
    ]
