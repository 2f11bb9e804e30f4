"""Everything that a scenario is made of, as typed objects: strategies, failures, bolts, arrivals and so on.

They are built with units, as in a scenario file, and checked at once. What comes out are the simulator's own
parts, the same that ``load`` makes of a file; numbers that are read from them are nanoseconds, bytes, and
tuples per second.

>>> from tideover.parts import CrashTask, SourceReplay
>>> SourceReplay(message_timeout="10 s").message_timeout
10000000000
>>> CrashTask(at=75, component="count")
Traceback (most recent call last):
tideover.scenarios.errors.ScenarioError: CrashTask: at: 75 has no unit; write a duration, such as 30 s, ...

Type checkers and editors see the signatures in the files ``*.pyi``, which are made from the classes by
``python tests/parts_stubs.py``.
"""

from tideover.parts.failures import CrashHost, CrashRack, CrashTask, CrashWorker, LoseState, Pause
from tideover.parts.settings import (
    ByHand,
    Constant,
    Dfs,
    Disk,
    Empirical,
    EStorm,
    Exponential,
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    Gamma,
    Given,
    Heartbeats,
    Hosts,
    KSafe,
    Links,
    Lognormal,
    MachineType,
    Redis,
    RoundRobin,
    Run,
    Store,
    Storm,
    Uniform,
)
from tideover.parts.strategies import (
    ActiveReplication,
    AlignedSnapshots,
    Amnesia,
    MicroBatch,
    SourceReplay,
    StateManagement,
)
from tideover.parts.topology import (
    All,
    BoltConfig,
    Burst,
    Direct,
    Distinct,
    Fields,
    Filter,
    Forward,
    Generic,
    Global,
    Keys,
    Periodic,
    Poisson,
    Ramp,
    RunningCount,
    Sentences,
    Shuffle,
    SplitWords,
    SpoutConfig,
    TraceOfRates,
    Values,
    Window,
    WindowedCount,
)

__all__ = [
    "ActiveReplication",
    "AlignedSnapshots",
    "All",
    "Amnesia",
    "BoltConfig",
    "Burst",
    "ByHand",
    "Constant",
    "CrashHost",
    "CrashRack",
    "CrashTask",
    "CrashWorker",
    "Dfs",
    "Direct",
    "Disk",
    "Distinct",
    "EStorm",
    "Empirical",
    "Exponential",
    "ExponentialDelay",
    "FailureRate",
    "Fields",
    "Filter",
    "FixedDelay",
    "Forward",
    "Gamma",
    "Generic",
    "Given",
    "Global",
    "Heartbeats",
    "Hosts",
    "KSafe",
    "Keys",
    "Links",
    "Lognormal",
    "LoseState",
    "MachineType",
    "MicroBatch",
    "Pause",
    "Periodic",
    "Poisson",
    "Ramp",
    "Redis",
    "RoundRobin",
    "Run",
    "RunningCount",
    "Sentences",
    "Shuffle",
    "SourceReplay",
    "SplitWords",
    "SpoutConfig",
    "StateManagement",
    "Store",
    "Storm",
    "TraceOfRates",
    "Uniform",
    "Values",
    "Window",
    "WindowedCount",
]
