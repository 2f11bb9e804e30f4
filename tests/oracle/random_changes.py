"""Random worlds in which something more can happen: each strategy here changes worlds of `random_worlds`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from tideover.models.config import Scenario, deployment_of
from tideover.models.job.arrivals import Periodic
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Links, MachineType, SpoutConfig
from tideover.models.job.groupings import GROUPINGS
from tideover.models.job.placements import PlacementError
from tideover.models.job.sinks import TransactionalSink
from tideover.models.job.spouts import Kafka, Kestrel, Source
from tideover.models.job.stores import Backend, Disk, Memory, Redis, RocksDB
from tideover.models.operators.kinds import Forward, RunningCount, WindowedCount
from tideover.models.strategies.base import STRATEGIES
from tideover.sim.distributions import Exponential
from tideover.sim.registry import kind_of

from .faults import FACTORS, cascade, flapping, hosts_of, machines_fail, troubles
from .making import TICK, TICK_MS, durations, times
from .protocol import PROTOCOLS
from .random_worlds import STRATEGY_NAMES, joined_windows, overlapping, worlds
from .worlds import MS, fault, ms, queued

Worlds = st.SearchStrategy[Scenario]
Config = SpoutConfig | BoltConfig


def configured(scenario: Scenario, change: Callable[[Any], Any], of: Any = BoltConfig) -> Scenario:
    """The same, each of its bolts (or whatever else) changed."""
    found = scenario.topology.items()
    topology = {name: change(config) if isinstance(config, of) else config for name, config in found}
    return scenario.model_copy(update={"topology": topology})


def set_to(scenario: Scenario, **settings: Any) -> Scenario:
    """The same with these settings of its strategy."""
    return scenario.model_copy(update={"strategy": scenario.strategy.model_copy(update=settings)})


def longer(scenario: Scenario, ticks: int, **changes: Any) -> Scenario:
    """The same with so much more time, and changed in this way besides."""
    run = scenario.run.model_copy(update={"duration": scenario.run.duration + ticks * TICK})
    return scenario.model_copy(update={"run": run, **changes})


def both(strategy: str) -> Worlds:
    """Worlds of this strategy: any, or such in which failures overlap."""
    return st.one_of(worlds((strategy,)), overlapping((strategy,)))


@st.composite
def fixed(draw: st.DrawFn, scenarios: Worlds, **settings: tuple[Any, ...]) -> Scenario:
    """One of these, with one of these values for each of these settings of its strategy."""
    return set_to(draw(scenarios), **{name: draw(st.sampled_from(some)) for name, some in settings.items()})


def going_on(scenario: Scenario) -> Scenario:
    """The same, with counts that go on with what their windows have put out."""

    def change(config: BoltConfig) -> BoltConfig:
        if not isinstance(config.bolt, WindowedCount) or config.bolt.window.extent is not None:
            return config
        return config.model_copy(update={"bolt": RunningCount(window=config.bolt.window)})

    return configured(scenario, change)


# -- states, and where they are saved ----------------------------------------------------------------------


@st.composite
def backends(draw: st.DrawFn) -> Backend:
    """Few entries, so that tuples change many of them."""
    some = {"entries": (1, 2, 3, 10, 40), "entry_size": (0, 64, 1000), "accesses": (0, 1, 1, 3)}
    settings: Any = {name: draw(st.sampled_from(values)) for name, values in some.items()}
    settings["access_cost"] = 0
    if draw(st.integers(0, 3)):
        return RocksDB(incremental=draw(st.sampled_from((True, True, False))), **settings)
    return Memory(**settings)


@st.composite
def saved(draw: st.DrawFn, scenarios: Worlds) -> Scenario:
    """One of these, with a `state` in most of its bolts."""

    def change(config: BoltConfig) -> BoltConfig:
        return config.model_copy(update={"state": draw(backends())}) if draw(st.integers(0, 3)) else config

    return configured(draw(scenarios), change)


@st.composite
def looked_up(draw: st.DrawFn, scenarios: Worlds) -> Scenario:
    """One of these, of transactions, with a `state` in most of its bolts, which lies in the store."""
    scenario = draw(saved(scenarios))
    work = draw(st.sampled_from((0, 0, TICK // 10, TICK, 7 * MS + 1)))
    changes: dict[str, Any] = {
        "look_up_work": work,
        "round_trip": work + draw(st.sampled_from((0, TICK // 2, TICK, 3 * MS))),
        "access_cost": draw(st.sampled_from((0, 0, TICK // 10, MS))),
    }
    stores = dict(scenario.stores)
    if draw(st.booleans()):
        per_second = draw(st.sampled_from((1.0, 30.0, 1e6)))
        stores["redis"] = Redis(latency=draw(st.sampled_from((0, TICK))), operations=per_second)
        changes["store"] = "redis"
    return set_to(scenario, **changes).model_copy(update={"stores": stores})


@st.composite
def copied(draw: st.DrawFn, scenarios: Worlds) -> Scenario:
    """One of these, whose tasks keep copies of what they save on disks, from quick to slower than the store;
    some hosts that crash have to be repaired.
    """
    scenario = set_to(draw(scenarios), local_recovery="ssd")
    latency, bandwidth = draw(st.sampled_from(((0, 2**50), (TICK // 2, 2000), (7 * TICK, 300))))
    disk = Disk(latency=latency, bandwidth=bandwidth)
    repairs = st.sampled_from((None, None, 2 * TICK, 30 * TICK))
    failures = tuple(
        fault.model_copy(update={"repair": draw(repairs)}) if kind_of(fault) == "crash_host" else fault
        for fault in scenario.failures
    )
    return scenario.model_copy(update={"failures": failures, "stores": scenario.stores | {"ssd": disk}})


@st.composite
def transactional(draw: st.DrawFn, scenarios: Worlds) -> Scenario:
    """One of these, whose readers see what is put out in transactions, which time out in some outages, in
    most, or (in three of ten) while nothing has failed.
    """
    timeout = draw(st.sampled_from((5, 20, 25, 30, 40, 40, 60, 60, 1000, 9000)))
    commit = draw(times(draw(st.booleans()), 0, 0, 1, 3, 8, 20, 40))
    sink = TransactionalSink(transaction_timeout=timeout * TICK, commit_time=round(commit * MS))
    return set_to(draw(scenarios), sink=sink)


# -- queues and logs ---------------------------------------------------------------------------------------

WHEN_FULL = ("block", "block", "drop", "credits")
BOUNDED = tuple(name for name in STRATEGY_NAMES if STRATEGIES[name].bounded_queues)
"""Strategies that go with queues that have an end."""


@st.composite
def queues(
    draw: st.DrawFn,
    strategies: tuple[str, ...] = BOUNDED,
    when_full: tuple[str, ...] = WHEN_FULL,
    overlap: bool = False,
) -> Scenario:
    """A world with queues that have an end, and with services that are long enough, now and then, to fill
    them; a spout has only a line.
    """
    scenario = draw(overlapping(strategies) if overlap else worlds(strategies))
    ties = draw(st.booleans())

    def change(config: Config) -> Config:
        bolt, queue = isinstance(config, BoltConfig), {"send": draw(st.sampled_from((0, 0, 1, 3)))}
        if bolt and draw(st.integers(0, 3)):
            config = config.model_copy(update={"service": draw(durations(ties, 4, 8, 14, 20))})
        elif not bolt and draw(st.integers(0, 3)):
            gap, offset = draw(times(ties, 2, 3, 4)) + TICK_MS, draw(st.sampled_from((None, 0, 5 * TICK)))
            arrivals = Periodic(pause=round(gap * MS), fixed_offset=offset)
            config = config.model_copy(update={"arrivals": arrivals})
        if bolt and (length := draw(st.sampled_from((1, 1, 1, 2, 2, 4, None)))):
            queue |= {"length": length, "when_full": draw(st.sampled_from(when_full))}
        return queued(config, **queue)

    return configured(scenario, change, Config)


@st.composite
def series(draw: st.DrawFn, strategies: tuple[str, ...]) -> Scenario:
    """One of `queues` in which each queue has one sender: bolts have one input, of one task."""
    scenario = draw(queues(strategies, ("block",)))
    scenario = configured(
        scenario, lambda bolt: bolt.model_copy(update={"from_": dict([*bolt.from_.items()][:1])})
    )
    read = {up for config in scenario.topology.values() for up in getattr(config, "from_", ())}
    topology = {}
    for name, config in scenario.topology.items():
        if name in read:
            hosts = None if config.hosts is None else config.hosts[:1]
            topology[name] = config.model_copy(update={"parallelism": 1, "hosts": hosts})
        elif isinstance(config, BoltConfig):
            topology[name] = config
    failures = tuple(
        fault.model_copy(update={"task": 0}) if getattr(fault, "task", None) else fault
        for fault in scenario.failures
        if getattr(fault, "component", "acker") in (*topology, "acker")
    )
    return scenario.model_copy(update={"topology": topology, "failures": failures})


@st.composite
def overtaken(draw: st.DrawFn, overlap: bool = False, late: bool = False) -> Scenario:
    """The same with unaligned snapshots, most of them so close that a failure finds one with full queues.
    ``late``: barriers do not overtake at once.
    """
    changes: dict[str, Any] = {"unaligned": True}
    if late:
        changes |= {"aligned_timeout": draw(st.sampled_from((1, 2, 3, 5, 8, 13))) * TICK}
    if draw(st.integers(0, 3)):
        changes |= {"checkpoint_interval": 7 * TICK, "min_pause": 0, "checkpoint_timeout": 1000 * TICK}
    return set_to(draw(queues(("aligned_snapshots",), ("block",), overlap)), **changes)


@st.composite
def backed(draw: st.DrawFn, strategies: tuple[str, ...], when_full: tuple[str, ...]) -> Scenario:
    """One of `queues` in which some bolts have state in a backend, where each access takes a while."""

    def change(config: BoltConfig) -> BoltConfig:
        cost = draw(st.sampled_from((TICK, 3 * TICK, 137)))
        backend = RocksDB(accesses=draw(st.integers(0, 3)), access_cost=cost)
        return config.model_copy(update={"state": backend}) if draw(st.booleans()) else config

    return configured(draw(queues(strategies, when_full)), change)


READERS = ("none", "source_replay", "rsm", "active_replication", "storm_checkpoint")


@st.composite
def sources(draw: st.DrawFn, more: dict[str, Any]) -> Source:
    """Of either kind."""
    every = draw(st.sampled_from((7, 10, 25, 1000))) * TICK
    if draw(st.booleans()):
        return Kafka(commit_interval=every, **more)
    timeout = draw(st.sampled_from((2, 9, 30, 80))) * TICK + draw(st.sampled_from((0, 0, 53)))
    return Kestrel(sweep_interval=min(every, 25 * TICK), timeout=timeout, **more)


def logs(strategies: tuple[str, ...] = READERS, overlap: bool = False) -> Worlds:
    """Any world of these strategies, with a log before one spout or both; mostly one of them crashes."""
    return reading((overlapping if overlap else worlds)(strategies), (None, None, 2, 15, 40))


@st.composite
def reading(draw: st.DrawFn, found: Worlds, retention: tuple[int | None, ...] = (None,)) -> Scenario:
    """One of these worlds, in the same way; a log keeps what it has for so many ticks (None: for good)."""
    scenario = draw(found)
    spouts = [name for name, config in scenario.topology.items() if isinstance(config, SpoutConfig)]
    topology = dict(scenario.topology)
    for name in spouts[: draw(st.integers(1, len(spouts)))]:
        config = topology[name]
        ns = draw(st.sampled_from((0, 0, 1, 137)))
        more: dict[str, Any] = {
            "partitions": draw(st.sampled_from((None, config.parallelism, config.parallelism + 1, 4))),
            "poll_cost": draw(st.sampled_from((1, TICK, 3 * TICK, 9 * TICK))) + ns,
            "retention": None if (ticks := draw(st.sampled_from(retention))) is None else ticks * TICK,
        }
        topology[name] = config.model_copy(update={"source": draw(sources(more))})
    failures = []
    for struck in scenario.failures:
        if draw(st.booleans()):
            times = {key: draw(st.sampled_from((0, 3, 10))) * TICK_MS for key in ("detection", "restart")}
            struck = fault("crash_task", struck.at / MS, component=draw(st.sampled_from(spouts)), **times)
        failures.append(struck)
    return scenario.model_copy(update={"topology": topology, "failures": tuple(failures)})


# -- machines: cards, cores, links that are slow or cut ----------------------------------------------------

EACH = 2
"""Hosts of a component, where there are cards."""


def networks(strategies: tuple[str, ...] = STRATEGY_NAMES, overlap: bool = False) -> Worlds:
    """Any world, on machines with cards."""
    return on_cards((overlapping if overlap else worlds)(strategies))


@st.composite
def on_cards(draw: st.DrawFn, found: Worlds) -> Scenario:
    """One of these worlds, on machines with cards, and with messages that cost their tasks something.

    Components are on hosts of their own; or the last is with the first; or all are together, where what a
    card has sent may bring about what it is to send, at once or later.
    """
    scenario = draw(found)
    names, links = list(scenario.topology), scenario.links
    groups = {name: place for place, name in enumerate(names)}
    together = draw(st.sampled_from(("no", "ends", "all")))
    if together == "ends":
        groups[names[-1]] = 0
    elif together == "all":
        groups = dict.fromkeys(names, 0)
        links = Links(latency=ms(draw(st.sampled_from((0, 100, 300)))), local=links.local)
    topology = {}
    for name, config in scenario.topology.items():
        first = EACH * groups[name]
        hosts = tuple(first + draw(st.integers(0, EACH - 1)) for _ in range(config.parallelism))
        size = draw(st.sampled_from((256, 256, 100)))
        topology[name] = config.model_copy(update={"hosts": hosts, "tuple_size": size})
    speeds = st.sampled_from((2560, 5120, 3000, 1717, None))
    count = EACH * len(names) + draw(st.integers(0, 1))
    machines = {name: MachineType(count=n, nic=draw(speeds)) for name, n in (("a", count - 1), ("b", 1))}
    once, each = (0, 0, TICK // 10, TICK // 7), (0, 0, TICK // 1000)
    costs = {"serialise": once, "deserialise": once, "serialise_cost": each, "deserialise_cost": each}
    costs |= {"header": (0, 0, 64)}
    links = links.model_copy(update={name: draw(st.sampled_from(some)) for name, some in costs.items()})
    update: dict[str, Any] = {"topology": topology, "hosts": Hosts(machines=machines), "links": links}
    return scenario.model_copy(update=update)


@st.composite
def with_cores(
    draw: st.DrawFn, scenario: Scenario, slow: tuple[int, ...] = (0,), some_cards: bool = False
) -> Scenario:
    """The same, its machines with a core, two, or any number; ``slow``: how often a host is slow for a while;
    ``some_cards``: not all of them have a card.
    """
    hosts: Any = scenario.hosts
    machines = {}
    for name, machine in hosts.machines.items():
        machines[name] = machine.model_copy(update={"cores": draw(st.sampled_from((1, 1, 1, 2, None)))})
        if some_cards and draw(st.booleans()):
            machines[name] = machines[name].model_copy(update={"nic": None})
    count, until = sum(each.count for each in machines.values()), scenario.run.duration // TICK
    faults = []
    for _ in range(draw(st.sampled_from(slow))):
        at = draw(st.one_of(st.integers(1, until - 1).map(lambda n: TICK_MS * n), times(False, until - 1)))
        where = {"host": draw(st.integers(0, count - 1)), "factor": draw(st.sampled_from(FACTORS))}
        lasts = max(1, round(draw(times(draw(st.booleans()), 1, 10, 30)) * MS))
        faults.append(fault("slow_host", at, duration=lasts, **where))
    failures = tuple(draw(st.permutations([*scenario.failures, *faults])))
    changes = {"hosts": hosts.model_copy(update={"machines": machines}), "failures": failures}
    return scenario.model_copy(update=changes)


@st.composite
def on_cores(draw: st.DrawFn, found: Worlds) -> Scenario:
    """One of these worlds, on one to four machines with few cores; up to two times a host is slow."""
    scenario = draw(found)
    hosts = scenario.hosts if isinstance(scenario.hosts, int) else 3
    update: dict[str, Any] = {"hosts": Hosts(machines={f"m{i}": MachineType(count=1) for i in range(hosts)})}
    if scenario.hosts is None:
        update["links"] = scenario.links.model_copy(update={"pairs": {}})
    return draw(with_cores(scenario.model_copy(update=update), (0, 0, 1, 1, 2)))


def crowded(strategies: tuple[str, ...] = STRATEGY_NAMES) -> Worlds:
    """Any world, on such machines."""
    return on_cores(worlds(strategies))


def crowded_and_failing(strategies: tuple[str, ...] = STRATEGY_NAMES) -> Worlds:
    """The same with faults that overlap."""
    return on_cores(overlapping(strategies))


def sharing(found: Worlds) -> Worlds:
    """One of these worlds, on its machines, with few cores; up to two times a host is slow."""
    return found.flatmap(lambda scenario: with_cores(scenario, (0, 0, 1, 2)))


@st.composite
def troubled(draw: st.DrawFn, scenarios: Worlds) -> Scenario:
    """One of these worlds, on machines with cards and cores or without, to which this and that happens."""
    found = draw(with_cores(draw(on_cards(scenarios)), some_cards=True))
    more = [draw(troubles(found)) for _ in range(draw(st.sampled_from((0, 1, 1, 2, 3))))]
    return longer(found, 40, failures=tuple(draw(st.permutations([*found.failures, *more]))))


@st.composite
def together(draw: st.DrawFn, strategies: tuple[str, ...]) -> Scenario:
    """The same of `queues`, some of them with logs, where strategies know them: a bit of everything that is
    waited for, at once.
    """
    found = draw(queues(strategies, overlap=draw(st.booleans())))
    if found.strategy.reads_queues and draw(st.integers(0, 2)) == 0:
        found = draw(reading(st.just(found), (None, None, 2, 15, 40)))
    return draw(troubled(st.just(found)))


# -- faults that come again, together, or at a rate of their machines --------------------------------------


@st.composite
def schedules(draw: st.DrawFn, strategies: tuple[str, ...] = STRATEGY_NAMES) -> Scenario:
    """A scenario with a fault of each sort that is drawn, and time to recover."""
    scenario = draw(worlds(strategies).filter(lambda found: found.failures and isinstance(found.hosts, int)))
    sorts: Sequence[Any] = draw(
        st.lists(st.sampled_from((flapping, cascade, machines_fail)), min_size=1, max_size=2)
    )
    failures = tuple(draw(sort(scenario.hosts, scenario.failures[0])) for sort in sorts)
    return longer(scenario, 100, failures=failures)


@st.composite
def planned(draw: st.DrawFn, scenarios: Worlds) -> Scenario:
    """One of these, in which somebody stops and starts the job, or hosts one after the other, up to twice
    while other things fail.
    """
    found = draw(scenarios)
    hosts, until = hosts_of(found), found.run.duration // TICK
    moments = st.one_of(st.integers(1, until - 1).map(lambda n: TICK_MS * n), times(False, until - 1))
    stops, at = [], draw(moments)
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        some = st.lists(st.sampled_from(hosts), min_size=1, max_size=3, unique=True).map(tuple)
        more: dict[str, Any] = {
            "hosts": draw(st.one_of(st.none(), some)),
            "down": draw(st.sampled_from((ms(0), ms(300), ms(1_000), Exponential(mean=12 * TICK)))),
            "pause": draw(st.sampled_from((0, 5, 13))) * TICK,
            "while_down": draw(st.sampled_from(("drop", "hold"))),
        }
        if not found.strategy.needs.log:
            more["drain"] = draw(st.sampled_from((0, 0, 2, 10))) * TICK
        stops.append(fault("planned_restart", at, **more))
        at = draw(st.one_of(st.just(at), moments))
    failures = tuple(draw(st.permutations([*found.failures, *stops])))
    return longer(found, 40, failures=failures)


@st.composite
def rescaled(draw: st.DrawFn, scenarios: Worlds) -> Scenario:
    """One of these, in which stops of the whole job change numbers of tasks. Behind spouts the last bolt gets
    others in between: what reads a log is not changed.
    """
    found = draw(scenarios)
    *others, last = found.topology
    config, between, inputs = found.topology[last], {}, {}
    for number, (up, grouping) in enumerate(config.from_.items()):
        if isinstance(found.topology[up], SpoutConfig):
            some = {
                "from_": {up: grouping},
                "service": ms(draw(st.sampled_from((0, 0, 50)))),
                "bolt": Forward(),
            }
            between[f"m{number}"] = BoltConfig(**some, parallelism=draw(st.integers(1, 2)))
            up, grouping = f"m{number}", GROUPINGS["fields"](fields=("key",))
        inputs[up] = grouping
    topology = {name: found.topology[name] for name in others} | between
    topology[last] = config.model_copy(update={"from_": inputs})
    most = {}
    for name, bolt in topology.items():
        if isinstance(bolt, BoltConfig) and all(isinstance(topology[up], BoltConfig) for up in bolt.from_):
            most[name] = bolt.parallelism + draw(st.integers(0, 2))
    for name, number in [*most.items()]:
        bolt, window = topology[name], topology[name].bolt.ends
        kinds = ("fields",) if window is not None else ("shuffle", "fields", "global")
        from_ = {
            up: grouping if kind_of(grouping) in kinds else GROUPINGS["fields"](fields=("key",))
            for up, grouping in bolt.from_.items()
        }
        hosts = None if bolt.hosts is None else tuple(bolt.hosts[n % len(bolt.hosts)] for n in range(number))
        if window is None or (
            window.length is not None and window.by != "event" and _of_roots(topology, name)
        ):
            changes = {"from_": from_, "hosts": hosts, "max_parallelism": number}
            topology[name] = bolt.model_copy(update=changes)
        else:
            del most[name]
    assume(most)
    failures = []
    for each in found.failures:
        if kind_of(each) == "planned_restart" and each.hosts is None:
            some = {n: draw(st.integers(1, number)) for n, number in most.items() if draw(st.integers(0, 3))}
            each = each.model_copy(update={"parallelism": some})
        failures.append(each)
    return placed(found.model_copy(update={"topology": topology, "failures": tuple(failures)}))


def placed(found: Scenario) -> Scenario:
    """It, if its machines have room for all of its tasks."""
    try:
        deployment_of(found)
    except PlacementError:
        assume(False)
    return found


def _of_roots(topology: dict[str, Config], name: str) -> bool:
    """Whether a component reads what belongs to roots."""
    ups = getattr(topology[name], "from_", {})
    return all(
        isinstance(topology[up], SpoutConfig) or (topology[up].bolt.ends is None and _of_roots(topology, up))
        for up in ups
    )


# -- settings of strategies that are protocols of their own ------------------------------------------------

SNAPSHOTS, CHANGELOG, LINEAGE = both("aligned_snapshots"), both("changelog"), both("micro_batch")
OVERTAKEN, LATER = (st.one_of(overtaken(late=late), overtaken(True, late)) for late in (False, True))
INTERVALS = tuple(ticks * TICK for ticks in (4, 15, 40, 100))

SETTINGS: dict[str, Worlds] = {
    "aligned_snapshots, sink": transactional(SNAPSHOTS),
    "aligned_snapshots, local_recovery": copied(SNAPSHOTS),
    "aligned_snapshots, unaligned": OVERTAKEN,
    "aligned_snapshots, aligned_timeout": LATER,
    "aligned_snapshots, all of these": saved(copied(transactional(st.one_of(SNAPSHOTS, OVERTAKEN, LATER)))),
    "micro_batch, lineage": fixed(LINEAGE, recovery=("lineage",), checkpoint_interval=INTERVALS),
    "micro_batch, replay": fixed(LINEAGE, recovery=("replay",)),
    "micro_batch, running_count": LINEAGE.map(going_on),
    "aligned_snapshots, planned stops": planned(
        st.one_of(SNAPSHOTS, saved(copied(transactional(st.one_of(SNAPSHOTS, OVERTAKEN, LATER)))))
    ),
    "aligned_snapshots, parallelism": rescaled(
        planned(
            st.one_of(
                SNAPSHOTS.map(going_on),
                worlds(("aligned_snapshots",), joined_windows),
                saved(copied(transactional(st.one_of(SNAPSHOTS, OVERTAKEN, LATER)))),
            )
        )
    ),
    "batches, planned stops": planned(both("micro_batch")),
    "micro_batch, max_offsets_per_trigger": fixed(
        LINEAGE,
        max_offsets_per_trigger=(1, 2, 3, 5, 9),
        retention=(None, 6 * TICK, 15 * TICK),
        recovery=("checkpoint", "checkpoint", "lineage"),
    ),
    "planned stops": planned(worlds(tuple(PROTOCOLS))),
    "changelog, exactly_once": fixed(CHANGELOG, guarantee=("exactly_once",), batch_interval=(None,)),
    "changelog, standby_replicas": fixed(CHANGELOG, standby_replicas=(1, 1, 2)),
    "changelog, local_state": fixed(CHANGELOG, local_state=(True,)),
}
