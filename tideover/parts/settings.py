"""The run, the cluster, links, store and detector, and distributions of durations, as typed objects."""

from tideover.models import config
from tideover.models.detectors import consumer_group, given, heartbeats, storm
from tideover.models.detectors.restarts import exponential_delay, failure_rate, fixed_delay
from tideover.models.job import cluster, components, machines
from tideover.models.job.placements import by_hand, estorm, k_safe, round_robin
from tideover.models.job.sinks import direct, transactional
from tideover.models.job.stores import dfs, disk, redis
from tideover.parts.typed import typed
from tideover.sim.distributions import (
    constant,
    empirical,
    exponential,
    gamma,
    lognormal,
    request,
    uniform,
    weibull,
)

Hosts = typed(cluster.Hosts)
MachineType = typed(machines.MachineType)
ByHand = typed(by_hand.ByHand)
FleetPlacement = typed(estorm.FleetPlacement)
KSafe = typed(k_safe.KSafe)
RoundRobin = typed(round_robin.RoundRobin)
Links = typed(components.Links)
Run = typed(components.Run)
Slo = typed(config.Slo)
Store = typed(components.Store)
Given = typed(given.Given)
ConsumerGroup = typed(consumer_group.ConsumerGroup)
Heartbeats = typed(heartbeats.Heartbeats)
Storm = typed(storm.Storm)
ExponentialDelay = typed(exponential_delay.ExponentialDelay)
FailureRate = typed(failure_rate.FailureRate)
FixedDelay = typed(fixed_delay.FixedDelay)
Constant = typed(constant.Constant)
Empirical = typed(empirical.Empirical)
Exponential = typed(exponential.Exponential)
Gamma = typed(gamma.Gamma)
Lognormal = typed(lognormal.Lognormal)
Request = typed(request.Request)
Uniform = typed(uniform.Uniform)
DirectSink = typed(direct.DirectSink)
TransactionalSink = typed(transactional.TransactionalSink)
Redis = typed(redis.Redis)
Disk = typed(disk.Disk)
Dfs = typed(dfs.Dfs)
Weibull = typed(weibull.Weibull)
