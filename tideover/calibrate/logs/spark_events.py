"""Spark's event logs and the progress that its queries report, line by line.

``events`` are those of `org.apache.spark.util.JsonProtocol`, one a line, of which all but the wanted kinds
are passed over unparsed; ``progress`` is `StreamingQueryProgress`, in whichever of its three forms: within an
event (`StreamingQueryListener.QueryProgressEvent`), as a line of its own, or as a driver's log has it, over
several lines after «Streaming query made progress».
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from tideover.calibrate.logs.files import LogFile

NAN = float("nan")
Told = Mapping[str, tuple[str, str]]

PHASES: Told = {
    "latest_offset_ms": ("latestOffset", "asking the source how far it is"),
    "wal_ms": ("walCommit", "writing the batch's range to the offset log"),
    "planning_ms": ("queryPlanning", "planning"),
    "get_batch_ms": ("getBatch", "asking the source for the rows, without reading them"),
    "add_batch_ms": ("addBatch", "running both stages, and handing the results to the sink"),
    "commit_ms": ("commitOffsets", "writing the commit log"),
    "trigger_ms": ("triggerExecution", "the whole batch"),
}
"""Of a batch, as Spark's progress has it: its key there, and what it is."""
STATE: Told = {
    "state_rows": ("numRowsTotal", "rows in the state after the batch"),
    "state_updated": ("numRowsUpdated", "rows of the state that the batch wrote"),
    "state_update_ms": ("allUpdatesTimeMs", "writing them, summed over the partitions"),
    "state_commit_ms": ("commitTimeMs", "committing the state, summed over the partitions"),
}

BEGIN = b'{"Event":"'
LISTENER = "org.apache.spark.sql.streaming.StreamingQueryListener$"
PROGRESS = f"{LISTENER}QueryProgressEvent"
_NAME = re.compile(rb'[\w.$]+(?=")')
_TIME = re.compile(rb'"(?:Timestamp|(?:Launch|Finish|Submission|Completion) Time|time)":(\d{12,14})')
_MADE = b"made progress: {"
_ENDLESS = "a progress of a query begins here, and does not end"
_MOST_LINES = 5000
"""Lines of a progress that is printed over several."""

Event = dict[str, Any]


class Line(NamedTuple):
    """What a line is: its number, its kind (an event's name; empty for others), and its bytes."""

    number: int
    kind: str
    text: bytes

    def time(self) -> float:
        """The last time (s since 1970) that an event names; NaN if it names none."""
        found = [int(text) for text in _TIME.findall(self.text)]
        return max(found) / 1000 if found else NAN


def lines(file: LogFile) -> Iterator[Line]:
    """Every line and its kind; empty: it is neither an event nor a progress, which may have any form."""
    kinds: dict[bytes, str] = {}
    whole: list[bytes] = []
    first = 0
    for number, text in file.lines():
        if whole:
            whole.append(text)
            if text.startswith(b" ") and len(whole) < _MOST_LINES:
                continue
            if text.rstrip() == b"}":
                yield Line(first, PROGRESS, b'{"progress":%b}' % b"\n".join(whole))
                whole = []
                continue
            file.refuse(first, _ENDLESS)
            whole = []
        if text.startswith(BEGIN):
            found = _NAME.match(text, len(BEGIN))
            name = found[0] if found else b""
            yield Line(number, kinds.get(name) or kinds.setdefault(name, name.decode()), text)
        elif text.startswith(b"{") and b'"batchId"' in text:
            yield Line(number, PROGRESS, b'{"progress":%b}' % text)
        elif text.rstrip().endswith(_MADE) or text.rstrip() == b"{":
            first, whole = number, [b"{"]
        else:
            yield Line(number, "", text)
    if whole:
        file.refuse(first, _ENDLESS)


def parsed(file: LogFile, line: Line) -> Event | None:
    """The event of a line; None if it is broken, which is said."""
    try:
        found = json.loads(line.text)
    except (ValueError, RecursionError):
        file.refuse(line.number, "is no whole JSON", line.kind.rpartition("$")[2])
        return None
    if not isinstance(found, dict):
        file.refuse(line.number, "is no JSON object", line.kind)
        return None
    return found


def events(file: LogFile, wanted: Collection[str]) -> Iterator[tuple[Line, Event]]:
    """The events of the wanted kinds, each with its line."""
    for line in lines(file):
        if line.kind in wanted and (event := parsed(file, line)) is not None:
            yield line, event


def from_told(told: Told, values: Mapping[str, Any]) -> dict[str, float]:
    """The values that Spark tells, by our names; NaN for those that it does not."""
    return {name: values.get(key, NAN) for name, (key, _) in told.items()}


def stamp(text: str) -> float:
    """A time of a progress (ISO 8601, UTC) in s since 1970."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def offset(value: Any) -> Any:
    """An offset of a source, which is JSON, or JSON in a text."""
    return json.loads(value) if isinstance(value, str) else value


class Batch(NamedTuple):
    """A batch that has ended, of one run of a query; times in s since 1970.

    ``start``: when it was triggered; ``behind``: rows that the source had then and the batch left (a cap on
    its size); NaN: the source does not tell. ``state_rows``: NaN without state. ``spent``: ms, as ``PHASES``.
    """

    query: str
    run: str
    number: int
    start: float
    end: float
    rows: int
    behind: float
    state_rows: float
    spent: tuple[float, ...]
    file: str
    line: int


def batch(progress: Event, file: str, line: int) -> Batch | None:
    """The batch that a progress tells of; None if nothing ran (a source without rows reports that, too).
    Raises KeyError, TypeError or ValueError if it is no progress.
    """
    durations = from_told(PHASES, progress["durationMs"])
    if "addBatch" not in progress["durationMs"]:
        return None
    sources, state = progress["sources"], progress.get("stateOperators") or []
    start = stamp(progress["timestamp"])
    return Batch(
        query=str(progress["id"]),
        run=str(progress["runId"]),
        number=int(progress["batchId"]),
        start=start,
        end=start + float(durations["trigger_ms"]) / 1000,
        rows=sum(int(source["numInputRows"]) for source in sources),
        behind=sum((_between(one.get("endOffset"), one.get("latestOffset")) for one in sources), 0.0),
        state_rows=float(sum(one["numRowsTotal"] for one in state)) if state else NAN,
        spent=tuple(map(float, durations.values())),
        file=file,
        line=line,
    )


def _between(end: Any, latest: Any) -> float:
    """Rows between two offsets of a source, whatever parts they have; NaN if that cannot be told."""
    try:
        return _sum(offset(latest)) - _sum(offset(end))
    except (TypeError, ValueError):
        return NAN


def _sum(value: Any) -> float:
    if isinstance(value, Mapping):
        return sum(map(_sum, value.values()))
    if isinstance(value, Iterable) and not isinstance(value, str):
        return sum(map(_sum, value))
    return float(value)
