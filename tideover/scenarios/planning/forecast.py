"""How long a plan takes, by what its runs have to do (`tideover.models.effort`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tideover.models.effort import effort, slowness
from tideover.scenarios.planning.evaluator import Ask, Tables
from tideover.scenarios.planning.headroom import TRIES
from tideover.scenarios.planning.plan import racing
from tideover.scenarios.planning.session import Session
from tideover.scenarios.planning.spec import Spec
from tideover.scenarios.sweeps.survey import LEAST_S

_LOOKED_AT = 40
"""So many candidates, evenly spread over those of the coarse grid, stand for the rest."""


@dataclass(frozen=True)
class Forecast:
    """Of a plan, on one core of this machine.

    candidates   that there are
    most_runs    runs if all of them took all replications
    runs         that are made as a rule: the coarse grid and one candidate in full, a quarter of the former
                 if this is less, and those at other loads
    run_s        how long one takes; None: none of the candidates that were looked at can be built
    first_s      until the first candidates have their least replications
    """

    candidates: int
    most_runs: int
    runs: int
    run_s: float | None
    first_s: float | None

    @property
    def core_s(self) -> float | None:
        """How long all of it takes."""
        return None if self.run_s is None else self.run_s * self.runs


def forecast(spec: Spec) -> Forecast:
    """Without any run."""
    session, most = Session(spec.space, spec.wanted, _nobody), spec.space.total * spec.effort.most
    search = racing(spec, session)
    coarse = search.waiting
    runs = min(search.left, len(coarse) * spec.effort.least + spec.effort.most)
    runs += TRIES * spec.effort.most
    each = {
        index: LEAST_S + effort(session.scenario(index)).seconds * slowness()
        for index in coarse[:: max(1, len(coarse) // _LOOKED_AT)]
    }
    if not each:
        return Forecast(spec.space.total, most, runs, None, None)
    first = sum(ask.runs for ask in search.ask()) * each[coarse[0]]
    return Forecast(spec.space.total, most, runs, float(np.mean(list(each.values()))), first)


def _nobody(asks: Sequence[Ask]) -> Tables:
    raise AssertionError("nothing is run")
