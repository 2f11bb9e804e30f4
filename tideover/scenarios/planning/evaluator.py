"""Who does a plan's runs: anybody who takes many requests at once and gives tables back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import pandas as pd

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


def tables(runs: Sequence[Mapping[str, Any]], recoveries: Sequence[Mapping[str, Any]]) -> Tables:
    """Tables of these rows, in the types of their columns."""
    from tideover.models.schema.fields import frame

    return Tables(frame("runs", runs), frame("recoveries", recoveries))
