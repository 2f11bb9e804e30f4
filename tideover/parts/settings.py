"""The run, the links and the store, and distributions of durations, as typed objects."""

from tideover.models.job import components
from tideover.parts.typed import typed
from tideover.sim.distributions import constant, empirical, exponential, gamma, lognormal, uniform

Links = typed(components.Links)
Run = typed(components.Run)
Store = typed(components.Store)
Constant = typed(constant.Constant)
Empirical = typed(empirical.Empirical)
Exponential = typed(exponential.Exponential)
Gamma = typed(gamma.Gamma)
Lognormal = typed(lognormal.Lognormal)
Uniform = typed(uniform.Uniform)
