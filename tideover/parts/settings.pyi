# Made by `python tests/parts_stubs.py`; change the classes instead.

from collections.abc import Mapping, Sequence
from typing import Literal

from tideover.models import config
from tideover.models.detectors import base, consumer_group, heartbeats, restarts, storm
from tideover.models.detectors.restarts import RestartStrategy
from tideover.models.job import cluster, components, placements, sinks, stores
from tideover.models.job.placements import Placement
from tideover.parts.typed import Bandwidth, Duration, Rate, Size
from tideover.sim import distributions
from tideover.sim.distributions import Distribution

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

class MachineType(components.MachineType):
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

class ByHand(placements.ByHand):
    """``tasks`` names the host of each replica of each task: `{count: [[0, 1], [2, 0]]}` puts task 0 of count
    on host 0 and its replica on host 1.

    Hosts that are named for replicas which the strategy does not have stay free of them.

    tasks: by component: of each task the hosts of its replicas, the primary's first
    """

    def __init__(self, *, tasks: Mapping[str, Sequence[Sequence[int]]]) -> None: ...

class FleetPlacement(placements.FleetPlacement):
    """Primaries as round robin puts them; each shadow (a replica after the first) where most of what it reads
    is local then, of the hosts with a slot left, and never where another of its fleet is.

    Operators have their turns breadth-first from the spouts, one shadow a turn. Read are the primaries of the
    tasks before; of hosts that are alike the one with the most senders, then the fewest tasks, then the next
    in order takes it. X. Liu et al., *E-Storm: Replication-based State Management in Distributed Stream
    Processing Systems*, ICPP 2017, section IV.
    """

    def __init__(self) -> None: ...

class KSafe(placements.KSafe):
    """No two replicas of a task on one host, nor in one rack if there are as many racks; else evenly.

    Of the hosts that are allowed the one with the fewest tasks takes the next, and of several the next in
    turn. Of k + 1 replicas one is left, whichever k hosts fail, or k racks if there are k + 1 of them. E.
    Tanuwidjaja, *High Availability on a Distributed Real Time Processing System*, UC Berkeley EECS-2015-134.
    """

    def __init__(self) -> None: ...

class RoundRobin(placements.RoundRobin):
    """Task number i goes to host i mod n, as Storm deals executors; replica r sits r hosts further.

    A host without a slot left, or with a replica of the same task, is passed over while there is another.
    """

    def __init__(self) -> None: ...

class Links(components.Links):
    """Latency between hosts. A pair is written ``"0-1"`` and holds for both directions.

    ``latency``: between different hosts (a distribution with spread is jitter); ``local``: within one host.
    What a message between hosts costs besides stands in the other keys; its bytes go through the cards of
    both hosts, if their machines have a ``nic``.

    latency: between different hosts; spread is jitter; default: 0 s
    local: within one host; default: 0 s
    pairs: of single pairs of hosts, as in {"0-1": 5 ms}
    header: bytes of a message between hosts besides its tuple
    serialise: service that each message to another host takes of the bolt that sends it
    serialise_cost: the same, for each of its bytes
    deserialise: service that a tuple from another host takes on top, where it is received
    deserialise_cost: the same, for each of its bytes
    """

    def __init__(
        self,
        *,
        latency: Distribution | Duration = "0 s",
        local: Distribution | Duration = "0 s",
        pairs: Mapping[str, Distribution | Duration] = {},
        header: Size = "0 B",
        serialise: Duration = "0 s",
        serialise_cost: Duration = "0 s",
        deserialise: Duration = "0 s",
        deserialise_cost: Duration = "0 s",
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
    calm: also report when each outage ended, and when the latency was normal again for this long
    starts_at: time of day at which the run begins, as in 17:50, for arrivals of kind day; default: 00:00
    fails_at: instead of starts_at: time of day of the first `at` in failures, as in 18:00; peak: when the
        load is greatest; drawn: anew in each replication, the same under every strategy
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
        calm: Duration | None = None,
        starts_at: str | None = None,
        fails_at: str | None = None,
        lump: int = 1,
        lump_rate: Rate | None = None,
    ) -> None: ...

class Slo(config.Slo):
    """A service level objective: what a run is held against once it is done. Not simulated.

    objective: metric, statistic, limit and maybe a part, as in recovery_p95 <= 20 s
    level: confidence level of the interval
    """

    def __init__(self, *, objective: str, level: float = 0.95) -> None: ...

class Store(components.Store):
    """The store for checkpoints: one request after the other, each ``latency`` plus bytes / ``bandwidth``
    (bytes/s).

    latency: time of a request besides its bytes
    bandwidth: bytes per second, read or written
    """

    def __init__(self, *, latency: Duration = "1 ms", bandwidth: Bandwidth = "100 MiB/s") -> None: ...

class Given(base.Given):
    """Each fault's own ``detection`` and ``restart``: what a scenario without ``detector`` has."""

    def __init__(self) -> None: ...

class ConsumerGroup(consumer_group.ConsumerGroup):
    """Members that are silent for ``session_timeout`` are thrown out, and the others take over their tasks.

    They learn of it by their next heartbeats, and only when all have joined anew are the tasks assigned. So a
    handover takes the timeout, less the age of the last heartbeat, and the time until the last member's next
    one. A process that comes back before the timeout is a new member all the same, for which the old one is
    waited for; unless it is a static member. A pause is not noticed.

    Apache Kafka: the classic group protocol (`GroupCoordinator`, `AbstractCoordinator`), with its defaults;
    KIP-62 and KIP-735 for the timeouts, KIP-345 for static members, KIP-429 for those who work on meanwhile.

    heartbeat_interval: distance of two heartbeats of a member
    session_timeout: silence after which a member is removed; at least the interval
    rebalance: from when all members have joined until tasks are assigned
    restart: from the death of a process until another joins on its host; none: it stays away
    static: a process that is back before the session timeout is the same member
    """

    def __init__(
        self,
        *,
        heartbeat_interval: Duration = "3 s",
        session_timeout: Duration = "45 s",
        rebalance: Distribution | Duration = "constant",
        restart: Distribution | Duration | None = None,
        static: bool = False,
    ) -> None: ...

class Heartbeats(heartbeats.Heartbeats):
    """A process sends a heartbeat each ``interval``, and counts as dead ``timeout`` after the last one.

    So what fails is noticed after the timeout less the age of its last heartbeat: evenly spread over
    (timeout - interval, timeout], as each process has a phase of its own. Then a process is launched in its
    place, and its tasks are prepared. A failure meanwhile takes the new process with it: its last sign of
    life is the order to launch it, or its own heartbeat. Heartbeats take no time on the wire.

    Chandra and Toueg: *Unreliable failure detectors for reliable distributed systems*, JACM 43, 1996; Flink's
    ``heartbeat.interval`` and ``heartbeat.timeout`` have these defaults.

    interval: distance of two heartbeats of a process
    timeout: silence after which a process counts as dead; at least interval
    launch: from the order until the new process runs
    prepare: from then until a task in it is ready
    listener: host of who listens; none: it hears all hosts, however the network is cut
    restart_on: where tasks of a host that fails are restarted: in its place, once it is repaired or one in
        reserve has taken it; or in free slots of other hosts
    restarts: how long a restart waits; default: not at all
    """

    def __init__(
        self,
        *,
        interval: Duration = "10 s",
        timeout: Duration = "50 s",
        launch: Distribution | Duration = "constant",
        prepare: Distribution | Duration = "constant",
        listener: int | None = None,
        restart_on: Literal["same_host", "free_slot"] = "same_host",
        restarts: RestartStrategy | None = None,
    ) -> None: ...

class Storm(storm.Storm):
    """A supervisor launches a silent worker anew on its host; Nimbus moves silent tasks to another worker.

    With equal timeouts they race. A worker whose tasks change is killed and launched anew. So if no worker is
    free, a task that Nimbus moves takes its new neighbours down, once as it comes, and once as it goes home:
    in Nimbus's next round, when its own worker is free again. What dies of a fault is the whole worker. A
    pause is not noticed.

    Apache Storm 0.9: `nimbus.clj` (mk-assignments, alive-executors), `supervisor.clj` (sync-processes,
    matches-an-assignment?), and `defaults.yaml`; Stableford (2015), phase 1.

    supervisor_worker_timeout: silence after which a supervisor launches a worker anew
    nimbus_task_timeout: silence after which Nimbus moves a task to another worker
    worker_heartbeat: distance of a worker's heartbeats to its supervisor
    task_heartbeat: distance of the heartbeats of tasks to Nimbus
    supervisor_round: distance of a supervisor's looks at its workers
    nimbus_round: distance of Nimbus's looks at all tasks
    worker_start_timeout: the supervisor's patience with a worker that is being launched
    task_launch: Nimbus's patience with tasks that it has just assigned
    launch: from the order until a worker runs
    prepare: from then until a task in it is ready
    """

    def __init__(
        self,
        *,
        supervisor_worker_timeout: Duration = "30 s",
        nimbus_task_timeout: Duration = "30 s",
        worker_heartbeat: Duration = "1 s",
        task_heartbeat: Duration = "3 s",
        supervisor_round: Duration = "3 s",
        nimbus_round: Duration = "10 s",
        worker_start_timeout: Duration = "120 s",
        task_launch: Duration = "120 s",
        launch: Distribution | Duration = "constant",
        prepare: Distribution | Duration = "constant",
    ) -> None: ...

class ExponentialDelay(restarts.ExponentialDelay):
    """The first restart waits for ``initial``, each one after it ``factor`` times as long, at most ``most``.

    Once it has run for ``reset_after`` without a failure, the next restart is a first one. Apache Flink,
    ``restart-strategy.type: exponential-delay``, with its defaults, without jitter.

    initial: how long the first restart waits
    factor: by which each wait is longer
    most: longest wait; at least initial
    reset_after: time without a failure after which waits begin anew
    """

    def __init__(
        self,
        *,
        initial: Duration = "1 s",
        factor: float = 1.5,
        most: Duration = "60 s",
        reset_after: Duration = "1 h",
    ) -> None: ...

class FailureRate(restarts.FailureRate):
    """Each restart waits for ``delay``, unless more than ``most_failures`` were noticed ``within`` a span.

    Apache Flink, ``restart-strategy.type: failure-rate``, with its defaults.

    delay: how long each restart waits
    most_failures: most failures in the span
    within: the span
    """

    def __init__(
        self,
        *,
        delay: Duration = "1 s",
        most_failures: int = 1,
        within: Duration = "60 s",
    ) -> None: ...

class FixedDelay(restarts.FixedDelay):
    """Each restart waits for ``delay``; after ``attempts`` of them there is no other.

    Apache Flink, ``restart-strategy.type: fixed-delay``.

    delay: how long each restart waits
    attempts: most restarts; default: any number
    """

    def __init__(self, *, delay: Duration = "1 s", attempts: int | None = None) -> None: ...

class Constant(distributions.Constant):
    """Always ``value``. In a scenario the value alone is enough: ``service: 0.2 ms``.

    value: the duration
    """

    def __init__(self, *, value: Duration) -> None: ...

class Empirical(distributions.Empirical):
    """One of the measured ``values``, each as likely as its weight says; nothing in between.

    values: the measured durations
    weights: how much each value counts; as many as values, not all 0; default: all the same
    """

    def __init__(self, *, values: Sequence[Duration], weights: Sequence[float] | None = None) -> None: ...

class Exponential(distributions.Exponential):
    """Exponential with the given mean: the service of an M/M/1 queue, the gaps of a Poisson process.

    By inversion of the upper 32 bits: -mean * log(u), u at the centre of 2**32 cells, so at most 22.9 means
    (and at most the longest duration).

    mean: mean; the standard deviation is the same
    """

    def __init__(self, *, mean: Duration) -> None: ...

class Gamma(distributions.Gamma):
    """Gamma with the given mean, and its ``shape`` or coefficient of variation ``cv`` = 1 / sqrt(shape).

    cv = 1 is exponential, cv = 1 / sqrt(n) is the sum of n equal exponential stages (Erlang), cv > 1 is
    burstier. By inversion: the regularised incomplete gamma function (DiDonato and Morris: *Computation of
    the incomplete gamma function ratios and their inverse*, ACM TOMS 12, 1986), as scipy has it.

    mean: mean
    shape: shape k; give this or cv
    cv: standard deviation / mean
    """

    def __init__(self, *, mean: Duration, shape: float | None = None, cv: float | None = None) -> None: ...

class Lognormal(distributions.Lognormal):
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

class Request(distributions.Request):
    """As the service of a bolt that looks something up outside, in a database that enriches tuples, say: the
    task sends a request and waits for its answer. Is there none by ``timeout``, it pauses for ``backoff`` and
    tries again, up to ``retries`` times; then the tuple goes on without an answer.

    ``limit``: each task may send so many requests a second, as clients share a service's limit (Flink's
    ``RateLimiterStrategy.perSecond`` gives each subtask its part). A task that had its answer sooner stays
    occupied until it may send again.

    All of it takes at most the longest duration. Its own load does not slow the service; give ``answer`` as
    it is under that load.

    answer: time until the service answers
    timeout: an attempt is given up then; default: it is waited for
    retries: attempts after the first; goes with timeout
    backoff: pause before each of them; goes with timeout
    limit: requests per second that the service allows each task; default: any number
    """

    def __init__(
        self,
        *,
        answer: Distribution | Duration,
        timeout: Duration | None = None,
        retries: int = 0,
        backoff: Duration = "0 s",
        limit: Rate | None = None,
    ) -> None: ...

class Uniform(distributions.Uniform):
    """Any duration from ``low`` to ``high`` is equally likely.

    low: shortest duration
    high: longest duration; at least low
    """

    def __init__(self, *, low: Duration, high: Duration) -> None: ...

class DirectSink(sinks.DirectSink):
    """Readers see what leaves the topology as it leaves. They know a window by its number, and keep the first
    of those that come twice; a tuple that comes twice they count twice.
    """

    def __init__(self) -> None: ...

class TransactionalSink(sinks.TransactionalSink):
    """Readers see what leaves the topology when the transaction is committed that it was written in.

    So do Flink's KafkaSink with ``EXACTLY_ONCE`` (TwoPhaseCommitSinkFunction, KafkaCommitter), for consumers
    that read ``read_committed``: P. Carbone et al., *State Management in Apache Flink*, PVLDB 10(12), 2017,
    section 4.

    transaction_timeout: a transaction that is open for longer is aborted by the broker
    commit_time: from when a transaction is to be committed until readers see it: its task is told, and the
        broker commits
    """

    def __init__(
        self,
        *,
        transaction_timeout: Duration = "900 s",
        commit_time: Duration = "0.1 s",
    ) -> None: ...

class Redis(stores.Redis):
    """A store on a machine of its own with one thread that serves all tasks, one operation after the other.

    A request takes its operations and its bytes at the store, and the latency on the way there and back,
    which keeps nobody else waiting.

    latency: round trip between a task and the store
    bandwidth: bytes per second, read or written
    operations: operations per second of its one thread
    """

    def __init__(
        self,
        *,
        latency: Duration = "0.5 ms",
        bandwidth: Bandwidth = "100 MiB/s",
        operations: Rate = "80000/s",
    ) -> None: ...

class Disk(stores.Disk):
    """Each host has one, for the tasks that run there. It outlives them, and their host's crash.

    latency: time of a request besides its bytes
    bandwidth: bytes per second, read or written
    """

    def __init__(self, *, latency: Duration = "5 ms", bandwidth: Bandwidth = "200 MiB/s") -> None: ...

class Dfs(stores.Dfs):
    """A file system whose files lie on the hosts, as HDFS: each host reads and writes at its own bandwidth.

    A write goes to the writer's host and to the ``replication`` - 1 next ones, and has ended when all have
    it; a read is from the reader's host.

    latency: time of a request besides its bytes
    bandwidth: bytes per second of each host
    replication: hosts on which a file lies
    """

    def __init__(
        self,
        *,
        latency: Duration = "10 ms",
        bandwidth: Bandwidth = "100 MiB/s",
        replication: int = 3,
    ) -> None: ...

class Weibull(distributions.Weibull):
    """Weibull with the given mean and ``shape``: below 1 failures come in bursts, above 1 with age.

    shape = 1 is exponential. Schroeder and Gibson (*A large-scale study of failures in high-performance
    computing systems*, DSN 2006) found 0.7 to 0.8 for the times between failures of a cluster's nodes. By
    inversion: scale * (-log(1 - u))^(1/shape), u at the centre of 2**53 cells.

    mean: mean
    shape: shape k; 1 is exponential
    """

    def __init__(self, *, mean: Duration, shape: float) -> None: ...
