"""A scenario's runs in this process, and what a run depends on: with the same ``digest`` and replication it
does not matter where or when it was made.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.models.config import Scenario
from tideover.models.simulation import Replication, simulate
from tideover.scenarios.part_builder import REGISTRIES
from tideover.scenarios.prediction import predict
from tideover.scenarios.writer import to_data

if TYPE_CHECKING:
    from tideover.models.results.result import Result

Report = Callable[[int, int], None]
"""Called with what is done, and of how many."""

_WITHOUT_EFFECT = ("name", "description", "slo", "profile")
LONGEST_ERROR = 500
"""Of an error that is kept, in characters."""


class RunFailed(RuntimeError):
    """A replication could not be simulated; the message says which one, and why."""


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


def told(error: Exception) -> str:
    """An error in one line: its class, and what it says."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def digest(scenario: Scenario, model: str) -> str:
    """A hash of all that a scenario's runs depend on, but for their replication: its keys, seed and files,
    and ``model``, the ``code``.
    """
    data = {name: value for name, value in to_data(scenario).items() if name not in _WITHOUT_EFFECT}
    data["run"] = {name: value for name, value in data["run"].items() if name != "replications"}
    whole = json.dumps([data, model, [*_files(data)]], ensure_ascii=False)
    return hashlib.sha256(whole.encode()).hexdigest()


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
