"""A scenario as a file would say it: plain data with units, which ``load`` reads back to an equal scenario.

For results that keep their whole configuration, and for jobs that run elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tideover.models.config import Scenario
from tideover.models.job.arrivals.periodic import Periodic
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
    return _Form(nulls=False, short=False).fields(scenario)


def part_to_data(part: Part, *, nulls: bool = True) -> Any:
    """A part of a scenario, or a whole one, as a file mostly has it: arrivals of a constant rate stand in
    short form, where dotted keys and short parameters look for them.

    ``nulls``: what is None is null, so that nothing else (a block ``strategies``, a profile) gives the part a
    value that it does not have.

    >>> from tideover.models.operators.window import Window
    >>> part_to_data(Window(tuples=5))
    {'length': None, 'tuples': 5, 'gap': None, 'slide': None, ...}
    >>> part_to_data(Window(tuples=5), nulls=False)
    {'tuples': 5, 'trigger': 'tick'}
    """
    return _Form(nulls, short=True).value(part)


@dataclass(frozen=True)
class _Form:
    """How parts are written. ``nulls``: keys that are None are there; ``short``: arrivals in short form."""

    nulls: bool
    short: bool

    def fields(self, part: Part) -> dict[str, Any]:
        """A part's keys without its kind."""
        data: dict[str, Any] = {}
        for name, info in type(part).model_fields.items():
            value = getattr(part, name)
            default = info.get_default(call_default_factory=True)
            if name in part.unsaid and value == default and not self.nulls:
                continue
            if value is not None:
                unit = unit_of(info.annotation, info.metadata)
                data[key_of(name)] = self.value(value, unit.format if unit else None)
            elif self.nulls:
                data[key_of(name)] = None
        return data

    def value(self, value: Any, text: Any = None) -> Any:
        """``text`` writes the quantities in it; None: there are none."""
        if isinstance(value, SpoutConfig | BoltConfig):
            return self.component(value)
        if isinstance(value, Constant):
            return format_duration(value.value)
        if isinstance(value, Part):
            named = any(isinstance(value, base) for base in REGISTRIES)
            return {"kind": kind_of(value)} | self.fields(value) if named else self.fields(value)
        if isinstance(value, dict):
            return {key: self.value(item, text) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, text) for item in value]
        return value if text is None else text(value)

    def component(self, config: SpoutConfig | BoltConfig) -> dict[str, Any]:
        """The keys of the spout or bolt stand beside those that every component has."""
        role = "spout" if isinstance(config, SpoutConfig) else "bolt"
        part = config.spout if isinstance(config, SpoutConfig) else config.bolt
        own = self.fields(part)
        common = {key: value for key, value in self.fields(config).items() if key != role}
        if self.short and isinstance(config, SpoutConfig) and isinstance(config.arrivals, Periodic):
            arrivals = self.fields(config.arrivals)
            if not own.keys() & arrivals.keys():
                del common["arrivals"]
                common = arrivals | common
        return {role: kind_of(part)} | own | common
