"""What must hold between the keys of a scenario: names that exist, streams without cycles, moments in the
run.

Each check returns its problems; parts that could not be built are left out, so that one mistake is said once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from typing import Any

from tideover.models.coarsening import counting
from tideover.models.config import Scenario, deployment_of
from tideover.models.effort import MOST_ROOTS, roots
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.placements.base import PlacementError
from tideover.models.job.topology import TopologyError
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import queue_checks, source_checks
from tideover.scenarios.draft import Draft
from tideover.scenarios.errors import Problem, suggest
from tideover.sim.faults.base import Fault
from tideover.sim.units import format_duration

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PAIR = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")
ROLES = {"acker": "the acker itself", "driver": "the driver of micro-batches"}
"""What a fault can hit besides components."""


def name_fault(name: str) -> str | None:
    """What is wrong with a component's name."""
    if name in ROLES:
        return f"the name {name} stands for {ROLES[name]}; choose another"
    if not _NAME.fullmatch(name):
        return "a component's name starts with a letter or _ and goes on with letters, digits, _ or -"
    return None


def check(draft: Draft, scenario: Scenario | None) -> list[Problem]:
    """All problems; ``scenario`` is given if nothing was wrong with its parts."""
    problems = [
        *_streams(draft),
        *_run(draft),
        *_lump(draft),
        *_placement(draft),
        *_links(draft),
        *_strategy(draft),
        *_failures(draft),
    ]
    if scenario is not None and not problems:
        try:
            deployment_of(scenario)
        except TopologyError as error:
            problems.append(draft.problem(error.message, "topology", error.component))
        except PlacementError as error:
            problems.append(draft.problem(error.message, *error.path))
        problems += _effort(draft, scenario)
        problems += [draft.problem(message, *path) for path, message in queue_checks.check(scenario)]
        problems += [draft.problem(message, *path) for path, message in source_checks.check(scenario)]
    return problems


def _effort(draft: Draft, scenario: Scenario) -> Iterator[Problem]:
    """A run comes to an end while somebody waits for it."""
    for name, config in scenario.topology.items():
        if isinstance(config, SpoutConfig) and (number := roots(config, scenario)) > MOST_ROOTS:
            lumps = not any(counting(scenario.topology, scenario.strategy))
            remedy = (
                "let one stand for several, as with run.lump_rate: 1000/s" if lumps else "take a shorter run"
            )
            message = (
                f"emits about {number:.2g} tuples within run.duration; at most {MOST_ROOTS:.0e} are allowed: "
                f"{remedy}"
            )
            yield draft.problem(message, "topology", name)


def _streams(draft: Draft) -> Iterator[Problem]:
    """Who reads from whom; by the file's tree, so that another fault of a component hides none here."""
    if not draft.topology:
        node, found = draft.find("topology")
        if found and node.value == {}:
            yield draft.problem("is empty; it needs at least one spout and one bolt", "topology")
        return
    reads = {name: _reads(draft, name) for name in draft.topology}
    spouts = [name for name in reads if "spout" in draft.keys("topology", name)]
    if not spouts:
        yield draft.problem("has no spout; at least one component must emit tuples (spout: …)", "topology")
    read = {upstream for names in reads.values() for upstream in names}
    for name in spouts:
        if name not in read:
            yield draft.problem("no bolt reads from this spout; name it in a bolt's from", "topology", name)
    faults = list(_sources(draft, reads))
    yield from faults
    cycle = _cycle(reads)
    if cycle:
        message = f"the streams make a cycle: {' -> '.join(cycle)}; tuples must flow one way"
        yield draft.problem(message, "topology", cycle[0], "from")
    elif not faults:
        configs = {name: c for name, c in draft.topology.items() if c is not None}
        if len(configs) == len(draft.topology):
            yield from _grouping_fields(draft, configs)


def _reads(draft: Draft, name: str) -> list[str]:
    """The components that a bolt reads from."""
    return list(draft.keys("topology", name, "from")) if "bolt" in draft.keys("topology", name) else []


def _sources(draft: Draft, reads: dict[str, list[str]]) -> Iterator[Problem]:
    """Bolts read from something, and from what exists."""
    for name, upstreams in reads.items():
        path = ("topology", name, "from")
        node, found = draft.find(*path)
        if found and node.value == {}:
            yield draft.problem("is empty; name what the bolt reads, as in {split: shuffle}", *path)
        for upstream in upstreams:
            if upstream not in reads:
                hint = suggest(upstream, [other for other in reads if other != name])
                message = f"there is no component {upstream!r}; {hint}"
                yield draft.problem(message, *path, upstream)


def _cycle(reads: dict[str, list[str]]) -> list[str]:
    """One cycle in the direction of the stream, its first component at both ends; empty if there is none."""
    left = {name: [u for u in upstreams if u in reads] for name, upstreams in reads.items()}
    while ready := [name for name, upstreams in left.items() if not any(u in left for u in upstreams)]:
        for name in ready:
            del left[name]
    if not left:
        return []
    # What is left reads something that is left too: walking upstream must come back to where it was.
    walk = [next(iter(left))]
    while walk[-1] not in walk[:-1]:
        walk.append(next(u for u in left[walk[-1]] if u in left))
    loop = walk[walk.index(walk[-1]) :][::-1]
    first = min(range(len(loop) - 1), key=lambda i: list(reads).index(loop[i]))
    return [*loop[first:-1], *loop[:first], loop[first]]


def _grouping_fields(draft: Draft, configs: dict[str, SpoutConfig | BoltConfig]) -> Iterator[Problem]:
    """Fields groupings name fields that the upstream emits."""
    known: dict[str, set[str]] = {}

    def emitted(name: str) -> set[str]:
        if name not in known:
            config = configs[name]
            if isinstance(config, SpoutConfig):
                known[name] = set(config.spout.emits)
            else:
                own = set(config.bolt.emits)
                passed = set().union(*(emitted(upstream) for upstream in config.from_))
                # An aggregate goes by the key of its input, which may be named in either way.
                known[name] = (own | passed if "key" in own else own) or passed
        return known[name]

    upstreams = {name: list(getattr(config, "from_", ())) for name, config in configs.items()}
    for name in TopologicalSorter(upstreams).static_order():
        emitted(name)
        config = configs[name]
        for upstream, grouping in getattr(config, "from_", {}).items():
            for wanted in getattr(grouping, "fields", ()):
                if known[upstream] and wanted not in known[upstream]:
                    hint = suggest(wanted, sorted(known[upstream]))
                    message = f"{upstream} does not emit a field {wanted!r}; {hint}"
                    yield draft.problem(message, "topology", name, "from", upstream, "fields")


def _run(draft: Draft) -> Iterator[Problem]:
    run = draft.run
    if run is None:
        return
    if run.duration == 0:
        yield draft.problem("must be more than 0 s", "run", "duration")
    elif run.warmup >= run.duration:
        message = f"must be less than run.duration, which is {format_duration(run.duration)}"
        yield draft.problem(message, "run", "warmup")
    if run.log_resolution == 0:
        yield draft.problem("must be more than 0 s; leave it out for exact stamps", "run", "log_resolution")


def _lump(draft: Draft) -> Iterator[Problem]:
    """Nothing counts single tuples if a simulated one stands for several."""
    if draft.run is None or (draft.run.lump == 1 and draft.run.lump_rate is None):
        return
    key = "lump_rate" if draft.run.lump == 1 else "lump"
    for counted in counting(draft.topology, draft.strategy):
        yield draft.problem(f"does not go with {counted}, which counts single tuples", "run", key)


def _placement(draft: Draft) -> Iterator[Problem]:
    for name, config in draft.topology.items():
        if config is None or config.hosts is None:
            continue
        path = ("topology", name, "hosts")
        if len(config.hosts) != config.parallelism:
            message = (
                f"names {len(config.hosts)} hosts for {config.parallelism} tasks; give one for each task"
            )
            yield draft.problem(message, *path)
        for i, host in enumerate(config.hosts):
            if fault := _host_fault(draft, host):
                yield draft.problem(fault, *path, i)


def _host_fault(draft: Draft, host: int) -> str | None:
    """What is wrong with the number of a host."""
    count = draft.host_count
    if count is None:
        return f"there is no host {host}; hosts are numbered from 0" if host < 0 else None
    if 0 <= host < count:
        return None
    said = f"hosts: {count} means" if isinstance(draft.hosts, int) else "the machines are hosts"
    return f"there is no host {host}; {said} 0 to {count - 1}"


def _links(draft: Draft) -> Iterator[Problem]:
    seen: dict[frozenset[str], str] = {}
    for pair in draft.keys("links", "pairs"):
        path = ("links", "pairs", pair)
        match = _PAIR.fullmatch(pair)
        if match is None:
            yield draft.problem('a pair of hosts is written "0-1"', *path)
            continue
        ends = frozenset(map(str, map(int, match.groups())))
        if len(ends) == 1:
            yield draft.problem("names one host twice; within a host links.local holds", *path)
        elif ends in seen:
            yield draft.problem(
                f"is the same pair as {seen[ends]!r}; a pair holds for both directions", *path
            )
        seen.setdefault(ends, pair)
        for host in sorted(map(int, ends)):
            if fault := _host_fault(draft, host) or _unused(draft, host, _most_replicas(draft)):
                yield draft.problem(fault, *path)


def _most_replicas(draft: Draft) -> int:
    """Of a task, under any strategy of the file: the same links serve all that are compared."""
    blocks = {kind: draft.keys("strategies", kind) for kind in draft.keys("strategies")}
    found = [_replicas(draft)]
    for kind, block in blocks.items():
        if kind in STRATEGIES:
            found.append(STRATEGIES[kind].most_replicas({key: node.value for key, node in block.items()}))
    return max(found)


def _replicas(draft: Draft) -> int:
    """Most replicas of a task, under the scenario's strategy."""
    strategy = draft.strategy
    if strategy is None:
        return 1
    bolts = {name: c for name, c in draft.topology.items() if isinstance(c, BoltConfig)}
    replicas = [strategy.replicas(name, c.keeps_state) for name, c in bolts.items()]
    return max([strategy.most_replicas(dict(strategy)), *replicas])


def _strategy(draft: Draft) -> Iterator[Problem]:
    """Names and hosts that a strategy's parameters speak of."""
    if draft.strategy is None:
        return
    for path, name in draft.strategy.named_bolts().items():
        if name not in draft.topology:
            message = f"there is no component {name!r}; {suggest(name, draft.topology)}"
            yield draft.problem(message, "strategy", *path)
        elif isinstance(draft.topology[name], SpoutConfig):
            message = f"{name!r} is a spout; only bolts can be named here"
            yield draft.problem(message, "strategy", *path)
    for path, name in draft.strategy.named_stores().items():
        if unknown := draft.unknown_store(name):
            yield draft.problem(unknown, "strategy", *path)
    for path, host in draft.strategy.named_hosts().items():
        if fault := _host_fault(draft, host):
            yield draft.problem(fault, "strategy", *path)


def _failures(draft: Draft) -> Iterator[Problem]:
    for i, fault in enumerate(draft.failures):
        if fault is None:
            continue
        path = ("failures", i)
        if fault.at is not None and draft.run and fault.at >= draft.run.duration:
            message = f"is not within the run, which ends at {format_duration(draft.run.duration)}"
            yield draft.problem(message, *path, "at")
        elif fault.latest is not None and draft.run and fault.latest >= draft.run.duration:
            message = (
                f"reaches beyond the run, which ends at {format_duration(draft.run.duration)}: the failure "
                f"may come as late as {format_duration(fault.latest + 1)}"
            )
            yield draft.problem(message, *path, "within")
        elif fault.in_interval is not None:
            yield from _in_interval(draft, fault, path)
        yield from _target(draft, fault, path)
        store = getattr(fault, "store", None)
        if store is not None and (unknown := draft.unknown_store(store)):
            yield draft.problem(unknown, *path, "store")
        for place, inner in fault.inner.items():
            for problem in _target(draft, inner, path):
                column = problem.key.rpartition(".")[2]
                yield draft.problem(f"{place}: {column}: {problem.message}", *path, "file")
    yield from _detector(draft)


def _detector(draft: Draft) -> Iterator[Problem]:
    """Who notices failures does so for all of them."""
    detector, strategy = draft.detector, draft.strategy
    if detector is None or detector.by_fault:
        return
    for i, fault in enumerate(draft.failures):
        for place, each in {"": fault, **(fault.inner if fault else {})}.items():
            for key in ("detection", "restart"):
                if each is not None and getattr(each, key):
                    why = f"does not go with detector: {detector.kind}, which finds out how long it takes"
                    message, last = (f"{place}: {key}: {why}", "file") if place else (why, key)
                    yield draft.problem(message, "failures", i, last)
    if strategy is not None and strategy.needs.batches:
        message = f"{strategy.kind} has its own; leave it out: each failure then says how long it takes"
        yield draft.problem(message, "detector")


def _in_interval(draft: Draft, fault: Fault, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """The strategy has an interval, and the moment in it lies within the run."""
    if draft.strategy is None or draft.run is None:
        return
    cycle = draft.strategy.cycle()
    if cycle is None:
        message = (
            f"{draft.strategy.kind} does nothing at regular intervals that are known before the run; "
            "leave it out: the fault then strikes at the moment that at says"
        )
        yield draft.problem(message, *path, "in_interval")
    elif (moment := fault.in_cycle(fault.latest or 0, cycle)) >= draft.run.duration:
        end = format_duration(draft.run.duration)
        message = (
            f"the first such moment is {format_duration(moment)}, not within the run, which ends at {end}"
        )
        yield draft.problem(message, *path, "in_interval")


def _target(draft: Draft, fault: Any, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """The component, task, worker, host or rack that fails exists."""
    component = getattr(fault, "component", None)
    task = getattr(fault, "task", None)
    host = getattr(fault, "host", None)
    if component is not None and component not in draft.topology:
        if component not in ROLES and draft.topology:
            message = f"there is no component {component!r}; {suggest(component, draft.topology)}"
            yield draft.problem(message, *path, "component")
    elif component is not None and task is not None:
        config = draft.topology[component]
        if config is not None and not 0 <= task < config.parallelism:
            message = f"{component} has no task {task}; its tasks are 0 to {config.parallelism - 1}"
            yield draft.problem(message, *path, "task")
    replicas = _replicas(draft)
    if host is not None and (reason := _host_fault(draft, host) or _unused(draft, host, replicas)):
        yield draft.problem(reason, *path, "host")
    for i, other in enumerate(getattr(fault, "others", None) or ()):
        if reason := _host_fault(draft, other) or _unused(draft, other, replicas):
            yield draft.problem(reason, *path, "others", i)
    yield from _partition(draft, fault, path)
    if draft.hosts_unknown:
        return
    for what in ("worker", "rack"):
        number, there = getattr(fault, what, 0), getattr(draft.hosts, f"{what}s", 1)
        if number >= there:
            of = "each host has" if what == "worker" else "there are"
            message = f"there is no {what} {number}; {of} {there} of them (hosts.{what}s), numbered from 0"
            yield draft.problem(message, *path, what)


def _partition(draft: Draft, fault: Any, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """The hosts that are cut off exist, and nothing else holds their messages up."""
    if fault.kind != "partition":
        return
    for i, host in enumerate(fault.hosts):
        if reason := _host_fault(draft, host) or _unused(draft, host, _replicas(draft)):
            yield draft.problem(reason, *path, "hosts", i)
    machines = getattr(draft.hosts, "machines", {})
    if any(machine.nic is not None for machine in machines.values()):
        message = "does not go with network cards (hosts.machines.….nic); this is not simulated"
        yield draft.problem(message, *path, "kind")


def _unused(draft: Draft, host: int, replicas: int) -> str | None:
    """Without ``hosts`` each task has its own, and each of its replicas; then a host must be one of those."""
    configs = [c for c in draft.topology.values() if c is not None]
    if draft.hosts is not None or draft.hosts_unknown or len(configs) < len(draft.topology):
        return None
    logical = sum(c.parallelism for c in configs)
    placed = [h + replicas for c in configs for h in c.hosts or ()]
    count = max([logical * replicas, *placed])
    return None if host < count else f"there is no host {host}; this topology uses 0 to {count - 1}"
