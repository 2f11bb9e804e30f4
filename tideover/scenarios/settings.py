"""Settings: values for dotted keys of a scenario, as ``--set dotted.key=value`` or Python gives them.

Each is read once, and from then on is a key and a node that knows where it came from. List entries go by
their index: ``failures.0.at=80s``. The value is YAML: a scalar, or a list or mapping in flow style.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import Problem, ScenarioError, listed, shorten
from tideover.scenarios.nodes import FROM_SET, Giver, Node, Origin
from tideover.scenarios.part_builder import fields_of
from tideover.scenarios.python_values import from_plain
from tideover.scenarios.yaml_source import parse_value


@dataclass(frozen=True)
class Setting:
    """A value for a dotted key. ``faults``: what is wrong with its text, told when it is used."""

    key: str
    node: Node
    text: str = ""
    """As it was written on the command line."""
    faults: tuple[Problem, ...] = ()

    @property
    def path(self) -> list[str]:
        """The steps of the key."""
        return self.key.split(".")

    def at(self, key: str, node: Node, short: str) -> Setting:
        """What a short parameter makes of it."""
        shown = node.origin.shown
        return replace(self, key=key, node=node.given(short=short, key=key if shown else ""))


Settings = Sequence[str] | Mapping[str, Any] | Sequence[Setting]
"""Texts ``dotted.key=value`` as given to ``--set``, or values by dotted key, as a file would hold them."""


_GIVEN = Origin(FROM_SET, None, Giver.SETTING)


def read_settings(settings: Settings, origin: Origin = _GIVEN) -> list[Setting]:
    """The settings, each parsed; those that were read before stay as they are. ``origin``: of what a mapping
    holds.

    Raises TypeError for what is neither a list of texts nor a mapping, ScenarioError for a value in a mapping
    that no file could hold.
    """
    if isinstance(settings, Mapping):
        return [setting(str(key), from_plain(value, origin, (str(key),))) for key, value in settings.items()]
    if isinstance(settings, str):
        key, _, value = settings.partition("=")
        one, several = [settings], {key: value}
        raise TypeError(f"settings is the text {settings!r}; give a list, {one}, or a mapping, {several}")
    return [one if isinstance(one, Setting) else _parsed(one) for one in settings]


def setting(key: str, value: Any) -> Setting:
    """The setting of a key to a value, or to a node."""
    return Setting(key, value if isinstance(value, Node) else Node(value, _GIVEN))


def _parsed(text: Any) -> Setting:
    if not isinstance(text, str):
        raise TypeError(f"settings has {text!r}; give texts, as in 'run.seed=3', or a mapping")
    key, equals, value = text.partition("=")
    key = key.strip()
    nothing = Node(None, _GIVEN)
    if not equals or not all(key.split(".")):
        said = "must be key=value, as in run.duration=300s or failures.0.at=80s"
        return Setting(key, nothing, text, (nothing.problem(shorten(text, 60) or "''", said),))
    try:
        return Setting(key, parse_value(value, key), text)
    except ScenarioError as error:
        return Setting(key, nothing, text, tuple(error.problems))


def is_for_others(setting: Setting, kind: str, known: set[str]) -> bool:
    """Whether a setting concerns a key of the strategy that others know (``known``), but not this kind."""
    if len(setting.path) < 2 or setting.path[0] != "strategy" or kind not in STRATEGIES:
        return False
    return setting.path[1] in known - {*fields_of(STRATEGIES[kind])}


def partly_used(kinds: Sequence[str], settings: Sequence[Setting]) -> list[str]:
    """Remarks on settings of a strategy that do not concern all of these kinds, or none of them."""
    found = []
    for setting in settings:
        block, name = [*setting.path, "", ""][:2]
        if block == "strategies" and name and name not in kinds:
            found.append(f"{setting.text} has no effect: it is for {name}, and simulated is {listed(kinds)}")
        elif block == "strategy" and name and name != "kind":
            users = [k for k in kinds if k in STRATEGIES and name in fields_of(STRATEGIES[k])]
            others = [k for k in kinds if k not in users]
            if users and others:
                found.append(f"{setting.text} goes to {listed(users)}, not to {listed(others)}")
    return found
