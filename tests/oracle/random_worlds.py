"""Random small worlds for hypothesis: all shapes, strategies, arrivals and faults; some with ties in time.

Numbers of tuples are small, and times long: a run takes seconds, since what is said of a recovery is read at
boundaries of 10 ms, and looks 4 s ahead. Where nothing else is said, times are in ticks of 100 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.job.arrivals import Day
from tideover.models.job.components import BoltConfig, Links, SpoutConfig, Store
from tideover.models.strategies.base import STRATEGIES
from tideover.models.strategies.source_replay import SourceReplay
from tideover.sim.faults import Fault
from tideover.sim.registry import kind_of

from .random_parameters import BATCHES, PARAMETERS, STORM, STRATEGY_NAMES, Maker
from .random_times import TICK, TICK_MS, durations, times, up_to
from .random_topologies import Stream, bolts, spouts
from .random_windows import BY_EVENT, COUNTS, joined_windows, windows
from .worlds import MS, fault, world


@st.composite
def noon(draw: st.DrawFn, failures: tuple[Fault, ...]) -> dict[str, Any]:
    """When the run begins: a little before noon."""
    if any(fault.at is not None for fault in failures) and draw(st.booleans()):
        return {"fails_at": draw(st.sampled_from(("12:00:02", "peak")))}
    return {"starts_at": draw(st.sampled_from(("11:59:57.123456789", "11:59:50")))}


@st.composite
def faults(
    draw: st.DrawFn, strategy: str, ties: bool, topology: dict, params: dict, until: int, hosts: int
) -> Any:
    kinds = ["lose_state", "lose_state", "crash_task", "crash_task", "crash_host", "pause"]
    executors = strategy in ("micro_batch", "batch_rerun")
    if executors:
        kinds = ["lose_state", "crash_task", "crash_task", "crash_task", *["crash_host"] * 4, "pause"]
    if strategy == "storm_checkpoint":
        kinds += ["pause"] * 3  # a write keeps a task, and the job waits for it
    kind = draw(st.sampled_from(kinds))
    even = st.integers(1, until // 10).map(lambda n: 10 * TICK_MS * n)
    at = draw(st.one_of(even, times(ties, *range(1, until))))
    more: dict[str, Any] = {
        "detection": draw(times(ties, 0, 0, 0, 5)),
        "restart": draw(times(ties, 0, 0, 3, 10, 20)),
        "while_down": draw(st.sampled_from(("drop", "hold"))),
    }
    if draw(st.integers(0, 3)) == 0:
        more["within"] = max(1, round(draw(times(ties, 5, 20)) * MS))
    if STRATEGIES[strategy](**params).cycle() is not None:
        more["in_interval"] = draw(st.sampled_from((None, None, 0.3, 1.0)))
    if kind == "crash_host":
        return fault(kind, at, host=draw(st.integers(0, hosts - 1)), **more)
    if kind == "pause":
        del more["detection"], more["restart"]
        more["duration"] = max(1, round(draw(times(ties, 1, 5, 20)) * MS))
    names = [name for name in topology if kind != "lose_state" or isinstance(topology[name], BoltConfig)]
    if issubclass(STRATEGIES[strategy], SourceReplay) and kind == "crash_task":
        names.append("acker")
    if executors and kind == "crash_task":
        names = [*names, *["driver"] * 2 * len(names)]
    if strategy == "trident" and kind == "crash_task":
        names = [*names, *["coordinator"] * len(names)]
    name = draw(st.sampled_from(names))
    if name not in ("acker", "driver", "coordinator"):
        more["task"] = draw(st.integers(0, topology[name].parallelism - 1))
    config = topology.get(name)
    counts = isinstance(config, BoltConfig) and kind_of(config.bolt) in COUNTS
    if strategy == "estorm" and counts:
        more["replica"] = draw(st.integers(0, params["members"] - 1))
    if strategy == "hybrid" and isinstance(config, BoltConfig):
        copies = STRATEGIES[strategy](**params).replicas(name, config.keeps_state)
        more["replica"] = draw(st.integers(0, copies - 1))
    replicated = strategy == "active_replication" and isinstance(topology.get(name), BoltConfig)
    if strategy == "active_standby" and isinstance(config, BoltConfig):
        more["replica"] = draw(st.sampled_from((0, 0, 1)))
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
def readings(draw: st.DrawFn) -> dict[str, int | None]:
    """How a run is read."""
    return {
        "warmup": draw(st.sampled_from((0, 0, 10, 17))) * TICK,
        "log_resolution": draw(st.sampled_from((None, None, 10 * TICK, 3 * TICK))),
        "lag_window": draw(st.sampled_from((None, None, 20 * TICK))),
    }


@st.composite
def worlds(
    draw: st.DrawFn,
    strategies: tuple[str, ...] = STRATEGY_NAMES,
    endings: Callable[[int, bool], st.SearchStrategy[dict[str, Any]]] = windows,
) -> Scenario:
    """A whole scenario: one or two spouts, one to three bolts, up to three faults, some 20 to 500 tuples."""
    ties = draw(st.booleans())
    strategy = draw(st.sampled_from(strategies))
    machines = (
        (None, 1, 2, 2, 2, 3) if strategy in ("micro_batch", "batch_rerun") else (None, None, 1, 2, 3, 4)
    )
    hosts = draw(st.sampled_from(machines))
    marker_ms = draw(st.sampled_from((10, 20, 30)))
    event_time = any(mechanism.needs.log for mechanism in STRATEGIES[strategy].composed_of)
    streams: dict[str, Stream] = {}
    topology: dict[str, SpoutConfig | BoltConfig] = {}
    for name in ("a", "b")[: 2 if endings is joined_windows else draw(st.integers(1, 2))]:
        topology[name], streams[name] = draw(spouts(ties, hosts, endings in BY_EVENT))
    names = ["p", "q", "r"][: draw(st.integers(1, 3))]
    for name in names:
        last = name == names[-1]
        config, streams[name] = draw(bolts(ties, hosts, streams, last, marker_ms, event_time, endings))
        topology[name] = config
    params = (PARAMETERS | STORM | BATCHES)[strategy](Maker(draw, ties, hosts, names))
    until = draw(st.sampled_from((60, 90, 90, 150)))
    copies = params.get("members", 1 + params.get("k", strategy == "active_standby"))
    if strategy == "hybrid":
        copies = STRATEGIES[strategy].most_replicas(params)
    known = hosts or sum(config.parallelism * copies for config in topology.values())
    count = draw(st.sampled_from((0, 1, 1, 2, 3)))
    failures = tuple(draw(faults(strategy, ties, topology, params, until, hosts or 3)) for _ in range(count))
    store = draw(st.sampled_from((Store(latency=0, bandwidth=2**50), Store(latency=TICK, bandwidth=500))))
    link = draw(links(ties, known))
    seed = draw(up_to(2**40))
    params |= {"hosts": hosts, "links": link, "store": store}
    found = world(topology, strategy, failures, until * TICK_MS, seed, **params)
    daily = any(isinstance(getattr(config, "arrivals", None), Day) for config in topology.values())
    run = draw(readings()) | (draw(noon(failures)) if daily else {})
    return found.model_copy(update={"run": found.run.model_copy(update=run)})


@st.composite
def overlapping(draw: st.DrawFn, strategies: tuple[str, ...] = STRATEGY_NAMES) -> Scenario:
    """A scenario whose faults, two to five, strike within 3 s, most of them before the one before is over.

    Some strike the same place again, while it is down or has just come back. Most have time to recover.
    """
    scenario = draw(worlds(strategies).filter(lambda found: found.failures))
    first = draw(st.integers(5, 40))
    moments = sorted(draw(st.lists(st.integers(0, 30), min_size=2, max_size=5)))
    failures = []
    for moment in moments:
        fault = draw(st.sampled_from(scenario.failures))
        more = {"at": (first + moment) * TICK, "in_interval": None}
        if fault.kills:
            more |= {
                "detection": draw(st.sampled_from((0, 3, 15))) * TICK,
                "restart": draw(st.sampled_from((0, 5, 30))) * TICK,
            }
        failures.append(fault.model_copy(update=more))
    until = (first + moments[-1] + 100) * TICK
    run = scenario.run.model_copy(update={"duration": until})
    return scenario.model_copy(update={"failures": tuple(failures), "run": run})
