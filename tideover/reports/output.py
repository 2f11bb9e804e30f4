"""What ``--out`` writes: the tables as Parquet, the result as JSON, and the page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tideover.reports.html import Page, render
from tideover.reports.parquet import aside, prepare, write_tables

if TYPE_CHECKING:
    import pandas as pd

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
    html = render(page)
    written = write_tables(root, tables, parameters=parameters)
    if record is not None:
        written.append(_write(root / RESULT, record))
    return [_write(root / REPORT, html), *written]


def _write(path: Path, text: str) -> Path:
    with aside(path) as part:
        part.write_text(text, encoding="utf-8")
    return path
