"""Which runs the compiled data plane moves: the one place where that is chosen."""

from __future__ import annotations

import os

from tideover.models.config import Scenario


def moves_compiled(scenario: Scenario) -> bool:
    """Whether all that the scenario asks for is there."""
    strategy = scenario.strategy
    if os.environ.get("TIDEOVER_TRAINS"):
        return False
    return strategy.goes_compiled() == "always"
