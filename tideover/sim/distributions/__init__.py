"""Distributions of durations, each in its file and registered under its name; and Zipf's law for keys."""

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.distributions.constant import Constant
from tideover.sim.distributions.empirical import Empirical
from tideover.sim.distributions.exponential import Exponential
from tideover.sim.distributions.gamma import Gamma
from tideover.sim.distributions.lognormal import Lognormal
from tideover.sim.distributions.request import Request
from tideover.sim.distributions.uniform import Uniform
from tideover.sim.distributions.weibull import Weibull
from tideover.sim.distributions.zipf import Zipf

__all__ = [
    "DISTRIBUTIONS",
    "Constant",
    "Distribution",
    "Empirical",
    "Exponential",
    "Gamma",
    "Lognormal",
    "Request",
    "Uniform",
    "Weibull",
    "Zipf",
]
