"""The plans that ``tideover calibrate`` knows: tiny (for tests), quick, and full.

All word counts do the same work per row, and all recoveries have the same trigger and window: what differs
between strategies is then the strategy.
"""

from __future__ import annotations

from collections.abc import Sequence

from tideover.calibrate.real.pipelines import Pipeline
from tideover.calibrate.real.plan import Episode, Fault, FaultName, Plan, SessionPlan, StrategyName

STRATEGIES: tuple[StrategyName, ...] = ("micro_batch", "source_replay", "active_replication")
CLUSTER = "local-cluster[2,1,1024]"
LOCAL = "local[2]"

WORK = 10
"""Extra work per sentence: without it a row costs next to nothing, compared with a batch."""

_SETTLE_S = 10.0
"""The first batches of a query, though all is warm, take a few seconds, and have a backlog to work off."""
_PRELOAD_S = 24.0
"""With a million keys, it is two long batches until each has been seen."""

_LENGTH_S: dict[FaultName, float] = {"kill_executor": 15.0, "kill_driver": 34.0, "stop_executor": 15.0}
_STEADY_S = 12.0

Kill = tuple[FaultName, int, float]
"""What is done, at which rate per s, and at which fraction of a second: triggers are at whole seconds."""


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
    micro_batch: list[Kill] = [
        ("kill_executor", 2000, 0.25),
        ("kill_executor", 4000, 0.7),
        ("kill_driver", 3000, 0.6),
        ("kill_executor", 3000, 0.35),
    ]
    others: list[Kill] = [
        ("kill_executor", 2000, 0.3),
        ("kill_driver", 3000, 0.6),
        ("kill_executor", 3000, 0.7),
    ]
    sessions = [
        _steady("keys-10000", "running_count", LOCAL, 10_000, seed, [2000, 10_000, 5000], held_out=[2])
    ]
    for strategy in STRATEGIES:
        kills = micro_batch if strategy == "micro_batch" else others
        sessions.append(_kills("", strategy, seed, kills, held_out=[len(kills) - 1]))
    return Plan("quick", tuple(sessions))


def full(seed: int = 1) -> Plan:
    """About half an hour: steady states over rates and state sizes, and for each strategy six kills for the
    fit and six that are held out, at other rates and other moments.
    """
    sizes = [100, 10_000, 100_000, 1_000_000]
    unseen = [3000, 300_000]
    steady = [
        *(_steady(f"keys-{n}", "running_count", LOCAL, n, seed, [2000, 8000, 16_000]) for n in sizes),
        *(
            _steady(f"keys-{n}", "running_count", LOCAL, n, seed + 1, [5000, 12_000, 3000], [0, 1, 2])
            for n in unseen
        ),
        _steady("words", "word_count", LOCAL, 0, seed, [1000, 4000, 2500, 6000], [2, 3]),
        _steady("words-cluster", "word_count", CLUSTER, 0, seed, [1000, 5000, 3000, 7000], [2, 3]),
    ]
    return Plan("full", (*steady, *_recoveries(seed)))


def _recoveries(seed: int) -> list[SessionPlan]:
    fit: list[Kill] = [
        ("kill_executor", 2000, 0.25),
        ("kill_executor", 4000, 0.7),
        ("kill_driver", 2000, 0.3),
        ("kill_executor", 5000, 0.1),
        ("kill_executor", 3000, 0.55),
        ("kill_driver", 4000, 0.75),
    ]
    held_out: list[Kill] = [
        ("kill_executor", 3000, 0.15),
        ("kill_executor", 4500, 0.45),
        ("kill_driver", 3000, 0.6),
        ("kill_executor", 2500, 0.8),
        ("kill_executor", 3500, 0.35),
        ("kill_driver", 3500, 0.2),
    ]
    sessions = []
    for strategy in STRATEGIES:
        stops: list[Kill] = [("stop_executor", 3000, 0.3)] if strategy == "micro_batch" else []
        sessions += [
            _kills("-fit", strategy, seed, [*fit, *stops]),
            _kills("-held-out", strategy, seed + 1, [*held_out, *stops], range(len(held_out) + 1)),
        ]
    return sessions


def _steady(
    name: str,
    pipeline: Pipeline,
    master: str,
    keys: int,
    seed: int,
    rates: Sequence[int],
    held_out: Sequence[int] = (),
) -> SessionPlan:
    """Rates one after the other; those at the places ``held_out`` are not for the fit."""
    begin = _PRELOAD_S if keys >= 1_000_000 else _SETTLE_S
    episodes = []
    for place, rate in enumerate(rates):
        episodes.append(Episode(begin, begin + _STEADY_S, rate, "steady", place in held_out))
        begin += _STEADY_S
    work = WORK if pipeline == "word_count" else 0
    return SessionPlan(f"steady-{name}", "micro_batch", pipeline, master, seed, tuple(episodes), keys, work)


def _kills(
    suffix: str, strategy: StrategyName, seed: int, kills: Sequence[Kill], held_out: Sequence[int] = ()
) -> SessionPlan:
    """One fault after the other, each a few seconds after its rate began."""
    name = f"recovery-{strategy.replace('_', '-')}{suffix}"
    begin = _SETTLE_S
    episodes = []
    for place, (kind, rate, fraction) in enumerate(kills):
        end = begin + _LENGTH_S[kind]
        fault = Fault(kind, 4.0 + fraction, stop_s=4.0 if kind == "stop_executor" else 0.0)
        episodes.append(Episode(begin, end, rate, "recovery", place in held_out, fault))
        begin = end
    return SessionPlan(name, strategy, "word_count", CLUSTER, seed, tuple(episodes), work=WORK)
