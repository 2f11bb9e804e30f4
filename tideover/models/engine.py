"""Which runs the compiled data plane moves: the one place where that is chosen."""

from __future__ import annotations

import os

from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig


def moves_compiled(scenario: Scenario) -> bool:
    """Whether all that the scenario asks for is there."""
    strategy = scenario.strategy
    if os.environ.get("TIDEOVER_TRAINS"):
        return False
    states = any(isinstance(c, BoltConfig) and c.state is not None for c in scenario.topology.values())
    if strategy.looks_up and states:
        return False  # what they look up in a store is not there yet
    return strategy.goes_compiled() == "always"
