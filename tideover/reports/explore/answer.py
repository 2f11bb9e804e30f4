"""One run for the page of `tideover explore`: what the page may ask and move, and what it is told.

Called by the processes of `server`. All is plain data, as JSON has it; times are seconds. What the page shows
more of a run is a key more of ``answer``; another setting of strategies that one can move, a table of
``controls.toml``.
"""

from __future__ import annotations

import math
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from tideover.models.accounts.trace import Stretch
from tideover.models.config import Scenario
from tideover.models.effort import effort
from tideover.models.job.components import SpoutConfig
from tideover.models.job.topology import TopologyError
from tideover.models.results import Result
from tideover.models.schema import block
from tideover.models.simulation import Replication, simulate, watch
from tideover.models.strategies.base import STRATEGIES
from tideover.reports import tables
from tideover.reports.conclusions import outcome, run_sentence
from tideover.reports.figures import style
from tideover.reports.figures.cluster import MOST_HOSTS
from tideover.reports.figures.space_time import MOST_TUPLES, choose, layout, space_time
from tideover.reports.figures.timeline import Roots
from tideover.reports.formatting import strategy_name
from tideover.scenarios import library
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import Tree, load_for_strategies, tree
from tideover.scenarios.part_builder import fields_of, to_data
from tideover.scenarios.precedence import read_settings
from tideover.scenarios.runs import Every, every_strategy
from tideover.sim.faults import TaskFault
from tideover.sim.registry import kind_of
from tideover.sim.units import S

# What one can move: the settings that decide about a recovery.

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


# What the page may ask: to describe a scenario, to run it under a strategy, to draw its diagram. A request
# names a scenario that is built in, or the one that was given on the command line, by its name: never a path.
# It moves controls, and nothing else.

Answer = dict[str, Any]
ASKED = ("describe", "answer", "picture")
_REQUEST: dict[str, Any] = {
    "scenario": str | None,
    "strategy": str,
    "moved": dict,
    "at_s": int | float | None,
}
FIRST = "wordcount"
"""What is explored where nothing is named."""


class Answers:
    """Answers requests in this process. ``source``: a file that may be asked for, or a built-in name."""

    def __init__(self, source: str | None = None) -> None:
        self._source = source
        self._worlds: dict[str, tuple[Any, World]] = {}

    def __call__(self, request: Mapping[str, Any]) -> Answer:
        """``{"refused": …}`` for what cannot be answered, ``{"too_much": …}`` for what does not fit."""
        what = request.get("what")
        if what not in ASKED:
            return {"refused": f"what: {what!r} is nothing that one asks; {', '.join(ASKED)} are"}
        for key, kind in _REQUEST.items():
            needed = what != "describe" and key in ("strategy", "moved")
            if (key in request or needed) and not isinstance(request.get(key), kind):
                return {"refused": f"{key}: {request.get(key)!r} is not what a request has there"}
        try:
            return self._answered(request)
        except ScenarioError as error:
            return {"refused": "; ".join(str(problem) for problem in error.problems[:3])}
        except (ValueError, OSError, TopologyError) as error:
            return {"refused": str(error)}
        except MemoryError:
            return {"too_much": "the run needs more memory than it may have: choose a lower rate"}

    def check(self) -> None:
        """Raises ScenarioError if the scenario cannot be explored."""
        self._world(shown(self._source or FIRST))[0].described()

    def warm(self) -> None:
        """Load what the first answer would wait for."""
        world = World.of(FIRST)
        answer(world, next(iter(world.scenarios)), {})

    def _answered(self, request: Mapping[str, Any]) -> Answer:
        name = request.get("scenario") or shown(self._source or FIRST)
        world, version = self._world(name)
        about = {"scenario": name, "version": version}
        if request["what"] == "describe":
            mine = [] if self._source in (None, *library.names()) else [shown(str(self._source))]
            return world.described() | about | {"scenarios": [*mine, *library.names()]}
        run = world, request["strategy"], request["moved"]
        return (pictured(*run, request.get("at_s")) if request["what"] == "picture" else answer(*run)) | about

    def _world(self, name: str) -> tuple[World, str]:
        """The scenario of a name, read again if its file has changed; and what tells its versions apart."""
        mine = self._source is not None and name == shown(self._source)
        if not mine and name not in library.names():
            raise ValueError(f"scenario: there is no {name!r} here; there are {', '.join(library.names())}")
        source = str(self._source) if mine else name
        stamp: Any = None
        if library.is_path(source):
            found = Path(source).stat()
            stamp = (found.st_mtime_ns, found.st_size)
        if name not in self._worlds or self._worlds[name][0] != stamp:
            self._worlds[name] = (stamp, World.of(source))
        return self._worlds[name][1], str(stamp)


def shown(source: str) -> str:
    """What a source is called in an address: of a path the file's name alone."""
    return Path(source).name if library.is_path(source) else source


# One run for the page: what ``tideover run`` says of it, and what its pictures are drawn from.

BESIDE = ("source_replay", "rsm")
"""Strategies that a scenario's own is shown beside at first, where it goes with them."""
ONE_RUN = "run.replications=1"
MOST_TRACED = 200_000
"""Messages of a run of which every root's times are kept."""
MOST_ROOTS = 400
"""Roots that are drawn; of more every n-th."""
INSTANTS = 300
"""At which the buckets are looked at."""
BEFORE = 5
"""So many parts has a diagram, of which one is before the moment that it is about."""


@dataclass(frozen=True)
class World:
    """A scenario that can be explored. ``source``: a built-in name, or a path."""

    source: str
    tree: Tree

    @staticmethod
    def of(source: str) -> World:
        """Raises ScenarioError."""
        return World(source, tree(source))

    @cached_property
    def every(self) -> Every:
        return every_strategy(self.tree)

    @cached_property
    def scenarios(self) -> dict[str, Scenario]:
        return load_for_strategies(self.tree, self.every.kinds, self.every.settings)

    @cached_property
    def controls(self) -> dict[str, Control]:
        return {control.name: control for control in controls(self.scenarios)}

    def described(self) -> dict[str, Any]:
        """What the page has to know before it asks. The two strategies that are shown at first are its own,
        and one that it names or that many know.
        """
        root, kinds = self.tree.root, self.every.kinds
        own, named = root.get("strategy", "kind") or root.get("strategy"), root.get("strategies")
        beside = [kind for kind, _ in named.items()] if named is not None and named.is_mapping else kinds
        order = [*([] if own is None else [own.value]), *(kind for kind in BESIDE if kind in beside), *beside]
        first, second = [kind for kind in dict.fromkeys([*order, *kinds]) if kind in kinds][:2]
        one = self.scenarios[first]
        return {
            "scenario": self.source,
            "title": one.name,
            "description": one.description,
            "strategies": [{"kind": kind, "name": strategy_name(kind)} for kind in kinds],
            "first": first,
            "second": second,
            "controls": [control.described() for control in self.controls.values()],
        }

    def control(self, name: str) -> Control:
        """Raises ValueError if there is none of this name."""
        if name not in self.controls:
            raise ValueError(f"{name}: there is no such control; there are {', '.join(self.controls)}")
        return self.controls[name]

    def settings(self, kind: str, moved: Mapping[str, Value]) -> list[str]:
        """What the controls stand for, as ``--set`` takes it. Raises ValueError."""
        if kind not in self.every.kinds:
            raise ValueError(f"strategy: {kind!r} does not go with it; {', '.join(self.every.kinds)} do")
        given = [one.text for one in self.every.settings if one.key.startswith(f"strategies.{kind}.")]
        controls = [(self.control(name), value) for name, value in moved.items()]
        found = [each for control, value in controls for each in control.settings(kind, value)]
        if "failures=[]" in found:
            found = [each for each in found if not each.startswith("failures.")]
        return [*given, *found, ONE_RUN]


def answer(world: World, kind: str, moved: Mapping[str, Value]) -> Answer:
    """What becomes of a scenario under a strategy, with some controls moved: one replication.

    Raises ValueError for a strategy or a control that there is not, ScenarioError for a combination that is
    no scenario.
    """
    settings = world.settings(kind, moved)
    scenario = load_for_strategies(world.tree, [kind], read_settings(settings))[kind]
    one = simulate(scenario, trace=_messages(scenario) < MOST_TRACED and "acker" in scenario.strategy.roles)
    result = Result(scenario, [one], to_data(scenario))
    (row,) = tables.rows([result.to_dict()])
    failure, stages = None, list[dict[str, Any]]()
    if one.recoveries:
        first = min(one.recoveries, key=lambda row: row["failed_at_s"])
        at, took = first["failed_at_s"], first["time_to_recover_s"]
        failure = {
            "at_s": at,
            "ready_s": first["ready_at_s"],
            "recovered_s": None if took is None else at + took,
            "state_recovery_s": first["state_recovery_s"],
            "ended": first["ended"],
        }
        for stage in block("recoveries", "stages_s", list(first)):  # they add up to the time to recover
            if length := first[stage.name]:
                colour = style.STAGES.get(stage.key, style.GREY)
                stages.append({"key": stage.key, "label": stage.label, "s": length, "colour": colour})
    series = {
        "throughput": "throughput_per_s",
        "backlog": "backlog",
        "without": "backlog_without_failures",
        "latency_ms": "end_to_end_mean_ms",
    }
    said = run_sentence(outcome(kind, result.recoveries, result.runs))
    given = [f"--set {shlex.quote(each)}" for each in (f"strategy.kind={kind}", *settings)]
    return {
        "strategy": kind,
        "name": strategy_name(kind),
        "colour": style.colours([kind])[kind],
        "headline": said.replace(" (1 replication, so no interval)", ""),
        "numbers": [
            {"label": measure.what, "value": value, "text": text, "bad": bool(measure.bad and value)}
            for measure, value, text in zip(tables.MEASURES, row.values, row.cells, strict=True)
        ],
        "failure": failure,
        "stages": stages,
        "series": {"t_s": [second["second"] for second in one.timeline]}
        | {key: [_number(second[name]) for second in one.timeline] for key, name in series.items()},
        "hosts": _hosts(result, one),
        "roots": _roots(one),
        "warnings": result.warnings,
        "equals": " ".join(["tideover run", shlex.quote(world.source), *given]),
    }


def pictured(world: World, kind: str, moved: Mapping[str, Value], at_s: float | None = None) -> Answer:
    """The space-time diagram of the same run around a moment (None: the first failure's), for as long as it
    is legible; and where in the picture time begins and ends (px).

    Raises like ``answer``.
    """
    scenario = load_for_strategies(world.tree, [kind], read_settings(world.settings(kind, moved)))[kind]
    run = scenario.run
    length = min(run.duration, round(run.duration * MOST_TUPLES / max(1.0, _messages(scenario))))
    if at_s is None:
        at_s = min((fault.at for fault in scenario.failures if fault.at is not None), default=run.warmup) / S
    begin = max(0, min(round(at_s * S) - length // BEFORE, run.duration - length))
    watched = watch(scenario, 0, Stretch(begin, begin + length))
    place = layout(watched, choose(watched).lanes)
    return {
        "svg": space_time(watched, inline=True),
        "left": place.left,
        "right": place.right,
        "from_s": begin / S,
        "to_s": (begin + length) / S,
    }


def _messages(scenario: Scenario) -> float:
    """About how many tuples its tasks work on."""
    work = effort(scenario)
    return work.flows + work.events


def _number(value: Any) -> Any:
    return None if value is None or not math.isfinite(value) else round(value, 4)


def _hosts(result: Result, one: Replication) -> list[dict[str, Any]]:
    """Each host with what its tasks share and its tasks, and which part of the time each was busy."""
    boxes: dict[int, list[dict[str, Any]]] = {}
    where = {lane.name: lane.host for lane in watch(result.scenario, one.number, Stretch(0, 0)).lanes}
    shared = [(load.host, load.name, load.busy) for load in result.loads]
    alone = [(where.get(task["task"]), task["task"], task["utilisation"]) for task in one.tasks]
    for host, name, busy in shared or alone:
        if host is not None:
            boxes.setdefault(host, []).append({"name": name, "busy": round(busy, 4)})
    most = sorted(boxes, key=lambda host: -max(line["busy"] for line in boxes[host]))[:MOST_HOSTS]
    return [{"host": host, "lines": boxes[host]} for host in sorted(most)]


def _roots(one: Replication) -> dict[str, Any] | None:
    """What became of each root that timed out, and how many roots were in which bucket; None: none did."""
    if one.trace is None:
        return None
    these = Roots(one.trace, [row["failed_at_s"] for row in one.recoveries])
    if not these.number.size:
        return None
    shown = np.unique(np.linspace(0, len(these.number) - 1, MOST_ROOTS).astype(int))
    instants = these.instants(0.08, INSTANTS)
    inside = these.in_buckets(instants)
    given_up = {at: place for place, at in enumerate(sorted(set(these.given_up.tolist())))}
    return {
        "count": len(these.number),
        "rows": [
            {
                "root": int(these.number[row]),
                "emitted": float(these.emitted[row]),
                "lost": float(these.lost[row]),
                "given_up": float(these.given_up[row]),
                "again": _number(float(these.again[row])),
                "batch": given_up[float(these.given_up[row])],
            }
            for row in shown
        ],
        "batches": [{"given_up": at, "roots": int((these.given_up == at).sum())} for at in sorted(given_up)],
        "rotations": sorted({float(at) for each in these.rotations.values() for at in each}),
        "t_s": [round(float(at), 4) for at in instants],
        "buckets": [{"waits": waits.tolist(), "lost": gone.tolist()} for waits, gone in inside],
    }
