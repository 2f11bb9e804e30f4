"""What must hold between failures, and who notices them, and the rest of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tideover.scenarios.draft import Draft
from tideover.scenarios.errors import Problem, suggest
from tideover.scenarios.host_checks import missing, replicas, used
from tideover.sim.faults.base import Fault, LinkFault
from tideover.sim.faults.lose_store import LoseStore
from tideover.sim.turn import Turn
from tideover.sim.units import format_duration

ROLES = {
    "acker": "the acker itself",
    "driver": "the driver of micro-batches",
    "coordinator": "the coordinator of Trident's batches",
}
"""What a fault can hit besides components."""


def check(draft: Draft) -> Iterator[Problem]:
    """All problems of failures and the detector."""
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
        if fault.turn is not None and (unknown := _turn(draft, fault.turn)):
            yield draft.problem(unknown, *path, "turn")
        store = getattr(fault, "store", None)
        if store is not None and (unknown := draft.unknown_store(store)):
            yield draft.problem(unknown, *path, "store")
        if isinstance(fault, LoseStore) and draft.strategy is not None and not draft.strategy.store_may_lose:
            message = (
                f"lose_store does not go with {draft.strategy.kind}: what disks and standbys still have of a "
                "changelog that is gone is not simulated"
            )
            yield draft.problem(message, *path, "kind")
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
    if getattr(detector, "restart_on", "") == "free_slot" and draft.hosts is None and not draft.hosts_unknown:
        message = "free_slot needs hosts: without them each task has a host of its own, and no slot is free"
        yield draft.problem(message, "detector", "restart_on")
    if strategy is not None and strategy.needs.one_job and detector.each_alone:
        message = f"{detector.kind} brings back one task after the other; under {strategy.kind} all go back"
        yield draft.problem(message, "detector")
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
    host = getattr(fault, "host", None)
    if component is not None and component not in draft.topology and component not in ROLES:
        if draft.topology:
            message = f"there is no component {component!r}; {suggest(component, draft.topology)}"
            yield draft.problem(message, *path, "component")
    elif component is not None:
        yield from _tasks(draft, fault, component, path)
    copies = replicas(draft)
    if host is not None and (reason := missing(draft, host, copies)):
        yield draft.problem(reason, *path, "host")
    for key in ("hosts", "others"):
        for i, other in enumerate(getattr(fault, key, None) or ()):
            if reason := missing(draft, other, copies):
                yield draft.problem(reason, *path, key, i)
    if isinstance(fault, LinkFault):
        yield from _links(draft, fault, path)
    if draft.hosts_unknown:
        return
    for what in ("worker", "rack"):
        number, there = getattr(fault, what, 0), getattr(draft.hosts, f"{what}s", 1)
        if number >= there:
            of = "each host has" if what == "worker" else "there are"
            message = f"there is no {what} {number}; {of} {there} of them (hosts.{what}s), numbered from 0"
            yield draft.problem(message, *path, what)


def _tasks(draft: Draft, fault: Any, component: str, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """The component has as many tasks as fail, from the one that is named on."""
    if component in draft.topology:
        config = draft.topology[component]
        if config is None:
            return
        there, tasks = config.parallelism, f"its tasks are 0 to {config.parallelism - 1}"
    else:
        there, tasks = 1, "there is one of it"
    task, together = getattr(fault, "task", 0), getattr(fault, "together", 1)
    if task >= there:
        yield draft.problem(f"{component} has no task {task}; {tasks}", *path, "task")
    elif task + together > there:
        message = f"must be at most {there - task}, not {together}: {component} has no more tasks; {tasks}"
        yield draft.problem(message, *path, "together")


def _turn(draft: Draft, text: str) -> str | None:
    """Why there is no such turn."""
    of = Turn.parse(text).of
    if of is None or of.isdecimal() or not draft.topology:
        return None
    if None in draft.topology.values():
        return None
    names = [f"{name}.{i}" for name, c in draft.topology.items() if c for i in range(c.parallelism)]
    copies = [f"{name}/{replica}" for name in names for replica in range(1, replicas(draft))]
    return None if of in (*names, *copies) else f"there is no task {of!r}; {suggest(of, names)}"


def _links(draft: Draft, fault: LinkFault, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """There is somebody on both sides."""
    count = draft.host_count or used(draft, replicas(draft))
    if count is not None and fault.others is None and set(fault.hosts) >= set(range(count)):
        message = f"has all hosts (0 to {count - 1}) on one side; leave at least one to the other"
        yield draft.problem(message, *path, "hosts")
    cards = any(machine.nic is not None for machine in getattr(draft.hosts, "machines", {}).values())
    if getattr(fault, "messages", "hold") == "lose" and (reason := _must_not_lose(draft)):
        yield draft.problem(reason, *path, "messages")
    if getattr(fault, "transfer_factor", 1) > 1 and not cards:
        message = "has no effect: no machine has a network card (hosts.machines.….nic)"
        yield draft.problem(message, *path, "transfer_factor")


def _must_not_lose(draft: Draft) -> str | None:
    """Why links of this scenario lose nothing."""
    strategy = draft.strategy
    if strategy is not None and not strategy.loses_messages:
        return f"{strategy.kind} counts on links that lose nothing: leave it out, and messages wait"
    if draft.find("queues")[1] or any(
        config is not None and config.queue for config in draft.topology.values()
    ):
        return "does not go with bounded queues: this is not simulated"
    return None
