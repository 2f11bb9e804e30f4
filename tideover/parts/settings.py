"""The run, the cluster, links, store and detector, and distributions of durations, as typed objects."""

from tideover.models import config
from tideover.models.detectors import base, consumer_group, heartbeats, restarts, storm
from tideover.models.job import cluster, components, placements, sinks, stores
from tideover.parts.typed import typed
from tideover.sim import distributions

Hosts = typed(cluster.Hosts)
MachineType = typed(components.MachineType)
ByHand = typed(placements.ByHand)
FleetPlacement = typed(placements.FleetPlacement)
KSafe = typed(placements.KSafe)
RoundRobin = typed(placements.RoundRobin)
Links = typed(components.Links)
Run = typed(components.Run)
Slo = typed(config.Slo)
Store = typed(components.Store)
Given = typed(base.Given)
ConsumerGroup = typed(consumer_group.ConsumerGroup)
Heartbeats = typed(heartbeats.Heartbeats)
Storm = typed(storm.Storm)
ExponentialDelay = typed(restarts.ExponentialDelay)
FailureRate = typed(restarts.FailureRate)
FixedDelay = typed(restarts.FixedDelay)
Constant = typed(distributions.Constant)
Empirical = typed(distributions.Empirical)
Exponential = typed(distributions.Exponential)
Gamma = typed(distributions.Gamma)
Lognormal = typed(distributions.Lognormal)
Request = typed(distributions.Request)
Uniform = typed(distributions.Uniform)
DirectSink = typed(sinks.DirectSink)
TransactionalSink = typed(sinks.TransactionalSink)
Redis = typed(stores.Redis)
Disk = typed(stores.Disk)
Dfs = typed(stores.Dfs)
Weibull = typed(distributions.Weibull)
