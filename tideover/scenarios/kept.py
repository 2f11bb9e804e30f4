"""What a sweep keeps on disk: the runs that are done, in Parquet files of one directory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tideover.scenarios.runs import Outcome


class Kept:
    """Outcomes in the Parquet files of a directory; None keeps nothing.

    While a sweep runs, each batch becomes a file of its own, written aside and renamed: whoever kills the
    sweep loses only what was under way. In the end, one file in the order of the keys holds them all.
    """

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self.others: list[Outcome] = []
        """Runs of other sweeps with the same directory."""
        self._files: list[Path] = []

    def load(self, wanted: Iterable[str]) -> dict[str, Outcome]:
        """What is there of the wanted runs, without those that failed."""
        if self.directory is None:
            return {}
        self.directory.mkdir(parents=True, exist_ok=True)
        self._files = sorted(self.directory.glob("*.parquet"))
        there = {outcome.key: outcome for file in self._files for outcome in _read(file)}
        keys = set(wanted)
        self.others = [outcome for outcome in there.values() if outcome.key not in keys]
        return {k: outcome for k, outcome in there.items() if k in keys and outcome.error is None}

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Keep some more."""
        if self.directory is None or not outcomes:
            return
        name = hashlib.sha256(" ".join(o.key for o in outcomes).encode()).hexdigest()[:16]
        self._files.append(_write(self.directory / f"part-{name}.parquet", outcomes))

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """Everything is done: one file instead of many."""
        if self.directory is None:
            return
        whole, asides = self.directory / "runs.parquet", list(self.directory.glob(".*.aside"))
        if self._files == [whole] and not asides:
            return  # it is as the last sweep left it
        _write(whole, sorted([*self.others, *outcomes], key=lambda o: o.key))
        for file in {*self._files, *asides} - {whole}:
            file.unlink(missing_ok=True)


def _read(path: Path) -> list[Outcome]:
    """What a file holds; nothing if it is not one of ours, or broken."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_table(path, columns=["key", "record", "error"])
    except (pa.ArrowException, KeyError, OSError):
        return []
    return list(map(Outcome, *(column.to_pylist() for column in found.columns)))


def _write(path: Path, outcomes: Sequence[Outcome]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("key", pa.string()), ("record", pa.string()), ("error", pa.string())])
    rows = [{"key": o.key, "record": o.record, "error": o.error} for o in outcomes]
    aside = path.with_name(f".{path.name}.{os.getpid()}.aside")
    pq.write_table(pa.Table.from_pylist(rows, schema), aside, compression="zstd")
    os.replace(aside, path)
    return path
