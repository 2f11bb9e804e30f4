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

_OF_STRATEGIES: dict[str, dict[str, Any]] = tomllib.loads(
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
_OUTAGE = {
    "detection": ("time to detect it", "Nothing can be mended before it: each strategy waits for it."),
    "restart": ("time to restart", "The backlog grows by the rate times this, and is worked off later."),
}
"""Label and what to notice."""


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
        """Whether it does anything to a strategy."""
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
        """For the page."""
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
        yield Control(
            f"rate.{name}" if len(spouts) > 1 else "rate",
            f"rate of {name}",
            "/s",
            _with(rate, [float(f"{rate * times:.3g}") for times in _RATES]),
            {"": rate},
            {"": (f"topology.{name}.rate={{}}",)},
            "What comes again after a failure grows with the rate; near what the slowest task carries, the "
            "backlog takes much longer to go.",
        )
    for key, about in _OF_STRATEGIES.items():
        mine = {kind: one for kind, one in scenarios.items() if key in fields_of(STRATEGIES[kind])}
        if not mine:
            continue
        at = {kind: _plain(dict(one.strategy).get(key), about["unit"]) for kind, one in mine.items()}
        known = [value for value in at.values() if isinstance(value, int | float)]
        values: tuple[Value, ...] = _with(*known, about["values"]) if known else tuple(about["values"])
        keys = {kind: (f"strategies.{kind}.{key}={{}}",) for kind in mine}
        values = (None, *values) if None in at.values() else values
        yield Control(key, about["label"], about["unit"], values, at, keys, about["notice"])
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
        moments: tuple[Value, ...] = _with(fault.at / S, grid)
        yield Control(
            "moment",
            "moment of the failure",
            "s",
            (None, *moments) if fault.within else moments,
            {"": None if fault.within else fault.at / S},
            {"": ("failures.0.at={}", "failures.0.within=0 s")},
            "Where in its window, between two checkpoints, two rotations, does it strike? Go by single "
            "steps.",
        )
    if isinstance(fault, TaskFault) and kind_of(fault) in _FAILURES:
        yield Control(
            "failure",
            "kind of failure",
            "",
            tuple(_FAILURES),
            {"": kind_of(fault)},
            {},
            "A crash takes the queue with it, and what comes while the task is away; a lost state leaves "
            "these. Without a failure there is no recovery: the costs remain.",
            _FAILURES,
        )
    if scenario.detector is None and type(fault).kills:
        for key, (label, notice) in _OUTAGE.items():
            at, keys = _plain(dict(fault)[key], "s"), {"": (f"failures.0.{key}={{}}",)}
            yield Control(key, label, "s", _with(at, _WAITS), {"": at}, keys, notice)


def _plain(value: Any, unit: str) -> Any:
    """A field of a part, in the unit of its control."""
    if isinstance(value, int | float) and unit == "s":
        return round(value / S, 9)
    return value if isinstance(value, int | float) else None


def _with(*values: Any) -> tuple[Value, ...]:
    """Positions (the last argument) and the values that the scenario has, in order."""
    *own, positions = values
    return tuple(sorted({float(f"{value:.9g}") for value in (*own, *positions)}))
