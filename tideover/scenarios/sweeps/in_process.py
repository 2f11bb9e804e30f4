"""A sweep's runs in this process, one after the other: no Spark, no Java."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tideover.scenarios.runs import code
from tideover.scenarios.sweeps.chunks import Chunk
from tideover.scenarios.sweeps.engine import Done, Tell
from tideover.scenarios.sweeps.files import LocalFiles
from tideover.scenarios.sweeps.manifest import Manifest, path_of
from tideover.scenarios.sweeps.present import local_index, local_rows
from tideover.scenarios.sweeps.reduction import Reduction, cut
from tideover.scenarios.sweeps.reduction import path_of as part_path
from tideover.scenarios.sweeps.reuse import Reuse
from tideover.scenarios.sweeps.survey import Refused, Surveyed, survey
from tideover.scenarios.sweeps.tables import ORDER

if TYPE_CHECKING:
    import pyarrow as pa

    from tideover.scenarios.sweeps.points import Points
    from tideover.scenarios.sweeps.simulating import Task


class InProcess:
    """The engine without Spark."""

    def __init__(self, files: LocalFiles) -> None:
        self.files = files

    def survey(self, recipe: Points, numbers: Sequence[int], tell: Tell) -> Iterable[Surveyed | Refused]:
        """Look at some points."""
        yield from surveyed(recipe, numbers, tell)

    def make(self, task: Task, chunks: Iterable[Chunk], reuse: Reuse, tell: Tell) -> Iterator[Done]:
        """Do the runs of chunks, and write each."""
        import pyarrow as pa

        for chunk in chunks:
            known, todo = reuse.split(chunk.units)
            parts = []
            for batch in task.simulated(todo):
                parts.append(batch)
                tell("simulating", sum(part.num_rows for part in parts))
            done = [pa.Table.from_batches(parts, task.schema)]
            if known:
                done.append(task.again(local_rows(self.files, known), chunk.units))
            table = pa.concat_tables(done)
            with self.files.aside_of(path_of(chunk.name)) as part:
                write(table.sort_by(ORDER), part)
            failed = table.num_rows - table["error"].null_count
            yield Done((chunk.name,), table.num_rows, failed)

    def index(self, paths: Sequence[str]) -> pa.Table:
        """Which runs are in which of some files."""
        return local_index(self.files, paths)

    def reduced(self, known: Manifest, how: Reduction) -> pa.Table:
        """What is made of the rows of each point."""
        import pyarrow as pa

        return pa.concat_tables(self._parts(known, how))

    def reduce(self, known: Manifest, how: Reduction) -> None:
        """Write what is made of the rows of each point."""
        for number, found in enumerate(self._parts(known, how)):
            path = part_path(how.folder, number)
            if not found.num_rows:
                self.files.remove(path)
                continue
            with self.files.aside_of(path) as part:
                write(found, part)

    def _parts(self, known: Manifest, how: Reduction) -> Iterator[pa.Table]:
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        rows = ds.dataset([str(self.files.directory / path) for path in known.files], format="parquet")
        parts = cut(how, known.points, known.runs)
        members: list[list[int]] = [[] for _ in range(parts.count)]
        for point, part in parts.place.items():
            members[part].append(point)
        for mine in members:
            yield how(rows.to_table(columns=list(how.needs), filter=pc.field("point").isin(mine)))


def write(table: pa.Table, place: Path) -> None:
    """As Spark does: compressed, and each page with its checksum."""
    import pyarrow.parquet as pq

    pq.write_table(table, place, compression="zstd", write_page_checksum=True)


def surveyed(recipe: Points, numbers: Sequence[int], tell: Tell) -> Iterator[Surveyed | Refused]:
    """Look at some points, in this process."""
    for done, found in enumerate(survey(recipe, numbers, code()), 1):
        yield found
        tell("checking points", done)
