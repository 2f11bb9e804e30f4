"""A plan's file: what is asked, of what, at which prices; and the candidates it may choose among.

`read` is called by the command and by `tideover.plan`; the search takes candidates from the `Space`. A key of
plans' files is added to `TOP` and `_Reader`, what is for sale to `Machine` and `Prices`.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from tideover.models import config
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Cores, Nic, Slots
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import loader, plugins, precedence, saturation
from tideover.scenarios.errors import ScenarioError, is_misspelt, listed, suggest
from tideover.scenarios.loader import Scenario, Tree
from tideover.scenarios.objectives.objective import LEVEL, Objective, parse_share
from tideover.scenarios.part_builder import fields_of, from_plain
from tideover.scenarios.precedence import Setting, Settings, read_settings
from tideover.scenarios.sweeps import factors
from tideover.scenarios.sweeps.factors import Factor, FactorReader
from tideover.scenarios.yaml_source import Giver, Node, Origin
from tideover.sim.registry import Part, kind_of
from tideover.sim.units import MS, Duration, S, parse_rate

HOURS_PER_MONTH = 730.0

Price = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class Machine(Part):
    """A sort of machine that can be had, as `hosts.machines` of a scenario has it, and its price."""

    per_hour: Annotated[Price | None, Field(description="price of one for an hour, in any currency")] = None
    per_month: Annotated[Price | None, Field(description="or for a month of 730 hours")] = None
    cores: Cores = None
    nic: Nic = None
    slots: Slots = None

    @model_validator(mode="after")
    def _one_price(self) -> Machine:
        if (self.per_hour is None) == (self.per_month is None):
            raise ValueError("give its price either per_hour or per_month")
        return self

    @property
    def price(self) -> float:
        """Of an hour."""
        return self.per_hour if self.per_hour is not None else (self.per_month or 0.0) / HOURS_PER_MONTH


class Prices(Part):
    """What is paid besides machines, in the same currency."""

    store_per_gb: Annotated[
        Price, Field(description="of 10^9 bytes that are written to stores or read from them")
    ] = 0.0
    network_per_gb: Annotated[Price, Field(description="of 10^9 bytes that are sent between hosts")] = 0.0
    downtime_per_hour: Annotated[
        Price, Field(description="what an hour of recovery from failures costs the business")
    ] = 0.0


class Breaks(Part):
    """How often failures of one kind come, at random."""

    every: Annotated[Duration, Field(ge=MS, description="mean time between two of them")]
    of: Annotated[
        Literal["system", "host"],
        Field(description="which has one so often: the whole system, or each of its hosts"),
    ] = "system"

    def per_s(self, scenario: config.Scenario) -> float:
        """Rate in a scenario, per second; of hosts, if it does not say how many, one for each task."""
        hosts = scenario.hosts
        if self.of == "system":
            many = 1
        elif hosts is None:
            many = sum(component.parallelism for component in scenario.topology.values())
        else:
            many = hosts.count if isinstance(hosts, Hosts) else hosts
        return many * S / self.every


class Effort(Part):
    """How many replications each candidate may take, and how sure a plan is to be."""

    least: Annotated[int, Field(ge=2, le=10_000, description="replications that every candidate gets")] = 5
    most: Annotated[int, Field(ge=2, le=100_000, description="replications after which it is settled")] = 40

    @model_validator(mode="after")
    def _order(self) -> Effort:
        if self.least > self.most:
            raise ValueError(f"least: {self.least} replications are more than most: {self.most}")
        return self


@dataclass(frozen=True)
class Wanted:
    """What every candidate is held against. ``level``: of the intervals that are shown."""

    objectives: tuple[Objective, ...]
    prices: Prices
    failures: Mapping[str, Breaks]
    level: float = 0.95


TYPE, COUNT = "hosts.type", "hosts.count"
"""Keys of a plan's choices that a scenario has not: which of the offered machines, and how many of them."""
KINDS = ("strategy.kind", "strategy")
MOST = 100_000

Index = tuple[int, ...]
"""A candidate: for each choice the number of its value; 0 where the choice has no effect."""


@dataclass(frozen=True)
class Choice:
    """A key, and the values that it may take; ``ordered``: they are numbers that rise or fall."""

    key: str
    levels: tuple[Node, ...]

    @cached_property
    def unit(self) -> str:
        """The unit in which tables hold its values (`tideover.scenarios.sweeps.factors`)."""
        return factors.unit_of(node.plain() for node in self.levels)

    @cached_property
    def ordered(self) -> bool:
        """Whether its values are numbers in order, so that between two of them is what lies between."""
        numbers = [factors.as_number(node.plain(), self.unit) for node in self.levels]
        if any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers):
            return False
        return numbers in (sorted(numbers), sorted(numbers, reverse=True))


@dataclass(frozen=True)
class Space(plugins.Carrier):
    """All candidates of a plan. It can be pickled, and whoever has it makes the same scenarios.

    ``base``: what all candidates have in common; ``directory``: where that looks for files; ``machines``:
    what can be had, by name; ``rate``: roots/s of all spouts together (None: the scenario's own).
    """

    base: Node
    directory: Path
    choices: tuple[Choice, ...]
    machines: Mapping[str, Machine]
    rate: float | None = None

    def __iter__(self) -> Iterator[Index]:
        """All candidates, in the order of the file: the last choice changes fastest."""
        every = itertools.product(*(range(len(choice.levels)) for choice in self.choices))
        return iter(dict.fromkeys(self.canonical(index) for index in every))

    @property
    def most(self) -> int:
        """Number of combinations, those that are the same candidate among them."""
        return math.prod(len(choice.levels) for choice in self.choices)

    @cached_property
    def total(self) -> int:
        return sum(1 for _ in self)

    def canonical(self, index: Index) -> Index:
        """The same candidate, choices without effect (of strategies not chosen) at their first value."""
        kind = self._kind(index)
        return tuple(at if concerns(c.key, kind) else 0 for c, at in zip(self.choices, index, strict=True))

    def values(self, index: Index) -> dict[str, Any]:
        """The values of a candidate by key, as they were written; without those that have no effect."""
        kind = self._kind(index)
        return {
            choice.key: choice.levels[at].plain()
            for choice, at in zip(self.choices, index, strict=True)
            if concerns(choice.key, kind)
        }

    def at(self, values: Mapping[str, Any], load: float = 1.0) -> Scenario:
        """The scenario of these values, rates times ``load``; raises ScenarioError."""
        nodes = {key: self._node(key, value) for key, value in values.items()}
        settings = [
            Setting(key, node.given(giver=Giver.POINT, key=key, shown=f"choices.{key}"))
            for key, node in [*nodes.items(), *self._hosts(nodes)]
            if key not in (TYPE, COUNT)
        ]
        root = precedence.settle(self.base, settings)
        found = Scenario.of(loader.build_one(root, self.directory).scenario)
        factor = load if self.rate is None else load * self.rate / saturation.offered(found)
        return found if factor == 1 else Scenario.of(saturation.at_rate(found, factor))

    def check(self) -> None:
        """Raises ScenarioError for a choice that has an effect on no candidate."""
        for choice in self.choices:
            for level in choice.levels if choice.key in KINDS else ():
                if isinstance(level.value, str) and level.value not in STRATEGIES:
                    said = f"no strategy is called {level.shown()}"
                    hint = suggest(level.value, sorted(STRATEGIES))
                    raise level.refused(f"choices.{choice.key}", f"{said}; {hint}")
        every = {self._kind(index) for index in self._kinds()}
        kinds = [kind for kind in every if kind is not None and kind in STRATEGIES]
        known = {key for kind in kinds for key in fields_of(STRATEGIES[kind])}
        for choice in self.choices:
            if not any(concerns(choice.key, kind) for kind in every):
                step = choice.key.split(".")[-1]
                said = f"no strategy that can be chosen has this key; {suggest(step, sorted(known))}"
                raise choice.levels[0].refused(f"choices.{choice.key}", said)

    def each_value(self) -> Iterator[Index]:
        """A candidate for each value of each choice, with others at their first value that lets it count."""
        kinds = self._kinds()
        for number, choice in enumerate(self.choices):
            for at in range(len(choice.levels)):
                for first in kinds:
                    index = tuple(at if i == number else other for i, other in enumerate(first))
                    if self.canonical(index) == index:
                        yield index
                        break

    def _kinds(self) -> list[Index]:
        many = max(len(choice.levels) for choice in self.choices)
        found: dict[str | None, Index] = {}
        for at in range(many):
            index = tuple(min(at, len(c.levels) - 1) if c.key in KINDS else 0 for c in self.choices)
            found.setdefault(self._kind(index), index)
        return list(found.values())

    def _kind(self, index: Index) -> str | None:
        for choice, at in zip(self.choices, index, strict=True):
            if choice.key in KINDS:
                value = choice.levels[at].plain()
                return str(value.get("kind") if isinstance(value, dict) else value)
        return precedence.strategy_kind(precedence.with_block(self.base))

    def _node(self, key: str, value: Any) -> Node:
        """The value where the file has it; one that it has not came from elsewhere."""
        text = json.dumps(value)
        levels = (node for choice in self.choices if choice.key == key for node in choice.levels)
        there = next((node for node in levels if json.dumps(node.plain()) == text), None)
        return there or from_plain(value, Origin("candidate"), (key,))

    def _hosts(self, nodes: Mapping[str, Node]) -> Iterator[tuple[str, Node]]:
        """The machines of a candidate, as a scenario has them."""
        kind, count = nodes.get(TYPE), nodes.get(COUNT)
        given = self.base.get("hosts")
        if kind is None and (count is None and (given is None or given.is_mapping)):
            return
        at = kind or count or given
        assert at is not None
        if kind is None and len(self.machines) != 1:
            named = ", ".join(self.machines) or "none"
            said = f"of which machines? choose {TYPE}, or offer one sort in machines: (offered: {named})"
            raise at.refused(f"choices.{COUNT}", said)
        name = next(iter(self.machines)) if kind is None else kind.value
        if not isinstance(name, str) or name not in self.machines:
            said = f"there is no machine {at.shown()}; {suggest(str(name), self.machines)}"
            raise at.refused(f"choices.{TYPE}", said)
        if count is None and given is not None and isinstance(given.value, int):
            count = given
        if count is None:
            said = f"how many of them? choose {COUNT}, or give hosts: a number in the scenario"
            raise at.refused(TYPE, said)
        offer = self.machines[name]
        nic = None if offer.nic is None else f"{offer.nic} B/s"
        written = {"cores": offer.cores, "nic": nic, "slots": offer.slots, "price": offer.price}
        machine = {key: at.like(value) for key, value in written.items() if value is not None}
        machines = at.like({name: at.like(machine | {"count": count})})
        into = given is not None and given.is_mapping
        yield ("hosts.machines", machines) if into else ("hosts", at.like({"machines": machines}))


def concerns(key: str, kind: str | None) -> bool:
    """Whether a key has an effect where the strategy is of this kind."""
    block, _, rest = key.partition(".")
    if block == "strategies":
        return rest.partition(".")[0] == kind
    if block != "strategy" or rest in ("", "kind") or kind is None or kind not in STRATEGIES:
        return True
    return rest.partition(".")[0] in fields_of(STRATEGIES[kind])


# A plan's file: what is asked, of what, at which prices, and what may be chosen.
#
# ```yaml
# scenario: wordcount                # a built-in name, a path from this file's folder, or a mapping
# set: {run.duration: 180 s}         # keys for all candidates
# load: 50000/s                     # roots/s of all spouts together, or keys: {topology.sentences.rate: 10/s}
# failures: {crash_host: {every: 200 d, of: host}, lose_state: 30 d}
# machines: {small: {per_hour: 0.2, cores: 4, nic: 1 Gbit/s}}
# prices: {store_per_gb: 0.02, network_per_gb: 0.01, downtime_per_hour: 500}
# objectives: [recovery_p95 <= 20 s, lost = 0]
# choices:
#   strategy.kind: [rsm, active_replication]
#   strategies.rsm.checkpoint_interval: {from: 5 s, to: 300 s, steps: 9, scale: log}
#   hosts.type: [small]
#   hosts.count: [4, 8]
# search: {replications: {least: 5, most: 40}, confidence: 95 %, seed: 1}
# ```

TOP = {
    "name": "a short title; default: the scenario's",
    "description": "what the plan is for",
    "scenario": "what is planned: a built-in name, a path from this file's folder, or a mapping as in a "
    "scenario file; has to be given",
    "set": "values by dotted key of the scenario, for all candidates: `run.duration: 180 s`",
    "load": "roots per second of all spouts together, as in `50000/s`; or values by dotted "
    "key of the scenario",
    "failures": "how often failures come, by their kind: `lose_state: 30 d`, or "
    "`crash_host: {every: 200 d, of: host}`",
    "machines": "which machines can be had, by name, and at which price",
    "prices": "what is paid besides machines, in the same currency",
    "objectives": "a list of what has to hold, as in `recovery_p95 <= 20 s`; has to be given",
    "choices": "what may be chosen: lists of values, or ranges, by dotted key of the scenario; `hosts.type` "
    "and `hosts.count` choose among `machines`; has to be given",
    "search": "how many replications a candidate may take (`replications: {least: 5, most: 40}`), how sure "
    "the plan is to be (`confidence: 95 %`), and the `seed`",
}

MOST_TRIED = 1000
"""So many candidates are tried, until one can be built, before a plan is refused."""

P = TypeVar("P", bound=Part)
Source = str | Path | Mapping[str, Any]


@dataclass(frozen=True)
class Spec:
    """What a plan's file says."""

    name: str
    space: Space
    wanted: Wanted
    effort: Effort
    remarks: tuple[str, ...] = ()
    """What an expert would say of the objectives before any run."""


def read(source: Source, settings: Settings = ()) -> Spec:
    """The plan of a file, or of a mapping as a file would hold it, of which the scenario may also be a
    ``Scenario``. ``settings``: texts ``key=value`` as given to ``--set``, or a mapping, for keys of the
    scenario. Raises ScenarioError.
    """
    meant = "a plan is a mapping with scenario, objectives and choices"
    root, directory, base = loader.around(source, "plan", "give the YAML file of a plan", meant, TOP)
    return _Reader(root, directory).spec(base, settings)


class _Reader(FactorReader):
    """A plan's file that is being read."""

    def __init__(self, root: Node, directory: Path) -> None:
        super().__init__(directory)
        self._root, self._directory = root, directory

    def spec(self, base: Tree | None, settings: Settings) -> Spec:
        root = self._root
        self._unknown = self.unknown_keys(root, "", TOP)
        self.texts(root)
        level = self._level()
        objectives = self._objectives(level)
        node = root.get("prices")
        prices = None if node is None or node.value is None else self.part(Prices, node, "prices")
        failures = self._parts(Breaks, "failures", "every")
        self.entries(root, "search", ("replications", "confidence", "seed"))
        node = root.get("search", "replications")
        effort = (self.part(Effort, node, "search.replications") if node is not None else None) or Effort()
        machines = self._parts(Machine, "machines")
        choices = self._choices()
        tree, directory, rate = self._base(base, settings)
        space = Space(tree, directory, choices, machines, rate)
        first = self._check(space, failures)
        remarks = [remark for one in objectives for remark in one.remarks(first.run)]
        remarks += [
            f"{one.text}: {one.needed} replications at least are needed before an interval can vouch for it; "
            f"search.replications.most is {effort.most}"
            for one in objectives
            if one.needed > effort.most
        ]
        name = self.name(root, tree, "plan")
        wanted = Wanted(objectives, prices or Prices(), failures, level)
        return Spec(name, space, wanted, effort, tuple(remarks))

    def _missing(self, node: Node | None, key: str, said: str) -> None:
        """A key that has to be given; nothing is said of it if it was misspelt, which is told already."""
        if node is not None or not is_misspelt(key, self._unknown):
            self.refuse(node or self._root, key, said)

    def _parts(self, cls: type[P], key: str, short: str = "") -> dict[str, P]:
        """Parts by name; of one that is no mapping the key ``short`` is meant."""
        found = {}
        for name, node in self.entries(self._root, key).items():
            whole = node if node.is_mapping or not short else node.like({short: node})
            part = self.part(cls, whole, f"{key}.{name}")
            if part is not None:
                found[name] = part
        return found

    def _level(self) -> float:
        node = self._root.get("search", "confidence")
        if node is None or node.value is None:
            return LEVEL
        try:
            level = parse_share(str(node.value))
            if not 0.5 < level < 1:
                raise ValueError(f"must be more than 50 % and less than 100 %, not {node.value}")
        except ValueError as error:
            self.refuse(node, "search.confidence", str(error))
            return LEVEL
        return level

    def _objectives(self, level: float) -> tuple[Objective, ...]:
        node = self._root.get("objectives")
        if node is None or not isinstance(node.value, list) or not node.value:
            self._missing(node, "objectives", "give a list, as in [recovery_p95 <= 20 s, lost = 0]")
            return ()
        found = []
        for number, item in enumerate(node.value):
            if not isinstance(item.value, str):
                said = f"must be a text, as in recovery_p95 <= 20 s, not {item.shown()}"
                self.refuse(item, f"objectives.{number}", said)
                continue
            try:
                found.append(Objective.parse(item.value, level, at=item, key=f"objectives.{number}"))
            except ScenarioError as error:
                self.problems += error.problems
        for one in found:
            if (table := one.metric.table) in ("timeline", "tasks"):
                self.refuse(node, "objectives", f"{one.text}: a plan keeps no {table}; ask it of runs")
        return tuple(found)

    def _choices(self) -> tuple[Choice, ...]:
        node = self._root.get("choices")
        if node is None or not node.is_mapping or not node.value:
            self._missing(node, "choices", "give lists of values by key, as in {strategy.kind: [rsm]}")
            return ()
        choices = []
        for key, child in node.items():
            shown = f"choices.{key}"
            levels = self.values(child, shown) if child.is_mapping else self.listed(Factor(key, shown), child)
            choices.append(Choice(key, tuple(levels)))
        return tuple(choices)

    def _base(self, base: Tree | None, settings: Settings) -> tuple[Node, Path, float | None]:
        """What all candidates have in common, where it looks for files, and the rate that is asked."""
        if self.problems:
            raise ScenarioError(self.problems)
        tree, directory = base or loader.scenario_of(self._root, self._directory)
        fixed = [self.given(key, node, f"set.{key}") for key, node in self.entries(self._root, "set").items()]
        if (seed := self._root.get("search", "seed")) is not None:
            fixed.append(self.given("run.seed", seed, "search.seed"))
        load, rate = self._root.get("load"), None
        if load is not None and load.is_mapping:
            fixed += [self.given(key, node, f"load.{key}") for key, node in load.items()]
        elif load is not None and load.value is not None:
            try:
                rate = parse_rate(load.value if isinstance(load.value, str) else str(load.value))
            except ValueError as error:
                self.refuse(load, "load", f"{error}; or a mapping of keys")
        if self.problems:
            raise ScenarioError(self.problems)
        tree = precedence.settle(tree, fixed)
        return precedence.settle(tree, read_settings(settings)), directory, rate

    def _check(self, space: Space, failures: Mapping[str, Breaks]) -> Scenario:
        """What can be told before any candidate is built but the first that can be, which is returned."""
        if space.most > MOST:
            said = f"are {space.most:,} combinations; at most {MOST:,} are allowed"
            raise self._root.value["choices"].refused("choices", said)
        space.check()
        for index in space.each_value():
            try:
                space.at(space.values(index))
            except ScenarioError as error:
                # wrong by itself, whatever goes with it; what only has no place here may be fine elsewhere
                if wrong := [problem for problem in error.problems if problem.key.startswith("choices.")]:
                    raise ScenarioError(wrong) from None
        first, unbuilt = None, None
        for index in itertools.islice(space, MOST_TRIED):
            try:
                first = space.at(space.values(index))
                break
            except ScenarioError as error:
                unbuilt = unbuilt or error
        if first is None:
            assert unbuilt is not None
            raise unbuilt
        known = list(dict.fromkeys(kind_of(failure) for failure in first.failures))
        for kind in failures:
            if kind not in known:
                node = self._root.value["failures"].value[kind]
                has = f"it has {listed(known) or 'none'}"
                said = f"the scenario has no failure of this kind, so no recovery from one is seen; {has}"
                raise node.refused(f"failures.{kind}", said)
        return first
