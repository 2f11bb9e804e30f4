"""Random small worlds for hypothesis: all shapes, strategies, arrivals and faults; some with ties in time.

Numbers of tuples are small, and times long: a run takes seconds, since what is said of a recovery is read at
boundaries of 10 ms, and looks 4 s ahead. Where nothing else is said, times are in ticks of 100 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.job.arrivals import Arrivals, Burst, Day, Poisson, Ramp, TraceOfRates
from tideover.models.job.components import BoltConfig, Links, SpoutConfig, Store
from tideover.models.job.groupings import GROUPINGS
from tideover.models.strategies.base import STRATEGIES
from tideover.sim.faults import Fault

from .making import TICK, TICK_MS, Maker, durations, times, up_to
from .program import PROTOCOLS
from .worlds import MS, bolt, fault, spout, world

STRATEGY_NAMES = (
    *("none", "source_replay", "rsm", "passive_standby", "upstream_backup", "active_standby"),
    *("active_replication", "aligned_snapshots", "micro_batch", "changelog", "hybrid"),
)
APART = tuple(sorted(PROTOCOLS.keys() - set(STRATEGY_NAMES)))
"""These are tried in fewer ways than the strategies of STRATEGY_NAMES."""

Ending = st.SearchStrategy[dict[str, Any]]
"""Windows of some sort, of a length by marker, where time may have to be that of events."""


@st.composite
def windows(draw: st.DrawFn, marker_ms: int, event_time: bool) -> dict[str, Any]:
    trigger = draw(st.sampled_from(("tick", "tick", "marker", "marker", "tuples")))
    if trigger == "tuples":
        return {"tuples": draw(st.integers(1, 9))}
    by_marker = event_time or trigger == "marker"
    length = marker_ms if by_marker else draw(st.sampled_from((10, 20, 30, 37)))
    return {"length": length * TICK, "trigger": trigger}


def marked_windows(marker_ms: int, event_time: bool) -> Ending:
    """Windows that slide, and are ended by markers; their panes are of one length."""
    found = st.sampled_from(((1, 1), (2, 1), (3, 1), (3, 2), (4, 1)))
    return found.map(lambda panes: slid(*(marker_ms * each for each in panes)) | {"trigger": "marker"})


def slid(length: int, slide: int | None) -> dict[str, Any]:
    return {"length": length * TICK, "slide": None if slide is None else slide * TICK}


@st.composite
def sliding_windows(draw: st.DrawFn, marker_ms: int, event_time: bool) -> dict[str, Any]:
    """Windows that slide; by marker their panes are of one length."""
    trigger = draw(st.sampled_from(("tick", "tick", "tick", "marker", "tuples")))
    if trigger == "tuples":
        tuples = draw(st.integers(1, 9))
        return {"tuples": tuples, "slide_tuples": draw(st.integers(1, tuples))}
    if event_time or trigger == "marker":
        return draw(marked_windows(marker_ms, event_time)) | {"trigger": trigger}
    return slid(*draw(st.sampled_from(((20, 10), (30, 10), (30, 20), (37, 10), (20, 20), (60, 15)))))


@st.composite
def event_windows(draw: st.DrawFn, marker_ms: int, event_time: bool) -> dict[str, Any]:
    """Windows by event."""
    sizes = ((20, None), (30, None), (20, 10), (30, 10), (37, 10), (30, 20))
    return slid(*draw(st.sampled_from(sizes))) | {
        "by": "event",
        "lag": draw(st.sampled_from((0, 0, 5, 20))) * TICK,
        "watermark_interval": draw(st.sampled_from((3, 10, 10, 17))) * TICK,
        "idle_after": draw(st.sampled_from((None, None, 15 * TICK))),
    }


def ids_windows(marker_ms: int, event_time: bool) -> Ending:
    """Windows of which checkpoints have ids only."""
    sizes = ((20, 10), (30, 10), (37, 10), (20, 20), (20, None), (10, None))
    return st.sampled_from(sizes).map(lambda size: slid(*size) | {"saved": "ids"})


def aside_windows(marker_ms: int, event_time: bool) -> Ending:
    """By event, with late tuples put aside."""
    return event_windows(marker_ms, event_time).map(lambda window: window | {"late": "aside"})


def session_windows(marker_ms: int, event_time: bool) -> Ending:
    """Sessions."""
    gaps = st.sampled_from((5, 8, 12, 20)).map(lambda n: {"length": None, "slide": None, "gap": n * TICK})
    return st.tuples(event_windows(marker_ms, event_time), gaps).map(lambda both: both[0] | both[1])


def arrival_sessions(marker_ms: int, event_time: bool) -> Ending:
    """Sessions by arrival."""
    ticks = {"gap": (3, 5, 8, 12), "watermark_interval": (3, 10, 10, 17)}
    return st.fixed_dictionaries(
        {name: st.sampled_from(some).map(lambda n: n * TICK) for name, some in ticks.items()}
    )


def batch_event_windows(marker_ms: int, event_time: bool) -> Ending:
    """Windows by event that wait for all inputs."""
    return event_windows(marker_ms, event_time).map(lambda window: window | {"idle_after": None})


def batch_sessions(marker_ms: int, event_time: bool) -> Ending:
    """The same of sessions."""
    return session_windows(marker_ms, event_time).map(lambda window: window | {"idle_after": None})


def joined_windows(marker_ms: int, event_time: bool) -> Ending:
    """Of counts and of joins: what reads spouts reads both, and joins them."""
    return st.one_of(sliding_windows(marker_ms, event_time), event_windows(marker_ms, event_time))


COUNTS = ("windowed_count", "windowed_join")
JOINED = (sliding_windows, marked_windows, event_windows, batch_event_windows, joined_windows)
"""With these, what counts two streams joins them, too."""
BATCHED = (batch_event_windows, batch_sessions)
BY_EVENT = (event_windows, aside_windows, session_windows, *BATCHED, joined_windows)


RATES = Path(__file__).with_name("rates.csv")
DAY = Path(__file__).with_name("day.csv")
"""Its load changes at noon, within seconds."""


@dataclass
class Stream:
    """What is known of a component's output while a topology is being made up."""

    field: str
    sentences: bool
    anchored: bool = True
    spout: bool = False
    used: bool = False


@st.composite
def arrivals(draw: st.DrawFn, gap: float) -> Arrivals | None:
    """About one call in ``gap`` ms; None: at equal distances."""
    rate = 1e3 / gap
    kind = draw(st.sampled_from((None, None, "poisson", "poisson", "ramp", "burst", "trace", "day")))
    if kind == "poisson":
        return Poisson(rate=rate)
    if kind == "ramp":
        end, begin = rate * draw(st.sampled_from((0.2, 2.0))), draw(st.sampled_from((0, 30, 70)))
        return Ramp(start=rate, end=end, begin=begin * TICK, over=50 * TICK)
    if kind == "burst":
        every = draw(st.sampled_from((23, 50)))
        return Burst(rate=rate / 2, peak=3 * rate, length=10 * TICK, every=every * TICK)
    if kind == "trace":
        return TraceOfRates(file=str(RATES), repeat=draw(st.sampled_from((None, 7.5))), scale=rate)
    if kind == "day":
        return Day(file=str(DAY), interpolation=draw(st.sampled_from(("linear", "steps"))), scale=rate)
    return None


def seated(draw: st.DrawFn, hosts: int | None, parallelism: int) -> dict[str, Any]:
    """Of so many hosts one for each task, or not."""
    if hosts is None or draw(st.booleans()):
        return {}
    return {"hosts": tuple(draw(st.integers(0, hosts - 1)) for _ in range(parallelism))}


@st.composite
def spouts(draw: st.DrawFn, ties: bool, hosts: int | None, late: bool = False) -> tuple[SpoutConfig, Stream]:
    kind = draw(st.sampled_from(("sentences", "keys", "values")))
    more: dict[str, Any] = {"parallelism": draw(st.sampled_from((1, 1, 2)))}
    if kind == "keys":
        more |= {"keys": draw(st.integers(1, 5)), "exponent": draw(st.sampled_from((0.0, 1.1)))}
    if kind == "values":
        values = st.lists(st.integers(0, 9), min_size=1, max_size=8).map(tuple)
        more |= {"values": draw(values), "repeat": draw(st.booleans())}
    more |= seated(draw, hosts, more["parallelism"])
    gap = draw(times(ties, 5, 6, 10)) + (0 if ties else 4 * TICK_MS)
    if not ties and (calls := draw(arrivals(gap))) is not None:
        more["arrivals"] = calls
    if late:
        more["event_delay"] = draw(durations(ties, 0, 5, 20))
    offset = draw(st.sampled_from((0, 0, 5))) * TICK_MS if ties else None
    field = "sentence" if kind == "sentences" else "key"
    return spout(kind, gap, offset, **more), Stream(field, kind == "sentences", spout=True)


@st.composite
def bolts(
    draw: st.DrawFn,
    ties: bool,
    hosts: int | None,
    streams: dict[str, Stream],
    last: bool,
    marker_ms: int,
    event_time: bool,
    endings: Callable[[int, bool], Ending] = windows,
) -> tuple[BoltConfig, Stream]:
    unread = [name for name in streams if last and not streams[name].used and streams[name].spout]
    first = draw(st.sampled_from(unread or list(streams)))
    if endings in BY_EVENT and not streams[first].anchored:
        endings = windows  # what windows put out has no events
    others = [name for name in streams if streams[name].anchored == streams[first].anchored]
    joins = endings is joined_windows and streams[first].spout
    if joins:
        ups = [name for name in others if streams[name].spout]
    else:
        ups = [name for name in others if name == first or name in unread or draw(st.integers(0, 2)) == 0]
    inputs = {
        up: draw(st.sampled_from(("shuffle", "fields", "fields", "global", "all", "direct"))) for up in ups
    }
    sentences = all(streams[up].sentences for up in ups)
    kinds = ("split_words",) * 3 * sentences + ("forward", "filter", "generic") + ("windowed_count",) * 3
    kind = draw(st.sampled_from(kinds))
    if joins:
        kind = "windowed_join"
    elif kind == "windowed_count" and len(ups) == 2 and endings in JOINED:
        kind = draw(st.sampled_from((kind, "windowed_join", "windowed_join")))
    more: dict[str, Any] = {"parallelism": draw(st.integers(1, 3))}
    if kind == "filter":
        more["keep"] = draw(st.sampled_from((0.0, 0.5, 0.9, 1.0)))
    if kind == "generic":
        more["selectivity"] = draw(st.sampled_from((0.0, 0.5, 1.0, 1.5, 2.0, 2.5)))
    if kind in COUNTS:
        more["window"] = draw(endings(marker_ms, event_time))
    more |= seated(draw, hosts, more["parallelism"])
    config = bolt(kind, inputs, draw(durations(ties, 0, 0, 1, 2, 4)), **more)
    field = {"split_words": "word", "windowed_count": "key", "windowed_join": "key"}.get(
        kind, streams[ups[0]].field
    )
    for up, grouping in inputs.items():
        streams[up].used = True
        if grouping == "fields":
            config.from_[up] = GROUPINGS["fields"](fields=(streams[up].field,))
    anchored = kind not in COUNTS and streams[first].anchored
    return config, Stream(field, sentences and kind in ("forward", "filter", "generic"), anchored)


@st.composite
def noon(draw: st.DrawFn, failures: tuple[Fault, ...]) -> dict[str, Any]:
    """When the run begins: a little before noon."""
    if any(fault.at is not None for fault in failures) and draw(st.booleans()):
        return {"fails_at": draw(st.sampled_from(("12:00:02", "peak")))}
    return {"starts_at": draw(st.sampled_from(("11:59:57.123456789", "11:59:50")))}


def copies_of(strategy: Any, name: str, config: Any) -> int:
    """Of each task of a component, the first included."""
    return strategy.replicas(name, config.keeps_state) if isinstance(config, BoltConfig) else 1


@st.composite
def faults(
    draw: st.DrawFn, strategy: str, ties: bool, topology: dict, params: dict, until: int, hosts: int
) -> Any:
    kind = draw(st.sampled_from(PROTOCOLS[strategy].fault_kinds))
    even = st.integers(1, until // 10).map(lambda n: 10 * TICK_MS * n)
    at = draw(st.one_of(even, times(ties, *range(1, until))))
    more: dict[str, Any] = {
        "detection": draw(times(ties, 0, 0, 0, 5)),
        "restart": draw(times(ties, 0, 0, 3, 10, 20)),
        "while_down": draw(st.sampled_from(("drop", "hold"))),
    }
    if draw(st.integers(0, 3)) == 0:
        more["within"] = max(1, round(draw(times(ties, 5, 20)) * MS))
    chosen = STRATEGIES[strategy](**params)
    if chosen.cycle() is not None:
        more["in_interval"] = draw(st.sampled_from((None, None, 0.3, 1.0)))
    if kind == "crash_host":
        return fault(kind, at, host=draw(st.integers(0, hosts - 1)), **more)
    if kind == "pause":
        del more["detection"], more["restart"]
        more["duration"] = max(1, round(draw(times(ties, 1, 5, 20)) * MS))
    names = [name for name in topology if kind != "lose_state" or isinstance(topology[name], BoltConfig)]
    if kind == "crash_task":
        names += PROTOCOLS[strategy].also_crash(len(names))
    name = draw(st.sampled_from(names))
    if name in topology:
        more["task"] = draw(st.integers(0, topology[name].parallelism - 1))
    if (most := copies_of(chosen, name, topology.get(name)) - 1) > 0:
        more["replica"] = draw(st.integers(0, most))
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
    endings: Callable[[int, bool], Ending] = windows,
) -> Scenario:
    """A whole scenario: one or two spouts, one to three bolts, up to three faults, some 20 to 500 tuples."""
    ties = draw(st.booleans())
    strategy = draw(st.sampled_from(strategies))
    hosts = draw(st.sampled_from(PROTOCOLS[strategy].host_counts))
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
    params = PROTOCOLS[strategy].drawn(Maker(draw, ties, hosts, names))
    until = draw(st.sampled_from((60, 90, 90, 150)))
    chosen = STRATEGIES[strategy](**params)
    known = hosts or sum(c.parallelism * copies_of(chosen, name, c) for name, c in topology.items())
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
