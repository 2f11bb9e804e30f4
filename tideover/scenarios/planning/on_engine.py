"""A plan's runs as those of a sweep: Spark jobs or this process, and a dataset that keeps them.

Each call is a sweep whose points are the requests. A run is known by its scenario, so what an earlier call or
an interrupted plan has done is not done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tideover.scenarios.planning.evaluator import ASK, Ask, Tables
from tideover.scenarios.planning.space import Space
from tideover.scenarios.spark.place import Place
from tideover.scenarios.sweeps import several, tables
from tideover.scenarios.sweeps.engine import Engine
from tideover.scenarios.sweeps.recipe import Point
from tideover.scenarios.sweeps.several import runs_of

if TYPE_CHECKING:
    import pandas as pd


Say = Callable[[str, float], None]
"""Called with what is being done, and the number of runs at the planned load that are done."""


@dataclass(frozen=True)
class Asked:
    """Requests as the points of a sweep, each by its number."""

    space: Space
    asks: tuple[Ask, ...]
    name: str = "plan"
    remarks: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Number of requests."""
        return len(self.asks)

    def values(self, number: int) -> Mapping[str, Any]:
        """What the columns of a dataset say of a request: nothing."""
        return {}

    def point(self, number: int) -> Point:
        """The scenario of a request; raises ScenarioError."""
        ask = self.asks[number]
        return Point(number, {}, self.space.at(ask.values, ask.load))


class OnEngine:
    """The evaluator that leaves the runs to an engine."""

    def __init__(self, space: Space, doer: Engine, say: Say) -> None:
        self._space, self._engine, self._say = space, doer, say
        self._runs = 0  # at the planned load

    def __call__(self, asks: Sequence[Ask]) -> Tables:
        asked = Asked(self._space, tuple(asks))
        wanted = [(ask.first, ask.last + 1) for ask in asks]
        planned = all(ask.load == 1 for ask in asks)

        def tell(what: str, done: float, total: int) -> None:
            self._say(*((what, self._runs + done) if planned else ("trying other loads", self._runs)))

        found = runs_of(asked, wanted, self._engine, tell)
        if planned:
            self._runs += sum(ask.runs for ask in asks)
        return Tables(*(self._frame(found, name) for name in ("runs", "recoveries")))

    def _frame(self, found: Any, name: str) -> pd.DataFrame:
        from tideover.models.schema.columns import conform
        from tideover.models.schema.fields import TABLES

        frame = tables.tidy(found, name, {}).to_pandas()
        return conform(frame.rename(columns={"point": ASK}), TABLES[name])


@contextmanager
def kept(space: Space, out: str | os.PathLike[str] | None, where: Place, say: Say) -> Iterator[OnEngine]:
    """The evaluator of a plan's runs, which are kept in ``out``, a directory for results; None: only for now.

    ``where``: who does them. Raises as a sweep does.
    """
    with several.kept(out, where, lambda what: say(what, 0)) as doer:
        yield OnEngine(space, doer, say)
