"""What each strategy needs: time before a timeout, a store that keeps up, hosts that fail one by one."""

from __future__ import annotations

from tideover.models.advice.loads import Load, entries_of
from tideover.models.config import Scenario
from tideover.models.job.deployment import placement
from tideover.models.job.topology import Topology
from tideover.models.strategies.active_replication import ActiveReplication
from tideover.models.strategies.aligned_snapshots import AlignedSnapshots
from tideover.models.strategies.micro_batch import MicroBatch
from tideover.models.strategies.rsm import StateManagement
from tideover.sim.faults.crash_host import CrashHost
from tideover.sim.units import S


def replicas(scenario: Scenario, topology: Topology) -> list[str]:
    strategy = scenario.strategy
    if not isinstance(strategy, ActiveReplication) or strategy.k == 0:
        return []
    remarks = []
    replicas = {c.name: 1 if c.is_spout else strategy.replicas(c.name) for c in topology.components}
    hosts = placement(topology, replicas, scenario.hosts)
    for c in topology.components:
        used = {hosts[c.name, 0, r] for r in range(replicas[c.name])}
        if len(used) < replicas[c.name]:
            remarks.append(
                f"{c.name}: {replicas[c.name]} replicas on {len(used)} hosts: one host takes more than "
                "one of them down"
            )
        if c.window is not None and replicas[c.name] > 1 and c.window.trigger == "tick" and c.window.length:
            remarks.append(
                f"{c.name}: a window that a timer ends, under k = {strategy.k}: replicas may emit different "
                "sums, and deduplication then picks wrong ones; use window: {length: …, trigger: marker}"
            )
    return remarks


def batches(scenario: Scenario, topology: Topology, loads: dict[str, Load]) -> list[str]:
    s = scenario.strategy
    if not isinstance(s, MicroBatch):
        hit = any(getattr(fault, "component", None) == "driver" for fault in scenario.failures)
        return [f"failures: {s.kind} has no driver: that it is lost changes nothing"] if hit else []
    work = sum(load.load for load in loads.values())
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


def checkpoints(scenario: Scenario, topology: Topology) -> list[str]:
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
    lengths = [c.window.length for c in topology.components if c.window and c.window.length]
    often = min([strategy.checkpoint_interval, *lengths])
    if takes <= strategy.checkpoint_interval and writers * write > often:
        remarks.append(
            f"store: {writers} tasks write for {write / S:.4g} s each, but every {often / S:g} s a write "
            "is asked for: they fall behind"
        )
    for c in topology.components:
        if c.window and c.window.tuples and sum(edge.up.tasks for edge in c.inputs) > 1:
            remarks.append(
                f"{c.name}: windows by tuple, fed by several tasks: a replay mixes their tuples in another "
                "order, so windows after a recovery hold other tuples than before it"
            )
    return remarks


def buffers(scenario: Scenario, topology: Topology) -> list[str]:
    """Under R+SM the tasks before keep what has to be replayed, in their memory."""
    if not isinstance(scenario.strategy, StateManagement):
        return []
    hosts = placement(topology, {c.name: 1 for c in topology.components}, scenario.hosts)
    remarks = _unbuffered(scenario, topology)
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


def _unbuffered(scenario: Scenario, topology: Topology) -> list[str]:
    """What fails and is not replayed to: a task that reads a spout which keeps nothing, and one without
    state.
    """
    strategy = scenario.strategy
    assert isinstance(strategy, StateManagement)
    faults = [fault for fault in scenario.failures if fault.kills]
    hit = {getattr(fault, "component", None) for fault in faults}
    down = {
        getattr(fault, "component", None) for fault in faults if fault.kind == "crash_task" or fault.lasts
    }
    remarks = []
    for c in topology.components:
        if c.name not in hit or c.is_spout:
            continue
        spouts = [edge.up.name for edge in c.inputs if edge.up.is_spout]
        if not c.window and c.name in down:
            remarks.append(
                f"{c.name}: has no state, so R+SM replays nothing to it: what it has in its queue when it "
                "crashes, and what comes while it is down, is lost"
            )
        elif c.window and spouts and not strategy.spout_buffer:
            remarks.append(
                f"{c.name}: reads the spout {spouts[0]}, which keeps no buffer: what came since the last "
                "checkpoint is lost; set strategy.spout_buffer=true"
            )
    return remarks


def snapshots(scenario: Scenario, topology: Topology) -> list[str]:
    """A snapshot of the job takes as long as its slowest task; the store writes one after the other."""
    strategy = scenario.strategy
    if not isinstance(strategy, AlignedSnapshots):
        return []
    counts = [c for c in topology.components if c.window]
    entries = max((entries_of(c) for c in counts), default=0)
    size = sum(c.tasks * entries_of(c) for c in counts) * strategy.entry_size
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
