"""Series of lag, throughput or latency from files: Prometheus' ``query_range`` answers, and CSV.

A Prometheus answer of the type ``matrix`` has one series for each set of labels. Those that differ in the
partition or in the process alone are parts of one series, and are added up (the greatest of them counts for a
maximum and for a latency), where all of them were scraped.

A CSV has a time (seconds or milliseconds since 1970, or ISO 8601) and a value in each line, or several values
under a header that names them.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

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
MOST_POINTS = 1 << 21
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
        sane = np.isfinite(number) and number > 1e8
        return (number / 1000 if number > _MILLISECONDS else number) if sane else None
    try:
        found = datetime.fromisoformat(text.strip().strip('"').replace("Z", "+00:00"))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


class _Points:
    """Points as they come, in bounded memory: when there are too many, two neighbours become their mean."""

    def __init__(self, columns: int) -> None:
        self.rows, self.columns = array("d"), columns
        self._every, self._sum, self._n = 1, np.zeros(columns), 0

    def add(self, row: Sequence[float]) -> None:
        if self._every == 1:
            self.rows.extend(row)
        else:
            self._sum += row
            self._n += 1
            if self._n == self._every:
                self.rows.extend(self._sum / self._n)
                self._sum[:], self._n = 0.0, 0
        if len(self.rows) >= MOST_POINTS * self.columns:
            halves = self.table().reshape(-1, 2, self.columns).mean(axis=1)
            self.rows = array("d", halves.tobytes())
            self._every *= 2

    def table(self) -> Floats:
        return np.frombuffer(self.rows, float).reshape(-1, self.columns).copy()


def _csv(file: LogFile) -> Iterator[Series]:
    names: list[str] | None = None
    points: _Points | None = None
    for number, line in file.lines():
        text = line.decode("utf-8", "replace").strip()
        if not text or text.startswith("#"):
            continue
        cells = _split(text)
        at = _time(cells[0])
        if names is None:
            stem = file.name.rpartition("/")[2].partition(".")[0]
            single = len(cells) == 2
            names = [stem] if single else [f"{stem} {i}" for i in range(1, len(cells))]
            points = _Points(len(cells) + 1)
            if at is None:
                given = [cell.strip().strip('"') for cell in cells[1:]]
                names = [stem if name.lower() == "value" else name for name in given]
                continue
        if at is None:
            file.refuse(number, "does not begin with a time: seconds or milliseconds since 1970, or ISO 8601")
            continue
        if len(cells) != len(names) + 1:
            file.refuse(number, f"has not {len(names) + 1} columns, as the first line")
            continue
        values = [_number(cell) for cell in cells[1:]]
        if None in values and any(cell.strip() not in ("", "NaN", "null") for cell in cells[1:]):
            file.refuse(number, "has a value that is no number")
            continue
        assert points is not None
        points.add([at, float(number), *(np.nan if v is None else v for v in values)])
    if points is None or names is None:
        return
    table = points.table()
    for place, name in enumerate(names):
        yield from _made(name, {}, table[:, 0], table[:, place + 2], file.name, np.floor(table[:, 1]))


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
