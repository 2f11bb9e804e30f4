"""Random small worlds for hypothesis: all shapes, strategies and faults, with and without ties in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tideover.models.arrivals.poisson import Poisson
from tideover.models.config import GROUPINGS, STRATEGIES, BoltConfig, Links, Scenario, SpoutConfig, Store
from tideover.sim.distributions.base import Distribution
from tideover.sim.distributions.exponential import Exponential

from .worlds import MS, bolt, fault, ms, spout, world

STRATEGY_NAMES = ("none", "source_replay", "rsm", "active_replication", "aligned_snapshots", "micro_batch")


@dataclass
class Stream:
    """What is known of a component's output while a topology is being made up."""

    field: str
    sentences: bool
    anchored: bool = True
    spout: bool = False
    used: bool = False


def times(ties: bool, *small: float) -> st.SearchStrategy[float]:
    """Milliseconds: some of the given ones, or any."""
    odd = st.integers(0, round(max(small) * MS)).map(lambda ns: ns / MS)
    return st.sampled_from(small) if ties else st.one_of(st.sampled_from(small), odd)


def durations(ties: bool, *small: float) -> st.SearchStrategy[Distribution]:
    """Constant; if not for ties, also exponential."""
    constant = times(ties, *small).map(ms)
    if ties:
        return constant
    mean = max(1, round(max(small) * MS) // 2)
    return st.one_of(constant, st.just(Exponential(mean=mean)))


@st.composite
def spouts(draw: st.DrawFn, ties: bool, hosts: int | None) -> tuple[SpoutConfig, Stream]:
    kind = draw(st.sampled_from(("sentences", "keys", "values")))
    more: dict[str, Any] = {"parallelism": draw(st.sampled_from((1, 1, 2)))}
    if kind == "keys":
        more |= {"keys": draw(st.integers(1, 5)), "exponent": draw(st.sampled_from((0.0, 1.1)))}
    if kind == "values":
        values = st.lists(st.integers(0, 9), min_size=1, max_size=8).map(tuple)
        more |= {"values": draw(values), "repeat": draw(st.booleans())}
    if hosts is not None and draw(st.booleans()):
        more["hosts"] = tuple(draw(st.integers(0, hosts - 1)) for _ in range(more["parallelism"]))
    gap = draw(times(ties, 5, 6, 10)) + (0 if ties else 4)
    if not ties and draw(st.booleans()):
        more["arrivals"] = Poisson(rate=1e3 / gap)
    offset = draw(st.sampled_from((0, 0, 5))) if ties else None
    field = "sentence" if kind == "sentences" else "key"
    return spout(kind, gap, offset, **more), Stream(field, kind == "sentences", spout=True)


@st.composite
def windows(draw: st.DrawFn, marker_ms: int, event_time: bool) -> dict[str, Any]:
    trigger = draw(st.sampled_from(("tick", "tick", "marker", "marker", "tuples")))
    if trigger == "tuples":
        return {"tuples": draw(st.integers(1, 9))}
    by_marker = event_time or trigger == "marker"
    length = marker_ms if by_marker else draw(st.sampled_from((10, 20, 30, 37)))
    return {"length": length * MS, "trigger": trigger}


@st.composite
def bolts(
    draw: st.DrawFn,
    ties: bool,
    hosts: int | None,
    streams: dict[str, Stream],
    last: bool,
    marker_ms: int,
    event_time: bool,
) -> tuple[BoltConfig, Stream]:
    unread = [name for name in streams if last and not streams[name].used and streams[name].spout]
    first = draw(st.sampled_from(unread or list(streams)))
    others = [name for name in streams if streams[name].anchored == streams[first].anchored]
    ups = [name for name in others if name == first or name in unread or draw(st.integers(0, 2)) == 0]
    inputs = {
        up: draw(st.sampled_from(("shuffle", "fields", "fields", "global", "all", "direct"))) for up in ups
    }
    sentences = all(streams[up].sentences for up in ups)
    kinds = ("split_words",) * 3 * sentences + ("forward", "filter", "generic") + ("windowed_count",) * 3
    kind = draw(st.sampled_from(kinds))
    more: dict[str, Any] = {"parallelism": draw(st.integers(1, 3))}
    if kind == "filter":
        more["keep"] = draw(st.sampled_from((0.0, 0.5, 0.9, 1.0)))
    if kind == "generic":
        more["selectivity"] = draw(st.sampled_from((0.0, 0.5, 1.0, 1.5, 2.0, 2.5)))
    if kind == "windowed_count":
        more["window"] = draw(windows(marker_ms, event_time))
    if hosts is not None and draw(st.booleans()):
        more["hosts"] = tuple(draw(st.integers(0, hosts - 1)) for _ in range(more["parallelism"]))
    config = bolt(kind, inputs, draw(durations(ties, 0, 0, 1, 2, 4)), **more)
    field = {"split_words": "word", "windowed_count": "key"}.get(kind, streams[ups[0]].field)
    for up, grouping in inputs.items():
        streams[up].used = True
        if grouping == "fields":
            config.from_[up] = GROUPINGS["fields"](fields=(streams[up].field,))
    anchored = kind != "windowed_count" and streams[first].anchored
    return config, Stream(field, sentences and kind in ("forward", "filter", "generic"), anchored)


@st.composite
def parameters(
    draw: st.DrawFn, strategy: str, ties: bool, names: list[str], hosts: int | None
) -> dict[str, Any]:
    def some(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    def ns(*small: float) -> int:
        return round(draw(times(ties, *small)) * MS)

    if strategy == "source_replay":
        timeout = some(10, 20, 30, 60) * MS
        return {
            "message_timeout": timeout,
            "timeout_buckets": some(2, 2, 3),
            "timeout_phase": some(0, None, timeout // 2),
            "acker_buckets": some(2, 3),
            "acker_host": some(None, 0, 1) if (hosts or 0) > 1 else some(None, 0),
            "ack_cost": ns(0, 0, 0.5, 1),
            "max_spout_pending": some(None, None, 1, 2, 5),
        }
    if strategy == "rsm":
        return {
            "checkpoint_interval": some(5, 10, 20, 35) * MS,
            "spout_buffer": some(True, False),
            "replay_cost": ns(0, 0, 1, 2),
            "replay_rate": some(None, None, 1000.0, 300.0),
            "serialise_time": ns(0, 0, 1),
            "serialise_cost": ns(0, 0, 0.5),
            "restore_time": ns(0, 0, 3),
            "restore_cost": ns(0, 0, 1),
        }
    if strategy == "aligned_snapshots":
        return {
            "checkpoint_interval": some(5, 10, 20, 35) * MS,
            "checkpoint_phase": some(None, None, 0, 7 * MS),
            "min_pause": ns(0, 0, 0, 4, 25),
            "checkpoint_timeout": some(None, None, None, 3 * MS, 12 * MS) or 1000 * MS,
            "snapshot_time": ns(0, 0, 1, 3),
            "snapshot_cost": ns(0, 0, 0.5),
            "upload_time": ns(0, 0, 2, 8),
            "restore_time": ns(0, 0, 3),
            "restore_cost": ns(0, 0, 1),
        }
    if strategy == "micro_batch":
        return {
            "recovery": some("checkpoint", "checkpoint", "replay"),
            "trigger_interval": some(0, 0, 10, 10, 20, 37) * MS,
            "poll_interval": some(1, 10) * MS,
            "plan_time": ns(0, 0, 1, 4),
            "task_time": ns(0, 2, 5, 10),
            "cores": some(1, 1, 2),
            "state_time": ns(0, 0, 1),
            "state_cost": ns(0, 0, 0.5),
            "output_time": ns(0, 0, 1, 3),
            "commit_time": ns(0, 1, 8, 15),
            "reload_time": ns(0, 0, 2),
            "reload_cost": ns(0, 0, 1),
            "executor_cold": ns(0, 0, 4),
            "state_cold": ns(0, 0, 3),
            "locality_wait": ns(0, 0, 5, 20),
            "resubmit_time": ns(0, 0, 2),
            "recovery_time": ns(0, 0, 5),
            "cold_time": ns(0, 0, 7),
        }
    if strategy == "active_replication":
        chosen = tuple(name for name in names if draw(st.booleans()))
        return {
            "k": some(0, 1, 1, 2),
            "components": some(None, None, chosen),
            "copy_time": ns(0, 0, 2, 10),
            "copy_bandwidth": some(None, None, 20_000),
        }
    return {}


@st.composite
def faults(
    draw: st.DrawFn, strategy: str, ties: bool, topology: dict, params: dict, until: int, hosts: int
) -> Any:
    kinds = ["lose_state", "lose_state", "crash_task", "crash_task", "crash_host", "pause"]
    if strategy == "micro_batch":
        kinds = ["lose_state", "crash_task", "crash_task", "crash_task", *["crash_host"] * 4, "pause"]
    kind = draw(st.sampled_from(kinds))
    at = draw(st.one_of(st.integers(1, until // 10).map(lambda n: 10 * n), times(ties, *range(1, until))))
    more: dict[str, Any] = {
        "detection": draw(times(ties, 0, 0, 0, 5)),
        "restart": draw(times(ties, 0, 0, 3, 10, 20)),
        "while_down": draw(st.sampled_from(("drop", "hold"))),
    }
    if STRATEGIES[strategy](**params).cycle() is not None:
        more["in_interval"] = draw(st.sampled_from((None, None, 0.3, 1.0)))
    if kind == "crash_host":
        return fault(kind, at, host=draw(st.integers(0, hosts - 1)), **more)
    if kind == "pause":
        del more["detection"], more["restart"]
        more["duration"] = max(1, round(draw(times(ties, 1, 5, 20)) * MS))
    names = [name for name in topology if kind != "lose_state" or isinstance(topology[name], BoltConfig)]
    if strategy == "source_replay" and kind == "crash_task":
        names.append("acker")
    if strategy == "micro_batch" and kind == "crash_task":
        names = [*names, *["driver"] * 2 * len(names)]
    name = draw(st.sampled_from(names))
    if name not in ("acker", "driver"):
        more["task"] = draw(st.integers(0, topology[name].parallelism - 1))
    replicated = strategy == "active_replication" and isinstance(topology.get(name), BoltConfig)
    if replicated and (params["components"] is None or name in params["components"]):
        more["replica"] = draw(st.integers(0, params["k"]))
    return fault(kind, at, component=name, **more)


@st.composite
def links(draw: st.DrawFn, ties: bool, hosts: int) -> Links:
    some = durations(ties, 0, 0, 1, 3)
    pairs = {}
    if hosts > 1 and draw(st.booleans()):
        a = draw(st.integers(0, hosts - 2))
        pairs[f"{a}-{draw(st.integers(a + 1, hosts - 1))}"] = draw(some)
    return Links(latency=draw(some), local=draw(some), pairs=pairs)


@st.composite
def worlds(draw: st.DrawFn, strategies: tuple[str, ...] = STRATEGY_NAMES) -> Scenario:
    """A whole scenario: one or two spouts, one to three bolts, up to three faults, some 20 to 500 tuples."""
    ties = draw(st.booleans())
    strategy = draw(st.sampled_from(strategies))
    machines = (None, 1, 2, 2, 2, 3) if strategy == "micro_batch" else (None, None, 1, 2, 3, 4)
    hosts = draw(st.sampled_from(machines))
    marker_ms = draw(st.sampled_from((10, 20, 30)))
    event_time = STRATEGIES[strategy].event_time
    streams: dict[str, Stream] = {}
    topology: dict[str, SpoutConfig | BoltConfig] = {}
    for name in ("a", "b")[: draw(st.integers(1, 2))]:
        topology[name], streams[name] = draw(spouts(ties, hosts))
    names = ["p", "q", "r"][: draw(st.integers(1, 3))]
    for name in names:
        config, streams[name] = draw(bolts(ties, hosts, streams, name == names[-1], marker_ms, event_time))
        topology[name] = config
    params = draw(parameters(strategy, ties, names, hosts))
    until = draw(st.sampled_from((60, 90, 150, 200)))
    copies = 1 + params.get("k", 0)
    known = hosts or sum(config.parallelism * copies for config in topology.values())
    count = draw(st.sampled_from((0, 1, 1, 2, 3)))
    failures = tuple(draw(faults(strategy, ties, topology, params, until, hosts or 3)) for _ in range(count))
    store = draw(st.sampled_from((Store(latency=0, bandwidth=2**50), Store(latency=MS, bandwidth=50_000))))
    link = draw(links(ties, known))
    seed = draw(st.integers(0, 2**40))
    return world(topology, strategy, failures, until, seed, hosts=hosts, links=link, store=store, **params)
