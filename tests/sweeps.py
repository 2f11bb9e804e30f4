"""A small sweep in this process, what it leaves, and what it keeps of a run."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tideover.models.simulation import Replication
from tideover.scenarios.sweeps import rows
from tideover.scenarios.sweeps.dataset import Sweep
from tideover.scenarios.sweeps.engine import Engine
from tideover.scenarios.sweeps.files import Files
from tideover.scenarios.sweeps.survey import checked, survey
from tideover.scenarios.sweeps.sweep import complete
from tideover.scenarios.sweeps.sweep_file import Point, Recipe

SHORT = {
    "run.duration": "40s",
    "run.warmup": "10s",
    "failures.0.at": "20s",
    "failures.0.within": "5s",
    "topology.count.window": "5s",
}


def points(asked: Recipe) -> list[Point]:
    """All points of a recipe, built; raises ScenarioError with what is wrong with them."""
    checked(survey(asked, range(asked.total), "any"))
    return [asked.point(number) for number in range(asked.total)]


def done(asked: Recipe, place: Path, **options: bool) -> Sweep:
    """The sweep, in a directory of this machine."""
    files = Files(place)
    return Sweep(complete(asked, Engine(files), **options), files)


_SUM = re.compile(rb'"sha256": "[0-9a-f]{64}"')


def content(place: Path) -> dict[str, str]:
    """A hash of every file of a dataset, hidden ones too, by its path."""
    files = (path for path in place.rglob("*") if path.is_file())
    return {str(p.relative_to(place)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def as_read(place: Path) -> dict[str, bytes]:
    """Every file of a dataset, hidden ones too, by its path; of its Parquet files the bytes of the rows that
    they hold: the Java library lists the encodings of a column in an order that differs from process to
    process. So the manifest is read without the checksums of these files.
    """
    files = {str(path.relative_to(place)): path for path in place.rglob("*") if path.is_file()}
    counts = {name for name in files if name.endswith(".parquet") and not name.startswith(".")}
    found = {name: _rows(path) if name in counts else path.read_bytes() for name, path in files.items()}
    return {name: _SUM.sub(b"", text) if name == "manifest.json" else text for name, text in found.items()}


def _rows(path: Path) -> bytes:
    table = pq.read_table(path).replace_schema_metadata(None).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def as_kept(one: Replication) -> Replication:
    """The replication that comes back from the columns that a dataset has of it."""
    row = rows.kept_of(one, timeline=True)
    kinds = rows.schema({})
    table = pa.Table.from_pylist([row], pa.schema([kinds.field(name) for name in row]))
    return rows.replication_of(table.to_pylist()[0])
