"""What Flink's REST interface and its configuration file say.

``/jobs/ID/checkpoints`` (``CheckpointingStatistics``) and ``/jobs/ID/exceptions``
(``JobExceptionsInfoWithHistory``, of Flink 1.13 and later; before, ``JobExceptionsInfo``), as files with the
JSON that was answered; ``config.yaml``, or ``flink-conf.yaml`` of Flink 1, which is no strict YAML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tideover.calibrate.logs.files import LogFile
from tideover.calibrate.logs.findings import MOST_KEPT, Mark, Setting

_KEY = re.compile(r"^(\s*)(-\s|[\w.\-]+\s*:(?:\s|$))(.*)$")
_JOB = re.compile(r"/([0-9a-f]{32})/(?:chk|savepoint)-")


class Thrown(NamedTuple):
    """An exception of a job: when (s since 1970), and where it was read, with what it says."""

    at: float
    mark: Mark


def document(file: LogFile) -> Mapping[str, Any]:
    """The JSON of a file; empty if it is none, which is said with its line."""
    text = file.text()
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        where = "ends too soon" if error.pos >= len(text.rstrip()) else error.msg
        file.refuse(error.lineno, f"is no JSON at character {error.colno}: {where}; the file is left out")
        return {}
    except RecursionError:
        file.refuse(1, "is nested too deeply; the file is left out")
        return {}
    if not isinstance(found, dict):
        file.refuse(1, "must be a JSON object, as REST answers it; the file is left out")
        return {}
    return found


def checkpoints(file: LogFile, data: Mapping[str, Any]) -> tuple[str, dict[int, dict[str, float]]]:
    """The job they belong to, if their paths say so, and the checkpoints by number.

    ``triggered``, ``completed``: s since 1970; ``duration``: s; ``size``: bytes; ``restored``: how often the
    job went back to it, at least once.
    """
    latest = data.get("latest") or {}
    rows = [
        *(data.get("history") or []),
        *(latest.get(kind) for kind in ("completed", "failed", "savepoint")),
    ]
    found: dict[int, dict[str, float]] = {}
    job = ""
    for row in rows:
        if not isinstance(row, dict):
            continue
        try:
            number, one = int(row["id"]), {"triggered": int(row["trigger_timestamp"]) / 1000}
            if row.get("status") == "COMPLETED":
                one["completed"] = int(row["latest_ack_timestamp"]) / 1000
                one["duration"] = int(row["end_to_end_duration"]) / 1000
                one["size"] = float(row.get("checkpointed_size") or row.get("state_size") or 0)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            file.refuse(None, f"a checkpoint is passed over: {_lacks(error)}", "history")
            continue
        found[number] = one
        job = job or _job(row)
    restored = latest.get("restored")
    if isinstance(restored, dict) and isinstance(restored.get("id"), int):
        found.setdefault(restored["id"], {})["restored"] = 1.0
        job = job or _job(restored)
    return job, found


def _job(row: Mapping[str, Any]) -> str:
    found = _JOB.search(str(row.get("external_path")))
    return found[1] if found else ""


def _lacks(error: Exception) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


def exceptions(file: LogFile, data: Mapping[str, Any]) -> Iterator[Thrown]:
    """What made the job fail, the oldest first."""
    history = data.get("exceptionHistory")
    rows = history.get("entries") if isinstance(history, dict) else data.get("all-exceptions")
    found = []
    for row in rows if isinstance(rows, list) else []:
        try:
            trace = str(row.get("stacktrace") or row.get("exception") or "")
            at = int(row["timestamp"]) / 1000
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            file.refuse(None, f"an exception is passed over: {_lacks(error)}", "exceptionHistory")
            continue
        name, _, said = trace.split("\n", 1)[0].partition(": ")
        name = str(row.get("exceptionName") or name).rsplit(".", 1)[-1]
        mark = Mark(file.name, 0, f"{name}: {said}"[:MOST_KEPT])
        found.append(Thrown(at, mark))
    yield from sorted(found, key=lambda thrown: thrown.at)


def configuration(file: LogFile) -> Iterator[Setting]:
    """The settings, with the line of each; keys of nested blocks are joined by dots."""
    text = file.text()
    above: list[tuple[int, str]] = []
    for number, line in enumerate((text or "").splitlines(), 1):
        bare = line.rstrip()
        if not bare.strip() or bare.lstrip().startswith(("#", "---", "- ")):
            continue
        found = _KEY.match(bare)
        if found is None:
            file.refuse(number, "is no setting (key: value): it is passed over")
            continue
        depth, key, value = len(found[1]), found[2].rstrip()[:-1].rstrip(), found[3].strip()
        while above and above[-1][0] >= depth:
            above.pop()
        if value and not value.startswith("#"):
            whole = ".".join([*(name for _, name in above), key])
            yield Setting(whole, _plain(value), Mark(file.name, number, bare.strip()[:MOST_KEPT]))
        else:
            above.append((depth, key))


def _plain(value: str) -> str:
    """A value without quotes, and without what comes after a #."""
    if value[:1] in "\"'" and (end := value.find(value[0], 1)) > 0:
        return value[1:end]
    return re.split(r"\s#", value, maxsplit=1)[0].strip()
