"""How long a plan's runs take, by some that are made as a pilot."""

from __future__ import annotations

from tideover.scenarios.planning.evaluator import Ask
from tideover.scenarios.planning.on_engine import Asked
from tideover.scenarios.planning.space import Space
from tideover.scenarios.runs import code
from tideover.scenarios.sweeps.chunks import units
from tideover.scenarios.sweeps.forecast import pilot
from tideover.scenarios.sweeps.simulating import Task
from tideover.scenarios.sweeps.survey import Surveyed, survey

_LOOKED_AT = 40
"""So many candidates, evenly spread over all, stand for the rest."""


def seconds_per_run(space: Space) -> float | None:
    """Mean on one core of this machine, by the pilot of a sweep (`tideover.scenarios.sweeps.forecast`); None:
    none of the candidates that were looked at can be built.
    """
    every = list(space)[:: max(1, space.total // _LOOKED_AT)]
    asked = Asked(space, tuple(Ask(space.values(index), 0, 0) for index in every))
    points = [one for one in survey(asked, range(asked.total), code()) if isinstance(one, Surveyed)]
    if not points:
        return None
    todo = list(units(points, [(0, 1)] * len(points)))
    seconds, _, _ = pilot(Task(asked, {}, timeline=False), todo)
    return seconds / len(todo)
