"""Random small worlds for hypothesis: all shapes, strategies, arrivals and faults; some with ties in time.

Numbers of tuples are small, and times long: a run takes seconds, since what is said of a recovery is read at
boundaries of 10 ms, and looks 4 s ahead. Where nothing else is said, times are in ticks of 100 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.job.arrivals import Arrivals, Burst, Day, Poisson, Ramp, TraceOfRates
from tideover.models.job.components import BoltConfig, Links, SpoutConfig, Store
from tideover.models.job.groupings import GROUPINGS
from tideover.models.strategies.base import STRATEGIES
from tideover.models.strategies.source_replay import SourceReplay
from tideover.sim.distributions import Distribution, Exponential
from tideover.sim.faults import Fault
from tideover.sim.registry import kind_of

from .worlds import MS, bolt, fault, ms, spout, world

TICK_MS = 100
TICK = TICK_MS * MS


@cache
def up_to(top: int) -> st.SearchStrategy[int]:
    """Any integer from 0 to ``top``, all alike, made of small ones.

    In place of larger integers hypothesis also tries constants that it finds in our source. With them the
    worlds of a derandomized test would change with any line of code, and with what else was imported.
    """
    places = -(-top.bit_length() // 6)
    digits = st.tuples(*[st.integers(0, 63)] * places)
    return digits.map(lambda ds: sum(d << 6 * i for i, d in enumerate(ds)) * (top + 1) >> 6 * places)


@cache
def times(ties: bool, *small: float) -> st.SearchStrategy[float]:
    """Milliseconds: some of the given ticks, or any."""
    some = up_to(len(small) - 1).map(lambda i: small[i] * TICK_MS)
    odd = up_to(round(max(small) * TICK)).map(lambda ns: ns / MS)
    return some if ties else st.one_of(some, odd)


@cache
def durations(ties: bool, *small: float) -> st.SearchStrategy[Distribution]:
    """Constant; if not for ties, also exponential."""
    constant = times(ties, *small).map(ms)
    if ties:
        return constant
    mean = max(1, round(max(small) * TICK) // 2)
    return st.one_of(constant, st.just(Exponential(mean=mean)))


@dataclass
class Maker:
    """What a strategy's parameters are made of. ``hosts``: how many, None: each task has one of its own;
    ``bolts``: their names.
    """

    draw: st.DrawFn
    ties: bool
    hosts: int | None
    bolts: list[str]

    def some(self, *values: Any) -> Any:
        """One of these."""
        return self.draw(st.sampled_from(values))

    def ns(self, *small: float) -> int:
        """A time of about these milliseconds."""
        return round(self.draw(times(self.ties, *small)) * MS)


def source_replay(make: Maker) -> dict[str, Any]:
    timeout = make.some(10, 20, 30, 60) * TICK
    return {
        "message_timeout": timeout,
        "timeout_buckets": make.some(2, 2, 3),
        "timeout_phase": make.some(0, None, timeout // 2),
        "acker_buckets": make.some(2, 3),
        "acker_host": make.some(None, 0, 1) if (make.hosts or 0) > 1 else make.some(None, 0),
        "ack_cost": make.ns(0, 0, 0.5, 1),
        "max_spout_pending": make.some(None, None, 1, 2, 5),
    }


def storm_checkpoint(make: Maker) -> dict[str, Any]:
    return source_replay(make) | {
        "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
        "write_time": make.ns(0, 0, 1, 3),
        "write_cost": make.ns(0, 0, 0.5),
    }


def estorm(make: Maker) -> dict[str, Any]:
    return source_replay(make) | {
        "members": make.some(1, 2, 2, 3),
        "copy_cost": make.ns(0, 0, 0, 1, 3),
        "transaction_time": make.ns(0, 0, 2),
        "load_time": make.ns(0, 0, 3),
        "load_cost": make.ns(0, 0, 1),
    }


def replays(make: Maker) -> dict[str, Any]:
    return {"replay_cost": make.ns(0, 0, 1, 2), "replay_rate": make.some(None, None, 10.0, 3.0)}


def rsm(make: Maker) -> dict[str, Any]:
    return replays(make) | {
        "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
        "spout_buffer": make.some(True, False),
        "serialise_time": make.ns(0, 0, 1),
        "serialise_cost": make.ns(0, 0, 0.5),
        "restore_time": make.ns(0, 0, 3),
        "restore_cost": make.ns(0, 0, 1),
    }


def passive_standby(make: Maker) -> dict[str, Any]:
    return replays(make) | {
        "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
        "delta": make.some(True, False),
        "checkpoint_time": make.ns(0, 0, 1),
        "checkpoint_cost": make.ns(0, 0, 0.5),
    }


def upstream_backup(make: Maker) -> dict[str, Any]:
    return replays(make) | {"ack_interval": make.some(3, 10, 20) * TICK}


def copies(make: Maker) -> dict[str, Any]:
    return {"copy_time": make.ns(0, 0, 2, 10), "copy_bandwidth": make.some(None, None, 200)}


def active_standby(make: Maker) -> dict[str, Any]:
    acks = {"ack_interval": make.some(3, 10, 20) * TICK, "replay_cost": make.ns(0, 0, 1, 2)}
    return acks | copies(make)


def aligned_snapshots(make: Maker) -> dict[str, Any]:
    return {
        "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
        "checkpoint_phase": make.some(None, None, 0, 7 * TICK),
        "min_pause": make.ns(0, 0, 0, 4, 25),
        "checkpoint_timeout": make.some(None, None, None, 3 * TICK, 12 * TICK) or 1000 * TICK,
        "snapshot_time": make.ns(0, 0, 1, 3),
        "snapshot_cost": make.ns(0, 0, 0.5),
        "upload_time": make.ns(0, 0, 2, 8),
        "restore_time": make.ns(0, 0, 3),
        "restore_cost": make.ns(0, 0, 1),
    }


def micro_batch(make: Maker) -> dict[str, Any]:
    return {
        "recovery": make.some("checkpoint", "checkpoint", "replay"),
        "trigger_interval": make.some(0, 0, 10, 10, 20, 37) * TICK,
        "poll_interval": make.some(1, 10) * TICK,
        "plan_time": make.ns(0, 0, 1, 4),
        "task_time": make.ns(0, 2, 5, 10),
        "cores": make.some(1, 1, 2),
        "state_time": make.ns(0, 0, 1),
        "state_cost": make.ns(0, 0, 0.5),
        "output_time": make.ns(0, 0, 1, 3),
        "commit_time": make.ns(0, 1, 8, 15),
        "reload_time": make.ns(0, 0, 2),
        "reload_cost": make.ns(0, 0, 1),
        "executor_cold": make.ns(0, 0, 4),
        "state_cold": make.ns(0, 0, 3),
        "locality_wait": make.ns(0, 0, 5, 20),
        "resubmit_time": make.ns(0, 0, 2),
        "recovery_time": make.ns(0, 0, 5),
        "cold_time": make.ns(0, 0, 7),
    }


def batch_rerun(make: Maker) -> dict[str, Any]:
    settings = micro_batch(make)
    del settings["recovery"]
    return settings | {
        "trigger_interval": make.some(10, 20, 37, 60) * TICK,
        "retry": make.some("job", "job", "task"),
    }


def trident(make: Maker) -> dict[str, Any]:
    kinds = ("non_transactional", "transactional", "opaque")
    return {
        "spout": make.some(*kinds),
        "state": make.some(*kinds),
        "failed_batches": make.some("emitted_again", "lost"),
        "batch_interval": make.some(1, 5, 10, 20) * TICK,
        "max_spout_pending": make.some(1, 1, 2, 3),
        "message_timeout": make.some(5, 10, 20, 30) * TICK,
        "metadata_time": make.ns(0, 0, 1, 3),
        "task_time": make.ns(0, 0, 1, 3),
        "state_time": make.ns(0, 0, 2, 4),
        "state_cost": make.ns(0, 0, 0.5),
        "commit_time": make.ns(0, 1, 4, 8),
    }


def active_replication(make: Maker) -> dict[str, Any]:
    chosen = tuple(name for name in make.bolts if make.draw(st.booleans()))
    return {"k": make.some(0, 1, 1, 2), "components": make.some(None, None, chosen)} | copies(make)


def changelog(make: Maker) -> dict[str, Any]:
    once = make.some(False, True)
    return {
        "guarantee": "exactly_once" if once else "at_least_once",
        "commit_interval": make.some(3, 5, 10, 20, 35) * TICK,
        "commit_time": make.ns(0, 0, 1, 3),
        "batch_interval": None if once else make.some(None, TICK, 4 * TICK),
        "restore_time": make.ns(0, 0, 3),
        "restore_cost": make.ns(0, 0, 1),
        "standby_replicas": make.some(0, 0, 1, 2),
        "local_state": not once and make.some(False, True),
    }


def hybrid(make: Maker) -> dict[str, Any]:
    """A member for each bolt, for those without state, and for the rest."""

    def member() -> Any:
        kind = make.some("rsm", "rsm", "active_replication", "active_replication", "none")
        given = {"rsm": rsm, "active_replication": active_replication}.get(kind, lambda make: {})(make)
        return STRATEGIES[kind](**{key: value for key, value in given.items() if key != "components"})

    named = {name: member() for name in make.bolts if make.draw(st.booleans())}
    return {"bolts": named, "stateless": member() if make.some(True, False) else None, "rest": member()}


PARAMETERS: dict[str, Callable[[Maker], dict[str, Any]]] = {"none": lambda make: {}} | {
    make.__name__: make
    for make in (
        *(source_replay, rsm, passive_standby, upstream_backup, active_standby, active_replication),
        *(aligned_snapshots, micro_batch, changelog, hybrid),
    )
}
STRATEGY_NAMES = tuple(PARAMETERS)
STORM = {"storm_checkpoint": storm_checkpoint, "estorm": estorm}
BATCHES = {"trident": trident, "batch_rerun": batch_rerun}
"""These two sorts are tried in fewer ways than the strategies of STRATEGY_NAMES."""


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
    endings: Callable[[int, bool], Ending] = windows,
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
