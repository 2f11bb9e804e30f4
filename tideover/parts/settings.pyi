# Made by `python tests/parts_stubs.py`; change the classes instead.

from collections.abc import Mapping, Sequence

from tideover.models.job import cluster, components, machines
from tideover.models.job.placements import round_robin
from tideover.models.job.placements.base import Placement
from tideover.parts.typed import Bandwidth, Duration, Rate
from tideover.sim.distributions import constant, empirical, exponential, gamma, lognormal, uniform
from tideover.sim.distributions.base import Distribution

class Hosts(cluster.Hosts):
    """The machines of a cluster, its racks and workers, and which host takes which task.

    Hosts are numbered from 0, in the order of the machine types, and go round the racks: host h stands in
    rack h mod ``racks``. The last ``reserve`` of them stand by.

    machines: types of machines, by name
    racks: number of racks that the hosts go round
    workers: worker processes of each host; its tasks go round them
    reserve: hosts that take no task at first: the last ones
    placement: which host takes which task
    """

    def __init__(
        self,
        *,
        machines: Mapping[str, MachineType],
        racks: int = 1,
        workers: int = 1,
        reserve: int = 0,
        placement: Placement | str = "round_robin",
    ) -> None: ...

class MachineType(machines.MachineType):
    """A sort of machine, and how many there are of it. What is left out has no limit.

    count: how many there are
    cores: cores that its tasks share; default: one for each task
    nic: bandwidth of its network card, in and out each; default: no limit
    slots: most tasks that it takes; default: no limit
    price: of one for an hour, in any currency
    """

    def __init__(
        self,
        *,
        count: int,
        cores: int | None = None,
        nic: Bandwidth | None = None,
        slots: int | None = None,
        price: float | None = None,
    ) -> None: ...

class RoundRobin(round_robin.RoundRobin):
    """Task number i goes to host i mod n, and replica r of it r hosts further, as Storm deals executors.

    A host without a slot left, or with a replica of the same task, is passed over while there is another.
    """

    def __init__(self) -> None: ...

class Links(components.Links):
    """Latency between hosts. A pair is written ``"0-1"`` and holds for both directions.

    ``latency``: between different hosts (a distribution with spread is jitter); ``local``: within one host.

    latency: between different hosts; spread is jitter; default: 0 s
    local: within one host; default: 0 s
    pairs: of single pairs of hosts, as in {"0-1": 5 ms}
    """

    def __init__(
        self,
        *,
        latency: Distribution | Duration = "0 s",
        local: Distribution | Duration = "0 s",
        pairs: Mapping[str, Distribution | Duration] = {},
    ) -> None: ...

class Run(components.Run):
    """How long, how often, with which luck.

    duration: simulated time, e.g. 240 s
    warmup: time at the start that is not measured
    seed: chooses the luck; equal seeds give equal results
    replications: runs, each with its own luck
    log_resolution: report recoveries as logs of this resolution show them; default: exact
    lag_window: report catch-up as a metric shows it that holds the greatest backlog of this window and the
        one before (Kafka's records-lag-max: 30 s); default: exact
    lump: real tuples that one simulated tuple stands for
    lump_rate: choose lump so that no spout component emits more simulated tuples than this
    """

    def __init__(
        self,
        *,
        duration: Duration,
        warmup: Duration = "0 s",
        seed: int = 1,
        replications: int = 1,
        log_resolution: Duration | None = None,
        lag_window: Duration | None = None,
        lump: int = 1,
        lump_rate: Rate | None = None,
    ) -> None: ...

class Store(components.Store):
    """The store for checkpoints: one request after the other, each ``latency`` plus bytes / ``bandwidth``
    (bytes/s).

    latency: time of a request besides its bytes
    bandwidth: bytes per second, read or written
    """

    def __init__(self, *, latency: Duration = "1 ms", bandwidth: Bandwidth = "100 MiB/s") -> None: ...

class Constant(constant.Constant):
    """Always ``value``. In a scenario the value alone is enough: ``service: 0.2 ms``.

    value: the duration
    """

    def __init__(self, *, value: Duration) -> None: ...

class Empirical(empirical.Empirical):
    """One of the measured ``values``, each as likely as its weight says; nothing in between.

    values: the measured durations
    weights: how much each value counts; as many as values, not all 0; default: all the same
    """

    def __init__(self, *, values: Sequence[Duration], weights: Sequence[float] | None = None) -> None: ...

class Exponential(exponential.Exponential):
    """Exponential with the given mean: the service of an M/M/1 queue, the gaps of a Poisson process.

    By inversion of the upper 32 bits: -mean * log(u), u at the centre of 2**32 cells, so at most 22.9 means.

    mean: mean; the standard deviation is the same
    """

    def __init__(self, *, mean: Duration) -> None: ...

class Gamma(gamma.Gamma):
    """Gamma with the given mean, and its ``shape`` or coefficient of variation ``cv`` = 1 / sqrt(shape).

    cv = 1 is exponential, cv = 1 / sqrt(n) is the sum of n equal exponential stages (Erlang), cv > 1 is
    burstier. By inversion: the regularised incomplete gamma function (DiDonato and Morris: *Computation of
    the incomplete gamma function ratios and their inverse*, ACM TOMS 12, 1986), as scipy has it.

    mean: mean
    shape: shape k; give this or cv
    cv: standard deviation / mean
    """

    def __init__(self, *, mean: Duration, shape: float | None = None, cv: float | None = None) -> None: ...

class Lognormal(lognormal.Lognormal):
    """Exp of a normal variable, given by ``mean`` and ``cv``, or by ``median`` and ``sigma`` of the log.

    sigma**2 = log(1 + cv**2), median = mean * exp(-sigma**2 / 2). By inversion, with scipy's ``ndtri``.
    Measured service and restart times often look like this (Limpert, Stahel, Abbt: *Log-normal
    distributions across the sciences*, BioScience 51, 2001).

    mean: mean; goes with cv
    cv: standard deviation / mean
    median: median; goes with sigma
    sigma: standard deviation of the logarithm
    """

    def __init__(
        self,
        *,
        mean: Duration | None = None,
        cv: float | None = None,
        median: Duration | None = None,
        sigma: float | None = None,
    ) -> None: ...

class Uniform(uniform.Uniform):
    """Any duration from ``low`` to ``high`` is equally likely.

    low: shortest duration
    high: longest duration; at least low
    """

    def __init__(self, *, low: Duration, high: Duration) -> None: ...
