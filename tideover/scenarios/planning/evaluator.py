"""Who does a plan's runs: anybody who takes many requests at once and gives tables back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tideover.models.simulation import simulate
from tideover.scenarios.planning.space import Space
from tideover.scenarios.scenario import Scenario
from tideover.scenarios.writer import to_data

if TYPE_CHECKING:
    import pandas as pd

    from tideover.models.results.result import Result

ASK = "ask"
"""The column that says which request a row belongs to."""


@dataclass(frozen=True)
class Ask:
    """Replications ``first`` to ``last`` of the scenario with these values of the plan's choices, its rates
    times ``load``.
    """

    values: Mapping[str, Any]
    first: int
    last: int
    load: float = 1.0

    @property
    def runs(self) -> int:
        """How many runs that are."""
        return self.last - self.first + 1


class Tables(NamedTuple):
    """What was found: tables with the columns of a result, and ``ask``: the number of the request, from 0.

    A run that failed is a row of ``runs`` with its ``error``.
    """

    runs: pd.DataFrame
    recoveries: pd.DataFrame


class Evaluator(Protocol):
    """Does all the runs that are asked for, all of one call at once if it can.

    What comes back depends on what is asked, and on nothing else: replications of one number have the same
    luck in all candidates. Requests can be built: `tideover.scenarios.planning.space.Space.at` was tried.
    """

    def __call__(self, asks: Sequence[Ask]) -> Tables:
        """The tables of these requests."""


Report = Callable[[int], None]
"""Called with the number of runs that are done of a call."""


class InProcess:
    """Does them here, one after the other."""

    def __init__(self, space: Space, report: Report = lambda done: None) -> None:
        self._space = space
        self._report = report

    def __call__(self, asks: Sequence[Ask]) -> Tables:
        runs: list[dict[str, Any]] = []
        recoveries: list[dict[str, Any]] = []
        for number, ask in enumerate(asks):
            for one, result in self._results(ask):
                runs += [{ASK: number} | row for row in one]
                recoveries += [{ASK: number} | row for row in result.rows("recoveries")]
                self._report(len(runs))
        return tables(runs, recoveries)

    def _results(self, ask: Ask) -> Iterator[tuple[list[dict[str, Any]], Result]]:
        scenario = self._space.at(ask.values, ask.load)
        for number in range(ask.first, ask.last + 1):
            yield attempt(scenario, number)


def attempt(scenario: Scenario, replication: int) -> tuple[list[dict[str, Any]], Result]:
    """A run, whatever comes of it: its row of ``runs``, and its result (empty if it failed)."""
    from tideover.models.results.result import Result
    from tideover.scenarios.runs import told

    document = to_data(scenario)
    try:
        result = Result(scenario, [simulate(scenario, replication)], document)
    except Exception as error:  # whatever it is, the plan goes on without this candidate
        result = Result(scenario, [], document)
        return [result.failed_run(replication, told(error))], result
    return result.rows("runs"), result


def tables(runs: Sequence[Mapping[str, Any]], recoveries: Sequence[Mapping[str, Any]]) -> Tables:
    """Tables of these rows, in the types of their columns."""
    from tideover.models.schema.fields import frame

    return Tables(frame("runs", runs), frame("recoveries", recoveries))
