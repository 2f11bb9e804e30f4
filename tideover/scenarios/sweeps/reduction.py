"""What is made of all rows of some points together: how many runs there are, and the figures of each metric.

Points are cut into parts by their number alone, so a part has the same rows wherever it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tideover.models.schema import Column
from tideover.scenarios.sweeps import rows
from tideover.scenarios.sweeps.rows import ENDS, arrow_type, identity

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from tideover.scenarios.sweeps.files import Files, Manifest

_POINTS, _RUNS = 2_000, 50_000
"""Most of them in one part, if it has more than one point."""
_REMARKS = 1_000
"""Most distinct remarks that are kept of one part."""
_UNUSED = frozenset({"scenario_json", "version", "scenario"})


@dataclass(frozen=True)
class Parts:
    """Points in so many parts; ``place``: the part of each point that counts."""

    count: int
    place: Mapping[int, int]


@dataclass(frozen=True)
class Reduction:
    """``of`` makes rows of the rows of some points, in the columns ``needs``; they are kept in ``folder``.

    ``parts``: which points have to come together; None: each may be by itself.
    """

    folder: str
    needs: tuple[str, ...]
    of: Callable[[pa.Table], pd.DataFrame]
    schema: pa.Schema
    parts: Parts | None = None

    def __call__(self, found: pa.Table) -> pa.Table:
        import pyarrow as pa

        return pa.Table.from_pandas(self.of(found), self.schema, preserve_index=False)


def parts(points: int, runs: int) -> int:
    """Into how many parts the points are cut."""
    return max(1, min(points, max(math.ceil(points / _POINTS), math.ceil(runs / _RUNS))))


def cut(how: Reduction, points: int, runs: int) -> Parts:
    """The parts of a reduction of so many points and runs."""
    if how.parts is not None:
        return how.parts
    count = parts(points, runs)
    return Parts(count, {point: point * count // points for point in range(points)})


def path_of(folder: str, part: int) -> str:
    """Where a part is."""
    return f"{folder}/part-{part:05}.parquet"


def parts_of(how: Reduction, files: Files, known: Manifest) -> list[str]:
    """The files of what was made of all rows; a part without rows has none."""
    there = set(files.names(how.folder))
    count = cut(how, known.points, known.runs).count
    paths = [path_of(how.folder, number) for number in range(count)]
    return [path for path in paths if path.rpartition("/")[2] in there]


def of_points(swept: Mapping[str, Column]) -> Reduction:
    """A row for each point: the swept values, the strategy, and how many of its runs there are and failed."""
    import pyarrow as pa

    kinds = {"point": pa.int64()} | {key: arrow_type(column) for key, column in swept.items()}
    kinds |= {"strategy": pa.string(), "runs": pa.int64(), "failed": pa.int64()}
    needs = dict.fromkeys(["point", *rows.names(swept), "strategy", "replication", "error"])
    return Reduction("points", tuple(needs), partial(_points, swept), pa.schema(list(kinds.items())))


def of_figures(metrics: tuple[str, ...] | None = None) -> Reduction:
    """A row for each point and metric: mean, interval and quantiles. None: of all metrics."""
    import pyarrow as pa

    counts = {"point", "n", "undefined"}
    kinds = {name: pa.int64() if name in counts else pa.float64() for name in rows.COLUMNS}
    needs = dict.fromkeys(name for table in ("runs", "recoveries") for name in rows.needed(table, {}))
    used = (*(name for name in needs if name not in _UNUSED), ENDS.name)
    schema = pa.schema(list((kinds | {"metric": pa.string()}).items()))
    return Reduction("summary", used, partial(_figures, metrics), schema)


def of_remarks() -> Reduction:
    """A row for each distinct remark on the runs, with the first point and replication that has it."""
    import pyarrow as pa

    kinds = [("point", pa.int64()), ("replication", pa.int64()), ("remark", pa.string())]
    needs = ("point", "replication", "remarks")
    return Reduction("remarks", needs, _remarks, pa.schema(kinds))


def _remarks(found: pa.Table) -> pd.DataFrame:
    frame = found.sort_by(rows.ORDER).to_pandas().explode("remarks").dropna(subset="remarks")
    first = frame.drop_duplicates("remarks").head(_REMARKS)
    return first.rename(columns={"remarks": "remark"})


def _points(swept: Mapping[str, Column], found: pa.Table) -> pd.DataFrame:
    found = rows.named(found.sort_by(rows.ORDER), swept, identity())
    return rows.points_of(found.to_pandas(), swept)


def _figures(metrics: tuple[str, ...] | None, found: pa.Table) -> pd.DataFrame:
    runs = found.drop_columns(["recoveries"]).to_pandas()
    recoveries = rows.exploded(found.select(["point", "replication", "recoveries"]), "recoveries")
    return rows.summarise_points(recoveries.to_pandas(), runs, metrics)
