"""What an expert remarks on a planned run: texts and arithmetic that strategies share. Each function gives
remarks, none if there is nothing to say; a strategy's ``remarks`` names those that are for it. `advice` adds
what is the same for all strategies.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.job.cluster import Cluster
from tideover.models.job.components import Run, Store
from tideover.models.job.sinks import BROKERS_LIMIT, Terms
from tideover.models.job.topology import Component, Topology
from tideover.sim.fault_kinds import (
    Cascade,
    CrashHost,
    Events,
    LoseStore,
    MachinesFail,
    Partition,
    PlannedRestart,
)
from tideover.sim.faults import Fault
from tideover.sim.units import S

Floats = npt.NDArray[np.float64]


class Work(NamedTuple):
    """What a strategy adds to the work of a component's tasks in normal operation.

    per_tuple  what one tuple takes on top of its service (ns)
    saving     the fraction of the time that goes to saving state
    """

    per_tuple: float = 0
    saving: float = 0


@dataclass(frozen=True)
class Load:
    """Of one bolt, by task; replicas of a task have the same.

    rates   tuples/s that reach it
    loads   the part of the time that it works
    """

    rates: Floats
    loads: Floats

    @property
    def rate(self) -> float:
        return float(self.rates.max())

    @property
    def load(self) -> float:
        return float(self.loads.max())


@dataclass(frozen=True)
class Plan:
    """A run that is planned.

    topology  components and streams, in topological order
    loads     of each bolt, by name: what its tasks have to do if nothing fails
    cluster   its hosts and workers, and who runs where
    failures  in the scenario's order
    store     where state is saved
    run       how long, how often
    only      the components that are remarked on; None: all
    """

    topology: Topology
    loads: Mapping[str, Load]
    cluster: Cluster
    failures: tuple[Fault, ...]
    store: Store
    run: Run
    only: frozenset[str] | None = None

    @property
    def components(self) -> list[Component]:
        return [c for c in self.topology.components if self.only is None or c.name in self.only]

    @property
    def hosts(self) -> Mapping[tuple[str, int, int], int]:
        return self.cluster.at

    @property
    def stateful(self) -> list[Component]:
        return [c for c in self.components if c.window]

    def replicas(self, component: str) -> int:
        """Copies of each task of a component, the first included."""
        return sum(name == component and task == 0 for name, task, _ in self.hosts)

    def hit(self, component: str) -> list[Fault]:
        return [fault for fault in self.failures if getattr(fault, "component", None) == component]


def entries_of(component: Component) -> int:
    """Most entries that the state of one task can have; a fields grouping spreads the keys."""
    spread = all(edge.grouping.kind == "fields" for edge in component.inputs)
    return -(-component.keys // component.config.parallelism) if spread else component.keys


def too_long(plan: Plan, key: str, interval: int, fixed: int) -> list[str]:
    """On batches of all that comes in, whose stages run one after the other. ``interval`` of their triggers
    (ns, named ``key``; 0: they follow each other at once); ``fixed``: what one takes besides service (ns).
    """
    work = sum(load.load for load in plan.loads.values())
    if work >= 1:
        return [
            f"the stages of a batch, one after the other, need {work:.2f} s for what comes in a second: "
            "batches grow without end"
        ]
    lasts = fixed + round(work * interval)
    if 0 < interval < lasts:
        return [
            f"{key} {interval / S:g} s: a batch of what comes in it takes about {lasts / S:.4g} s, longer "
            "than the interval"
        ]
    return []


def mixed(topology: Topology, one_log: bool = True) -> list[str]:
    """On bolts with windows that hold other tuples after a failure: those by tuple whose tuples have come to
    a bolt from several tasks, as the order in which it takes in what these make of a batch depends on the
    batch's borders; and those of time behind windows that do not end with markers. ``one_log``: what spouts
    send comes in the order of the log, however many they are; else each of their tasks has a log of its own,
    that can be away.
    """
    mixes: set[str] = set()
    for c in topology.components:
        tasks = sum(edge.up.tasks for edge in c.inputs)
        in_log = one_log and all(edge.up.is_spout for edge in c.inputs)
        if (tasks > 1 and not in_log) or any(edge.up.name in mixes for edge in c.inputs):
            mixes.add(c.name)
    by_tuple = [
        f"{c.name}: windows by tuple, of what comes from several tasks: batches after a failure are others, "
        "and so are the tuples in a window; no tuple is lost or counted twice"
        for c in topology.components
        if c.name in mixes and c.window and c.window.tuples
    ]
    return by_tuple + _between_markers(topology)


def _between_markers(topology: Topology) -> list[str]:
    """On bolts with windows that markers end, of what others put out with a batch, or when a tuple comes: if
    a spout's task was down its marker is late, and what the others have sent since then is ahead of it.
    """
    spouts: dict[str, dict[str, int]] = {}
    moved: set[str] = set()
    found = []
    for c in topology.components:
        ups = [edge.up for edge in c.inputs]
        spouts[c.name] = {c.name: c.tasks} if c.is_spout else {}
        for up in ups:
            spouts[c.name] |= spouts[up.name]
        several = sum(spouts[c.name].values()) > 1
        behind = any(up.name in moved for up in ups)
        if c.window and c.trigger == "marker":
            if behind:
                found.append(
                    f"{c.name}: windows of time, of what windows by tuple or by event put out: after a "
                    "failure that can be ahead of another marker, and in another window; no tuple is lost or "
                    "counted twice"
                )
        elif behind or c.trigger == "watermark" or (c.window and c.window.tuples and several):
            moved.add(c.name)
    return found


def put_out_again(topology: Topology) -> list[str]:
    return [
        f"{c.name}: recovery: replay puts out again what is in no window, and nobody knows it by a number: "
        "it counts twice after a failure; use recovery: checkpoint"
        for c in topology.ends
        if not c.window
    ]


def without_effect(plan: Plan, kind: str, roles: Set[str]) -> list[str]:
    lost = [role for role in ("driver", "coordinator") if role not in roles and plan.hit(role)]
    return [f"failures: {kind} has no {role}: that it is lost changes nothing" for role in lost]


def not_survived(plan: Plan, kind: str, survives: Set[str], stores: bool) -> list[str]:
    """On failures that take something, after which a strategy promises nothing; ``stores``: whether it keeps
    anything in a store.
    """
    found: dict[str, None] = {}
    for fault in (one for each in plan.failures for one in (each, *each.inner.values())):
        hosts = isinstance(fault, MachinesFail | Cascade)
        hosts |= isinstance(fault, PlannedRestart) and fault.hosts is not None
        what = "crash_host" if hosts else fault.kind
        takes = fault.kills or (isinstance(fault, Partition) and fault.messages == "lose")
        takes |= isinstance(fault, LoseStore) and stores
        if takes and what not in survives and not isinstance(fault, Events):
            found[what] = None
    return [
        f"failures: {kind} does not promise to survive {what}: roots may be lost for good, and a time to "
        "recover then only says when all the rest is as it would have been"
        for what in found
    ]


def reordered(plan: Plan) -> list[str]:
    return [
        f"{c.name}: windows by tuple, fed by several tasks: a replay mixes their tuples in another order, so "
        "windows after a recovery hold other tuples than before it"
        for c in plan.stateful
        if c.window and c.window.tuples and sum(edge.up.tasks for edge in c.inputs) > 1
    ]


def lost_together(plan: Plan) -> list[str]:
    """On each worker, host or rack that fails with tasks of a sender, whose memory has the buffer, and of its
    receiver.
    """
    remarks, faults = [], dict[str, Fault]()
    for fault in (fault for fault in plan.failures if fault.kills):
        alone: list[Fault] = [fault]
        if isinstance(fault, PlannedRestart) and fault.hosts is not None:  # one after the other
            alone = [CrashHost(at=0, host=host) for host in fault.hosts]
        faults |= {each.where: each for each in alone}
    for fault in faults.values():
        there = set()
        for worker in plan.cluster.workers.values():
            if fault.hits(plan.cluster.hosts[worker.host].rack, worker.host, worker.number):
                there |= {name for name, _, _ in worker.places}
        pairs = [(edge.up.name, edge.down.name) for c in plan.components for edge in c.inputs]
        both = [f"{up} and {down}" for up, down in pairs if {up, down} <= there]
        if both:
            remarks.append(
                f"{fault.where} has tasks of {', of '.join(both)}: its crash takes tuples together with the "
                "buffer that they would be replayed from, and they are lost"
            )
    return remarks


def lost_with_spouts(plan: Plan) -> list[str]:
    """The same where only a spout's tasks lose their buffers for good."""
    spout = next(c.name for c in plan.topology.components if c.is_spout)
    return [remark for remark in lost_together(plan) if f" {spout} and " in remark]


def unbuffered(plan: Plan, at_spouts: bool) -> list[str]:
    """On components that fail and are not replayed to; ``at_spouts``: spouts keep buffers."""
    found = []
    for c in plan.components:
        faults = [fault for fault in plan.hit(c.name) if fault.kills]
        if not faults or c.is_spout:
            continue
        spouts = [edge.up.name for edge in c.inputs if edge.up.is_spout]
        if not c.window and any(fault.kind == "crash_task" or fault.lasts for fault in faults):
            found.append(
                f"{c.name}: has no state, so R+SM replays nothing to it: what it has in its queue when it "
                "crashes, and what comes while it is down, is lost"
            )
        elif c.window and spouts and not at_spouts:
            found.append(
                f"{c.name}: reads the spout {spouts[0]}, which keeps no buffer: what came since the last "
                "checkpoint is lost; set strategy.spout_buffer=true"
            )
    return found


def side_by_side(plan: Plan, under: str) -> list[str]:
    """On replicas that fail together, or that disagree, as each ends windows by its own clock; ``under``: the
    parameters that want replicas.
    """
    remarks = []
    for c in plan.components:
        replicas = plan.replicas(c.name)
        used = {plan.hosts[c.name, 0, replica] for replica in range(replicas)}
        if len(used) < replicas:
            remarks.append(
                f"{c.name}: {replicas} replicas on {len(used)} hosts: one host takes more than one of them "
                "down"
            )
        if c.window and replicas > 1 and c.trigger == "tick":
            better = "{gap: …, by: event}" if c.window.gap is not None else "{length: …, trigger: marker}"
            remarks.append(
                f"{c.name}: a window that a timer ends, under {under}: replicas may emit different sums, and "
                f"deduplication then picks wrong ones; use window: {better}"
            )
    return remarks


@dataclass(frozen=True)
class Saving:
    """How state is saved: what a strategy's parameters say of it.

    key         name of the interval
    interval    distance of two checkpoints (ns)
    time, cost  how long one keeps a task: always, and for each entry of the state (ns)
    entry_size  bytes of an entry of a bolt's own in the store
    """

    key: str
    interval: int
    time: int
    cost: int
    entry_size: int

    def keeps(self, entries: int) -> int:
        """How long a checkpoint of so many entries keeps its task (ns)."""
        return self.time + entries * self.cost

    def load(self, entries: int) -> Work:
        return Work(saving=self.keeps(entries) / self.interval)


def always(component: Component) -> int:
    """Entries of the `state` of one task that each checkpoint has to write (an incremental one: none, if
    nothing has changed).
    """
    return 0 if component.backend is None else component.backend.to_write(0)


def _backed(component: Component) -> tuple[int, int]:
    """Entries of the `state` of one task, which the first checkpoint has all; and their bytes."""
    backend = component.backend
    return (0, 0) if backend is None else (backend.entries, backend.entries * backend.entry_size)


def by_task(plan: Plan, saving: Saving) -> list[str]:
    """On checkpoints that each task saves for itself, every interval and at the end of each window."""
    entries = max((c.keys + _backed(c)[0] for c in plan.stateful), default=0)
    size = max((c.keys * saving.entry_size + _backed(c)[1] for c in plan.stateful), default=0)
    write = plan.store.latency + size * S // plan.store.bandwidth
    takes = saving.keeps(entries) + write
    if takes > saving.interval:
        return [
            f"{saving.key} {saving.interval / S:g} s: a checkpoint of {entries} entries takes up to "
            f"{takes / S:.4g} s, longer than the interval"
        ]
    writers = sum(c.tasks for c in plan.stateful)
    windows = [c.window for c in plan.stateful if c.window and (c.window.length or c.trigger == "tick")]
    lengths = [w.slide or w.length or w.beat or 0 for w in windows]
    often = min([saving.interval, *lengths])
    if writers * write > often:
        return [
            f"store: {writers} tasks write for {write / S:.4g} s each, but every {often / S:g} s a write is "
            "asked for: they fall behind"
        ]
    return []


def job_takes(plan: Plan, saving: Saving, upload: int) -> int:
    """Up to how long a snapshot of the whole job takes (ns), of all that its tasks have; ``upload``: from the
    end of a task's write until it counts (ns).
    """
    kept = [c for c in plan.topology.components if c.keeps_state]
    own = {c.name: entries_of(c) if c.window else 0 for c in kept}
    entries = max((own[c.name] + _backed(c)[0] for c in kept), default=0)
    size = sum(c.config.parallelism * (own[c.name] * saving.entry_size + _backed(c)[1]) for c in kept)
    write = sum(c.config.parallelism for c in kept) * plan.store.latency + size * S // plan.store.bandwidth
    return saving.keeps(entries) + write + upload


def of_the_job(plan: Plan, saving: Saving, upload: int, timeout: int) -> list[str]:
    """On snapshots of the whole job, which take as long as the slowest task, and all of them at the store,
    which writes one after the other. ``upload``: from the end of a task's write until it counts (ns).
    """
    takes = job_takes(plan, saving, upload)
    if takes > timeout:
        return [
            f"checkpoint_timeout {timeout / S:g} s: a snapshot takes up to {takes / S:.4g} s: it may be "
            "abandoned each time, and a failure then goes back to the beginning"
        ]
    if takes > saving.interval:
        return [
            f"{saving.key} {saving.interval / S:g} s: a snapshot takes up to {takes / S:.4g} s, longer than "
            "the interval: the next one begins when it has ended"
        ]
    return []


def windows(plan: Plan, key: str, timeout: int, least: int, ack_cost: int, ack_time: int) -> list[str]:
    """On windows whose tuples can time out before they are acked. ``key``, ``timeout``: the parameter that
    says when; ``least``: the shortest time after which a tuple can time out under it (ns); ``ack_cost``: of
    an ack, ``ack_time``: of a burst of them besides (ns).
    """
    remarks = []
    for c in plan.topology.components:
        if c.window is None or not c.anchored:
            continue
        length, rate = c.window.length, plan.loads[c.name].rate
        if length is None and not rate:
            continue  # no tuple comes here, none waits
        if length is None:
            length = round(S * ((c.window.tuples or 0) + (c.window.slide_tuples or 0)) / rate)
        elif c.window.slide is not None:
            length += c.window.slide  # it leaves with the first window that ends without it
        # The first tuple of a window waits for its end and is acked at once, the last one waits for the acks
        # of all the others, and in between it is so much of the one and so much of the other.
        burst = ack_time + round(ack_cost * rate * length / S)
        slides = " and its slide" if c.window.extent else ""
        longest, why = max(
            (length, f"the window of {c.name}{slides}"), (burst, f"the burst of acks of {c.name}")
        )
        if least < longest:
            remarks.append(
                f"{key} {timeout / S:g} s: a tuple may wait {longest / S:.4g} s for its ack ({why}), but can "
                f"time out after {least / S:g} s: false timeouts count it twice"
            )
    return remarks


def held(plan: Plan, least: int) -> list[str]:
    """On tuples that wait for a task that is down or stopped for longer than ``least`` (ns), after which they
    can time out: until the task is back, and if it was down, for the end of the window in which that is.
    """
    length = max((c.window.length or 0 for c in plan.stateful if c.window), default=0)
    for i, fault in enumerate(plan.failures):
        component = plan.topology.by_name.get(getattr(fault, "component", ""))
        elsewhere = component is None and hasattr(fault, "component")  # the acker, the driver
        spout = component is not None and component.is_spout
        waits = fault.lasts
        if elsewhere or spout or (fault.kills and fault.while_down != "hold"):
            waits = 0
        elif length and fault.kills and fault.lasts > 0:
            waits += length
            if fault.at is not None and not fault.drawn and fault.in_interval is None:
                waits = -(-(fault.at + fault.lasts) // length) * length - fault.at
        if waits > least:
            return [
                f"failures.{i}: what waits for {fault.where} is not lost, but waits up to {waits / S:.4g} s "
                f"for its ack, and can time out after {least / S:g} s: false timeouts count it twice"
            ]
    return []


_KEY = "sink.transaction_timeout"


def too_short(plan: Plan, terms: Terms | None, saving: Saving, upload: int) -> list[str]:
    """On transactions that a broker does not grant, or may abort before they are committed: each is open for
    an interval of ``saving``, and until all is saved (``upload``: see ``job_takes``).
    """
    if terms is None:
        return []
    timeout, remarks = terms.timeout, []
    if timeout > BROKERS_LIMIT:
        remarks.append(
            f"{_KEY} {timeout / S:g} s: a Kafka broker refuses more than {BROKERS_LIMIT / S:g} s, unless its "
            "transaction.max.timeout.ms is raised"
        )
    opened = saving.interval + job_takes(plan, saving, upload) + terms.commit_time
    if timeout <= opened:
        remarks.append(
            f"{_KEY} {timeout / S:g} s: a transaction is open for up to {opened / S:.4g} s ({saving.key}, "
            "the snapshot, the commit): the broker aborts it though nothing fails, and its output is lost"
        )
        return remarks
    for i, fault in enumerate(plan.failures):
        if fault.kills and terms.commit_time and fault.lasts + terms.commit_time >= timeout:
            remarks.append(
                f"failures.{i}: the outage of {fault.lasts / S:.4g} s outlasts {_KEY} {timeout / S:g} s: "
                "what a complete snapshot has not yet committed when it strikes (for "
                f"{terms.commit_time / S:g} s after each) is lost"
            )
            break
    return remarks
