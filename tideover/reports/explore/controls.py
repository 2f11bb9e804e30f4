"""What one can move on the page of `tideover explore`: the settings that decide about a recovery.

Another setting of strategies is a row of ``_OF_STRATEGIES``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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

_RATES = (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10)
"""In times of the scenario's own."""
_INTERVALS = (0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60)
_TIMEOUTS = (5, 10, 15, 20, 30, 45, 60, 90, 120)
_WAITS = (0, 0.5, 1, 2, 5, 10, 20, 30, 60)
_MOMENTS = 120
"""Positions of the failure's moment, at most."""

_OF_STRATEGIES: Mapping[str, tuple[str, str, Sequence[float], str]] = {
    "checkpoint_interval": (
        "checkpoint interval",
        "s",
        _INTERVALS,
        "The longer it is, the more comes again after a failure; the shorter, the more the store works.",
    ),
    "trigger_interval": (
        "trigger interval",
        "s",
        _INTERVALS,
        "A tuple waits for its batch's trigger; after a failure the batch runs again as a whole.",
    ),
    "batch_interval": (
        "batch interval",
        "s",
        _INTERVALS,
        "Each batch is written down and committed: of short ones that takes long, in long ones tuples wait.",
    ),
    "commit_interval": (
        "commit interval",
        "s",
        _INTERVALS,
        "What came since the last commit is read again; under exactly once, readers wait for the commit.",
    ),
    "message_timeout": (
        "message timeout",
        "s",
        _TIMEOUTS,
        "A lost root waits between one timeout and two (two buckets). Shorter than a window, and roots fail "
        "that only wait for their window's end: see what is counted twice.",
    ),
    "timeout_buckets": (
        "buckets",
        "",
        (2, 3, 4, 5),
        "Each further bucket is one more rotation that a lost root waits for.",
    ),
    "timeout_phase": (
        "phase of the rotation",
        "s",
        tuple(range(30)),
        "A rotation between the window's start and the failure splits the lost roots into two batches.",
    ),
    "k": (
        "k: failures that are masked",
        "",
        (1, 2, 3),
        "The recovery takes no time at any k; look at CPU and network: the cost grows with each replica.",
    ),
}
"""Label, unit, positions and what to notice, by the key of a strategy."""
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

    @property
    def of_strategies(self) -> tuple[str, ...]:
        """Those that it concerns; none: all."""
        return tuple(kind for kind in self.keys if kind)

    def concerns(self, kind: str) -> bool:
        """Whether it does anything to a strategy."""
        return not self.of_strategies or kind in self.of_strategies

    def settings(self, kind: str, value: Value) -> list[str]:
        """As ``--set`` takes them; none where the strategy has no such key, or for what the scenario says.

        Raises ValueError for a value that is none of its positions.
        """
        if value not in self.values:
            allowed = ", ".join("as in the file" if one is None else f"{one}" for one in self.values)
            raise ValueError(f"{self.name}: {value!r} is no position; it has {allowed}")
        keys = self.keys.get(kind, self.keys.get("", ()))
        if value is None or value == self.at.get(kind, self.at.get("")):
            return []
        if isinstance(value, str):
            return [self.words[value][1]]
        said = f"{value:g}" + {"s": " s"}.get(self.unit, self.unit)
        return [key.format(said) for key in keys]

    def described(self) -> dict[str, Any]:
        """For the page."""
        return {
            "name": self.name,
            "label": self.label,
            "unit": self.unit,
            "values": list(self.values),
            "at": dict(self.at),
            "strategies": list(self.of_strategies) or None,
            "words": {value: words for value, (words, _) in self.words.items()},
            "notice": self.notice,
        }


def controls(scenarios: Mapping[str, Scenario]) -> list[Control]:
    """The controls that a scenario has under these strategies, by kind."""
    first = next(iter(scenarios.values()))
    return [*_rates(first), *_strategies(scenarios), *(_failure(first) if first.failures else ())]


def _rates(scenario: Scenario) -> Iterator[Control]:
    spouts = {
        name: rate
        for name, part in scenario.topology.items()
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


def _strategies(scenarios: Mapping[str, Scenario]) -> Iterator[Control]:
    for key, (label, unit, values, notice) in _OF_STRATEGIES.items():
        mine = {kind: one for kind, one in scenarios.items() if key in fields_of(STRATEGIES[kind])}
        if not mine:
            continue
        at = {kind: _plain(dict(one.strategy).get(key), unit) for kind, one in mine.items()}
        known = [value for value in at.values() if isinstance(value, int | float)]
        positions: tuple[Value, ...] = _with(*known, values) if known else tuple(values)
        if None in at.values():
            positions = (None, *positions)
        keys = {kind: (f"strategies.{kind}.{key}={{}}",) for kind in mine}
        yield Control(key, label, unit, positions, at, keys, notice)


def _failure(scenario: Scenario) -> Iterator[Control]:
    """Moment, kind, detection and restart of a scenario's first failure."""
    fault = scenario.failures[0]
    if fault.at is not None:
        yield _moment(scenario)
    if isinstance(fault, TaskFault) and kind_of(fault) in ("lose_state", "crash_task"):
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


def _moment(scenario: Scenario) -> Control:
    fault, run = scenario.failures[0], scenario.run
    assert fault.at is not None
    at, drawn = fault.at / S, fault.within
    first, last = run.warmup / S, min(run.duration, max(2 * fault.at, run.warmup + run.duration // 2)) / S
    least = (last - first) / _MOMENTS
    step = next(n for n in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 300, 3600) if n >= least or n == 3600)
    grid = [round(step * place, 6) for place in range(int(first / step) + 1, int(last / step) + 1)]
    positions: tuple[Value, ...] = _with(at, grid)
    return Control(
        "moment",
        "moment of the failure",
        "s",
        (None, *positions) if drawn else positions,
        {"": None if drawn else at},
        {"": ("failures.0.at={}", "failures.0.within=0 s")},
        "Where in its window, between two checkpoints, two rotations, does it strike? Go by single steps.",
    )


def _plain(value: Any, unit: str) -> Any:
    """A field of a part, in the unit of its control."""
    if isinstance(value, int | float) and unit == "s":
        return round(value / S, 9)
    return value if isinstance(value, int | float) else None


def _with(*values: Any) -> tuple[Value, ...]:
    """Positions (the last argument) and the values that the scenario has, in order."""
    *own, positions = values
    return tuple(sorted({float(f"{value:.9g}") for value in (*own, *positions)}))
