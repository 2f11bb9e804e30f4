"""What is to be measured on Flink: sessions of episodes, planned beforehand; how Flink is set up for them.

`sessions` carries out a plan, `supervisor` a session of it. A new plan is a function like `quick`; what is in
a plan is written to its sessions' files, so a renamed field makes old ones void.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tideover.calibrate.real.sessions import without_gaps

# A cluster takes half a minute to start and warm up, so one start serves for much: a *session* is the
# lifetime of one job, with one checkpoint interval, and an *episode* of it has one rate and one kill.

SETTLE_S = 15.0
"""The JVMs compile what they run often, and the backlog of the first second goes."""
BEFORE_S = 9.0
"""Of each episode, before the kill: what is normal there is what the backlog has to come back to."""
OVERHEAD_S = 30.0
"""Start and end of a session take about this long."""


@dataclass(frozen=True)
class Episode:
    """A part of a session with one rate, in which one TaskManager is killed ``kill_s`` s after its beginning;
    begin_s and end_s in s since the session's t0. ``held_out``: not for the fit, but for the comparison with
    what is predicted. ``victim``: number of the TaskManager.
    """

    begin_s: float
    end_s: float
    rate_per_s: int
    kill_s: float
    victim: int = 0
    held_out: bool = False

    @property
    def harm(self) -> str:
        return f"TaskManager {self.victim} killed"


@dataclass(frozen=True)
class SessionPlan:
    """One lifetime of a job and its cluster.

    interval_s        between the beginnings of two checkpoints
    taskmanagers      each with one slot: none is spare, so who is killed has to be replaced
    keys, row_us      keys of each split of the log; CPU time that counting a row costs, us
    replace_s         from a kill until its replacement is started
    restart_delay_s   of the fixed-delay restart strategy
    heartbeat_s, timeout_s   interval and timeout of heartbeats
    """

    name: str
    interval_s: float
    episodes: tuple[Episode, ...]
    taskmanagers: int = 2
    keys: int = 2000
    row_us: int = 120
    replace_s: float = 1.0
    restart_delay_s: float = 1.0
    heartbeat_s: float = 2.0
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        without_gaps(self.name, self.episodes)
        for episode in self.episodes:
            if not 0 <= episode.kill_s < episode.end_s - episode.begin_s:
                raise ValueError(f"session {self.name}: kill_s: the kill must lie inside its episode")
            if not 0 <= episode.victim < self.taskmanagers:
                raise ValueError(f"session {self.name}: victim: there are {self.taskmanagers} TaskManagers")

    @property
    def end_s(self) -> float:
        return self.episodes[-1].end_s

    @property
    def pieces(self) -> tuple[tuple[float, int], ...]:
        """The rates (1/s, of all splits), each from when on (s since t0)."""
        found = [(0.0, self.episodes[0].rate_per_s)]
        for episode in self.episodes:
            if episode.rate_per_s != found[-1][1]:
                found.append((episode.begin_s, episode.rate_per_s))
        return tuple(found)

    @property
    def split_rows(self) -> int:
        """Rows of each split of the log: those that are due by the session's end."""
        edges = [*(from_s for from_s, _ in self.pieces), self.end_s]
        rows = sum((b - a) * rate for (a, b), (_, rate) in zip(pairwise(edges), self.pieces, strict=True))
        return round(rows / self.taskmanagers)


@dataclass(frozen=True)
class Plan:
    name: str
    sessions: tuple[SessionPlan, ...]

    @property
    def seconds(self) -> float:
        return sum(session.end_s + OVERHEAD_S for session in self.sessions)


def tiny(seed: int = 1) -> Plan:
    """One kill."""
    return Plan("tiny", (_session("tiny", seed, 2.0, [1000]),))


def quick(seed: int = 1) -> Plan:
    """Under eight minutes: nine kills at two intervals, three of them held out."""
    return Plan(
        "quick",
        (
            _session("every-2s", seed, 2.0, [2000, 6000, 4000, 6000, 2000], held_out=[2, 4]),
            _session("every-10s", seed + 1, 10.0, [2000, 6000, 4000, 2000], held_out=[2]),
        ),
    )


def full(seed: int = 1) -> Plan:
    """Under an hour: 36 kills over three intervals and three rates, a third of them held out."""
    sessions = []
    for place, interval_s in enumerate((2.0, 5.0, 10.0)):
        for half in range(2):
            rates = [2000, 6000, 4000, 6000, 2000, 4000]
            name, held_out = f"every-{interval_s:.0f}s-{half + 1}", [1, 5 - half]
            own = seed + 2 * place + half
            sessions.append(_session(name, own, interval_s, rates, held_out, after_s=30.0))
    return Plan("full", tuple(sessions))


def _session(
    name: str,
    seed: int,
    interval_s: float,
    rates: Sequence[int],
    held_out: Sequence[int] = (),
    after_s: float = 18.0,
) -> SessionPlan:
    """One kill at each rate, at a drawn moment of the checkpoint interval, of the TaskManagers in turn.

    after_s: left for each recovery, and 2 ms more for each row per second: more rows take longer.
    """
    moments = np.random.Generator(np.random.PCG64(seed)).uniform(0, interval_s, len(rates))
    begin, episodes = SETTLE_S, []
    for place, (rate, moment) in enumerate(zip(rates, moments.tolist(), strict=True)):
        kill_s = round(BEFORE_S + moment, 3)
        end = begin + round(kill_s + after_s + rate / 500, 3)
        episodes.append(Episode(begin, end, rate, kill_s, place % 2, place in held_out))
        begin = end
    return SessionPlan(name, interval_s, tuple(episodes))


def configuration(plan: SessionPlan, scratch: str) -> dict[str, str]:
    """Flink's settings (``config.yaml``) for a session; ``scratch``: a directory of its own."""
    loopback = "127.0.0.1"  # out of the network's reach, and ports are free ones
    return {
        "jobmanager.rpc.address": loopback,
        "jobmanager.bind-host": loopback,
        "jobmanager.rpc.port": "0",
        "rest.address": loopback,
        "rest.bind-address": loopback,
        "rest.port": "0",
        "taskmanager.host": loopback,
        "taskmanager.bind-host": loopback,
        "taskmanager.numberOfTaskSlots": "1",
        "parallelism.default": str(plan.taskmanagers),
        "jobmanager.memory.process.size": "1g",
        "taskmanager.cpu.cores": "1.0",
        "taskmanager.memory.task.heap.size": "192m",
        "taskmanager.memory.task.off-heap.size": "0m",
        "taskmanager.memory.managed.size": "96m",
        # Rows are tiny: buffers of the default 32 kB hold seconds of work, which a barrier would wait for.
        "taskmanager.memory.segment-size": "4 kb",
        "taskmanager.memory.network.min": "64m",
        "taskmanager.memory.network.max": "64m",
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "64m",
        "taskmanager.memory.jvm-metaspace.size": "128m",
        "taskmanager.memory.jvm-overhead.min": "64m",
        "taskmanager.memory.jvm-overhead.max": "64m",
        "heartbeat.interval": f"{round(plan.heartbeat_s * 1000)} ms",
        "heartbeat.timeout": f"{round(plan.timeout_s * 1000)} ms",
        "execution.checkpointing.interval": f"{round(plan.interval_s * 1000)} ms",
        "execution.checkpointing.dir": f"file://{scratch}/checkpoints",
        "execution.checkpointing.incremental": "true",
        "state.backend.type": "rocksdb",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000000",
        "restart-strategy.fixed-delay.delay": f"{round(plan.restart_delay_s * 1000)} ms",
        # All that happened is asked for when the session ends.
        "web.checkpoints.history": "10000",
        "web.exception-history-size": "1000",
        "execution.shutdown-on-application-finish": "false",
        "io.tmp.dirs": f"{scratch}/tmp",
    }
