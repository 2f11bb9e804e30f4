"""Single runs: one replication of one scenario each, and what is kept of them until all are there.

A run's identity is everything that it depends on (``keys``), and what it says is a text (``encode``) from
which its results come back exactly (``decode``). So it does not matter where or when a run was made.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.models.config import Scenario
from tideover.models.evaluation.bottleneck import Used
from tideover.models.simulation import Replication, simulate
from tideover.scenarios.errors import shorten
from tideover.scenarios.part_builder import REGISTRIES
from tideover.scenarios.prediction import predict
from tideover.scenarios.writer import to_data
from tideover.sim.histogram import Histogram

if TYPE_CHECKING:
    from tideover.models.results.result import Result

Report = Callable[[int, int], None]
"""Called with what is done, and of how many."""

_HISTOGRAMS = ("latency", "end_to_end")
_TRACES = ("trace", "world")
"""Of a replication that was traced; they are not kept."""
_WITHOUT_EFFECT = ("name", "description", "slo", "profile")
_LONGEST_ERROR = 500


class RunFailed(RuntimeError):
    """A replication could not be simulated; the message says which one, and why."""


@dataclass(frozen=True)
class Outcome:
    """What became of a run: its record (see ``encode``), or the error that it ended with."""

    key: str
    record: str | None
    error: str | None


def run(scenario: Scenario, *, trace: bool = False, report: Report | None = None) -> Result:
    """All replications of a scenario, in this process.

    ``trace`` keeps every tuple, for small runs. ``report`` hears how many replications are done. Raises
    RunFailed.
    """
    from tideover.models.results.result import Result

    total = scenario.run.replications
    done: list[Replication] = []
    for number in range(total):
        if report is not None:
            report(number, total)
        try:
            done.append(simulate(scenario, number, trace=trace))
        except Exception as error:
            raise RunFailed(f"replication {number}: {told(error)}") from error
    result = Result(scenario, done, to_data(scenario))
    result.prediction, remarks = predict(scenario, [row for one in done for row in one.recoveries])
    result.warnings += remarks
    return result


def attempt(scenario: Scenario, replication: int, run_key: str, timeline: bool) -> Outcome:
    """One run, whatever comes of it. ``timeline``: keep the rows per second as well."""
    try:
        return Outcome(run_key, encode(simulate(scenario, replication), timeline), None)
    except Exception as error:
        return Outcome(run_key, None, shorten(f"replication {replication}: {told(error)}", _LONGEST_ERROR))


def told(error: Exception) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def keys(scenario: Scenario) -> list[str]:
    """For each replication a hash of all that its result depends on: the scenario, its seed, the code."""
    data = {name: value for name, value in to_data(scenario).items() if name not in _WITHOUT_EFFECT}
    data["run"] = {name: value for name, value in data["run"].items() if name != "replications"}
    whole = hashlib.sha256(json.dumps([data, code(), [*_files(data)]], ensure_ascii=False).encode()).digest()
    numbers = range(scenario.run.replications)
    return [hashlib.sha256(whole + str(number).encode()).hexdigest()[:32] for number in numbers]


def _files(data: Any) -> Iterator[str]:
    """Hashes of the files that a scenario names: traces of rates and the like."""
    if isinstance(data, dict):
        if isinstance(file := data.get("file"), str):
            try:
                yield hashlib.sha256(Path(file).read_bytes()).hexdigest()
            except OSError:
                yield ""
        for value in data.values():
            yield from _files(value)
    elif isinstance(data, list):
        for value in data:
            yield from _files(value)


@cache
def code() -> str:
    """A hash of the engine, and of the parts that other packages have registered."""
    digest = hashlib.sha256()
    for room in ("sim", "models"):
        for text in _sources(files("tideover").joinpath(room)):
            digest.update(text)
    for registry in REGISTRIES.values():
        for name, part in registry.items():
            if not part.__module__.startswith("tideover."):
                digest.update(f"{name} {part.__qualname__} {_source(part)}".encode())
    return digest.hexdigest()


def _sources(folder: Traversable) -> list[bytes]:
    found: list[bytes] = []
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir():
            found += _sources(entry)
        elif entry.name.endswith(".py"):
            found.append(entry.read_bytes())
    return found


def _source(part: type) -> str:
    """The whole module of a part, as far as it is known (not in every notebook)."""
    try:
        return inspect.getsource(inspect.getmodule(part) or part)
    except (OSError, TypeError):
        return ""


def encode(replication: Replication, timeline: bool = True) -> str:
    """What a replication says, as JSON; ``timeline``: with its rows per second."""
    data = {one.name: getattr(replication, one.name) for one in fields(Replication)}
    histograms = {name: data[name].state() for name in _HISTOGRAMS}
    if histograms["end_to_end"] == histograms["latency"]:
        histograms["end_to_end"] = None  # most of a record; where nothing is replayed, they are the same
    histograms["complete"] = None if replication.complete is None else replication.complete.state()
    rows = {"timeline": _columns(replication.timeline) if timeline else None}
    data |= histograms | rows | dict.fromkeys(_TRACES)
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def decode(record: str) -> Replication:
    """The replication that ``encode`` wrote; without a timeline if that was left out."""
    data: dict[str, Any] = json.loads(record)
    columns = data["timeline"] or {}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    histograms = {name: Histogram.of_state(data[name] or data["latency"]) for name in _HISTOGRAMS}
    shared = {
        "used": None if data["used"] is None else Used(*data["used"]),
        "complete": None if data["complete"] is None else Histogram.of_state(data["complete"]),
    }
    return Replication(**data | histograms | shared | {"timeline": rows})


def has_timeline(record: str) -> bool:
    """Whether ``encode`` was asked for the timeline."""
    return '"timeline":null' not in record


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
