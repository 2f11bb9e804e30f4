"""A scenario that knows where it came from: to be varied in Python; the scenario inside of another file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, Self

from pydantic import PrivateAttr

from tideover.models import config
from tideover.models.config import AppliedProfile, Slo
from tideover.models.detectors.base import Detector
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Links, QueueSettings, Run, SpoutConfig, Store
from tideover.models.job.stores import StoreKind
from tideover.models.strategies.base import Strategy
from tideover.scenarios import library, loader, plugins, precedence, profiles, yaml_source
from tideover.scenarios.errors import Problem, ScenarioError, unknown_parameters
from tideover.scenarios.loader import Tree
from tideover.scenarios.part_builder import from_plain, part_to_data
from tideover.scenarios.precedence import Settings, read_settings
from tideover.scenarios.yaml_source import WHOLE, Giver, Node, Origin
from tideover.sim.faults import Fault

_BLOCKS = ("strategies", precedence.KEY)
"""What a file may hold besides the scenario itself."""

_FIELDS = tuple(config.Scenario.model_fields)
_KEEP: Any = object()
"""Stands for an argument that was not given, where None means something."""


P = ParamSpec("P")


def _with_nearest(init: Callable[P, None]) -> Callable[P, None]:
    """A constructor that names the nearest parameter for one that it does not know."""
    _, *known = inspect.signature(init).parameters

    @wraps(init)
    def checked(*args: P.args, **given: P.kwargs) -> None:
        if problems := unknown_parameters("Scenario", given, known):
            raise ScenarioError(problems)
        init(*args, **given)

    return checked


class Scenario(config.Scenario):
    """Everything that one simulation depends on. It never changes; ``with_`` makes another one.

    Its parts are made of typed objects (``tideover.parts``), and it is checked as a scenario file is: raises
    ScenarioError, with the key. Numbers that are read from it are nanoseconds, bytes, and tuples per second.
    """

    _tree: Tree | None = PrivateAttr(default=None)
    """What it was built from, and where that looks for files; None: its fields alone say all."""

    @_with_nearest
    def __init__(
        self,
        *,
        name: str,
        topology: Mapping[str, SpoutConfig | BoltConfig],
        strategy: Strategy | str,
        run: Run,
        description: str = "",
        failures: Sequence[Fault] = (),
        detector: Detector | str | None = None,
        hosts: int | Hosts | None = None,
        links: Links | None = None,
        queues: QueueSettings | int | None = None,
        store: Store | None = None,
        stores: Mapping[str, StoreKind | str] | None = None,
        slo: Sequence[Slo | str] = (),
        profile: AppliedProfile | str | None = None,
    ) -> None:
        given = locals() | {"slo": slo or None}
        data = {key: given[key] for key in _FIELDS if given[key] is not None}
        tree = Tree(from_plain(data, Origin("Scenario")), Path())
        plugins.load_installed()
        super().__init__(**dict(loader.build(*tree).scenario))
        self._tree = tree

    @staticmethod
    def of(scenario: config.Scenario, tree: Tree | None = None) -> Scenario:
        """The same scenario, to be varied; ``tree``: what it was built from, if it is to follow from that."""
        found = Scenario.model_construct(**dict(scenario))
        found._tree = tree
        return found

    def with_(
        self,
        changes: Mapping[str, Any] = {},
        /,
        *,
        name: str = _KEEP,
        description: str = _KEEP,
        topology: Mapping[str, SpoutConfig | BoltConfig] = _KEEP,
        strategy: Strategy | str = _KEEP,
        failures: Sequence[Fault] = _KEEP,
        detector: Detector | str | None = _KEEP,
        hosts: int | Hosts | None = _KEEP,
        links: Links = _KEEP,
        queues: QueueSettings | int | None = _KEEP,
        store: Store = _KEEP,
        stores: Mapping[str, StoreKind | str] = _KEEP,
        run: Run = _KEEP,
        slo: Sequence[Slo | str] = _KEEP,
        profile: str | None = _KEEP,
        **parameters: Any,
    ) -> Scenario:
        """The scenario with some keys changed, as if its file or ``--set`` said so; this one stays as it is.

        A typed part replaces all that was there, its defaults included. The name of a strategy picks that one
        with what the scenario's block ``strategies`` has for it. ``changes``: values by dotted key
        (``{"strategy.message_timeout": "30 s"}``), which change nothing but that key; they are applied first.
        ``parameters``: the short parameters that the scenario's file declares.

        Raises ScenarioError, with the key, for whatever a file would be refused for; TypeError for a class
        instead of an object.

        >>> import tideover
        >>> base = tideover.load("wordcount")
        >>> slow = base.with_({"topology.sentences.rate": "5/s"}, strategy=tideover.Amnesia())
        >>> slow.topology["sentences"].arrivals.rate, base.topology["sentences"].arrivals.rate
        (5.0, 10.0)
        """
        named = locals()
        given = {key: named[key] for key in _FIELDS if named[key] is not _KEEP}
        if not isinstance(changes, Mapping):
            raise TypeError(f"with_ takes values by dotted key, as in {{'run.seed': 3}}, not {changes!r}")
        if twice := [key for key in changes if key in given or key in parameters]:
            message = "is given twice, in the mapping and by name; leave one of them out"
            raise ScenarioError([Problem("with_", None, key, message) for key in twice])
        settings = read_settings({**changes, **given, **parameters}, Origin("with_", None, Giver.SETTING))
        root, directory = tree_of(self)
        root = precedence.settle(root, settings)
        found = loader.build_one(root, directory)
        if found.idle and any(setting.key == profiles.KEY for setting in settings):
            raise ScenarioError(found.idle)
        return Scenario.of(found.scenario, Tree(_kept(root), directory))

    def to_yaml(self, path: str | Path | None = None) -> str:
        """The text of a scenario file that ``load`` reads back to an equal scenario; every key is in it.

        ``path``: a file to write as well; files that the scenario names are then named from the root. Short
        parameters and the block ``strategies`` of the file that it came from are in it, too. Raises OSError.

        >>> import tideover
        >>> print(tideover.load("wordcount").to_yaml().splitlines()[0])
        name: word count
        """
        text = yaml_source.write(yaml_source.quoted(_as_file(self, absolute=path is not None)))
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's; a copy with other fields no longer follows from what this one was built from."""
        copied = super().model_copy(update=update, deep=deep)
        if update:
            copied._tree = None
        return copied

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal, wherever they came from."""
        return isinstance(other, config.Scenario) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


Source = loader.Source | config.Scenario
"""A built-in name, a path, a mapping as a file would hold it, or a scenario that is there already."""


def load(source: Source, settings: Settings = ()) -> Scenario:
    """The scenario of a built-in name, a path, a mapping as a file would hold it, or of another scenario.

    ``settings``: texts ``key=value`` as given to ``--set``, or a mapping: ``{"run.seed": 3}``.

    Raises ScenarioError for a scenario that cannot be used, TypeError for settings that are neither a list of
    texts nor a mapping.
    """
    root, directory = tree_of(source)
    root = precedence.settle(root, read_settings(settings))
    return Scenario.of(loader.build(root, directory).scenario, Tree(_kept(root), directory))


def tree_of(source: Source) -> Tree:
    """The tree of a source; of a scenario what it was built from, if that is known. Raises ScenarioError."""
    if not isinstance(source, config.Scenario):
        return loader.tree(source)
    tree = source._tree if isinstance(source, Scenario) else None
    return tree or loader.tree(part_to_data(source, nulls=False))


def _kept(root: Node) -> Node:
    """The tree after a change: what was set counts as given by the scenario from now on, whose strategy is
    chosen.
    """

    def kept(node: Node) -> Origin:
        return node.origin._replace(giver=Giver.CHANGE) if node.is_set else node.origin

    return precedence.with_block(root).with_origins(kept)


def _as_file(scenario: Scenario, absolute: bool) -> dict[str, Any]:
    """What a file has to say; ``absolute``: to be read from any folder."""
    root = tree_of(scenario).root
    blocks = {key: root.value[key].plain() for key in _BLOCKS if key in root.value}
    data = part_to_data(scenario, nulls=False) | blocks
    # Without null for what is None a file is easier to read, but a block may then give a value instead.
    if not _says(data, scenario):
        data = part_to_data(scenario) | blocks
    for component in data["topology"].values() if absolute else ():
        if "file" in (arrivals := component.get("arrivals", {})):
            arrivals["file"] = str(Path(arrivals["file"]).absolute())
    return data


def _says(data: dict[str, Any], scenario: Scenario) -> bool:
    """Whether a file of this content loads to the scenario."""
    try:
        return load(data) == scenario
    except ScenarioError:
        return False


def from_mapping(source: Mapping[str, Any], name: str) -> tuple[Node, Tree | None]:
    """The tree of such a mapping, and that of its scenario, if it is a ``Scenario``."""
    scenario = source.get("scenario")
    if isinstance(scenario, config.Scenario):
        return from_plain({**source, "scenario": {}}, Origin(name)), tree_of(scenario)
    return from_plain(source, Origin(name)), None


def scenario_of(root: Node, directory: Path) -> Tree:
    """The scenario that a file in this directory names by a built-in name or a path, or has as a mapping.
    Raises ScenarioError.
    """
    node = root.get("scenario")
    if node is None:
        message = "is missing; give a built-in name, a path, or a mapping as in a scenario file"
        raise root.refused("scenario", message)
    if node.is_mapping:
        return Tree(node, directory)
    if not isinstance(node.value, str):
        raise node.refused("scenario", f"{node.shown()} is neither a name nor a path nor a mapping")
    path = directory / node.value
    is_path = library.is_path(node.value) or (node.value not in library.names() and os.path.exists(path))
    try:
        return loader.tree(path if is_path else node.value)
    except ScenarioError as error:
        if not any(problem.key == WHOLE for problem in error.problems):
            raise
        messages = [f"{problem.file!r}: {problem.message}" for problem in error.problems]
        raise ScenarioError(node.problem("scenario", each) for each in messages) from None
