"""Distributions, as the compiled data plane has them."""

from __future__ import annotations

from typing import Any

from tideover.sim.distributions.base import Distribution
from tideover.sim.distributions.constant import Constant
from tideover.sim.distributions.exponential import Exponential
from tideover.sim.plane.plane import Plane


def describe(plane: Plane, distribution: Distribution, law: Any) -> None:
    """Fill in the struct ``distribution``."""
    if isinstance(distribution, Constant):
        law.kind, law.low = plane.lib.DRAW_CONSTANT, distribution.value
    elif isinstance(distribution, Exponential):
        law.kind, law.mean = plane.lib.DRAW_EXPONENTIAL, distribution.mean
    else:
        law.kind = plane.lib.DRAW_ELSEWHERE
