"""A dataset's manifest: which files count, what is in them, and what every column means.

The only way in: files that it does not name are left over from an interrupted or another sweep. It is a JSON
file that takes its place at once, and depends on nothing but what was asked, and on the bytes of these files:
a file whose SHA-256 is another is damaged.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tideover.models.schema.columns import Column
from tideover.models.schema.fields import TABLES
from tideover.scenarios.sweeps.files import Files
from tideover.scenarios.sweeps.rows import FORMAT

NAME = "manifest.json"
DATA = "data"


class NoDataset(ValueError):
    """There is no dataset here, or not one that can be read; the message says why."""


class Damaged(NoDataset):
    """There is one, but files of it are not as they were written; the message names them."""


@dataclass(frozen=True)
class Manifest:
    """What a dataset holds.

    name         of the sweep
    inputs       hash of all that the sweep was made from, if that is known
    model        hash of the code that simulated it
    version      of Tideover
    swept        the columns of the swept keys
    points       number of points
    timeline     whether rows per second are there
    remarks      what an expert would remark on what is simulated
    chunks       names and numbers of runs of the files, in their order
    complete     all that was asked for is there
    columns      name, type, unit and meaning of every column
    checksums    the SHA-256 of each file, by its path: of data that is there, and of what is said of points;
                 the same rows may be other bytes, so two that differ in nothing else are equal
    """

    name: str
    inputs: str | None
    model: str
    version: str
    swept: Mapping[str, Column]
    points: int
    timeline: bool
    remarks: Sequence[str]
    chunks: Sequence[tuple[str, int]]
    complete: bool
    columns: Sequence[Mapping[str, str]]
    checksums: Mapping[str, str] = dataclasses.field(compare=False)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return sum(runs for _, runs in self.chunks)

    @property
    def files(self) -> list[str]:
        """Paths of the files, in their order."""
        return [path_of(name) for name, _ in self.chunks]

    def to_bytes(self) -> bytes:
        """As it is kept."""
        data = {"format": FORMAT} | asdict(self)
        data["swept"] = {key: {"unit": c.unit, "type": c.dtype} for key, c in self.swept.items()}
        sums = data.pop("checksums")
        data["chunks"] = [
            {"file": path, "runs": runs, "sha256": sums.get(path)}
            for path, (_, runs) in zip(self.files, self.chunks, strict=True)
        ]
        files = set(self.files)
        data["summaries"] = [{"file": path, "sha256": sums[path]} for path in sorted({*sums} - files)]
        return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode()


def path_of(chunk: str) -> str:
    """Where a chunk's rows are."""
    return f"{DATA}/{chunk}.parquet"


def swept_column(key: str, unit: str, dtype: Any) -> Column:
    """The column of a swept key; ``hosts``, which is a column of its own, is ``swept.hosts``."""
    taken = {column.name for column in TABLES["runs"]}
    return Column(f"swept.{key}" if key in taken else key, f"value of {key} at this point", unit, dtype)


def read(files: Files) -> Manifest | None:
    """The manifest of a dataset; None if there is none. Raises Damaged for one that is cut or not even JSON,
    NoDataset for one that is not ours.
    """
    content = files.read(NAME)
    if content is None:
        return None
    name = f"{files.where}/{NAME}"
    try:
        data: dict[str, Any] = json.loads(content)
    except ValueError as error:
        raise Damaged(f"{name}: is cut or damaged ({error})") from None
    try:
        if data.pop("format") != FORMAT:
            raise NoDataset(f"{name}: another version of Tideover wrote it; give another directory")
        data["swept"] = {key: swept_column(key, c["unit"], c["type"]) for key, c in data["swept"].items()}
        sums = {one["file"]: one["sha256"] for one in [*data["chunks"], *data.pop("summaries")]}
        data["chunks"] = [(_name(chunk["file"]), chunk["runs"]) for chunk in data["chunks"]]
        return Manifest(**data, checksums={path: found for path, found in sums.items() if found})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, NoDataset):
            raise
        raise NoDataset(f"{name}: is not a manifest of Tideover; give another directory") from None


def _name(path: str) -> str:
    return path.removeprefix(f"{DATA}/").removesuffix(".parquet")


def described(schema: Any) -> list[dict[str, str]]:
    """The columns of an Arrow schema in words; those of a nested table as ``recoveries.kind``."""
    found = []
    for field in schema:
        found.append(_said(field.name, field))
        inner = getattr(field.type, "value_type", None)
        if inner is not None and hasattr(inner, "fields"):
            found += [_said(f"{field.name}.{each.name}", each) for each in inner.fields]
    return found


def _said(name: str, field: Any) -> dict[str, str]:
    known = {key.decode(): text.decode() for key, text in (field.metadata or {}).items()}
    kind = "list" if hasattr(field.type, "value_type") else str(field.type)
    return {"name": name, "type": kind} | known
