"""What must hold between the keys of a scenario: names that exist, streams without cycles, moments in a run.

`check` has the list of all checks: functions that yield where it is wrong, and what. Parts that could not be
built are left out, so that one mistake is said once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from math import inf

from tideover.models.advice import task_loads
from tideover.models.coarsening import coarseness, counting, tuple_costs
from tideover.models.config import Scenario, deployment_of, heaviest
from tideover.models.detectors.base import Detector
from tideover.models.effort import MOST_ROOTS, roots
from tideover.models.evaluation.curves import reach_of
from tideover.models.job.arrivals import Day, Saturating
from tideover.models.job.cluster import Deployment, Hosts
from tideover.models.job.components import MOST_LUMP, BoltConfig, Run, SpoutConfig, bounds_of
from tideover.models.job.placements import PlacementError
from tideover.models.job.stores import STORES
from tideover.models.job.topology import TopologyError
from tideover.models.operators.keyed_state import KeyedArrays
from tideover.models.strategies.base import STRATEGIES, Strategy, given
from tideover.scenarios.errors import Problem, suggest
from tideover.scenarios.objectives import objective
from tideover.scenarios.yaml_source import Node
from tideover.sim.faults import ROLES, Fault
from tideover.sim.kernel import Turn
from tideover.sim.recorder import LONG, SLOT
from tideover.sim.units import DAY, MAX_PERIOD, S, format_duration

Path = tuple[str | int, ...]
"""The steps of a key."""
Found = tuple[Path, str]
"""Where it is wrong, and what."""


@dataclass
class Draft:
    """What could be built of a scenario so far, and the file's tree."""

    root: Node
    topology: dict[str, SpoutConfig | BoltConfig | None] = field(default_factory=dict)
    strategy: Strategy | None = None
    failures: list[Fault | None] = field(default_factory=list)
    run: Run | None = None
    detector: Detector | None = None
    hosts: int | Hosts | None = None

    @property
    def host_count(self) -> int | None:
        """How many hosts there are; None: one for each task."""
        return self.hosts.count if isinstance(self.hosts, Hosts) else self.hosts

    @property
    def hosts_unknown(self) -> bool:
        """Whether hosts are given of which nothing could be made."""
        node = self.root.get("hosts")
        return self.hosts is None and node is not None and node.value is not None

    def find(self, *path: str | int) -> tuple[Node, bool]:
        """The node at a path, or the last one on the way that exists; and whether it is the one."""
        node = self.root
        for step in path:
            inner = node.get(str(step))
            if inner is None:
                return node, False
            node = inner
        return node, True

    def keys(self, *path: str | int) -> dict[str, Node]:
        """The entries of the mapping at a path; empty if there is none."""
        node, found = self.find(*path)
        return dict(node.items()) if found else {}

    def problem(self, message: str, *path: str | int) -> Problem:
        return self.find(*path)[0].problem(".".join(map(str, path)), message)

    @property
    def host_total(self) -> int | None:
        """How many hosts there are, also where each task has its own; None: nothing can be said."""
        return self.host_count or used(self, replicas(self))

    @property
    def bounded(self) -> bool:
        return self.find("queues")[1] or any(c is not None and c.queue for c in self.topology.values())

    def tasks_of(self, component: str) -> tuple[int, str] | None:
        """How many tasks a component, or a role, has, and which, in words; None: nothing can be said."""
        if component not in self.topology:
            return (1, "there is one of it") if component in ROLES else None
        config = self.topology[component]
        return None if config is None else (config.most_tasks, f"its tasks are 0 to {config.most_tasks - 1}")

    def unknown_component(self, name: str) -> str | None:
        """Why there is no such component; None: there is, or none could be read."""
        if not self.topology or name in self.topology:
            return None
        return f"there is no component {name!r}; {suggest(name, self.topology)}"

    def unknown_host(self, host: int) -> str | None:
        """Why there is no such host that is used; None: there is, or nothing can be said."""
        return missing(self, host, replicas(self))

    def unknown_store(self, name: str) -> str | None:
        """Why there is no such store; None: there is."""
        stores = self.keys("stores")
        if name in stores:
            return None
        if not stores:
            return f"there is no store {name!r}: stores has none; without this key it is the one of store"
        return f"there is no store {name!r} in stores; {suggest(name, stores)}"

    def not_local(self, name: str) -> str | None:
        """Why a store is not on each host for itself; None: it is, or it has no kind."""
        node = self.keys("stores")[name]
        inner = node.get("kind") if isinstance(node.value, dict) else node
        kind = "" if inner is None else str(inner.value)
        if kind not in STORES or STORES[kind].local:
            return None
        local = ", ".join(name for name, part in STORES.items() if part.local)
        return f"{name!r} is of kind {kind}; it has to be on each host for itself: {local}"


def host_fault(draft: Draft, host: int) -> str | None:
    count = draft.host_count
    if count is None:
        return f"there is no host {host}; hosts are numbered from 0" if host < 0 else None
    if 0 <= host < count:
        return None
    said = f"hosts: {count} means" if isinstance(draft.hosts, int) else "the machines are hosts"
    return f"there is no host {host}; {said} 0 to {count - 1}"


def most_replicas(draft: Draft) -> int:
    """Of a task, under any strategy of the file: the same links serve all that are compared."""
    found = [replicas(draft)]
    for kind in draft.keys("strategies"):
        if kind in STRATEGIES:
            block = draft.keys("strategies", kind)
            found.append(STRATEGIES[kind].most_replicas({key: node.value for key, node in block.items()}))
    return max(found)


def replicas(draft: Draft) -> int:
    """Most replicas of a task, under the scenario's strategy."""
    strategy = draft.strategy
    if strategy is None:
        return 1
    bolts = {name: c for name, c in draft.topology.items() if isinstance(c, BoltConfig)}
    each = [strategy.replicas(name, c.keeps_state) for name, c in bolts.items()]
    return max([strategy.most_replicas(dict(strategy)), *each])


def used(draft: Draft, copies: int) -> int | None:
    """How many hosts there are if each of so many ``copies`` of a task has its own; None: nothing can be
    said.
    """
    configs = [c for c in draft.topology.values() if c is not None]
    if draft.hosts is not None or draft.hosts_unknown or len(configs) < len(draft.topology):
        return None
    logical = sum(c.most_tasks for c in configs)
    return max([logical * copies, *(h + copies for c in configs for h in c.hosts or ())])


def missing(draft: Draft, host: int, copies: int) -> str | None:
    """What is wrong with the number of a host that must be used."""
    if reason := host_fault(draft, host):
        return reason
    count = used(draft, copies)
    if count is None or host < count:
        return None
    return f"there is no host {host}; this topology uses 0 to {count - 1}"


def _day(draft: Draft) -> Iterator[Found]:
    """Problems of ``run.starts_at`` and ``run.fails_at``, if all components could be built."""
    if draft.run is None or any(config is None for config in draft.topology.values()):
        return
    spouts = [config for config in draft.topology.values() if isinstance(config, SpoutConfig)]
    for key in ("starts_at", "fails_at"):
        if getattr(draft.run, key) is None:
            continue
        if spouts and not any(isinstance(config.arrivals, Day) for config in spouts):
            message = "has no effect: the load follows the time of day only with arrivals: {kind: day, …}"
            yield ("run", key), message
        elif key == "fails_at" and not any(f is None or f.at is not None for f in draft.failures):
            message = "needs a failure with at, which is then at this time of day; or give starts_at"
            yield ("run", key), message


def _failures(draft: Draft) -> Iterator[Found]:
    for i, fault in enumerate(draft.failures):
        if fault is None:
            continue
        path = ("failures", i)
        if fault.at is not None and draft.run and fault.at >= draft.run.duration:
            yield (*path, "at"), f"is not within the run, which ends at {format_duration(draft.run.duration)}"
        elif fault.latest is not None and draft.run and fault.latest >= draft.run.duration:
            message = (
                f"reaches beyond the run, which ends at {format_duration(draft.run.duration)}: the failure "
                f"may come as late as {format_duration(fault.latest + 1)}"
            )
            yield (*path, "within"), message
        elif fault.in_interval is not None:
            yield from _in_interval(draft, fault, path)
        yield from (((*path, *key), message) for key, message in fault.problems(draft))
        if fault.turn is not None and (unknown := _turn(draft, fault.turn)):
            yield (*path, "turn"), unknown
        for place, inner in fault.inner.items():
            for key, message in inner.problems(draft):
                yield (*path, "file"), f"{place}: {key[-1]}: {message}"
    yield from _detector(draft)


def _detector(draft: Draft) -> Iterator[Found]:
    detector, strategy = draft.detector, draft.strategy
    if detector is None or detector.by_fault:
        return
    for i, fault in enumerate(draft.failures):
        for place, each in {"": fault, **(fault.inner if fault else {})}.items():
            for key in ("detection", "restart"):
                if each is not None and getattr(each, key):
                    why = f"does not go with detector: {detector.kind}, which finds out how long it takes"
                    message, last = (f"{place}: {key}: {why}", "file") if place else (why, key)
                    yield ("failures", i, last), message
    if getattr(detector, "restart_on", "") == "free_slot" and draft.hosts is None and not draft.hosts_unknown:
        message = "free_slot needs hosts: without them each task has a host of its own, and no slot is free"
        yield ("detector", "restart_on"), message
    if strategy is not None and strategy.needs.one_job and detector.each_alone:
        message = f"{detector.kind} brings back one task after the other; under {strategy.kind} all go back"
        yield ("detector",), message
    if strategy is not None and strategy.kind != "changelog" and getattr(detector, "warmup_replicas", False):
        message = f"needs the strategy changelog: under {strategy.kind} no task warms up elsewhere"
        yield ("detector", "warmup_replicas"), message
    if strategy is not None and strategy.needs.batches:
        message = f"{strategy.kind} has its own; leave it out: each failure then says how long it takes"
        yield ("detector",), message


def _in_interval(draft: Draft, fault: Fault, path: Path) -> Iterator[Found]:
    """The strategy has an interval, and the moment in it lies within the run."""
    if draft.strategy is None or draft.run is None:
        return
    cycle = draft.strategy.cycle()
    if cycle is None:
        why = f"{draft.strategy.kind} does nothing at regular intervals that are known before the run"
        message = f"{why}; leave it out: the fault then strikes at the moment that at says"
        yield (*path, "in_interval"), message
    elif (moment := fault.in_cycle(fault.latest or 0, cycle)) >= draft.run.duration:
        end, first = format_duration(draft.run.duration), format_duration(moment)
        message = f"the first such moment is {first}, not within the run, which ends at {end}"
        yield (*path, "in_interval"), message


def _turn(draft: Draft, text: str) -> str | None:
    of = Turn.parse(text).of
    if of is None or of.isdecimal() or not draft.topology:
        return None
    if None in draft.topology.values():
        return None
    names = [f"{name}.{i}" for name, c in draft.topology.items() if c for i in range(c.most_tasks)]
    copies = [f"{name}/{replica}" for name in names for replica in range(1, replicas(draft))]
    return None if of in (*names, *copies) else f"there is no task {of!r}; {suggest(of, names)}"


def _queues(scenario: Scenario) -> Iterator[Found]:
    """Of bounded queues: first what components say of their own."""
    bounds = bounds_of(scenario.topology, scenario.queues)
    bolts = {name: c for name, c in scenario.topology.items() if isinstance(c, BoltConfig)}
    for name, config in scenario.topology.items():
        for key in ("length", "when_full"):
            if getattr(config.queue, key, None) is None:
                continue
            if name not in bolts:
                message = "nothing comes into a spout; of its queue only send can be given"
                yield ("topology", name, "queue", key), message
            elif bounds[name].length is None:
                yield ("topology", name, "queue", key), "has no effect without a length"
    strategy, needs = scenario.strategy, scenario.strategy.needs
    first = next((name for name in bolts if bounds[name].length is not None), None)
    for name in bolts if first is not None and strategy.bounded_queues and needs.log else ():
        if bounds[name].length and bounds[name].when_full == "drop":
            mine = getattr(bolts[name].queue, "when_full", None) is not None
            where: Path = ("topology", name, "queue") if mine else ("queues",)
            why = "what a queue drops is never read again; only block and credits go with it"
            yield (*where, "when_full"), f"under {strategy.kind} {why}"
    if first is not None and not strategy.bounded_queues:
        reason = "all that its tasks read waits in logs, which have room for any number of tuples"
        if needs.batches:
            reason = "its tasks run in batches, and no queues are between them"
        elif not needs.log:
            reason = "it does not say that it goes with them (bounded_queues)"
        own = getattr(bolts[first].queue, "length", None) is not None
        where = ("topology", first, "queue") if own else ("queues",)
        yield where, f"bounded queues do not go with the strategy {strategy.kind}: {reason}"
    # A spout that emits whenever it may is held back by something.
    waits = given(strategy, strategy.spouts_wait)
    for name, config in scenario.topology.items() if not waits else ():
        if not isinstance(config, SpoutConfig) or not isinstance(config.arrivals, Saturating):
            continue
        readers = [reader for reader, other in bolts.items() if name in other.from_]
        if needs.log:
            message = "nothing holds back a spout whose tuples wait in a log: give a rate"
            yield ("topology", name, "arrivals"), f"{message} (strategy {strategy.kind})"
        elif not any(bounds[reader].holds_back for reader in readers):
            keys = " or ".join(f"strategy.{key}" for key in strategy.spouts_wait)
            message = "nothing holds back a spout that saturates: bound the queues after it (queues: 1000)"
            yield ("topology", name, "arrivals"), f"{message}{', or give ' + keys if keys else ''}"


# Whether a run is of a size that can be simulated: that it comes to an end, fits into memory, and that int64
# has room for every moment and number of bytes. A single value is limited by its own type (`sim.units`).

MOST_CHANNELS = 4_000_000
"""Pairs of tasks that send to one another: some 1.5 kB each."""
SLOT_BYTES = 120
"""Of what is recorded of a slot of 10 ms of a run and of the one without failures, and said of seconds."""
_TIMES = 3
"""Moments at which something happens with a root: it comes in, is processed, and leaves."""
LATEST = 2.0**61
"""ns, 73 years: the latest moment that work is expected to be done, a quarter of what int64 holds."""
MOST_BYTES = 2.0**61
"""That all tuples of a run have together."""


def _size(scenario: Scenario, deployment: Deployment) -> Iterator[Found]:
    """Problems of a scenario whose parts are fine; one sort at a time, as each needs the one before."""
    lump, heavy = coarseness(scenario), heaviest(scenario)
    if lump > MOST_LUMP:
        message = f"lets one tuple stand for {lump:.3g}; at most {MOST_LUMP:,} are allowed: raise lump_rate"
        yield ("run", "lump_rate"), message
        return
    found = [*_numbers(heavy, lump, deployment), *_memory(heavy)]
    yield from found or _work(heavy, lump, deployment)


def _numbers(scenario: Scenario, lump: int, deployment: Deployment) -> Iterator[Found]:
    """A run comes to an end, something is called in it, and channels between tasks fit into memory."""
    for name, config in scenario.topology.items():
        if not isinstance(config, SpoutConfig):
            continue
        gap, number = config.arrivals.mean_gap_ns * lump, roots(config, scenario)
        if not gap <= MAX_PERIOD:
            each = f", of {lump:,} tuples each" if lump > 1 else ""
            message = f"has a call every {gap / DAY:.3g} d{each}; at most {MAX_PERIOD // DAY} d are allowed"
            yield ("topology", name), message
        elif not number <= MOST_ROOTS:
            lumps = not any(counting(scenario.topology, scenario.strategy))
            several = "let one stand for several, as with run.lump_rate: 1000/s"
            message = (
                f"emits about {number:.2g} tuples within run.duration; at most {MOST_ROOTS:.0e} are allowed"
            )
            yield ("topology", name), f"{message}: {several if lumps else 'take a shorter run'}"
    copies, channels = deployment.replicas, 0
    for edge in deployment.topology.edges:
        channels += edge.up.tasks * copies[edge.up.name] * edge.down.tasks * copies[edge.down.name]
        if channels > MOST_CHANNELS:
            message = (
                f"makes {channels:,} pairs of tasks that send to one another, which do not fit into memory; "
                f"at most {MOST_CHANNELS:,} are allowed: lower the parallelism"
            )
            yield ("topology", edge.down.name), message
            return


def _memory(scenario: Scenario) -> Iterator[Found]:
    """What is recorded fits: of a long run the slots near to what happens, or all, if that is everywhere."""
    duration = scenario.run.duration
    if duration <= LONG:
        return
    spouts = [config for config in scenario.topology.values() if isinstance(config, SpoutConfig)]
    cycle = scenario.strategy.cycle()
    near = 4 * reach_of(0 if cycle is None else cycle[1]) + 20 * S
    times = _TIMES * sum(roots(config, scenario) for config in spouts)
    if any(config.source is not None for config in spouts):
        times = inf  # their lag is looked at every second
    needed = SLOT_BYTES * min(duration, times * near) / SLOT
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        message = (
            f"is so long that what is recorded, 10 ms by 10 ms, needs {needed / 1e9:,.0f} GB of memory; "
            f"this machine has {there / 1e9:,.0f} GB: take a shorter run, or one in which less happens"
        )
        yield ("run", "duration"), message


def _work(scenario: Scenario, lump: int, deployment: Deployment) -> Iterator[Found]:
    """The latest moment and the bytes of a run fit into int64; with lumps loads and bytes are the same."""
    duration, links = scenario.run.duration, scenario.links
    loads = task_loads(deployment.topology, scenario.strategy)
    cards = [host.nic for host in deployment.cluster.hosts if host.nic is not None]
    each = tuple_costs(scenario.strategy) + tuple_costs(links)
    byte = links.serialise_cost + links.deserialise_cost + (S / min(cards) if cards else 0.0)
    latest = float(duration)
    latest += len(loads) * max(one.mean_ns for one in (links.latency, links.local, *links.pairs.values()))
    for c in deployment.topology.components:
        config = c.config
        if isinstance(config, BoltConfig):
            rate = loads[c.name].rate
            latest += loads[c.name].load * duration + config.service.mean_ns * lump
        else:
            rate = c.tasks * S / config.arrivals.mean_gap_ns
        tuples, size = lump + rate * duration / S, config.tuple_size + links.header
        latest += (each + size * byte) * tuples
        if not latest <= LATEST:
            said = (
                f"leaves work for {latest / DAY:.3g} d and more in a run; at most {LATEST / DAY:.0f} d are "
                "allowed: take a shorter run, or lower its rate or what a tuple costs"
            )
            yield ("topology", c.name), said
            return
        if not size * tuples <= MOST_BYTES:
            said = f"sends {size * tuples:.1e} bytes in this run; at most {MOST_BYTES:.1e} are allowed"
            yield ("topology", c.name), said
            return


def _sources(scenario: Scenario) -> Iterator[Found]:
    bounds = bounds_of(scenario.topology, scenario.queues)
    bounded = any(
        bounds[name].length is not None or bounds[name].send
        for name, config in scenario.topology.items()
        if isinstance(config, BoltConfig)
    )
    for name, config in scenario.topology.items():
        if not isinstance(config, SpoutConfig) or config.source is None:
            continue
        where = ("topology", name, "source")
        if not scenario.strategy.reads_queues:
            kind, logged = scenario.strategy.kind, scenario.strategy.needs.log
            able = ", ".join(kind for kind, cls in STRATEGIES.items() if cls.reads_queues)
            log = "its spouts stand for a log that is read again: leave it out"
            why = log if logged else f"only {able} say how"
            yield where, f"does not go with the strategy {kind}: {why}"
        if bounded and config.source.retention is not None:
            message = "does not go with bounded queues: what is deleted while a spout waits is not simulated"
            yield (*where, "retention"), message
        if isinstance(config.arrivals, Saturating):
            yield where, "does not go with saturating arrivals: give the rate at which records are appended"
        if config.processes < config.parallelism:
            least = f"must be at least parallelism ({config.parallelism})"
            yield (*where, "partitions"), f"{least}: a task without a partition would read nothing"


def _windows(scenario: Scenario) -> Iterator[Found]:
    for c in deployment_of(scenario).topology.components:
        window = c.window
        if window is None:
            continue
        slides = window.slide is not None or window.slide_tuples is not None
        by_event, sessions = window.by == "event", window.gap is not None
        # What windows may ask of a strategy: whether they do, the key for it, and what it is called.
        asked = {
            "join": (c.bolt.sides is not None, "bolt", "joins"),
            "sliding": (slides, "slide", "windows that slide"),
            "ids": (window.saved == "ids", "saved", "windows of which ids are saved"),
            "arrival session": (sessions and window.by == "arrival", "gap", "sessions by arrival"),
            "event": (by_event, "by", "windows by event"),
            "session": (sessions and by_event, "gap", "sessions by event"),
            "aside": (window.late == "aside" and by_event, "late", "what is put aside"),
        }
        for sort, (is_asked, key, name) in asked.items():
            if not is_asked or sort in scenario.strategy.windows:
                continue
            reason = f"what becomes of {name} after a failure is told for"
            if sort == "arrival session" and scenario.strategy.needs.log:
                reason = (
                    "what it reads again in a log comes at another time, so sessions by arrival would not be "
                    "put out again as they were; add by: event; they go with"
                )
            able = ", ".join(sorted(kind for kind, cls in STRATEGIES.items() if sort in cls.windows))
            path = ("topology", c.name, *(["window"] if key != "bolt" else []), key)
            yield path, f"does not go with the strategy {scenario.strategy.kind}: {reason} {able}"
        if by_event and not c.anchored:
            message = "is of what spouts emit: windows that it reads put out no events; read spouts' tuples"
            yield ("topology", c.name, "window", "by"), message


def _rescaled(scenario: Scenario) -> Iterator[Found]:
    """Bolts of which another number of tasks may go on from a savepoint."""
    strategy = scenario.strategy
    for c in deployment_of(scenario).topology.components:
        if c.groups is None:
            continue
        kinds = {edge.grouping.kind for edge in c.inputs}
        by_key = kinds == {"fields"} and c.anchored and c.trigger == "marker"
        able = ", ".join(sorted(kind for kind, cls in STRATEGIES.items() if cls.rescales))
        for holds, message in (
            (strategy.rescales, f"does not go with the strategy {strategy.kind}, but with {able}"),
            (c.groups >= c.config.parallelism, f"must be at least parallelism ({c.config.parallelism})"),
            (
                not any(edge.up.is_spout for edge in c.inputs),
                "is of bolts that read bolts: what spouts emit waits in logs, one for each task, for good",
            ),
            (kinds <= {"shuffle", "fields", "global"}, "goes with the groupings shuffle, fields and global"),
            (
                c.window is None or (by_key and isinstance(c.bolt.new_state(1), KeyedArrays)),
                "moves state by key: of windows of time over the tuples of spouts, grouped by fields",
            ),
        ):
            if not holds:
                yield ("topology", c.name, "max_parallelism"), message
                break


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PAIR = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")


def name_fault(name: str) -> str | None:
    if name in ROLES:
        return f"the name {name} stands for {ROLES[name]}; choose another"
    if not _NAME.fullmatch(name):
        return "a component's name starts with a letter or _ and goes on with letters, digits, _ or -"
    return None


def check(draft: Draft, scenario: Scenario | None) -> list[Problem]:
    """All problems; ``scenario`` is given if nothing was wrong with its parts."""

    def said(found: Iterable[Found]) -> Iterator[Problem]:
        return (draft.problem(message, *path) for path, message in found)

    found = [
        *_streams(draft),
        *_run(draft),
        *_placement(draft),
        *_pairs(draft),
        *_named_by_strategy(draft),
        *_failures(draft),
    ]
    objectives, day = list(objective.problems(draft.root)), list(_day(draft))
    if scenario is not None and not (found or objectives or day):
        try:
            deployment = deployment_of(scenario)
        except TopologyError as error:
            found.append((("topology", error.component), error.message))
        except PlacementError as error:
            found.append((error.path, error.message))
        else:
            found += _size(scenario, deployment)
        strategy = scenario.strategy
        for name, config in scenario.topology.items():
            if isinstance(config, BoltConfig) and (why := strategy.refusal(config)) is not None:
                found.append((("topology", name), f"does not go with the strategy {strategy.kind}: {why}"))
        found += [*_queues(scenario), *_sources(scenario)]
        found = found or [*_windows(scenario), *_rescaled(scenario)]
    return [*said(found), *objectives, *said(day)]


def _streams(draft: Draft) -> Iterator[Found]:
    """Who reads from whom; by the file's tree, so that another fault of a component hides none here."""
    if not draft.topology:
        node, found = draft.find("topology")
        if found and node.value == {}:
            yield ("topology",), "is empty; it needs at least one spout and one bolt"
        return
    # What each component reads from.
    reads = {
        name: list(draft.keys("topology", name, "from")) if "bolt" in draft.keys("topology", name) else []
        for name in draft.topology
    }
    spouts = [name for name in reads if "spout" in draft.keys("topology", name)]
    if not spouts:
        yield ("topology",), "has no spout; at least one component must emit tuples (spout: …)"
    read = {upstream for names in reads.values() for upstream in names}
    for name in spouts:
        if name not in read:
            yield ("topology", name), "no bolt reads from this spout; name it in a bolt's from"
    sound = None not in draft.topology.values()
    for name, upstreams in reads.items():
        path = ("topology", name, "from")
        node, found = draft.find(*path)
        if found and node.value == {}:
            sound = False
            yield path, "is empty; name what the bolt reads, as in {split: shuffle}"
        for upstream in upstreams:
            if upstream not in reads:
                sound = False
                hint = suggest(upstream, [other for other in reads if other != name])
                yield (*path, upstream), f"there is no component {upstream!r}; {hint}"
    try:
        TopologicalSorter({name: [u for u in ups if u in reads] for name, ups in reads.items()}).prepare()
    except CycleError as error:
        loop = error.args[1][:-1]  # in the direction of the stream; the file's first component is told first
        first = min(range(len(loop)), key=lambda i: list(reads).index(loop[i]))
        cycle = [*loop[first:], *loop[:first], loop[first]]
        message = f"the streams make a cycle: {' -> '.join(cycle)}; tuples must flow one way"
        yield ("topology", cycle[0], "from"), message
    else:
        if sound:
            yield from _grouping_fields({name: c for name, c in draft.topology.items() if c is not None})


def _grouping_fields(configs: dict[str, SpoutConfig | BoltConfig]) -> Iterator[Found]:
    """Fields groupings name fields that the upstream emits."""
    known: dict[str, set[str]] = {}
    upstreams = {name: list(getattr(config, "from_", ())) for name, config in configs.items()}
    for name in TopologicalSorter(upstreams).static_order():
        config = configs[name]
        if isinstance(config, SpoutConfig):
            known[name] = set(config.spout.emits)
        else:
            own = set(config.bolt.emits)
            passed = set().union(*(known[upstream] for upstream in config.from_))
            # An aggregate goes by the key of its input, which may be named in either way.
            known[name] = (own | passed if "key" in own else own) or passed
        for upstream, grouping in getattr(config, "from_", {}).items():
            for wanted in getattr(grouping, "fields", ()):
                if known[upstream] and wanted not in known[upstream]:
                    hint = suggest(wanted, sorted(known[upstream]))
                    message = f"{upstream} does not emit a field {wanted!r}; {hint}"
                    yield ("topology", name, "from", upstream, "fields"), message


def _run(draft: Draft) -> Iterator[Found]:
    run = draft.run
    if run is None:
        return
    if run.duration == 0:
        yield ("run", "duration"), "must be more than 0 s"
    elif run.warmup >= run.duration:
        yield ("run", "warmup"), f"must be less than run.duration, which is {format_duration(run.duration)}"
    if run.log_resolution == 0:
        yield ("run", "log_resolution"), "must be more than 0 s; leave it out for exact stamps"
    if run.lump != 1 or run.lump_rate is not None:
        key = "lump_rate" if run.lump == 1 else "lump"
        for counted in counting(draft.topology, draft.strategy):
            yield ("run", key), f"does not go with {counted}, which counts single tuples"


def _placement(draft: Draft) -> Iterator[Found]:
    for name, config in draft.topology.items():
        hosts = () if config is None or config.hosts is None else config.hosts
        if config is not None and config.hosts is not None and len(hosts) != config.most_tasks:
            said = f"names {len(hosts)} hosts for {config.most_tasks} tasks; give one for each task"
            yield ("topology", name, "hosts"), said
        for i, host in enumerate(hosts):
            if fault := host_fault(draft, host):
                yield ("topology", name, "hosts", i), fault


def _pairs(draft: Draft) -> Iterator[Found]:
    seen: dict[frozenset[str], str] = {}
    for pair in draft.keys("links", "pairs"):
        path = ("links", "pairs", pair)
        match = _PAIR.fullmatch(pair)
        if match is None:
            yield path, 'a pair of hosts is written "0-1"'
            continue
        ends = frozenset(map(str, map(int, match.groups())))
        if len(ends) == 1:
            yield path, "names one host twice; within a host links.local holds"
        elif ends in seen:
            yield path, f"is the same pair as {seen[ends]!r}; a pair holds for both directions"
        seen.setdefault(ends, pair)
        for host in sorted(map(int, ends)):
            if fault := missing(draft, host, most_replicas(draft)):
                yield path, fault


def _named_by_strategy(draft: Draft) -> Iterator[Found]:
    """Names and hosts that a strategy's parameters speak of."""
    if draft.strategy is None:
        return
    for path, name in draft.strategy.named_bolts().items():
        if name not in draft.topology:
            yield ("strategy", *path), f"there is no component {name!r}; {suggest(name, draft.topology)}"
        elif isinstance(draft.topology[name], SpoutConfig):
            yield ("strategy", *path), f"{name!r} is a spout; only bolts can be named here"
    for path, name in draft.strategy.named_stores().items():
        wrong = draft.unknown_store(name)
        if wrong is None and path[-1] in draft.strategy.local_stores:
            wrong = draft.not_local(name)
        if wrong is not None:
            yield ("strategy", *path), wrong
    for path, host in draft.strategy.named_hosts().items():
        if fault := host_fault(draft, host):
            yield ("strategy", *path), fault
