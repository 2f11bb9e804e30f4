"""Where a dataset lies: a directory of this machine, or of any file system that Spark knows.

A file is there whole or not at all: it is written aside and then takes its name. Two that write the same file
do no harm, as both write the same rows. What happens to it afterwards (a disk that fails, a copy that is cut)
is found by its checksum, which the manifest has.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlparse

import psutil

from tideover.scenarios.sweeps.soundness import readable, unreadable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")
ASIDE = ".aside-"
"""What is not finished has a name that begins so; readers take no notice of it, Spark's own included."""


class Files(Protocol):
    """The files of one dataset, by their path in it (``data/….parquet``).

    url    as Spark has to be told
    where  as people write it
    sound  Parquet files that this process has written, or read to their ends
    """

    url: str
    where: str
    sound: set[str]

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, in order."""

    def read(self, path: str) -> bytes | None:
        """What a file holds; None if there is none."""

    def write(self, path: str, content: bytes) -> None:
        """Put a file in its place."""

    def place(self, aside: str, path: str) -> None:
        """Let the one Parquet file in a folder that is written aside take its place."""

    def remove(self, path: str) -> None:
        """Remove a file or a folder, if it is there."""

    def tidy_up(self) -> None:
        """Remove what processes left that are gone; who is at work keeps what is his."""

    def table(
        self, paths: Sequence[str], columns: Sequence[str] | None = None, where: Any = None
    ) -> pa.Table:
        """The rows of some Parquet files, one after the other; ``where``: an expression of pyarrow."""

    def checksums(self, paths: Iterable[str]) -> dict[str, str]:
        """The SHA-256 of each of these files that is there."""

    def unreadable(self, paths: Sequence[str]) -> set[str]:
        """Which of these Parquet files cannot be read to their ends."""


def aside() -> str:
    """A new name for what is not finished; it tells whose it is."""
    return f"{ASIDE}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def abandoned(name: str) -> bool:
    """Whether a process of this machine wrote this aside, and is gone."""
    host, _, rest = name.removeprefix(ASIDE).rpartition("-")[0].rpartition("-")
    mine = name.startswith(ASIDE) and host == socket.gethostname() and rest.isdigit()
    return mine and not psutil.pid_exists(int(rest))


def local_path(place: str | os.PathLike[str]) -> Path | None:
    """The directory of this machine that a path or a ``file:`` URL names; None for other file systems."""
    text = os.fspath(place)
    if not _SCHEME.match(text) or isinstance(place, Path):
        return Path(text)
    url = urlparse(text)
    return Path(unquote(url.path)) if url.scheme.lower() == "file" and not url.netloc else None


class LocalFiles:
    """A directory of this machine, which executors see, too."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.url, self.where = self.directory.as_uri(), str(self.directory)
        self.sound: set[str] = set()

    def names(self, folder: str) -> list[str]:
        try:
            entries = os.listdir(self.directory / folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in entries if not name.startswith("."))

    def read(self, path: str) -> bytes | None:
        try:
            return (self.directory / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, content: bytes) -> None:
        with self.aside_of(path) as part:
            part.write_bytes(content)

    @contextmanager
    def aside_of(self, path: str) -> Iterator[Path]:
        """Where to write a file that takes its place at the end of the block, unless that fails."""
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.parent / aside()
        try:
            yield part
            _settle(part, target)
            self.sound.add(path)
        finally:
            part.unlink(missing_ok=True)

    def place(self, aside: str, path: str) -> None:
        (part,) = (self.directory / aside).rglob("*.parquet")
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        _settle(part, target)
        self.sound.add(path)
        self.remove(aside)

    def remove(self, path: str) -> None:
        target = self.directory / path
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            with suppress(FileNotFoundError):
                target.unlink()

    def table(
        self, paths: Sequence[str], columns: Sequence[str] | None = None, where: Any = None
    ) -> pa.Table:
        import pyarrow.dataset as ds

        found = ds.dataset([str(self.directory / path) for path in paths], format="parquet")
        return found.to_table(columns=None if columns is None else list(columns), filter=where)

    def checksums(self, paths: Iterable[str]) -> dict[str, str]:
        found = {}
        for path in paths:
            with suppress(FileNotFoundError, NotADirectoryError), (self.directory / path).open("rb") as file:
                found[path] = hashlib.file_digest(file, "sha256").hexdigest()
        return found

    def unreadable(self, paths: Sequence[str]) -> set[str]:
        return {path for path in paths if not readable(self.directory / path)}

    def tidy_up(self) -> None:
        for folder in (self.directory, self.directory / "data"):
            for entry in folder.glob(f"{ASIDE}*") if folder.is_dir() else ():
                if abandoned(entry.name):
                    self.remove(str(entry.relative_to(self.directory)))


def _settle(part: Path, target: Path) -> None:
    """Rename, once the content is on the disk: a name without its content would count as done."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(part, target)


class HadoopFiles:
    """A directory of a file system that Spark's own Hadoop client reaches: ``hdfs:``, ``s3a:`` and so on."""

    def __init__(self, url: str, spark: SparkSession) -> None:
        self.url = self.where = url.rstrip("/")
        self.sound: set[str] = set()
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()
        self._fs: Any = self._path("").getFileSystem(self._conf)

    def names(self, folder: str) -> list[str]:
        path = self._path(folder)
        if not self._fs.exists(path):
            return []
        names = (status.getPath().getName() for status in self._fs.listStatus(path))
        return sorted(name for name in names if not name.startswith((".", "_")))

    def read(self, path: str) -> bytes | None:
        where = self._path(path)
        if not self._fs.exists(where):
            return None
        stream = self._fs.open(where)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        part = f"{path.rpartition('/')[0]}/{aside()}".lstrip("/")
        stream = self._fs.create(self._path(part), True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        self._rename(self._path(part), path)

    def place(self, aside: str, path: str) -> None:
        (part,) = (name for name in self.names(aside) if name.endswith(".parquet"))
        self._rename(self._path(f"{aside}/{part}"), path)
        self.sound.add(path)
        self.remove(aside)

    def remove(self, path: str) -> None:
        self._fs.delete(self._path(path), True)

    def table(
        self, paths: Sequence[str], columns: Sequence[str] | None = None, where: Any = None
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

    def unreadable(self, paths: Sequence[str]) -> set[str]:
        if not paths:
            return set()
        rows = self._contents(paths).mapInArrow(unreadable, "path string").collect()
        return {row["path"] for row in rows}

    def _contents(self, paths: Iterable[str]) -> DataFrame:
        """Path in the dataset and content of some files."""
        from pyspark.sql import functions as f

        files = self._spark.read.format("binaryFile").load([f"{self.url}/{path}" for path in paths])
        return files.select(f.regexp_extract("path", "([^/]+/[^/]+)$", 1).alias("path"), "content")

    def tidy_up(self) -> None:
        root = self._path("")
        for status in self._fs.listStatus(root) if self._fs.exists(root) else ():
            name = status.getPath().getName()
            if abandoned(name):
                self.remove(name)

    def _rename(self, part: Any, path: str) -> None:
        """Of a file system that does not replace, what was there goes first; a reader then finds nothing for
        a moment, and the sweep would make the chunk again.
        """
        target = self._path(path)
        self._fs.mkdirs(target.getParent())
        if not self._fs.rename(part, target):
            self._fs.delete(target, False)
            if not self._fs.rename(part, target):
                raise OSError(f"{target}: cannot be written")

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.url}/{path}".rstrip("/"))
