"""How long a plan's runs take, by one that is made as a pilot."""

from __future__ import annotations

import time

from tideover.models.effort import effort
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.planning.space import Space

_LOOKED_AT = 40
"""So many candidates, evenly spread over all, stand for the rest."""


def seconds_per_run(space: Space) -> float | None:
    """Mean on one core of this machine: that of the candidate with the median effort, run once, times what
    the others have to do more or less. None: none of the candidates that were looked at can be built.
    """
    every, known = list(space), []
    for index in every[:: max(1, len(every) // _LOOKED_AT)]:
        try:
            scenario = space.at(space.values(index))
        except ScenarioError:
            continue
        known.append((effort(scenario).seconds, scenario))
    if not known:
        return None
    known.sort(key=lambda one: one[0])
    least, pilot = known[len(known) // 2]
    begin = time.perf_counter()
    simulate(pilot)
    took = time.perf_counter() - begin
    return took * sum(seconds for seconds, _ in known) / len(known) / least
