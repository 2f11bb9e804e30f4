"""What ``--out`` writes: the tables as Parquet, the result as JSON, and the page."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.reports.html import Page, render
from tideover.reports.parquet import prepare, write_tables

if TYPE_CHECKING:
    import pandas as pd

REPORT = "report.html"
RESULT = "result.json"


def write_all(
    directory: str | os.PathLike[str],
    *,
    tables: Mapping[str, pd.DataFrame],
    page: Page,
    record: Any = None,
    parameters: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write tables, page and (if given) the object that ``--json`` prints; returns the paths, the page first.

    Raises ValueError for a directory that is not Tideover's to write to; see ``parquet.prepare``.
    """
    root = prepare(directory)
    html = render(page)
    written = write_tables(root, tables, parameters=parameters)
    if record is not None:
        text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
        written.append(_write(root / RESULT, text + "\n"))
    return [_write(root / REPORT, html), *written]


def _write(path: Path, text: str) -> Path:
    aside = path.with_name(f".{path.name}.part")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)
    return path
