"""What a plan may choose among: values of some keys of a scenario, each combination a candidate."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import loader, plugins, precedence, probe, swept
from tideover.scenarios.errors import suggest
from tideover.scenarios.nodes import Giver, Node, Origin
from tideover.scenarios.part_builder import fields_of
from tideover.scenarios.planning.offers import Machine
from tideover.scenarios.python_values import from_plain
from tideover.scenarios.scenario import Scenario
from tideover.scenarios.settings import Setting

TYPE, COUNT = "hosts.type", "hosts.count"
"""Keys of a plan's choices that a scenario has not: which of the offered machines, and how many of them."""
KINDS = ("strategy.kind", "strategy")
"""Keys that choose a strategy."""
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
        """The unit in which tables hold its values (`tideover.scenarios.swept`)."""
        return swept.unit_of(node.plain() for node in self.levels)

    @cached_property
    def ordered(self) -> bool:
        """Whether its values are numbers in order, so that between two of them is what lies between."""
        numbers = [swept.number(node.plain(), self.unit) for node in self.levels]
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
        """Number of candidates."""
        return sum(1 for _ in self)

    def canonical(self, index: Index) -> Index:
        """The same candidate, its choices without effect at their first value: a key of a strategy that is
        not chosen.
        """
        kind = self._kind(index)
        return tuple(
            at if concerns(choice.key, kind) else 0 for choice, at in zip(self.choices, index, strict=True)
        )

    def values(self, index: Index) -> dict[str, Any]:
        """The values of a candidate by key, as they were written; without those that have no effect."""
        kind = self._kind(index)
        return {
            choice.key: choice.levels[at].plain()
            for choice, at in zip(self.choices, index, strict=True)
            if concerns(choice.key, kind)
        }

    def at(self, values: Mapping[str, Any], load: float = 1.0) -> Scenario:
        """The scenario of these values, which need not be among those of the file, with its rates times
        ``load``; raises ScenarioError.
        """
        nodes = {key: self._node(key, value) for key, value in values.items()}
        settings = [
            Setting(key, node.given(giver=Giver.POINT, key=key, shown=f"choices.{key}"))
            for key, node in [*nodes.items(), *self._hosts(nodes)]
            if key not in (TYPE, COUNT)
        ]
        root = precedence.settle(self.base, settings)
        found = Scenario.of(loader.build_one(root, self.directory).scenario)
        factor = load if self.rate is None else load * self.rate / probe.offered(found)
        return found if factor == 1 else Scenario.of(probe.at_rate(found, factor))

    def check(self) -> None:
        """Raises ScenarioError for a choice that has an effect on no candidate."""
        for choice in self.choices:
            for level in choice.levels if choice.key in KINDS else ():
                if isinstance(level.value, str) and level.value not in STRATEGIES:
                    said = f"no strategy is called {level.shown()}"
                    hint = suggest(level.value, sorted(STRATEGIES))
                    raise level.refused(f"choices.{choice.key}", f"{said}; {hint}")
        every = {self._kind(index) for index in self._kinds()}
        for choice in self.choices:
            if not any(concerns(choice.key, kind) for kind in every):
                known = [key for kind in every if kind for key in _keys_of(kind)]
                step = choice.key.split(".")[-1]
                said = f"no strategy that can be chosen has this key; {suggest(step, sorted({*known}))}"
                raise choice.levels[0].refused(f"choices.{choice.key}", said)

    def alone(self) -> Iterator[Index]:
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
        """The first candidate of each strategy."""
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
            raise at.refused(
                f"choices.{TYPE}", f"there is no machine {at.shown()}; {suggest(str(name), self.machines)}"
            )
        if count is None:
            count = given if given is not None and isinstance(given.value, int) else None
        if count is None:
            raise at.refused(
                TYPE, f"how many of them? choose {COUNT}, or give hosts: a number in the scenario"
            )
        offer = self.machines[name]
        written = {
            "cores": offer.cores,
            "nic": None if offer.nic is None else f"{offer.nic} B/s",
            "slots": offer.slots,
            "price": offer.price,
        }
        machine = {key: at.like(value) for key, value in written.items() if value is not None}
        machines = at.like({name: at.like(machine | {"count": count})})
        if given is not None and given.is_mapping:
            yield "hosts.machines", machines
        else:
            yield "hosts", at.like({"machines": machines})


def concerns(key: str, kind: str | None) -> bool:
    """Whether a key has an effect where the strategy is of this kind."""
    block, _, rest = key.partition(".")
    if block == "strategies":
        return rest.partition(".")[0] == kind
    if block != "strategy" or rest in ("", "kind") or kind is None or kind not in STRATEGIES:
        return True
    return rest.partition(".")[0] in _keys_of(kind)


def _keys_of(kind: str) -> Iterable[str]:
    return fields_of(STRATEGIES[kind]) if kind in STRATEGIES else ()
