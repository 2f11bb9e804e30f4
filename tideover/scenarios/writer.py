"""A scenario as a file would say it: plain data with units, which ``load`` reads back to an equal scenario.

For results that keep their whole configuration, and for jobs that run elsewhere.
"""

from __future__ import annotations

from typing import Any

from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.scenarios.part_builder import REGISTRIES, key_of, unit_of
from tideover.sim.distributions import Constant
from tideover.sim.registry import Part, kind_of
from tideover.sim.units import format_duration


def to_data(scenario: Scenario) -> dict[str, Any]:
    """Mappings, lists, texts and numbers only; every key is there, defaults too, except those that are None.

    >>> from tideover.scenarios.loader import load
    >>> scenario = load("wordcount")
    >>> to_data(scenario)["topology"]["count"]["service"]
    '0.1 ms'
    >>> load(to_data(scenario)) == scenario
    True
    """
    return _fields(scenario)


def _fields(part: Part) -> dict[str, Any]:
    """A part's keys without its kind."""
    data: dict[str, Any] = {}
    for name, info in type(part).model_fields.items():
        value = getattr(part, name)
        if value is not None:
            unit = unit_of(info.annotation, info.metadata)
            data[key_of(name)] = _value(value, unit.format if unit else None)
    return data


def _value(value: Any, text: Any) -> Any:
    """``text`` writes the quantities in it; None: there are none."""
    if isinstance(value, SpoutConfig | BoltConfig):
        return _component(value)
    if isinstance(value, Constant):
        return format_duration(value.value)
    if isinstance(value, Part):
        named = any(isinstance(value, base) for base in REGISTRIES)
        return {"kind": kind_of(value)} | _fields(value) if named else _fields(value)
    if isinstance(value, dict):
        return {key: _value(item, text) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(item, text) for item in value]
    return value if text is None else text(value)


def _component(config: SpoutConfig | BoltConfig) -> dict[str, Any]:
    """The keys of the spout or bolt stand beside those that every component has."""
    role = "spout" if isinstance(config, SpoutConfig) else "bolt"
    part = config.spout if isinstance(config, SpoutConfig) else config.bolt
    common = {key: value for key, value in _fields(config).items() if key != role}
    return {role: kind_of(part)} | _fields(part) | common
