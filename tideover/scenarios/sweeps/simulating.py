"""What an executor does with its share of a sweep: points from the recipe, runs, rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tideover.models.config import Scenario
from tideover.models.results.result import Result
from tideover.models.schema.columns import Column
from tideover.models.simulation import simulate
from tideover.scenarios.errors import shorten
from tideover.scenarios.runs import LONGEST_ERROR, told
from tideover.scenarios.sweeps import rows
from tideover.scenarios.sweeps.chunks import Unit
from tideover.scenarios.swept import number as as_number
from tideover.scenarios.writer import to_data
from tideover.sim.units import S

if TYPE_CHECKING:
    import pyarrow as pa

    from tideover.scenarios.sweeps.points import Points

BATCH_BYTES = 1 << 22
"""About how much of finished runs is held before it is handed on."""
_POINTS = 64
"""Scenarios that are remembered: units of one reference come one after the other, of many points in turn."""


@dataclass(frozen=True)
class Task:
    """What is the same for all runs of a sweep: sent to every executor once.

    swept      the columns of the swept keys
    timeline   whether rows per second are kept
    """

    recipe: Points
    swept: Mapping[str, Column]
    timeline: bool

    @property
    def schema(self) -> pa.Schema:
        """Of the rows that come out."""
        return rows.schema(self.swept)

    def simulated(self, units: Iterable[Unit]) -> Iterator[pa.RecordBatch]:
        """The rows of some runs, as they are done; one that fails is a row with its error."""
        import pyarrow as pa

        schema = self.schema
        scenario = lru_cache(_POINTS)(self._scenario)
        held: list[dict[str, Any]] = []
        size = 0
        for unit in units:
            held.append(self._row(unit, *scenario(unit.point)))
            size += _size(held[-1])
            if size > BATCH_BYTES:
                yield pa.RecordBatch.from_pylist(held, schema)
                held, size = [], 0
        if held:
            yield pa.RecordBatch.from_pylist(held, schema)

    def again(self, found: pa.Table, units: Sequence[Unit]) -> pa.Table:
        """Rows of runs that another sweep has done, as rows of these units."""
        import pyarrow as pa

        place = {unit.run: unit for unit in units}
        changed = [row | self._named(place[row["run"]]) for row in found.to_pylist()]
        return pa.Table.from_pylist(changed, self.schema)

    def failed(self, unit: Unit, why: str) -> pa.RecordBatch:
        """The row of a run that could not be simulated."""
        import pyarrow as pa

        row = self._failed(unit, *self._scenario(unit.point), why)
        return pa.RecordBatch.from_pylist([row], self.schema)

    def _failed(self, unit: Unit, scenario: Scenario, document: dict[str, Any], why: str) -> dict[str, Any]:
        said = shorten(f"replication {unit.replication}: {why}", LONGEST_ERROR)
        row = Result(scenario, [], document).failed_run(unit.replication, said)
        empty: dict[str, Any] = {name: [] for name in (*rows.LISTS, "remarks")}
        return {"run": unit.run} | self._place(unit) | row | empty | _ends(scenario)

    def _scenario(self, point: int) -> tuple[Scenario, dict[str, Any]]:
        scenario = self.recipe.point(point).scenario
        return scenario, to_data(scenario)

    def _named(self, unit: Unit) -> dict[str, Any]:
        """What a row says that the run does not depend on."""
        scenario, document = self._scenario(unit.point)
        row = Result(scenario, [], document).failed_run(unit.replication, "")
        return {name: row[name] for name in ("scenario", "scenario_json")} | self._place(unit)

    def _place(self, unit: Unit) -> dict[str, Any]:
        """What a row says of the sweep: the point, and its swept values."""
        values = self.recipe.values(unit.point)
        known = {column.name: _value(values[key], column) for key, column in self.swept.items()}
        return {"point": unit.point} | known

    def _row(self, unit: Unit, scenario: Scenario, document: dict[str, Any]) -> dict[str, Any]:
        try:
            done = simulate(scenario, unit.replication)
            result = Result(scenario, [done], document)
            more = {"remarks": result.remarks, "detail": rows.detail(done)}
            more |= rows.lists_of(done, self.timeline) | _ends(scenario)
            return {"run": unit.run} | self._place(unit) | result.rows("runs")[0] | more
        except Exception as error:  # whatever it is: it is this run's, and the others go on
            return self._failed(unit, scenario, document, told(error))


def _ends(scenario: Scenario) -> dict[str, float]:
    """When a run of it ends."""
    return {rows.ENDS.name: scenario.run.duration / S}


def _value(value: Any, column: Column) -> Any:
    found = as_number(value, column.unit)
    if column.dtype == "string":
        return found if isinstance(found, str | None) else json.dumps(found)
    return None if found != found else found


def _size(row: Mapping[str, Any]) -> int:
    """Roughly what a row takes, in bytes."""
    nested = sum(len(row[name] or ()) for name in rows.LISTS)
    return 2_000 + 100 * nested + len(row.get("detail") or "")
