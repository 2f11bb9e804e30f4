"""What a plan has found out so far: every run that was made, and what is known of each candidate from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.advice import overloads
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.planning.candidate import Candidate, Wanted, judged
from tideover.scenarios.planning.evaluator import ASK, Ask, Evaluator, Tables
from tideover.scenarios.planning.offers import machines_per_month
from tideover.scenarios.planning.space import Index, Space
from tideover.scenarios.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, float]


class Session:
    """Does what is asked for, each run once, and judges it.

    impossible    why a candidate cannot be built, by its values as JSON
    runs          how many were made at the planned load
    elsewhere     and at other loads
    """

    def __init__(self, space: Space, wanted: Wanted, evaluator: Evaluator) -> None:
        self._space, self._wanted, self._evaluator = space, wanted, evaluator
        self._scenarios: dict[Key, Scenario | None] = {}
        self._found: dict[Key, Candidate] = {}
        self._tables: dict[Key, Tables] = {}
        self._overloaded: dict[Index, bool] = {}
        self.impossible: dict[str, str] = {}
        self.runs = self.elsewhere = 0

    @property
    def candidates(self) -> list[Candidate]:
        """Those at the planned load, in the order in which they were first asked for."""
        return [one for (_, load), one in self._found.items() if load == 1]

    def floor(self, index: Index) -> float | None:
        """What a candidate's machines cost in a month; None: it cannot be built."""
        scenario = self._scenario(self._space.values(index), 1.0)
        return None if scenario is None else machines_per_month(scenario)

    def scenario(self, index: Index) -> Scenario:
        """The scenario of a candidate that can be built."""
        found = self._scenario(self._space.values(index), 1.0)
        assert found is not None
        return found

    def overloaded(self, index: Index) -> bool:
        """Whether tasks or hosts of a candidate that can be built have more to do than they can."""
        if index not in self._overloaded:
            self._overloaded[index] = bool(overloads(self.scenario(index)))
        return self._overloaded[index]

    def evaluate(self, asks: Sequence[Ask]) -> list[Candidate]:
        """All that is known of each candidate that is asked for. Raises ScenarioError for one that cannot be
        built.
        """
        todo: dict[Key, Ask] = {}
        for ask in asks:
            key = _key(ask)
            done = self._found[key].n if key in self._found else 0
            if self._scenario(ask.values, ask.load) is None:
                self._space.at(ask.values, ask.load)  # raises
            if ask.last >= max(done, todo[key].last + 1 if key in todo else 0):
                todo[key] = Ask(ask.values, done, ask.last, ask.load)
        if todo:
            self._add(list(todo.values()))
        return [self._found[_key(ask)] for ask in asks]

    def _add(self, asks: Sequence[Ask]) -> None:
        """Have these runs done; what is known of a candidate is judged anew."""
        found = self._evaluator(asks)
        for number, ask in enumerate(asks):
            mine = Tables(*(_of(table, number) for table in found))
            before = self._tables.get(_key(ask))
            together = mine if before is None else Tables(*map(_joined, before, mine))
            scenario = self._scenario(ask.values, ask.load)
            assert scenario is not None
            self._tables[_key(ask)] = together
            self._found[_key(ask)] = judged(self._wanted, ask.values, scenario, *together)
            if ask.load == 1:
                self.runs += ask.runs
            else:
                self.elsewhere += ask.runs

    def _scenario(self, values: Mapping[str, Any], load: float) -> Scenario | None:
        key = json.dumps(values), load
        if key not in self._scenarios:
            try:
                self._scenarios[key] = self._space.at(values, load)
            except ScenarioError as error:
                self._scenarios[key] = None
                self.impossible[key[0]] = error.problems[0].message
        return self._scenarios[key]


def _key(ask: Ask) -> Key:
    return json.dumps(ask.values), ask.load


def _of(table: pd.DataFrame, number: int) -> pd.DataFrame:
    """The rows of one request, in the order of their replications."""
    mine = table[table[ASK] == number].drop(columns=ASK)
    return mine.sort_values("replication", kind="stable", ignore_index=True)


def _joined(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    filled = [one for one in (before, after) if len(one)]
    return pd.concat(filled, ignore_index=True) if filled else before
