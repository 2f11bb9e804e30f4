"""Series of lag, throughput or latency from files: Prometheus' ``query_range`` answers, and CSV.

A Prometheus answer of the type ``matrix`` has one series for each set of labels. Those that differ in the
partition or in the process alone are parts of one series, and are added up (the greatest of them counts for a
maximum and for a latency), where all of them were scraped.

A CSV has a time (seconds or milliseconds since 1970, or ISO 8601) and a value in each line, or several values
under a header that names them.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any

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


def recognises(head: bytes) -> str:
    """``prometheus`` or ``csv``; empty if the first bytes are neither."""
    text = head.lstrip()
    if text.startswith((b"{", b"[")):
        answers = b'"metric"' in text and b'"values"' in text
        return "prometheus" if answers or b'"errorType"' in text else ""
    rows = [line for line in text.decode("utf-8", "replace").splitlines()[:50] if line.strip()]
    rows = [row for row in rows if not row.startswith("#")]
    cells = _split(rows[0]) if rows else []
    if len(cells) < 2:
        return ""
    named = cells[0].strip().lower() in _TIMES
    return "csv" if named or (_time(cells[0]) is not None and _number(cells[1]) is not None) else ""


def read(part: str, file: LogFile) -> list[Series]:
    """All series of a file; what cannot be read is said."""
    found = list(_prometheus(file) if part == "prometheus" else _csv(file))
    if not found:
        file.refuse(None, f"has no series of at least {FEWEST} points", "(file)")
    return found


# CSV


def _split(text: str) -> list[str]:
    return re.split(r"[,;\t]", text)


def _number(text: str | bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _time(text: str) -> float | None:
    """A moment in s since 1970; a time without a zone is UTC."""
    number = _number(text)
    if number is not None:
        sane = np.isfinite(number) and number > _EARLIEST
        return (number / 1000 if number > _MILLISECONDS else number) if sane else None
    try:
        found = datetime.fromisoformat(text.strip().strip('"').replace("Z", "+00:00"))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


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
    """Lines by the thousand: all at once if all are numbers, or else one by one."""
    lines = ((number, line) for number, line in file.lines() if line.strip() and not line.startswith(b"#"))
    first = next(lines, None)
    if first is None:
        return
    names, is_header = _names(file, first[1])
    points = _Points(len(names) + 2)
    rest = lines if is_header else chain([first], lines)
    while chunk := list(islice(rest, _AT_ONCE)):
        rows = _numbers(chunk, len(names))
        if rows is None:
            rows = np.array(list(_rows(file, chunk, len(names)))).reshape(-1, len(names) + 2)
        points.add(rows)
    table = points.table()
    for place, name in enumerate(names):
        yield from _made(name, {}, table[:, 0], table[:, place + 2], file.name, np.floor(table[:, 1]))


def _names(file: LogFile, line: bytes) -> tuple[list[str], bool]:
    """Of the columns, by the first line, and whether that is a header; the file's name where it has none."""
    cells = _split(line.decode("utf-8", "replace").strip())
    stem = file.name.rpartition("/")[2].partition(".")[0]
    if _time(cells[0]) is None:
        given = [cell.strip().strip('"') for cell in cells[1:]]
        return [stem if name.lower() == "value" else name for name in given], True
    return [stem] if len(cells) == 2 else [f"{stem} {i}" for i in range(1, len(cells))], False


def _numbers(chunk: Sequence[tuple[int, bytes]], columns: int) -> Floats | None:
    """Time (s), number of the line, and values of lines that are all as they should be; or None."""
    text = b"\n".join(line for _, line in chunk)
    by = chr(next((by for by in b",;\t" if by in chunk[0][1]), ord(",")))
    dated = _number(chunk[0][1].partition(by.encode())[0]) is None
    kinds: dict[Hashable, Any] = {
        place: str if dated and not place else np.float64 for place in range(columns + 1)
    }
    try:
        read = pd.read_csv(io.BytesIO(text), header=None, sep=by, dtype=kinds)
        if read.shape != (len(chunk), columns + 1):
            return None
        if dated:
            times = pd.to_datetime(read[0], format="ISO8601", utc=True)
            at = (times - pd.Timestamp(0, tz="UTC")).dt.total_seconds().to_numpy(float)
        else:
            at = read[0].to_numpy(float)
    except ValueError:  # and pandas' errors of parsing
        return None
    at = np.where(at > _MILLISECONDS, at / 1000, at)
    if not (at > _EARLIEST).all():
        return None
    return np.column_stack((at, [number for number, _ in chunk], read.to_numpy()[:, 1:].astype(float)))


def _rows(file: LogFile, chunk: Sequence[tuple[int, bytes]], columns: int) -> Iterator[list[float]]:
    for number, line in chunk:
        cells = _split(line.decode("utf-8", "replace").strip())
        at = _time(cells[0])
        if at is None:
            file.refuse(number, "does not begin with a time: seconds or milliseconds since 1970, or ISO 8601")
            continue
        if len(cells) != columns + 1:
            file.refuse(number, f"has not {columns + 1} columns, as the first line")
            continue
        values = [_number(cell) for cell in cells[1:]]
        if any(v is None and c.strip() not in ("", "null") for v, c in zip(values, cells[1:], strict=True)):
            file.refuse(number, "has a value that is no number")
            continue
        yield [at, float(number), *(np.nan if v is None else v for v in values)]


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
    text = file.text()
    if text is None:
        return
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        file.refuse(line, "is no whole JSON, so nothing of it is read")
        return
    if isinstance(found, Mapping) and found.get("status") == "error":
        file.refuse(None, f"Prometheus answered: {found.get('error')}", "error")
        return
    for key in ("data", "result"):
        found = found.get(key, found) if isinstance(found, Mapping) else found
    parts: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[Floats, Floats]]] = {}
    for number, one in enumerate(found if isinstance(found, list) else []):
        try:
            labels = {str(k): str(v) for k, v in one["metric"].items()}
            points = np.array([(float(at), float(value)) for at, value in one["values"]]).reshape(-1, 2)
        except (KeyError, TypeError, ValueError, AttributeError):
            file.refuse(
                None, "is no series: a metric with labels, and values [[time, text], ...]", f"result.{number}"
            )
            continue
        name = labels.pop("__name__", "") or labels.get("name", "") or "value"
        kept = tuple(sorted((k, v) for k, v in labels.items() if k not in _PARTS))
        parts.setdefault((name, kept), []).append((points[:, 0], points[:, 1]))
    for (name, kept), those in parts.items():
        at, value = _together(name, those)
        shown = f"{name}{{{','.join(f'{k}={v}' for k, v in kept)}}}" if kept else name
        yield from _made(shown, dict(kept), at, value, file.name, np.zeros(len(at)))


def _together(name: str, parts: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """The sum of parts, or the greatest, when all that have begun, and not ended, were seen."""
    if len(parts) == 1:
        return parts[0]
    whole: Any = _is_most(name, parts)
    at = np.unique(np.concatenate([times for times, _ in parts]))
    value, seen, due = np.zeros(len(at)), np.zeros(len(at)), np.zeros(len(at))
    for times, values in parts:
        places = np.searchsorted(at, times)
        if whole:
            value[places] = np.maximum(value[places], values)
        else:
            value[places] += values
        seen[places] += 1
        due += (at >= times[0]) & (at <= times[-1]) if len(times) else 0
    good = seen == due
    return at[good], value[good]


def _is_most(name: str, parts: Iterable[object]) -> bool:
    return bool(_MOST.search(name)) or bool(_KINDS[LATENCY].search(name))
