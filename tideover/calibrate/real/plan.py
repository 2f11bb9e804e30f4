"""What is to be measured: sessions of episodes, planned beforehand; how Spark is set up for them.

`sessions` carries out a plan, `supervisor` and `driver` a session of it. A new plan is a function like
`quick`; what is in a plan is written to its sessions' files, so a renamed field makes old ones void.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from tideover.calibrate.real.pipelines import Content, Pipeline, Schedule
from tideover.calibrate.real.processes import TAG
from tideover.calibrate.real.sessions import without_gaps
from tideover.models.operators.kinds import SENTENCES
from tideover.scenarios.java import Java, java_environment
from tideover.scenarios.spark import settings as sweeps

# Cold processes are slow, so one start serves for much: a *session* is the lifetime of one query (restarts
# of its driver included), and an *episode* of it has one rate and at most one fault.

StrategyName = Literal["micro_batch", "source_replay", "active_replication"]
FaultName = Literal["kill_executor", "kill_driver", "stop_executor"]
Purpose = Literal["steady", "recovery"]
Jvm = Literal["shipped", "stock"]
"""How Java is set: so that a batch takes as long at any time (`_JVM`), or as it comes, like most clusters."""

PRELOAD_S = 10.0
"""For so long a session's first rows come fast, until each key has been seen."""


@dataclass(frozen=True)
class Fault:
    """One thing that is done to a process of a query, ``at_s`` s after the episode's beginning; ``stop_s``:
    for ``stop_executor``, how long it is stopped, in s.
    """

    kind: FaultName
    at_s: float
    query: int = 0
    stop_s: float = 0.0


@dataclass(frozen=True)
class Episode:
    """A part of a session with one rate; begin_s and end_s in s since the session's t0. ``held_out``: not for
    the fit, but for the comparison with what is predicted.
    """

    begin_s: float
    end_s: float
    rate_per_s: int
    purpose: Purpose
    held_out: bool = False
    fault: Fault | None = None

    @property
    def harm(self) -> str:
        return self.fault.kind.replace("_", " ") if self.fault else ""


@dataclass(frozen=True)
class SessionPlan:
    """One lifetime of a query, or of two queries on the same input (active replication).

    keys: of a running count (a word count has its 19 words). work: extra work per row, see ``counts``.
    Episodes follow each other without gaps; before the first, the query has time to settle.
    """

    name: str
    strategy: StrategyName
    pipeline: Pipeline
    master: str
    seed: int
    episodes: tuple[Episode, ...]
    keys: int = 0
    work: int = 0
    trigger_s: float = 1.0
    window_s: int = 2
    partitions: int = 2
    jvm: Jvm = "shipped"

    def __post_init__(self) -> None:
        executors, _ = executors_of(self.master)
        without_gaps(self.name, self.episodes)
        for episode in self.episodes:
            fault = episode.fault
            if fault is None:
                continue
            if not 0 <= fault.at_s < episode.end_s - episode.begin_s:
                raise ValueError(f"session {self.name}: at_s: the fault must lie inside its episode")
            if fault.kind != "kill_driver" and not executors:
                raise ValueError(f"session {self.name}: master: {self.master} has no executors to be killed")
            if fault.query >= self.queries:
                raise ValueError(f"session {self.name}: query: there are {self.queries}")

    @property
    def queries(self) -> int:
        return 2 if self.strategy == "active_replication" else 1

    @property
    def end_s(self) -> float:
        return self.episodes[-1].end_s

    def at_pace(self, pace: int) -> SessionPlan:
        """See `Plan.at_pace`."""
        episodes = tuple(
            replace(
                episode,
                begin_s=pace * episode.begin_s,
                end_s=pace * episode.end_s,
                rate_per_s=round(episode.rate_per_s / pace),
                fault=(fault := episode.fault)
                and replace(fault, at_s=pace * fault.at_s, stop_s=pace * fault.stop_s),
            )
            for episode in self.episodes
        )
        trigger_s, window_s = pace * self.trigger_s, pace * self.window_s
        return replace(self, episodes=episodes, trigger_s=trigger_s, window_s=window_s)

    @property
    def pieces(self) -> tuple[tuple[float, int], ...]:
        """The rates: at first such that every key is seen, then those of the episodes."""
        first = self.episodes[0]
        keys = self.keys if self.pipeline == "running_count" else 0
        preload = max(first.rate_per_s, round(keys / PRELOAD_S))
        pieces = [(0.0, preload)]
        if preload > first.rate_per_s:
            pieces.append((PRELOAD_S, first.rate_per_s))
        for episode in self.episodes:
            if episode.rate_per_s != pieces[-1][1]:
                pieces.append((episode.begin_s, episode.rate_per_s))
        return tuple(pieces)

    def schedule(self, t0: int) -> Schedule:
        return Schedule(t0, self.pieces, self.end_s)

    def content(self, start: int = 0) -> Content:
        """What the rows hold, for a query that begins to read at the row ``start``."""
        sentences = SENTENCES if self.pipeline == "word_count" else ()
        return Content(self.seed, start, self.partitions, sentences, self.keys)


@dataclass(frozen=True)
class Plan:
    name: str
    sessions: tuple[SessionPlan, ...]

    @property
    def seconds(self) -> float:
        return sum(session.end_s + OVERHEAD_S for session in self.sessions)

    def with_jvm(self, jvm: Jvm) -> Plan:
        """The same with other settings of Java; with the stock ones recoveries get more time."""
        longer = _LONGER_S if jvm == "stock" else {}
        sessions = []
        for session in self.sessions:
            kinds = [episode.fault.kind if episode.fault else "" for episode in session.episodes]
            behind = list(accumulate((longer.get(kind, 0.0) for kind in kinds), initial=0.0))
            episodes = tuple(
                replace(episode, begin_s=episode.begin_s + before, end_s=episode.end_s + after)
                for episode, (before, after) in zip(session.episodes, pairwise(behind), strict=True)
            )
            sessions.append(replace(session, jvm=jvm, episodes=episodes))
        return replace(self, sessions=tuple(sessions))

    def at_pace(self, pace: int) -> Plan:
        """The same for a machine ``pace`` times as slow: all lasts so many times as long, at rates as many
        times lower. A batch has as many rows then, and as large a part of its interval for them.
        """
        return replace(self, sessions=tuple(session.at_pace(pace) for session in self.sessions))


@dataclass(frozen=True)
class DriverSpec:
    """One life of one query's driver.

    plan: of its session. query: 0, or 1 for the second of two. life: how often the driver was started before.
    tag: in the environment of every process that descends from it. directory: the session's. scratch: for
    Spark's own files.
    """

    plan: SessionPlan
    query: int
    life: int
    tag: str
    directory: Path
    scratch: Path

    @property
    def events(self) -> Path:
        return self.directory / f"driver-{self.query}-{self.life}.jsonl"

    @property
    def spark_events(self) -> Path:
        return self.directory / "spark-events" / f"{self.query}-{self.life}"


SPEC = TypeAdapter(DriverSpec)

_LONGER_S = {"kill_driver": 26.0, "kill_executor": 12.0, "stop_executor": 12.0}
"""With the stock settings of Java a driver needs about 30 s to come back, in place of 22."""
OVERHEAD_S = 24.0
"""Start, warm-up and end of a session take about this long."""


def executors_of(master: str) -> tuple[int, int]:
    """(executors, cores) of a master: ``local[2]`` has (0, 2), ``local-cluster[2,1,1024]`` has (2, 2). Raises
    ValueError for any other form.
    """
    if found := re.fullmatch(r"local\[(\d+)\]", master):
        return 0, int(found[1])
    if found := re.fullmatch(r"local-cluster\[(\d+),(\d+),\d+\]", master):
        return int(found[1]), int(found[1]) * int(found[2])
    raise ValueError(f"master: {master!r} is neither local[N] nor local-cluster[N,C,M]")


# All word counts do the same work per row, and all recoveries have the same trigger and window: what differs
# between strategies is then the strategy.

STRATEGIES: tuple[StrategyName, ...] = ("micro_batch", "source_replay", "active_replication")
CLUSTER = "local-cluster[2,1,1024]"
LOCAL = "local[2]"

WORK = 10
"""Extra work per sentence: without it a row costs next to nothing, compared with a batch."""

_SETTLE_S = 10.0
"""The first batches of a query, though all is warm, take a few seconds, and have a backlog to work off."""
_PRELOAD_S = 24.0
"""With a million keys, it is two long batches until each has been seen."""
_STEADY_S = 12.0

Kill = tuple[FaultName, int, float]
"""What is done, at which rate per s, and at which fraction of a second: triggers are at whole seconds."""
_EXECUTOR: FaultName = "kill_executor"
_DRIVER: FaultName = "kill_driver"


def tiny(seed: int = 1) -> Plan:
    """Half a minute of measurements: one rate, one executor killed."""
    steady = Episode(_SETTLE_S, 16.0, 1000, "steady")
    kill = Episode(16.0, 33.0, 1000, "recovery", fault=Fault("kill_executor", 4.25))
    session = SessionPlan("kill", "micro_batch", "word_count", CLUSTER, seed, (steady, kill), work=WORK)
    return Plan("tiny", (session,))


def quick(seed: int = 1) -> Plan:
    """About six minutes, all three strategies: kills of both kinds for the fit, and one of each strategy that
    is held out.
    """
    most: list[Kill] = [(_EXECUTOR, 2000, 0.25), (_EXECUTOR, 4000, 0.7), (_DRIVER, 3000, 0.6)]
    most += [(_EXECUTOR, 3000, 0.35)]
    others: list[Kill] = [(_EXECUTOR, 2000, 0.3), (_DRIVER, 3000, 0.6), (_EXECUTOR, 3000, 0.7)]
    sessions = [_steady(seed, [2000, 10_000, 5000], [2], keys=10_000)]
    for strategy in STRATEGIES:
        kills = most if strategy == "micro_batch" else others
        sessions.append(_kills("", strategy, seed, kills, held_out=[len(kills) - 1]))
    return Plan("quick", tuple(sessions))


def full(seed: int = 1) -> Plan:
    """About half an hour: steady states over rates and state sizes, and for each strategy six kills for the
    fit and six that are held out, at other rates and other moments.
    """
    sessions = [
        *(_steady(seed, [2000, 8000, 16_000], keys=n) for n in (100, 10_000, 100_000, 1_000_000)),
        *(_steady(seed + 1, [5000, 12_000, 3000], [0, 1, 2], keys=n) for n in (3000, 300_000)),
        _steady(seed, [1000, 4000, 2500, 6000], [2, 3]),
        _steady(seed, [1000, 5000, 3000, 7000], [2, 3], master=CLUSTER),
    ]
    fit: list[Kill] = [(_EXECUTOR, 2000, 0.25), (_EXECUTOR, 4000, 0.7), (_DRIVER, 2000, 0.3)]
    fit += [(_EXECUTOR, 5000, 0.1), (_EXECUTOR, 3000, 0.55), (_DRIVER, 4000, 0.75)]
    held_out: list[Kill] = [(_EXECUTOR, 3000, 0.15), (_EXECUTOR, 4500, 0.45), (_DRIVER, 3000, 0.6)]
    held_out += [(_EXECUTOR, 2500, 0.8), (_EXECUTOR, 3500, 0.35), (_DRIVER, 3500, 0.2)]
    for strategy in STRATEGIES:
        stops: list[Kill] = [("stop_executor", 3000, 0.3)] if strategy == "micro_batch" else []
        sessions += [
            _kills("-fit", strategy, seed, [*fit, *stops]),
            _kills("-held-out", strategy, seed + 1, [*held_out, *stops], range(len(held_out) + 1)),
        ]
    return Plan("full", tuple(sessions))


def _steady(
    seed: int, rates: Sequence[int], held_out: Sequence[int] = (), *, keys: int = 0, master: str = LOCAL
) -> SessionPlan:
    """Rates one after the other; those at the places ``held_out`` are not for the fit. A running count of so
    many keys, or else a word count.
    """
    pipeline: Pipeline = "running_count" if keys else "word_count"
    name = f"keys-{keys}" if keys else "words-cluster" if master == CLUSTER else "words"
    begin = _PRELOAD_S if keys >= 1_000_000 else _SETTLE_S
    episodes = []
    for place, rate in enumerate(rates):
        episodes.append(Episode(begin, begin + _STEADY_S, rate, "steady", place in held_out))
        begin += _STEADY_S
    return SessionPlan(
        f"steady-{name}", "micro_batch", pipeline, master, seed, tuple(episodes), keys, 0 if keys else WORK
    )


def _kills(
    suffix: str, strategy: StrategyName, seed: int, kills: Sequence[Kill], held_out: Sequence[int] = ()
) -> SessionPlan:
    begin = _SETTLE_S
    episodes = []
    for place, (kind, rate, fraction) in enumerate(kills):
        end = begin + (34.0 if kind == "kill_driver" else 15.0)
        fault = Fault(kind, 4.0 + fraction, stop_s=4.0 if kind == "stop_executor" else 0.0)
        episodes.append(Episode(begin, end, rate, "recovery", place in held_out, fault))
        begin = end
    name = f"recovery-{strategy.replace('_', '-')}{suffix}"
    return SessionPlan(name, strategy, "word_count", CLUSTER, seed, tuple(episodes), work=WORK)


LOCALITY_WAIT_S = 0.5
"""In s; part of the output gap where one of several partitions of the state was lost."""

# A compiler that does not optimise much, and one thread for garbage: a batch takes as long in the tenth
# minute as in the first, and the cores are there for the tasks. With the stock settings, durations fall for
# minutes, so what is fitted holds for a query, or an executor, as young as those that were measured.
_JVM: dict[Jvm, str] = {"shipped": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC ", "stock": ""}

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def spark_settings(spec: DriverSpec) -> dict[str, str]:
    java = f"{_JVM[spec.plan.jvm]}-Djava.io.tmpdir={spec.scratch} -Dtideover.tag={spec.tag}"
    return {
        **sweeps.settings(spec.plan.master, "tideover calibrate", spec.scratch),
        # Out of the network's reach; and it starts even where the host's own name does not resolve.
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java,
        "spark.executorEnv." + TAG: spec.tag,
        "spark.executor.memory": "1g",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(spec.scratch / "local"),
        # As many partitions of the state as there are cores.
        "spark.sql.shuffle.partitions": str(spec.plan.partitions),
        # Would plan each batch anew in the light of its size; stateful queries do not use it.
        "spark.sql.adaptive.enabled": "false",
        # The state store that keeps more state than fits the heap, and the one that is worth measuring.
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        # A batch without rows would run only to drop old windows; it would look like a batch of size 0.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # When each task began and ended, on which executor: read from this log after the session.
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": spec.spark_events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        # We kill more executors than a cluster's master would forgive.
        "spark.deploy.maxExecutorRetries": "-1",
        # Each kill may take an attempt of each task with it.
        "spark.task.maxFailures": "8",
        # How long a task waits for the executor that has its state, or had it. The default, 3 s, is about as
        # long as a new executor takes to come: chance would decide whether that one or the survivor gets the
        # partitions that were lost. This is short enough for the survivor to get them in any case, and long
        # enough for its partitions to wait for each other there.
        "spark.locality.wait": f"{round(LOCALITY_WAIT_S * 1000)}ms",
        # Whether a wait is over is looked at once a second by default, which adds half a second of chance.
        "spark.scheduler.revive.interval": "100ms",
        # On one machine a refused connection says that the process is gone. The defaults, three times after
        # 5 s each, wait for a network to mend.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "100ms",
    }


def environment(java: Java, tag: str, scratch: Path) -> dict[str, str]:
    """The whole environment of a driver: ours, without what another Spark has left in it."""
    chosen: dict[str, str | None] = {
        **sweeps.environment("local", java_environment(java)),
        TAG: tag,
        # The workers of a local cluster would write into the installed package.
        "SPARK_WORKER_DIR": str(scratch / "work"),
        "TMPDIR": str(scratch),
        # Executors, too, are out of the network's reach.
        "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Draws and Arrow are fast enough on one thread, and more would take the cores from the tasks.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    kept = {name: value for name, value in os.environ.items() if name not in chosen}
    return kept | {name: value for name, value in chosen.items() if value is not None}
