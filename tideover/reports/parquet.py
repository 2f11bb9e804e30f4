"""What ``--out`` writes: tidy Parquet files that explain themselves, the result as JSON, and the page.

Every field carries its unit and meaning. Equal frames give equal bytes: no time stamp is stored, and no
metadata of pandas. Called by the command line and by `tideover.api`; what a column is stands in `columns`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tideover.models.schema import POINT
from tideover.reports.columns import DOCUMENTED, conform, find
from tideover.reports.html import Page, render

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


FORMAT = "1"
MARKER = ".tideover"
"""A file of this name marks a directory as one that Tideover may write to again."""

_MARKER_TEXT = "This directory holds output of Tideover, which may overwrite it.\n"
_COMMAND = "Command: tideover "


def prepare(directory: str | os.PathLike[str], command: str | None = None) -> Path:
    """Make ``directory`` if it is missing, and mark it as Tideover's, and as that of a command.

    Raises ValueError for a file, for a directory that holds something but has no mark (it may be somebody's
    work), and for one with what another command wrote: of two results, each would have lost something.
    """
    path = Path(directory)
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path}: is a file, not a directory; name another place for the results")
    if path.is_dir() and not (path / MARKER).is_file() and any(path.iterdir()):
        raise ValueError(
            f"{path}: is not empty and was not written by Tideover; name another directory, or empty this one"
        )
    try:
        marked = (path / MARKER).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        marked = []
    before = next((line.removeprefix(_COMMAND) for line in marked if line.startswith(_COMMAND)), None)
    if command and before and command != before and any(entry.name != MARKER for entry in path.iterdir()):
        raise ValueError(
            f"{path}: holds what tideover {before} wrote; name another directory, or empty this one"
        )
    path.mkdir(parents=True, exist_ok=True)
    owner = command or before
    text = _MARKER_TEXT + (f"{_COMMAND}{owner}\n" if owner else "")
    (path / MARKER).write_text(text, encoding="utf-8")
    return path


def write_tables(
    directory: str | os.PathLike[str],
    tables: Mapping[str, pd.DataFrame],
    *,
    parameters: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write ``recoveries.parquet`` and so on for the tables given; returns the paths written.

    ``parameters``: swept keys, and the unit of each (see `tideover.scenarios.sweeps.factors`). Raises
    ``UnknownColumn`` (a ValueError) for a column that is not documented, ValueError where ``prepare`` does.
    """
    import pyarrow.parquet as pq

    converted = {name: to_arrow(name, frame, parameters) for name, frame in tables.items()}
    root = prepare(directory)
    paths = []
    for name, table in converted.items():
        paths.append(root / f"{name}.parquet")
        with aside(paths[-1]) as part:
            pq.write_table(table, part, compression="zstd", store_schema=True)
    return paths


def to_arrow(name: str, frame: pd.DataFrame, parameters: Mapping[str, str] | None = None) -> pa.Table:
    """The frame as an Arrow table in the documented order and types, with units and meanings as field
    metadata.

    Columns that a sweep adds come first: swept values, which keep their own type if that is a number or a
    truth. Documented columns that the frame lacks are left out. Raises ValueError for a fraction in a column
    of whole numbers.
    """
    import pandas as pd
    import pyarrow as pa

    if not len(frame.columns):
        frame = conform(name, frame)
    documented = [column.name for column in DOCUMENTED[name]]
    added = [str(column) for column in frame.columns if column not in documented]
    ordered = sorted(added, key=lambda column: column != POINT.name)
    fields, arrays = [], []
    for column in (*ordered, *(column for column in documented if column in frame.columns)):
        entry, values = find(name, column, parameters), frame[column]
        own = _OWN_TYPES.get(values.dtype.kind) if column in added and column != POINT.name else None
        wanted = own or entry.dtype
        if wanted == "string":
            values = values.astype(object).map(str, na_action="ignore")
        elif wanted != "bool":
            values = pd.to_numeric(values)
        arrays.append(pa.array(values, wanted, from_pandas=True))
        described = {"meaning": entry.meaning, "unit": entry.unit, "undefined": entry.undefined}
        metadata = {key: text for key, text in described.items() if text}
        fields.append(pa.field(column, arrays[-1].type, metadata=metadata))
    schema = pa.schema(fields, metadata={"tideover.table": name, "tideover.format": FORMAT})
    return pa.Table.from_arrays(arrays, schema=schema)


_OWN_TYPES = {"b": "bool", "i": "int64", "u": "int64", "f": "float64"}
"""Arrow's types by the kind of a dtype."""


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Where to write a file that then takes the place of ``path`` at once: nobody reads half a file."""
    part = path.with_name(f".{path.name}.part")
    yield part
    os.replace(part, path)


REPORT = "report.html"
RESULT = "result.json"


def write_all(
    directory: str | os.PathLike[str],
    *,
    tables: Mapping[str, pd.DataFrame],
    page: Page,
    record: str | None = None,
    parameters: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write tables, page and (if given) what ``--json`` prints; returns the paths, the page first.

    Raises ValueError for a directory that is not Tideover's to write to; see ``parquet.prepare``.
    """
    root = prepare(directory)
    texts = ({} if record is None else {RESULT: record}) | {REPORT: render(page)}
    written = write_tables(root, tables, parameters=parameters)
    for name, text in texts.items():  # the page last: when it is there, all is
        with aside(root / name) as part:
            part.write_text(text, encoding="utf-8")
    return [root / REPORT, *written, *(root / name for name in texts if name != REPORT)]
