"""What one can move on the page of `tideover explore`: the settings that decide about a recovery.

Called by `answer` and by the page. Another setting of strategies is a table of ``controls.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from tideover.models.config import Scenario
from tideover.models.job.components import SpoutConfig
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.part_builder import fields_of
from tideover.sim.faults import TaskFault
from tideover.sim.registry import kind_of
from tideover.sim.units import S

Value = float | int | str | None
"""A position: a number in the control's unit, a word; None: as the scenario says, where that is no number."""

_TOLD: dict[str, Any] = tomllib.loads(
    files("tideover.reports.explore").joinpath("controls.toml").read_text(encoding="utf-8")
)
_RATES = (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10)
"""In times of the scenario's own."""
_WAITS = (0, 0.5, 1, 2, 5, 10, 20, 30, 60)
_MOMENTS = 120
"""Positions of the failure's moment, at most."""
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 300, 3600)
"""How far apart (s) they may be."""
_FAILURES = {
    "lose_state": ("a task loses its state", "failures.0.kind=lose_state"),
    "crash_task": ("a task crashes", "failures.0.kind=crash_task"),
    "none": ("nothing fails", "failures=[]"),
}


@dataclass(frozen=True)
class Control:
    """A slider, or a choice between words.

    name      in addresses and requests
    values    its positions, in order
    at        the position at first, by strategy ("": for all)
    keys      what it sets, by strategy ("": all); a value is put in the place of ``{}``
    notice    what to look at when it moves
    words     of a choice: what each of its values is called, and the settings that it stands for
    """

    name: str
    label: str
    unit: str
    values: tuple[Value, ...]
    at: Mapping[str, Value]
    keys: Mapping[str, tuple[str, ...]]
    notice: str
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def concerns(self, kind: str) -> bool:
        return kind in self.keys or not any(self.keys)

    def settings(self, kind: str, value: Value) -> list[str]:
        """As ``--set`` takes them; none where the strategy has no such key, or for what the scenario says.

        Raises ValueError for a value that is none of its positions.
        """
        if value not in self.values:
            allowed = ", ".join("as in the file" if one is None else f"{one}" for one in self.values)
            raise ValueError(f"{self.name}: {value!r} is no position; it has {allowed}")
        if value is None or value == self.at.get(kind, self.at.get("")):
            return []
        if isinstance(value, str):
            return [self.words[value][1]]
        said = f"{value:g}" + {"s": " s"}.get(self.unit, self.unit)
        return [key.format(said) for key in self.keys.get(kind, self.keys.get("", ()))]

    def described(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "label": self.label,
            "unit": self.unit,
            "values": list(self.values),
            "at": dict(self.at),
            "strategies": [kind for kind in self.keys if kind] or None,
            "words": {value: words for value, (words, _) in self.words.items()},
            "notice": self.notice,
        }


def controls(scenarios: Mapping[str, Scenario]) -> Iterator[Control]:
    """The controls that a scenario has under these strategies, by kind."""
    first = next(iter(scenarios.values()))
    spouts = {
        name: rate
        for name, part in first.topology.items()
        if isinstance(part, SpoutConfig) and isinstance(rate := dict(part.arrivals).get("rate"), int | float)
    }
    for name, rate in spouts.items():
        values = _with(rate, [float(f"{rate * times:.3g}") for times in _RATES])
        told = _TOLD["rate"] | {"label": _TOLD["rate"]["label"].format(name)}
        key = f"topology.{name}.rate={{}}"
        called = f"rate.{name}" if len(spouts) > 1 else "rate"
        yield Control(called, **told, values=values, at={"": rate}, keys={"": (key,)})
    for key, told in _TOLD["strategies"].items():
        mine = {kind: one for kind, one in scenarios.items() if key in fields_of(STRATEGIES[kind])}
        if not mine:
            continue
        at = {kind: _plain(dict(one.strategy).get(key), told["unit"]) for kind, one in mine.items()}
        known = [value for value in at.values() if isinstance(value, int | float)]
        values = _with(*known, told["values"]) if known else tuple(told["values"])
        if None in at.values():
            values = (None, *values)
        keys = {kind: (f"strategies.{kind}.{key}={{}}",) for kind in mine}
        yield Control(key, **told | {"values": values}, at=at, keys=keys)
    if first.failures:
        yield from _failure(first)


def _failure(scenario: Scenario) -> Iterator[Control]:
    """Moment, kind, detection and restart of a scenario's first failure."""
    fault, run = scenario.failures[0], scenario.run
    if fault.at is not None:
        first = run.warmup / S
        last = min(run.duration, max(2 * fault.at, run.warmup + run.duration // 2)) / S
        step = next((step for step in _STEPS if step >= (last - first) / _MOMENTS), _STEPS[-1])
        grid = [round(step * place, 6) for place in range(int(first / step) + 1, int(last / step) + 1)]
        moments = _with(fault.at / S, grid)
        values, at = ((None, *moments), None) if fault.within else (moments, fault.at / S)
        keys = ("failures.0.at={}", "failures.0.within=0 s")
        yield Control("moment", **_TOLD["moment"], values=values, at={"": at}, keys={"": keys})
    kind = kind_of(fault)
    if isinstance(fault, TaskFault) and kind in _FAILURES:
        values = tuple(_FAILURES)
        yield Control("failure", **_TOLD["failure"], values=values, at={"": kind}, keys={}, words=_FAILURES)
    if scenario.detector is None:
        for key in [key for key in ("detection", "restart") if key in type(fault).lasting(0, 0)]:
            at, given = _plain(dict(fault)[key], "s"), {"": (f"failures.0.{key}={{}}",)}
            yield Control(key, **_TOLD[key], values=_with(at, _WAITS), at={"": at}, keys=given)


def _plain(value: Any, unit: str) -> Any:
    """A field of a part, in the unit of its control."""
    if isinstance(value, int | float) and unit == "s":
        return round(value / S, 9)
    return value if isinstance(value, int | float) else None


def _with(*values: Any) -> tuple[Value, ...]:
    """Positions (the last argument) and the values that the scenario has, in order."""
    *own, positions = values
    return tuple(sorted({float(f"{value:.9g}") for value in (*own, *positions)}))
