"""All points of a sweep on one page: compact data, and a script that sorts it and shows 50 rows at a time."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from tideover.models.schema.fields import HEADLINE
from tideover.reports.html import Grid
from tideover.reports.sweeps.points import SUMS, Points, explained, rounded


def grid(points: Points) -> Grid:
    """The table of all points; swept values are written once each, numbers with four digits."""
    data = json.dumps(_data(points), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    script = _script()
    allowed = f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
    notes = (
        "A click on a heading sorts. ±: half the width of the 95 % t-interval of the mean; – undefined.",
        "; ".join(["network: mean per run", *explained({key.name: key.short for key in points.keys})]),
    )
    # In a script element nothing is an entity, and only "</script" and "<!--" end or change what follows.
    return Grid(f"All {len(points):,} points", data.replace("<", "\\u003c"), script, allowed, notes)


def _data(points: Points) -> dict[str, Any]:
    columns: list[dict[str, Any]] = [{"name": "point"}]
    cells: list[list[Any]] = [points.numbers.tolist()]
    for key in points.keys:
        numbers = {"numbers": key.numbers.tolist()} if key.numeric else {}
        columns.append({"name": key.short, "values": key.labels} | numbers)
        cells.append(key.of_point.tolist())
    for name, label in ((HEADLINE, "time to recover, s"), ("catch_up_s", "catch-up, s")):
        found = points.metric(name)
        columns += [{"name": label}, {"name": "±"}, {"name": "not ended"}]
        cells += [*([rounded(v) for v in values] for values in (found.mean, found.half_width))]
        cells.append(found.undefined.tolist())
    for name, label in SUMS.items():
        columns.append({"name": label})
        cells.append([None if np.isnan(v) else round(v) for v in points.metric(name).total])
    columns += [{"name": "network", "bytes": True}, {"name": "failed runs"}, {"name": "runs"}]
    cells.append([rounded(v) for v in points.metric("network_bytes").mean])
    cells += [points.failed.tolist(), points.runs.tolist()]
    return {"columns": columns, "rows": list(zip(*cells, strict=True))}


@cache
def _script() -> str:
    return files("tideover.reports").joinpath("templates", "grid.js").read_text(encoding="utf-8")
