"""Where a sweep's dataset lies, its manifest, and whether its files are as they were written.

Engines write through `Files`, `Work` keeps the `Manifest`, `Sweep` reads both. Another file system is added
here. What the manifest has is a file format: a change of it needs another `FORMAT`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import re
import shutil
import socket
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tideover.models.schema import TABLES, Column
from tideover.scenarios.sweeps.rows import FORMAT, schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "manifest.json"
DATA = "data"
"""The folder of the runs' files."""
ASIDE = ".aside-"
"""What is not finished has a name that begins so; readers take no notice of it, Spark's own included."""
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")
_NAMED = 8
"""Most files that a message names."""


class NoDataset(ValueError):
    """There is no dataset here, or not one that can be read; the message says why."""


class Damaged(NoDataset):
    """There is one, but files of it are not as they were written; the message names them."""


def aside() -> str:
    """A new name for what is not finished; it tells whose it is."""
    return f"{ASIDE}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def local_path(place: str | os.PathLike[str]) -> Path | None:
    """The directory of this machine that a path or a ``file:`` URL names; None for other file systems."""
    text = os.fspath(place)
    if not _SCHEME.match(text) or isinstance(place, Path):
        return Path(text)
    url = urlparse(text)
    return Path(unquote(url.path)) if url.scheme.lower() == "file" and not url.netloc else None


class Files:
    """The files of one dataset, by their path in it (``data/….parquet``): in a directory of this machine,
    which executors see, too.

    A file is there whole or not at all: it is written aside and then takes its name. Two that write the same
    file do no harm, as both write the same rows. What happens to it afterwards (a disk that fails, a copy
    that is cut) is found by its checksum, which the manifest has.

    url    as Spark has to be told
    where  as people write it
    sound  Parquet files that this process has written, or read to their ends
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.url, self.where = self.directory.as_uri(), str(self.directory)
        self.sound: set[str] = set()

    def names(self, folder: str) -> list[str]:
        return sorted(name for name in self._listed(folder) if not name.startswith((".", "_")))

    def write(self, path: str, content: bytes) -> None:
        part = f"{path.rpartition('/')[0]}/{aside()}".lstrip("/")
        try:
            self._create(part, content)
            self._rename(part, path)
        finally:
            self.remove(part)
        self.sound.add(path)

    def place(self, folder: str, path: str) -> None:
        """Let the one Parquet file in a folder that was written aside take its place."""
        (part,) = (name for name in self.names(folder) if name.endswith(".parquet"))
        self._rename(f"{folder}/{part}", path)
        self.sound.add(path)
        self.remove(folder)

    def tidy_up(self) -> None:
        """Remove what processes of this machine left that are gone; who is at work keeps what is theirs."""
        import psutil  # Spark's workers, which do not tidy up, have none

        for folder in ("", DATA):
            for name in self._listed(folder):
                host, _, process = name.removeprefix(ASIDE).rpartition("-")[0].rpartition("-")
                mine = name.startswith(ASIDE) and host == socket.gethostname() and process.isdigit()
                if mine and not psutil.pid_exists(int(process)):
                    self.remove(f"{folder}/{name}".lstrip("/"))

    def read(self, path: str) -> bytes | None:
        """What a file holds; None if there is none."""
        try:
            return (self.directory / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def remove(self, path: str) -> None:
        target = self.directory / path
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)

    def table(
        self, paths: Iterable[str], columns: Sequence[str] | None = None, where: Any = None
    ) -> pa.Table:
        """The rows of some Parquet files, one after the other; ``where``: an expression of pyarrow."""
        found = ds.dataset([str(self.directory / path) for path in paths], format="parquet")
        return found.to_table(columns=None if columns is None else [*columns], filter=where)

    def checksums(self, paths: Iterable[str]) -> dict[str, str]:
        """The SHA-256 of each of these files that is there."""
        found = {}
        for path in paths:
            with suppress(FileNotFoundError, NotADirectoryError), (self.directory / path).open("rb") as file:
                found[path] = hashlib.file_digest(file, "sha256").hexdigest()
        return found

    def unreadable(self, paths: Collection[str]) -> set[str]:
        """Which of these Parquet files cannot be read to their ends."""
        return {path for path in paths if not _readable(self.directory / path)}

    def _listed(self, folder: str) -> list[str]:
        """All names in a folder, none if there is no such folder."""
        try:
            return os.listdir(self.directory / folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _create(self, path: str, content: bytes) -> None:
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def _rename(self, part: str, path: str) -> None:
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with (self.directory / part).open("rb") as file:
            os.fsync(file.fileno())  # a name without its content would count as done
        os.replace(self.directory / part, target)


class HadoopFiles(Files):
    """A directory of a file system that Spark's own Hadoop client reaches: ``hdfs:``, ``s3a:`` and so on."""

    def __init__(self, url: str, spark: SparkSession) -> None:
        self.url = self.where = url.rstrip("/")
        self.sound = set()
        self._spark = spark
        self._jvm: Any = spark._jvm
        conf: Any = spark._jsparkSession.sessionState().newHadoopConf()
        self._fs: Any = self._path("").getFileSystem(conf)

    def read(self, path: str) -> bytes | None:
        where = self._path(path)
        if not self._fs.exists(where):
            return None
        stream = self._fs.open(where)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def remove(self, path: str) -> None:
        self._fs.delete(self._path(path), True)

    def table(
        self, paths: Iterable[str], columns: Sequence[str] | None = None, where: Any = None
    ) -> pa.Table:
        rows = self._spark.read.parquet(*(f"{self.url}/{path}" for path in paths))
        found = rows if columns is None else rows.select(*(f"`{name}`" for name in columns))
        table = found.toArrow()
        return table if where is None else table.filter(where)

    def checksums(self, paths: Iterable[str]) -> dict[str, str]:
        from pyspark.sql import functions as f

        asked = set(paths)
        folders = {path.rpartition("/")[0] for path in asked}
        there = asked & {f"{folder}/{name}" for folder in folders for name in self.names(folder)}
        if not there:
            return {}
        rows = self._contents(there).select("path", f.sha2("content", 256).alias("sum")).collect()
        return {row["path"]: row["sum"] for row in rows}

    def unreadable(self, paths: Collection[str]) -> set[str]:
        if not paths:
            return set()
        rows = self._contents(paths).mapInArrow(_unreadable, "path string").collect()
        return {row["path"] for row in rows}

    def _contents(self, paths: Iterable[str]) -> DataFrame:
        """Path in the dataset and content of some files."""
        from pyspark.sql import functions as f

        files = self._spark.read.format("binaryFile").load([f"{self.url}/{path}" for path in paths])
        return files.select(f.regexp_extract("path", "([^/]+/[^/]+)$", 1).alias("path"), "content")

    def _listed(self, folder: str) -> list[str]:
        path = self._path(folder)
        if not self._fs.exists(path):
            return []
        return [status.getPath().getName() for status in self._fs.listStatus(path)]

    def _create(self, path: str, content: bytes) -> None:
        stream = self._fs.create(self._path(path), True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def _rename(self, part: str, path: str) -> None:
        """Of a file system that does not replace, what was there goes first; a reader then finds nothing for
        a moment, and the sweep would make the chunk again.
        """
        whence, target = self._path(part), self._path(path)
        self._fs.mkdirs(target.getParent())
        if not self._fs.rename(whence, target):
            self._fs.delete(target, False)
            if not self._fs.rename(whence, target):
                raise OSError(f"{target}: cannot be written")

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.url}/{path}".rstrip("/"))


def _readable(source: Path | BinaryIO) -> bool:
    """Whether a Parquet file can be read to its end, each page by the checksum that its writer gave it."""
    try:
        for _ in pq.ParquetFile(source, page_checksum_verification=True).iter_batches():
            pass
    except (pa.ArrowException, OSError):
        return False
    return True


def _unreadable(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of ``path`` and ``content`` of files the paths of those that cannot be read: a task of Spark's."""
    for batch in batches:
        files = zip(batch["path"].to_pylist(), batch["content"].to_pylist(), strict=True)
        bad = [path for path, content in files if not _readable(io.BytesIO(content))]
        yield pa.RecordBatch.from_pydict({"path": pa.array(bad, pa.string())})


@dataclass(frozen=True)
class Manifest:
    """Which files of a dataset count, what is in them, and what every column means: the only way in, as files
    that it does not name are left over from an interrupted or another sweep.

    It is a JSON file that depends on nothing but what was asked, and on the bytes of these files.

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
    checksums    the SHA-256 of each file, by its path: of data that is there, and of the summaries; the same
                 rows may be other bytes, so two that differ in nothing else are equal
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
        return sum(runs for _, runs in self.chunks)

    @property
    def files(self) -> list[str]:
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
        others = sorted({*sums} - {*self.files})
        data["summaries"] = [{"file": path, "sha256": sums[path]} for path in others]
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
        ours = data.pop("format") == FORMAT
        if ours:
            data["swept"] = {key: swept_column(key, c["unit"], c["type"]) for key, c in data["swept"].items()}
            ours = _names(data["columns"]) == _names(described(schema(data["swept"])))
        if not ours:
            raise NoDataset(f"{name}: another version of Tideover wrote it; give another directory")
        sums = {one["file"]: one["sha256"] for one in [*data["chunks"], *data.pop("summaries")]}
        data["chunks"] = [(Path(one["file"]).stem, one["runs"]) for one in data["chunks"]]
        return Manifest(**data, checksums={path: found for path, found in sums.items() if found})
    except NoDataset:
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise NoDataset(f"{name}: is not a manifest of Tideover; give another directory") from None


def _names(columns: Iterable[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Names and types of columns, in their order, without what is said of them."""
    return [(column["name"], column["type"]) for column in columns]


def described(columns: pa.Schema) -> list[dict[str, str]]:
    """The columns of an Arrow schema in words; those of a nested table as ``recoveries.kind``."""

    def said(name: str, field: pa.Field) -> dict[str, str]:
        known = {key.decode(): text.decode() for key, text in (field.metadata or {}).items()}
        kind = "list" if hasattr(field.type, "value_type") else str(field.type)
        return {"name": name, "type": kind} | known

    found = []
    for field in columns:
        found.append(said(field.name, field))
        for each in getattr(getattr(field.type, "value_type", None), "fields", ()):
            found.append(said(f"{field.name}.{each.name}", each))
    return found


def named(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more
