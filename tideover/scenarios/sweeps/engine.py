"""What does a sweep's work: an executor's share of it (`Task`), and the engine that does it in this process.

`OnSpark` is the same engine with Spark behind it; both make the same rows. `Work` says what there is to do.
What becomes of a run, a failed one too, is changed in `Task`.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tideover.models.config import Scenario
from tideover.models.results import Result
from tideover.models.schema import Column
from tideover.models.simulation import simulate
from tideover.scenarios.errors import shorten
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.runs import LONGEST_ERROR, code, told
from tideover.scenarios.sweeps import rows
from tideover.scenarios.sweeps.factors import as_number
from tideover.scenarios.sweeps.files import Files, Manifest, path_of
from tideover.scenarios.sweeps.reduction import Reduction
from tideover.scenarios.sweeps.survey import Chunk, Found, Unit, split, survey
from tideover.scenarios.sweeps.sweep_file import Points
from tideover.sim.units import S

BATCH_BYTES = 1 << 22
"""About how much of finished runs is held before it is handed on."""
_POINTS = 64
"""Scenarios that are remembered: units of one reference come one after the other, of many points in turn."""


@dataclass(frozen=True)
class Task:
    """What all runs of a sweep share, sent to every executor once; ``timeline``: keep rows per second."""

    recipe: Points
    swept: Mapping[str, Column]
    timeline: bool

    @property
    def schema(self) -> pa.Schema:
        """Of the rows that come out."""
        return rows.schema(self.swept)

    def simulated(self, units: Iterable[Unit]) -> Iterator[pa.RecordBatch]:
        """The rows of some runs, as they are done; one that fails is a row with its error."""
        schema = self.schema
        scenario = lru_cache(_POINTS)(self._scenario)
        held: list[dict[str, Any]] = []
        size = 0
        for unit in units:
            held.append(row := self._row(unit, *scenario(unit.point)))
            nested = sum(len(row[name] or ()) for name in rows.LISTS)
            size += 2_000 + 100 * nested + len(row.get("detail") or "")  # roughly
            if size > BATCH_BYTES:
                yield pa.RecordBatch.from_pylist(held, schema)
                held, size = [], 0
        if held:
            yield pa.RecordBatch.from_pylist(held, schema)

    def again(self, found: pa.Table, units: Sequence[Unit]) -> pa.Table:
        """Rows of runs that another sweep has done, as rows of these units."""
        place = {unit.run: unit for unit in units}
        changed = []
        for row in found.to_pylist():
            unit = place[row["run"]]
            scenario, document = self._scenario(unit.point)
            own = Result(scenario, [], document).failed_run(unit.replication, "")
            names = {name: own[name] for name in ("scenario", "scenario_json")}
            changed.append(row | names | self._about(unit, scenario))
        return pa.Table.from_pylist(changed, self.schema)

    def failed(self, unit: Unit, why: str) -> pa.RecordBatch:
        """The row of a run that could not be simulated."""
        row = self._failed(unit, *self._scenario(unit.point), why)
        return pa.RecordBatch.from_pylist([row], self.schema)

    def _scenario(self, point: int) -> tuple[Scenario, dict[str, Any]]:
        scenario = self.recipe.point(point).scenario
        return scenario, to_data(scenario)

    def _row(self, unit: Unit, scenario: Scenario, document: dict[str, Any]) -> dict[str, Any]:
        try:
            done = simulate(scenario, unit.replication)
            result = Result(scenario, [done], document)
            own = {"remarks": result.remarks} | rows.kept_of(done, self.timeline)
            return result.rows("runs")[0] | own | self._about(unit, scenario)
        except Exception as error:  # whatever it is: it is this run's, and the others go on
            return self._failed(unit, scenario, document, told(error))

    def _failed(self, unit: Unit, scenario: Scenario, document: dict[str, Any], why: str) -> dict[str, Any]:
        said = shorten(f"replication {unit.replication}: {why}", LONGEST_ERROR)
        row = Result(scenario, [], document).failed_run(unit.replication, said)
        empty: dict[str, Any] = {name: [] for name in (*rows.LISTS, "remarks")}
        return row | empty | self._about(unit, scenario)

    def _about(self, unit: Unit, scenario: Scenario) -> dict[str, Any]:
        """Which run it is, the point and its swept values, and when the run ends."""
        values = self.recipe.values(unit.point)
        found: dict[str, Any] = {"run": unit.run, "point": unit.point}
        found[rows.ENDS.name] = scenario.run.duration / S
        for key, column in self.swept.items():
            value = as_number(values[key], column.unit)
            if column.dtype == "string" and not isinstance(value, str | None):
                value = json.dumps(value)
            found[column.name] = None if value != value else value
        return found


Tell = Callable[[str, float], None]
"""Called with what is being done, and how much of it is done beside what was reported as done."""


class Done(NamedTuple):
    """Chunks that are in their place: their runs, and how many of them failed."""

    chunks: tuple[str, ...]
    runs: int
    failed: int


class Engine:
    """Does runs in this process, one after the other: no Spark, no Java. ``files``: where the rows go."""

    def __init__(self, files: Files) -> None:
        self._files = files

    @property
    def files(self) -> Files:
        return self._files

    def survey(self, recipe: Points, numbers: Sequence[int], tell: Tell) -> Iterator[Found]:
        for done, found in enumerate(survey(recipe, numbers, code()), 1):
            yield found
            tell("checking points", done)

    def make(
        self, task: Task, chunks: Iterable[Chunk], there: Mapping[str, str], tell: Tell
    ) -> Iterator[Done]:
        """Do the runs of chunks that are not ``there``, in a file by the run's name; write each chunk."""
        kept = [field.name for field in rows.schema({}) if field.name != rows.POINT.name]
        for chunk in chunks:
            known, todo = split(there, chunk.units)
            parts = []
            for batch in task.simulated(todo):
                parts.append(batch)
                tell("simulating", sum(part.num_rows for part in parts))
            done = [pa.Table.from_batches(parts, task.schema)]
            for path, names in known.items():
                found = self.files.table([path], kept, pc.field(rows.RUN.name).isin(names))
                done.append(task.again(found, chunk.units))
            table = pa.concat_tables(done)
            self._write(table.sort_by(rows.ORDER), path_of(chunk.name))
            yield Done((chunk.name,), table.num_rows, table.num_rows - table["error"].null_count)

    def index(self, paths: Sequence[str]) -> pa.Table:
        """``run``, ``file`` and whether it ``failed``, of all runs in these files that can be read."""
        columns = [("run", pa.string()), ("file", pa.string()), ("failed", pa.bool_())]
        found = [pa.schema(columns).empty_table()]
        for path in paths:
            try:
                table = self.files.table([path], ["run", "error"])
            except (pa.ArrowException, OSError, KeyError):  # a file of somebody else has other columns
                continue
            place = pa.array([path] * table.num_rows, pa.string())
            found.append(pa.table([table["run"], place, table["error"].is_valid()], found[0].schema))
        return pa.concat_tables(found)

    def reduced(self, known: Manifest, how: Reduction) -> pa.Table:
        """What is made of the rows of each point."""
        return pa.concat_tables(self._parts(known, how))

    def reduce(self, known: Manifest, how: Reduction) -> None:
        """Write what is made of the rows of each point, a file for each part of the points that has any."""
        for path, found in zip(how.paths(known), self._parts(known, how), strict=True):
            if found.num_rows:
                self._write(found, path)
            else:
                self.files.remove(path)

    def _parts(self, known: Manifest, how: Reduction) -> Iterator[pa.Table]:
        members: dict[int, list[int]] = {}
        for point, part in how.parts_of(known).items():
            members.setdefault(part, []).append(point)
        for part in sorted(members):
            mine = pc.field("point").isin(members[part])
            yield how(self.files.table(known.files, how.needs, mine))

    def _write(self, table: pa.Table, path: str) -> None:
        """As Spark does: compressed, and each page with its checksum."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        self.files.write(path, sink.getvalue().to_pybytes())


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
