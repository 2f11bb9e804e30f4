"""Whether the files of a dataset are as they were written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_NAMED = 8
"""Most files that a message names."""


def readable(source: Path | BinaryIO) -> bool:
    """Whether a Parquet file can be read to its end, each page by the checksum that its writer gave it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        for _ in pq.ParquetFile(source, page_checksum_verification=True).iter_batches():
            pass
    except (pa.ArrowException, OSError):
        return False
    return True


def unreadable(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task of Spark does with ``path`` and ``content`` of files: the paths of those that cannot be
    read.
    """
    import io

    import pyarrow as pa

    for batch in batches:
        files = zip(batch["path"].to_pylist(), batch["content"].to_pylist(), strict=True)
        bad = [path for path, content in files if not readable(io.BytesIO(content))]
        yield pa.RecordBatch.from_pydict({"path": pa.array(bad, pa.string())})


def named(paths: list[str]) -> str:
    """Some files by name, and how many there are more."""
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more
