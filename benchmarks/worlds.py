"""The scenarios that are timed."""

from __future__ import annotations

from typing import Any

from tideover.models.config import Scenario
from tideover.models.job.arrivals import Periodic, Poisson
from tideover.models.job.components import BoltConfig, Links, Run, SpoutConfig
from tideover.models.job.groupings import GROUPINGS
from tideover.models.job.spouts import SPOUTS, Keys
from tideover.models.operators.base import BOLTS
from tideover.models.operators.kinds import FLAT, LENGTHS, WORDS
from tideover.models.strategies.base import STRATEGIES
from tideover.models.strategies.none import Amnesia
from tideover.models.strategies.source_replay import SourceReplay
from tideover.models.world import World
from tideover.sim.distributions import Constant, Distribution, Exponential
from tideover.sim.fault_kinds import LoseState
from tideover.sim.units import MS, S

SPLITTERS, COUNTERS = 4, 8


def bolt(
    kind: str, source: str, grouping: str, service: Distribution, tasks: int = 1, **more: Any
) -> BoltConfig:
    """A bolt that reads one stream."""
    how = GROUPINGS[grouping](**({"fields": ("word",)} if grouping == "fields" else {}))
    return BoltConfig(bolt=BOLTS[kind](**more), from_={source: how}, service=service, parallelism=tasks)


def scenario(name: str, topology: dict[str, Any], strategy: Any, seconds: float, **more: Any) -> Scenario:
    """Links take no time, so that the reference needs no process per message on the wire."""
    return Scenario(
        name=name,
        topology=topology,
        strategy=strategy,
        links=Links(latency=Constant(value=0), local=Constant(value=0), pairs={}),
        run=Run(duration=round(seconds * S)),
        **more,
    )


def tandem(rate: float, load: float, seconds: float) -> Scenario:
    """Three queues, one after the other: Poisson arrivals, exponential service."""
    service = Exponential(mean=round(load * 1e9 / rate))
    topology: dict[str, Any] = {"source": SpoutConfig(spout=Keys(keys=1), arrivals=Poisson(rate=rate))}
    for up, name in (("source", "first"), ("first", "second"), ("second", "third")):
        topology[name] = bolt("forward", up, "shuffle", service)
    return scenario("tandem", topology, Amnesia(), seconds)


def heaviest_share() -> float:
    """Words a root that go to the counting task with the most of them."""
    share = [sum(1 for word in FLAT if word % COUNTERS == task) / len(LENGTHS) for task in range(COUNTERS)]
    return max(share)


def word_count(rate: float, load: float, seconds: float, losses: int = 3) -> Scenario:
    """Word count under source replay: 4 + 8 tasks, windows of 1 s, timeout 2 s; some counts lose their
    state.
    """
    topology = {
        "sentences": SpoutConfig(spout=SPOUTS["sentences"](), arrivals=Poisson(rate=rate)),
        "split": bolt(
            "split_words",
            "sentences",
            "shuffle",
            Exponential(mean=round(load * SPLITTERS * 1e9 / rate)),
            SPLITTERS,
        ),
        "count": bolt(
            "windowed_count",
            "split",
            "fields",
            Exponential(mean=round(load * 1e9 / rate / heaviest_share())),
            COUNTERS,
            window={"length": S},
        ),
    }
    failures = tuple(
        LoseState(
            at=round((i + 1) * seconds * S / (losses + 2)) + 370 * MS, component="count", task=2 * i + 1
        )
        for i in range(losses)
    )
    replay = SourceReplay(message_timeout=2 * S, timeout_phase=0)
    return scenario("word count", topology, replay, seconds, failures=failures)


def small(strategy: str) -> Scenario:
    """Stableford's word count: 10 sentences/s for 240 s, windows of 30 s, one count loses its state."""
    more: dict[str, dict[str, Any]] = {
        "source_replay": {"message_timeout": 30 * S},
        "rsm": {"checkpoint_interval": 10 * S},
        "passive_standby": {"checkpoint_interval": 10 * S},
        "active_replication": {"k": 1},
        "aligned_snapshots": {"checkpoint_interval": 10 * S},
        "micro_batch": {"trigger_interval": 1 * S},
        "hybrid": {"rest": STRATEGIES["rsm"].model_validate({"checkpoint_interval": 10 * S})},
    }
    topology = {
        "sentences": SpoutConfig(spout=SPOUTS["sentences"](), arrivals=Periodic(rate=10)),
        "split": bolt("split_words", "sentences", "shuffle", Constant(value=200_000)),
        "count": bolt(
            "windowed_count", "split", "fields", Constant(value=100_000), window={"length": 30 * S}
        ),
    }
    loss = LoseState(at=75 * S, component="count")
    part = STRATEGIES[strategy]
    needed = {key: value for key, value in part.typical.items() if part.model_fields[key].is_required()}
    return scenario("small", topology, part(**more.get(strategy, needed)), 240, failures=(loss,), hosts=3)


def hops(world: World) -> int:
    """Tuples sent to bolt tasks: each is served once."""
    return sum(
        channel.messages
        for replicas in world.job.bolts.values()
        for task in replicas
        for channel in task.inputs
    )


__all__ = ["COUNTERS", "SPLITTERS", "WORDS", "hops", "small", "tandem", "word_count"]
