"""What Spark's tasks do, each with the batches that come to it: functions that are sent to the executors."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tideover.scenarios.runs import code
from tideover.scenarios.sweeps.chunks import Unit
from tideover.scenarios.sweeps.reduction import Reduction
from tideover.scenarios.sweeps.survey import packed

if TYPE_CHECKING:
    import pyarrow as pa

    from tideover.scenarios.sweeps.points import Points
    from tideover.scenarios.sweeps.simulating import Task

Batches = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]

CHUNK, PART = "chunk", "part"
"""Columns that say to which file a row goes."""


def surveyor(recipe: Points, shared: Sequence[Sequence[int]]) -> Batches:
    """What a task does to look at points."""
    model = code()  # here: there, parts that were sent may have no source

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            found = [packed(recipe, shared[number], model) for number in batch["id"].to_pylist()]
            yield pa.RecordBatch.from_pydict({"found": pa.array(found, pa.binary())})

    return work


def simulator(task: Task, parts: Sequence[Sequence[Unit]], place: Mapping[str, str]) -> Batches:
    """What a task does: the runs of the parts with these numbers."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _freeze_imports()
        for batch in batches:
            for number in batch["id"].to_pylist():
                for rows in task.simulated(parts[number]):
                    yield with_chunk(rows, place)

    return work


def renamer(task: Task, units: Sequence[Unit], place: Mapping[str, str]) -> Batches:
    """What a task does with rows that are there already."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            found = task.again(pa.Table.from_batches([batch]), units)
            for rows in found.to_batches():
                yield with_chunk(rows, place)

    return work


def reducer(how: Reduction) -> Batches:
    """What a task does with the rows of some parts: they all come to it."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = list(batches)
        if not rows:
            return
        table = pa.Table.from_batches(rows).rename_columns([*how.needs, PART])
        for number in sorted(table[PART].unique().to_pylist()):
            mine = table.filter(pc.equal(table[PART], number)).drop_columns([PART])
            found = how(mine)
            found = found.append_column(PART, pa.array([number] * found.num_rows, pa.int64()))
            yield from found.to_batches()

    return work


def with_chunk(rows: pa.RecordBatch, place: Mapping[str, str]) -> pa.RecordBatch:
    import pyarrow as pa

    names = [place[run] for run in rows["run"].to_pylist()]
    return rows.append_column(CHUNK, pa.array(names, pa.string()))


@functools.cache
def _freeze_imports() -> None:
    """Take what this worker has imported out of the garbage collection that Spark orders after each task.

    Without this, going through all modules costs 30 ms of the processor a task.
    """
    gc.collect()
    gc.freeze()
