"""What does a sweep's work, and what an executor does with its share of it."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tideover.models.config import Scenario
from tideover.models.results import Result
from tideover.models.schema import Column
from tideover.models.simulation import simulate
from tideover.scenarios.errors import shorten
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.runs import LONGEST_ERROR, told
from tideover.scenarios.sweeps import rows
from tideover.scenarios.sweeps.factors import as_number as as_number
from tideover.scenarios.sweeps.survey import Unit
from tideover.sim.units import S

if TYPE_CHECKING:
    import pyarrow as pa

    from tideover.scenarios.sweeps.files import Files, Manifest
    from tideover.scenarios.sweeps.recipe import Points
    from tideover.scenarios.sweeps.reduction import Reduction
    from tideover.scenarios.sweeps.survey import Chunk, Refused, Reuse, Surveyed


# Ctrl-C, and SIGTERM where that is to end as it does.


@contextmanager
def noted(asked: threading.Event) -> Iterator[None]:
    """Ctrl-C sets an event, and so does SIGTERM where it is `terminable`. An exception in the middle of a
    call would break Spark's connection.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    which = [signal.SIGINT]
    if signal.getsignal(signal.SIGTERM) is signal.default_int_handler:
        which.append(signal.SIGTERM)
    before = {one: signal.signal(one, lambda *_: asked.set()) for one in which}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# What an executor does with its share of a sweep: points from the recipe, runs, rows.

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


# What does a sweep's work: this process, or Spark. Both make the same rows.

Tell = Callable[[str, float], None]
"""Called with what is being done, and how much of it is done beside what was reported as done."""


class Done(NamedTuple):
    """Chunks that are in their place: their runs, and how many of them failed."""

    chunks: tuple[str, ...]
    runs: int
    failed: int


class Engine(Protocol):
    """Where points are made and runs are done; ``files``: where the rows go."""

    @property
    def files(self) -> Files:
        """Where the dataset lies."""

    def survey(self, recipe: Points, numbers: Sequence[int], tell: Tell) -> Iterable[Surveyed | Refused]:
        """Look at points."""

    def make(self, task: Task, chunks: Iterable[Chunk], reuse: Reuse, tell: Tell) -> Iterator[Done]:
        """Do the runs of chunks, but for those that can be taken from other files, and write each chunk."""

    def index(self, paths: Sequence[str]) -> pa.Table:
        """Which runs are in which of some files: ``run``, ``file`` and whether it ``failed``, a row each. A
        file that cannot be read has none.
        """

    def reduced(self, known: Manifest, how: Reduction) -> pa.Table:
        """What is made of the rows of each point."""

    def reduce(self, known: Manifest, how: Reduction) -> None:
        """Write what is made of the rows of each point, a file for each part of the points."""
