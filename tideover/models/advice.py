"""What an expert would remark about a scenario before running it."""

from __future__ import annotations

from tideover.models.arrivals.periodic import Periodic
from tideover.models.config import BoltConfig, Scenario, SpoutConfig
from tideover.models.strategies.active_replication import ActiveReplication
from tideover.models.strategies.aligned_snapshots import AlignedSnapshots
from tideover.models.strategies.base import Strategy
from tideover.models.strategies.micro_batch import MicroBatch
from tideover.models.strategies.rsm import StateManagement
from tideover.models.strategies.source_replay import SourceReplay
from tideover.models.topology import Component, Topology, placement
from tideover.models.words import LENGTHS
from tideover.sim.faults.crash_host import CrashHost
from tideover.sim.units import S


def warnings(scenario: Scenario) -> list[str]:
    """Remarks, each one sentence; none if there is nothing to remark."""
    topology = Topology(scenario)
    loads = task_loads(topology, scenario.strategy)
    return [
        *_load(loads),
        *_timeouts(scenario, topology, loads),
        *_replicas(scenario, topology),
        *_checkpoints(scenario, topology),
        *_buffers(scenario, topology),
        *_batches(scenario, topology, loads),
        *_snapshots(scenario, topology),
        *_profile(scenario),
    ]


def overloaded(scenario: Scenario) -> bool:
    """Whether a backlog can never be worked off, for sure: a task gets as much from a log as it can do, or
    more, evenly and without end.
    """
    spouts = [c for c in scenario.topology.values() if isinstance(c, SpoutConfig)]
    endless = all(isinstance(c.arrivals, Periodic) and c.spout.limit is None for c in spouts)
    if not endless or not isinstance(scenario.strategy, AlignedSnapshots):
        return False
    loads = task_loads(Topology(scenario), scenario.strategy)
    bolts = {name: c for name, c in scenario.topology.items() if isinstance(c, BoltConfig)}
    return any(loads[name][0] * c.service.mean_ns >= S for name, c in bolts.items())


def task_loads(topology: Topology, strategy: Strategy) -> dict[str, tuple[float, float]]:
    """For each bolt: tuples/s that reach one task, and its load (the part of the time that it works).

    Acks and checkpoints are part of the work. Shuffle and fields groupings are taken to spread evenly.
    """
    out: dict[str, float] = {}
    loads: dict[str, tuple[float, float]] = {}
    for c in topology.components:
        if isinstance(c.config, SpoutConfig):
            out[c.name] = c.tasks * 1e9 / c.config.arrivals.mean_gap_ns
            continue
        rate = sum(out[e.up.name] * (c.tasks if e.grouping.copies else 1) for e in c.inputs)
        busiest = rate if any(e.grouping.kind == "global" for e in c.inputs) else rate / c.tasks
        work, stall = c.config.service.mean_ns, 0.0
        if isinstance(strategy, SourceReplay) and c.anchored:
            work += strategy.ack_cost
        if isinstance(strategy, StateManagement) and c.window:
            stall = (
                strategy.serialise_time + c.keys * strategy.serialise_cost
            ) / strategy.checkpoint_interval
        if isinstance(strategy, AlignedSnapshots) and c.window:
            copying = strategy.snapshot_time + _entries(c) * strategy.snapshot_cost
            stall = copying / strategy.checkpoint_interval
        loads[c.name] = (busiest, busiest * work / S + stall)
        out[c.name] = 0.0 if c.window else rate * _selectivity(c)
    return loads


def _selectivity(component: Component) -> float:
    """Tuples out per tuple in, on average."""
    bolt = component.bolt
    if bolt.kind == "split_words":
        return float(LENGTHS.mean())
    return float(getattr(bolt, "selectivity", getattr(bolt, "keep", 1.0)))


def _entries(component: Component) -> int:
    """Most entries that the state of one task can have; a fields grouping spreads the keys."""
    spread = all(edge.grouping.kind == "fields" for edge in component.inputs)
    return -(-component.keys // component.tasks) if spread else component.keys


def _profile(scenario: Scenario) -> list[str]:
    profile = scenario.profile
    if profile is None or profile.taken:
        return []
    return [f"profile {profile.name}: gives nothing under {scenario.strategy.kind}; no value was measured"]


def _load(loads: dict[str, tuple[float, float]]) -> list[str]:
    return [
        f"{name}: load {load:.2f}: a task gets {rate:.4g} tuples/s and cannot keep up; "
        "its queue grows without end"
        for name, (rate, load) in loads.items()
        if load >= 1
    ]


def _timeouts(scenario: Scenario, topology: Topology, loads: dict[str, tuple[float, float]]) -> list[str]:
    strategy = scenario.strategy
    if not isinstance(strategy, SourceReplay):
        return []
    remarks = []
    for c in topology.components:
        if c.window is None or not c.anchored:
            continue
        length = c.window.window.length
        if length is None and not loads[c.name][0]:
            continue  # no tuple comes here, none waits
        if length is None:
            length = round(S * (c.window.window.tuples or 0) / loads[c.name][0])
        # The first tuple of a window waits for its end and is acked at once, the last one waits for the acks
        # of all the others, and in between it is so much of the one and so much of the other.
        burst = round(strategy.ack_cost * loads[c.name][0] * length / S)
        longest, why = max((length, f"the window of {c.name}"), (burst, f"the burst of acks of {c.name}"))
        least = strategy.message_timeout * (strategy.timeout_buckets - 1)
        if least < longest:
            remarks.append(
                f"message_timeout {strategy.message_timeout / S:g} s: a tuple may wait "
                f"{longest / S:.4g} s for its ack ({why}), but can time out after {least / S:g} s: "
                "false timeouts count it twice"
            )
    return remarks


def _replicas(scenario: Scenario, topology: Topology) -> list[str]:
    strategy = scenario.strategy
    if not isinstance(strategy, ActiveReplication) or strategy.k == 0:
        return []
    remarks = []
    replicas = {c.name: 1 if c.is_spout else strategy.replicas(c.name) for c in topology.components}
    hosts = placement(topology, scenario, replicas)
    for c in topology.components:
        used = {hosts[c.name, 0, r] for r in range(replicas[c.name])}
        if len(used) < replicas[c.name]:
            remarks.append(
                f"{c.name}: {replicas[c.name]} replicas on {len(used)} hosts: one host takes more than "
                "one of them down"
            )
        if (
            c.window is not None
            and replicas[c.name] > 1
            and c.window.window.trigger == "tick"
            and c.window.window.length
        ):
            remarks.append(
                f"{c.name}: a window that a timer ends, under k = {strategy.k}: replicas may emit different "
                "sums, and deduplication then picks wrong ones; use window: {length: …, trigger: marker}"
            )
    return remarks


def _batches(scenario: Scenario, topology: Topology, loads: dict[str, tuple[float, float]]) -> list[str]:
    s = scenario.strategy
    if not isinstance(s, MicroBatch):
        hit = any(getattr(fault, "component", None) == "driver" for fault in scenario.failures)
        return [f"failures: {s.kind} has no driver: that it is lost changes nothing"] if hit else []
    work = sum(load for _, load in loads.values())
    if work >= 1:
        return [
            f"the stages of a batch, one after the other, need {work:.2f} s for what comes in a second: "
            "batches grow without end"
        ]
    bolts = [c for c in topology.components if not c.is_spout]
    fixed = s.plan_time + s.output_time + s.commit_time
    fixed += sum(s.task_time + (s.state_time if c.window else 0) for c in bolts)
    lasts = fixed + round(work * s.trigger_interval)
    if 0 < s.trigger_interval < lasts:
        return [
            f"trigger_interval {s.trigger_interval / S:g} s: a batch of what comes in it takes about "
            f"{lasts / S:.4g} s, longer than the interval"
        ]
    return []


def _checkpoints(scenario: Scenario, topology: Topology) -> list[str]:
    strategy = scenario.strategy
    if not isinstance(strategy, StateManagement):
        return []
    entries = max((c.keys for c in topology.components if c.window), default=0)
    size = entries * strategy.entry_size
    write = scenario.store.latency + size * S // scenario.store.bandwidth
    takes = strategy.serialise_time + entries * strategy.serialise_cost + write
    remarks = []
    if takes > strategy.checkpoint_interval:
        remarks.append(
            f"checkpoint_interval {strategy.checkpoint_interval / S:g} s: a checkpoint of {entries} entries "
            f"takes up to {takes / S:.4g} s, longer than the interval"
        )
    writers = sum(c.tasks for c in topology.components if c.window)
    lengths = [c.window.window.length for c in topology.components if c.window and c.window.window.length]
    often = min([strategy.checkpoint_interval, *lengths])
    if takes <= strategy.checkpoint_interval and writers * write > often:
        remarks.append(
            f"store: {writers} tasks write for {write / S:.4g} s each, but every {often / S:g} s a write "
            "is asked for: they fall behind"
        )
    for c in topology.components:
        if c.window and c.window.window.tuples and sum(edge.up.tasks for edge in c.inputs) > 1:
            remarks.append(
                f"{c.name}: windows by tuple, fed by several tasks: a replay mixes their tuples in another "
                "order, so windows after a recovery hold other tuples than before it"
            )
    return remarks


def _buffers(scenario: Scenario, topology: Topology) -> list[str]:
    """Under R+SM the tasks before keep what has to be replayed, in their memory."""
    if not isinstance(scenario.strategy, StateManagement):
        return []
    hosts = placement(topology, scenario, {c.name: 1 for c in topology.components})
    remarks = []
    for host in sorted({fault.host for fault in scenario.failures if isinstance(fault, CrashHost)}):
        there = {name for (name, _, _), place in hosts.items() if place == host}
        pairs = [(e.up.name, c.name) for c in topology.components for e in c.inputs]
        both = [f"{up} and {down}" for up, down in pairs if {up, down} <= there]
        if both:
            remarks.append(
                f"host {host} has tasks of {', of '.join(both)}: its crash takes tuples together with the "
                "buffer that they would be replayed from, and they are lost"
            )
    return remarks


def _snapshots(scenario: Scenario, topology: Topology) -> list[str]:
    """A snapshot of the job takes as long as its slowest task; the store writes one after the other."""
    strategy = scenario.strategy
    if not isinstance(strategy, AlignedSnapshots):
        return []
    counts = [c for c in topology.components if c.window]
    entries = max((_entries(c) for c in counts), default=0)
    size = sum(c.tasks * _entries(c) for c in counts) * strategy.entry_size
    write = sum(c.tasks for c in counts) * scenario.store.latency + size * S // scenario.store.bandwidth
    takes = strategy.snapshot_time + entries * strategy.snapshot_cost + write + strategy.upload_time
    if takes > strategy.checkpoint_timeout:
        return [
            f"checkpoint_timeout {strategy.checkpoint_timeout / S:g} s: a snapshot takes up to "
            f"{takes / S:.4g} s: it may be abandoned each time, and a failure then goes back to the beginning"
        ]
    if takes > strategy.checkpoint_interval:
        return [
            f"checkpoint_interval {strategy.checkpoint_interval / S:g} s: a snapshot takes up to "
            f"{takes / S:.4g} s, longer than the interval: the next one begins when it has ended"
        ]
    return []
