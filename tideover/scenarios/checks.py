"""What must hold between the keys of a scenario: names that exist, streams without cycles, moments in the
run.

Each check returns its problems; parts that could not be built are left out, so that one mistake is said once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter

from tideover.models.coarsening import counting
from tideover.models.config import Scenario, deployment_of
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.placements.base import PlacementError
from tideover.models.job.topology import TopologyError
from tideover.scenarios import (
    day_checks,
    failure_checks,
    queue_checks,
    size_checks,
    source_checks,
    window_checks,
)
from tideover.scenarios.draft import Draft
from tideover.scenarios.errors import Problem, suggest
from tideover.scenarios.host_checks import host_fault, missing, most_replicas
from tideover.scenarios.objectives import block
from tideover.sim.units import format_duration

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PAIR = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")


def name_fault(name: str) -> str | None:
    """What is wrong with a component's name."""
    if name in failure_checks.ROLES:
        return f"the name {name} stands for {failure_checks.ROLES[name]}; choose another"
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
        *failure_checks.check(draft),
        *block.problems(draft.root),
        *day_checks.check(draft),
    ]
    if scenario is not None and not problems:
        try:
            deployment = deployment_of(scenario)
        except TopologyError as error:
            problems.append(draft.problem(error.message, "topology", error.component))
        except PlacementError as error:
            problems.append(draft.problem(error.message, *error.path))
        else:
            problems += size_checks.check(draft, scenario, deployment)
        problems += _refused(draft, scenario)
        problems += [draft.problem(message, *path) for path, message in queue_checks.check(scenario)]
        problems += [draft.problem(message, *path) for path, message in source_checks.check(scenario)]
        if not problems:
            problems += [draft.problem(message, *path) for path, message in window_checks.check(scenario)]
    return problems


def _refused(draft: Draft, scenario: Scenario) -> Iterator[Problem]:
    """Bolts that the strategy does not go with."""
    for name, config in scenario.topology.items():
        why = scenario.strategy.refusal(config) if isinstance(config, BoltConfig) else None
        if why is not None:
            yield draft.problem(
                f"does not go with the strategy {scenario.strategy.kind}: {why}", "topology", name
            )


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
            if fault := host_fault(draft, host):
                yield draft.problem(fault, *path, i)


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
            if fault := missing(draft, host, most_replicas(draft)):
                yield draft.problem(fault, *path)


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
        wrong = draft.unknown_store(name)
        if wrong is None and path[-1] in draft.strategy.local_stores:
            wrong = draft.not_local(name)
        if wrong is not None:
            yield draft.problem(wrong, "strategy", *path)
    for path, host in draft.strategy.named_hosts().items():
        if fault := host_fault(draft, host):
            yield draft.problem(fault, "strategy", *path)
