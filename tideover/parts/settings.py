"""The run, the cluster, the links and the store, and distributions of durations, as typed objects."""

from tideover.models.job import cluster, components, machines
from tideover.models.job.placements import round_robin
from tideover.parts.typed import typed
from tideover.sim.distributions import constant, empirical, exponential, gamma, lognormal, uniform

Hosts = typed(cluster.Hosts)
MachineType = typed(machines.MachineType)
RoundRobin = typed(round_robin.RoundRobin)
Links = typed(components.Links)
Run = typed(components.Run)
Store = typed(components.Store)
Constant = typed(constant.Constant)
Empirical = typed(empirical.Empirical)
Exponential = typed(exponential.Exponential)
Gamma = typed(gamma.Gamma)
Lognormal = typed(lognormal.Lognormal)
Uniform = typed(uniform.Uniform)
