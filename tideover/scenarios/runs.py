"""A scenario's runs in this process; what a run and a sweep depend on, as hashes; under which strategies a
scenario can run.

Called by `tideover.api`, sweeps and audits. With the same ``digest`` and replication it does not matter where
or when a run was made, so whatever a run comes to depend on has to be in the digest.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tideover.models.config import Scenario
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import library, loader, plugins, precedence, yaml_source
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import Source, Tree
from tideover.scenarios.part_builder import REGISTRIES, to_data
from tideover.scenarios.precedence import Setting, Settings, read_settings
from tideover.scenarios.prediction import predict
from tideover.sim.text_files import Unreadable, is_file, read_bytes

if TYPE_CHECKING:
    from tideover.models.results import Result


Report = Callable[[int, int], None]
"""Called with what is done, and of how many."""

_WITHOUT_EFFECT = ("name", "description", "slo", "conditions", "profile")
LONGEST_ERROR = 500
"""Of an error that is kept, in characters."""


class RunFailed(RuntimeError):
    """A replication could not be simulated; the message says which one, and why."""


def run(scenario: Scenario, *, trace: bool = False, report: Report | None = None) -> Result:
    """All replications of a scenario in this process; raises RunFailed. ``trace`` keeps every tuple."""
    from tideover.models.results import Result

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


def each(
    scenarios: Mapping[str, Scenario], report: Callable[[str, int, int], None] | None = None
) -> dict[str, Result]:
    """The results of several scenarios, by name; ``report``: which, runs done, of all. Raises RunFailed."""
    results: dict[str, Result] = {}
    total = sum(one.run.replications for one in scenarios.values())
    before = 0
    for name, one in scenarios.items():

        def tell(done: int, _: int, name: str = name, before: int = before) -> None:
            if report is not None:
                report(name, before + done, total)

        results[name] = run(one, report=tell)
        before += one.run.replications
    return results


def told(error: Exception) -> str:
    """An error in one line: its class, and what it says."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def digest(scenario: Scenario, model: str) -> str:
    """A hash of all that a scenario's runs depend on, but for their replication; ``model``: the ``code``."""
    data = {name: value for name, value in to_data(scenario).items() if name not in _WITHOUT_EFFECT}
    data["run"] = {name: value for name, value in data["run"].items() if name != "replications"}
    whole = json.dumps([data, model, [*_files(data)]], ensure_ascii=False)
    return hashlib.sha256(whole.encode()).hexdigest()


def _files(data: Any) -> Iterator[str]:
    """Hashes of the files that a scenario names: traces of rates and the like."""
    if isinstance(data, dict) and isinstance(file := data.get("file"), str):
        try:
            yield hashlib.sha256(Path(file).read_bytes()).hexdigest()
        except OSError:
            yield ""
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _files(value)


def _contents(folder: Traversable, under: str = "") -> Iterator[tuple[str, bytes]]:
    """The files in a folder and below, in order: name and content of each."""
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _contents(entry, f"{under}{entry.name}/")
        elif entry.is_file():
            yield f"{under}{entry.name}", entry.read_bytes()


@cache
def code() -> str:
    """A hash of the engine, its C too, and of the parts that other packages have registered."""
    digest = hashlib.sha256()
    for room in ("sim", "models"):
        for name, text in _contents(files("tideover").joinpath(room)):
            if name.endswith((".py", ".c", ".h")):
                digest.update(text)
    for registry in REGISTRIES.values():
        for name, part in registry.items():
            if not part.__module__.startswith("tideover."):
                try:  # the whole module, as far as it is known (not in every notebook)
                    source = inspect.getsource(inspect.getmodule(part) or part)
                except (OSError, TypeError):
                    source = ""
                digest.update(f"{name} {part.__qualname__} {source}".encode())
    return digest.hexdigest()


# What the outputs of a sweep depend on, as one hash: whoever has it need not even check the points.

_LONGEST_NAME = 255


def fingerprint(source: str | Path | Mapping[str, Any], settings: Sequence[str] = ()) -> str | None:
    """A hash of a sweep's file, of the settings, of every file that one of them may name, and of the code;
    None if something cannot be read: then the sweep itself says what is wrong.

    A text counts as the name of a file if there is one, from here or from its file: so the hash may change
    without need, but does not stay the same if a result would be another.
    """
    plugins.load_installed()
    digest = hashlib.sha256(code().encode())
    for name, content in _contents(files("tideover")):  # reports are made by all of the package
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    try:
        for part in _inputs(source, settings):
            digest.update(hashlib.sha256(part).digest())
    except (OSError, Unreadable, ScenarioError):
        return None
    return digest.hexdigest()


def _inputs(source: str | Path | Mapping[str, Any], settings: Sequence[str]) -> Iterator[bytes]:
    yield json.dumps(list(settings)).encode()
    for setting in read_settings(settings):
        if setting.faults:
            raise ScenarioError(setting.faults)
        yield from _named(setting.node.plain(), Path())
    data, directory = source, Path()
    if isinstance(source, Mapping):
        yield json.dumps(source, default=repr).encode()
    elif isinstance(source, str) and not library.is_path(source):
        yield source.encode()  # a built-in one is part of the package
        return
    else:
        text = yaml_source.text_of(Path(source))
        yield from (str(source).encode(), text.encode())
        data, directory = yaml_source.parse(text, str(source)).plain(), Path(source).parent
    yield from _named(data, directory)
    scenario = data.get("scenario") if isinstance(data, Mapping) else None
    if isinstance(scenario, str) and is_file(path := directory / scenario):
        yield from _named(yaml_source.read(path).plain(), path.parent)


def _named(value: Any, directory: Path) -> Iterator[bytes]:
    """The files that texts in a value name."""
    if isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _named(item, directory)
    elif isinstance(value, str) and 0 < len(value) < _LONGEST_NAME and "\0" not in value:
        for path in (directory / value, Path(value)):
            if is_file(path):
                yield read_bytes(path)


# ``compare --strategies all``: under which strategies a scenario can be compared, with which parameters.

ALL = "all"
"""What stands for all strategies in a list of them."""


class Every(NamedTuple):
    """The strategies, first those of the block ``strategies``; usual values that were set; what was done."""

    kinds: tuple[str, ...]
    settings: list[Setting]
    notes: tuple[str, ...]


def every_strategy(source: Source | Tree, settings: Settings = ()) -> Every:
    """All registered strategies that go with a scenario; raises ScenarioError if fewer than two do."""
    root, directory = loader.tree(source)
    given = precedence.expand(root, read_settings(settings))
    block = root.get("strategies")
    named = [kind for kind, _ in block.items()] if block is not None and block.is_mapping else []
    kinds: list[str] = []
    set_here: list[Setting] = []
    notes: list[str] = []
    refused: list[ScenarioError] = []
    for kind in dict.fromkeys([*named, *sorted(name for name, _ in STRATEGIES.items())]):
        try:
            more = needed(Tree(root, directory), kind, given)
        except ScenarioError as error:
            refused.append(error)
            first = error.problems[0]
            notes.append(f"{kind} is left out: {first.key}: {first.message}")
            continue
        kinds.append(kind)
        set_here += more
        if more:
            told = ", ".join(f"{one.path[-1]} {one.text.partition('=')[2]}" for one in more)
            notes.append(f"{kind}: {told}, since nothing else is said")
    if len(kinds) < 2 and refused:
        raise refused[0]
    return Every(tuple(kinds), set_here, tuple(notes))


def needed(tree: Tree, kind: str, given: list[Setting]) -> list[Setting]:
    """The usual values of a strategy that the scenario says nothing of, or needs. Raises ScenarioError."""
    root = tree.root
    own, named = root.get("strategy"), root.get("strategy", "kind") or root.get("strategy")
    blocks = [root.get("strategies", kind), own if named is not None and named.value == kind else None]
    if any(block is not None for block in blocks):
        try:
            loader.load_for_strategies(tree, [kind], given)
            return []
        except ScenarioError:
            pass
    said = {one.path[-1] for one in given if one.key.startswith(("strategy.", f"strategies.{kind}."))}
    for block in blocks:
        said |= {key for key, _ in block.items()} if block is not None and block.is_mapping else set()
    defaults = STRATEGIES[kind].typical if kind in STRATEGIES else {}
    left = {key: value for key, value in defaults.items() if key not in said}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in left.items()}
    found = read_settings([f"strategies.{kind}.{key}={text}" for key, text in texts.items()])
    loader.load_for_strategies(tree, [kind], [*found, *given])
    return found
