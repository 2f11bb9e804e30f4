"""Series of lag, throughput or latency from files: Prometheus' ``query_range`` answers, and CSV.

A Prometheus answer of the type ``matrix`` has one series for each set of labels. Those that differ in the
partition or in the process alone are parts of one series, and are added up (the greatest of them counts for a
maximum and for a latency), where all of them were scraped.

A CSV has a time (seconds or milliseconds since 1970, or ISO 8601) and a value in each line, or several values
under a header that names them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

import numpy as np
import pandas as pd

from tideover.calibrate.episodes import Floats
from tideover.calibrate.logs.files import LogFile
from tideover.calibrate.logs.findings import Mark

LAG, THROUGHPUT, LATENCY = "lag", "throughput", "latency"
_KINDS = {
    LAG: re.compile(r"lag|backlog|behind|pending|queue|depth", re.IGNORECASE),
    LATENCY: re.compile(r"laten|delay|duration|age_|_age|end_to_end|e2e", re.IGNORECASE),
    THROUGHPUT: re.compile(
        r"rate|throughput|per_?sec|record|consum|process|msg|message|event|tuple|row|offset|total|count|tps",
        re.IGNORECASE,
    ),
}
_COUNTER = re.compile(r"offset|total|count", re.IGNORECASE)
_MOST = re.compile(r"max|p9\d|quantile", re.IGNORECASE)
_PARTS = {"partition", "instance", "pod", "client_id", "subtask_index", "task", "thread", "tm_id"}
"""Labels in which parts of one series differ."""
_TIMES = {"timestamp", "time", "ts", "date", "datetime", "t"}
_MILLISECONDS = 1e11
"""A number of seconds since 1970 is smaller than this until the year 5138."""
_EARLIEST = 1e8
_ZERO = pd.Timestamp(0, tz="UTC")
_COMMAS = bytes.maketrans(b";\t", b",,")
_AT_ONCE = 1 << 15
MOST_POINTS = 1 << 19
FEWEST = 12


@dataclass(frozen=True)
class Series:
    """One series: ``at`` in s since 1970, rising; ``lines`` of the file, 0: it has none."""

    name: str
    kind: str
    at: Floats
    value: Floats
    file: str
    lines: Floats = field(repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def step(self) -> float:
        """Usual time between two points (s)."""
        return float(np.median(np.diff(self.at)))

    def mark(self, moment: float) -> Mark:
        """Of the last point until a moment, or the first of all."""
        place = max(0, int(np.searchsorted(self.at, moment, "right")) - 1)
        text = f"{self.name} = {self.value[place]:.6g}"
        return Mark(self.file, int(self.lines[place]), text)


def recognises(file: LogFile) -> str:
    """``prometheus`` or ``csv``; empty if the first bytes are neither."""
    text = file.head.lstrip()
    if text.startswith((b"{", b"[")):
        answers = b'"metric"' in text and b'"values"' in text
        return "prometheus" if answers or b'"errorType"' in text else ""
    rows = [line for line in text.decode("utf-8", "replace").splitlines()[:50] if line.strip()]
    rows = [row for row in rows if not row.startswith("#")]
    first = _split(rows[0])[:2] if rows else []
    if len(first) < 2:
        return ""
    cells = pd.Series(first, dtype=object)
    numbers = _times(cells).notna()[0] and pd.to_numeric(cells, errors="coerce").notna()[1]
    return "csv" if numbers or first[0].strip().lower() in _TIMES else ""


def read(part: str, file: LogFile) -> list[Series]:
    """All series of a file; what cannot be read is said."""
    found = list(_prometheus(file) if part == "prometheus" else _csv(file))
    if not found:
        file.refuse(None, f"has no series of at least {FEWEST} points", "(file)")
    return found


# CSV


def _times(cells: pd.Series) -> pd.Series:
    """Moments in s since 1970, a time without a zone in UTC; NaN: it is none."""
    texts = not pd.api.types.is_numeric_dtype(cells)
    dated = cells.str.contains("[-:T]", na=False) if texts else pd.Series(False, cells.index)
    at = pd.to_numeric(cells[~dated], errors="coerce").astype(float)
    times = pd.to_datetime(cells[dated], format="ISO8601", utc=True, errors="coerce")
    known = at.where(at <= _MILLISECONDS, at / 1000)
    at = pd.concat((known, (times - _ZERO).dt.total_seconds())).sort_index()
    return at.where((at > _EARLIEST) & (at < np.inf))


def _split(text: str) -> list[str]:
    return [cell.strip(' "') for cell in re.split(r"[,;\t]", text)]


class _Points:
    """Points as they come, in bounded memory: when there are too many, two neighbours become their mean."""

    def __init__(self, columns: int) -> None:
        self._tables: list[Floats] = []
        self._rest = np.zeros((0, columns))
        self._every, self._n = 1, 0

    def add(self, rows: Floats) -> None:
        rows = np.concatenate((self._rest, rows))
        whole = len(rows) - len(rows) % self._every
        self._rest = rows[whole:]
        self._keep(rows[:whole].reshape(-1, self._every, rows.shape[1]).mean(axis=1))
        while self._n >= MOST_POINTS:
            table = self.table()
            self._every *= 2
            self._tables, self._n = [], 0
            self._keep(table[: len(table) // 2 * 2].reshape(-1, 2, table.shape[1]).mean(axis=1))

    def _keep(self, table: Floats) -> None:
        self._tables.append(table)
        self._n += len(table)

    def table(self) -> Floats:
        return np.concatenate([self._rest[:0], *self._tables])


def _csv(file: LogFile) -> Iterator[Series]:
    lines = (one for one in file.lines() if one[1][:1] != b"#" and one[1].strip())
    if (first := next(lines, None)) is None:
        return
    names, is_header = _names(file, first[1])
    points = _Points(len(names) + 2)
    rest = lines if is_header else chain([first], lines)
    while chunk := list(islice(rest, _AT_ONCE)):
        points.add(_rows(file, chunk, len(names)))
    table = points.table()
    for place, name in enumerate(names):
        yield from _made(name, {}, table[:, 0], table[:, place + 2], file.name, np.floor(table[:, 1]))


def _names(file: LogFile, line: bytes) -> tuple[list[str], bool]:
    """Of the columns, by the first line, and whether that is a header; the file's name where it has none."""
    cells = _split(line.decode("utf-8", "replace").strip())
    stem = file.name.rpartition("/")[2].partition(".")[0]
    if _times(pd.Series(cells[:1])).isna()[0]:
        return [stem if name.lower() == "value" else name for name in cells[1:]], True
    return [stem] if len(cells) == 2 else [f"{stem} {i}" for i in range(1, len(cells))], False


def _rows(file: LogFile, chunk: Sequence[tuple[int, bytes]], columns: int) -> Floats:
    """Time (s), number of the line, and values of the lines that are as they should be; others are named."""
    numbers = [number for number, _ in chunk]
    lines = [line.translate(_COMMAS, b'\r"') for _, line in chunk]
    commas = [line.count(b",") for line in lines]
    uneven = np.array(commas) != columns
    names = list(range(columns + 1))
    # Of lines with fewer cells the others are empty; the parser pads them only if one line is whole.
    whole = (line + b"," * (columns - found) for line, found in zip(lines, commas, strict=True))
    cells = pd.read_csv(
        io.BytesIO(b"\n".join(whole)),
        header=None,
        names=names,
        usecols=names,  # of a line with more cells the others are passed over
        index_col=False,
        quoting=csv.QUOTE_NONE,
        skip_blank_lines=False,
        skipinitialspace=True,
        low_memory=False,
        encoding_errors="replace",
    )
    at, values = _times(cells[0]), cells[names[1:]].apply(pd.to_numeric, errors="coerce")
    timeless = at.isna().to_numpy()
    strange = (values.isna() & cells[names[1:]].notna()).any(axis=1).to_numpy()
    broken = timeless | uneven | strange
    for place in np.flatnonzero(broken).tolist():
        said = "has a value that is no number"
        if timeless[place]:
            said = "does not begin with a time: seconds or milliseconds since 1970, or ISO 8601"
        elif uneven[place]:
            said = f"has not {columns + 1} columns, as the first line"
        file.refuse(numbers[place], said)
    return np.column_stack((at, numbers, values.astype(float)))[~broken]


def _made(
    name: str, labels: Mapping[str, str], at: Floats, value: Floats, file: str, lines: Floats
) -> Iterator[Series]:
    """A series in the order of its times, without points that say nothing; none if these are too few."""
    good = np.isfinite(value) & np.isfinite(at)
    at, first = np.unique(at[good], return_index=True)
    if len(at) < FEWEST:
        return
    value, lines = value[good][first], lines[good][first]
    found = Series(name, "", at, value, file, lines, labels)
    if _KINDS[LAG].search(name) is None and _is_counter(name, value):
        yield _rates(found)
    else:
        yield replace(found, kind=_kind(name, value))


def _kind(name: str, value: Floats) -> str:
    """By its name; or by its shape: a throughput is mostly near its greatest values, a lag near its least."""
    for kind, words in _KINDS.items():
        if words.search(name):
            return kind
    low, middle, high = np.quantile(value, (0.0, 0.5, 1.0)).tolist()
    return LAG if high - middle > middle - low else THROUGHPUT


def _is_counter(name: str, value: Floats) -> bool:
    """Whether values never fall, but for restarts of what counts, and rise all the time."""
    steps = np.diff(value)
    rises, falls = float((steps > 0).mean()), float((steps < 0).mean())
    return rises > 0.5 and falls < 0.02 and (bool(_COUNTER.search(name)) or (falls == 0 and rises > 0.9))


def _rates(counter: Series) -> Series:
    """What a counter counts per second between two points, at the later one."""
    steps, gaps = np.diff(counter.value), np.diff(counter.at)
    good = steps >= 0
    return replace(
        counter,
        name=f"rate of {counter.name}",
        kind=THROUGHPUT,
        at=counter.at[1:][good],
        value=(steps / gaps)[good],
        lines=counter.lines[1:][good],
    )


# Prometheus


def _prometheus(file: LogFile) -> Iterator[Series]:
    found = file.document()
    if isinstance(found, Mapping) and found.get("status") == "error":
        file.refuse(None, f"Prometheus answered: {found.get('error')}", "error")
        return
    for key in ("data", "result"):
        found = found.get(key, found) if isinstance(found, Mapping) else found
    parts: dict[tuple[str, tuple[tuple[str, str], ...]], list[pd.Series]] = {}
    for number, one in enumerate(found if isinstance(found, list) else []):
        try:
            labels = {str(k): str(v) for k, v in one["metric"].items()}
            points = pd.Series({float(at): float(value) for at, value in one["values"]}, dtype=float)
        except (KeyError, TypeError, ValueError, AttributeError):
            said = "is no series: a metric with labels, and values [[time, text], ...]"
            file.refuse(None, said, f"result.{number}")
            continue
        name = labels.pop("__name__", "") or labels.get("name", "") or "value"
        kept = tuple(sorted((k, v) for k, v in labels.items() if k not in _PARTS))
        parts.setdefault((name, kept), []).append(points)
    for (name, kept), those in parts.items():
        whole = _together(name, those)
        shown = f"{name}{{{','.join(f'{k}={v}' for k, v in kept)}}}" if kept else name
        at, lines = whole.index.to_numpy(float), np.zeros(len(whole))
        yield from _made(shown, dict(kept), at, whole.to_numpy(float), file.name, lines)


def _together(name: str, parts: Sequence[pd.Series]) -> pd.Series:
    """The sum of parts, or the greatest, when all that have begun, and not ended, were seen."""
    each = pd.concat(parts, axis=1).sort_index()
    under_way = each.ffill().notna() & each.bfill().notna()
    each = each[(each.notna() | ~under_way).all(axis=1)]
    greatest = _MOST.search(name) or _KINDS[LATENCY].search(name)
    return each.max(axis=1) if greatest else each.sum(axis=1, min_count=1)
