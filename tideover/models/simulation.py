"""One replication from start to end, and what it says: ``simulate`` and ``watch`` are the engine's entrance,
for the command line, the library, sweeps and searches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from tideover.models.accounts.trace import Stretch, Trace
from tideover.models.coarsening import coarsened, coarseness, finest, real
from tideover.models.config import Scenario
from tideover.models.evaluation import measures
from tideover.models.evaluation.bottleneck import Used, utilisation
from tideover.models.evaluation.curves import SECOND, Curves, curves, on_common_axis
from tideover.models.evaluation.diagram import Diagram, diagram
from tideover.models.evaluation.measures import availability
from tideover.models.evaluation.undisturbed import reference
from tideover.models.runtime.job import Job
from tideover.models.schema import LATENCIES, TABLES, block, in_lumps
from tideover.models.world import World
from tideover.sim.histogram import Histogram
from tideover.sim.kernel import standing
from tideover.sim.units import MS, S


@dataclass
class Replication:
    """What one replication says.

    recoveries, timeline, tasks    rows of the tables of this name (`tideover.models.schema`) throughput,
    ledger, windows, cost, dependability    blocks of the record latency        measured latencies (ns),
    outside recoveries and catch-up end_to_end     the same, from each root's first emission edges
    messages and bytes by edge pairs          messages and bytes by the hosts of sender and receiver, of those
    that differ; as for ``used`` used           how busy everything was over time; None: nothing is shared, or
    nobody asked complete       latencies from emission until all is acked, or processed if nothing is (ns);
    as for ``used`` wrong_without  windows that are wrong or missing in its reference, too, where nothing
    fails trace          every tuple's times, if asked for diagram        who sent what to whom, if a stretch
    was watched
    """

    number: int
    recoveries: list[dict[str, Any]]
    timeline: list[dict[str, Any]]
    latency: Histogram
    end_to_end: Histogram
    throughput: dict[str, float | None]
    ledger: dict[str, int]
    windows: dict[str, int]
    cost: dict[str, float | None]
    dependability: dict[str, float | None]
    edges: dict[str, dict[str, int]] = field(default_factory=dict)
    pairs: list[dict[str, int]] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    used: Used | None = None
    complete: Histogram | None = None
    wrong_without: int = 0
    trace: Trace | None = None
    world: World | None = None
    diagram: Diagram | None = None

    @property
    def histograms(self) -> dict[str, Histogram]:
        """The latencies (ns), by their block of the record (`tideover.models.schema`)."""
        return {"latency_ms": self.latency, "end_to_end_ms": self.end_to_end}

    @property
    def usage(self) -> list[dict[str, Any]]:
        return [] if self.used is None else self.used.rows()

    @property
    def totals(self) -> dict[str, dict[str, Any]]:
        """The other blocks of the record, of this replication alone."""
        return {
            "throughput_per_s": self.throughput,
            "dependability": self.dependability,
            "ledger": self.ledger,
            "windows": self.windows,
            "cost": self.cost,
        }


@standing()  # the world goes when it ends
def simulate(
    scenario: Scenario,
    replication: int = 0,
    *,
    trace: bool = False,
    watched: Stretch | None = None,
) -> Replication:
    """Run one replication of a scenario.

    ``trace`` keeps every tuple (small runs only). ``watched``: a stretch for its ``diagram``. Raises
    TopologyError for a topology that cannot be simulated.
    """
    lump = coarseness(scenario)
    shortest = finest(scenario, lump)
    scenario = coarsened(scenario, lump)
    world = World(scenario, replication, trace=trace, watched=watched)
    world.run()
    found = evaluate(world, replication)
    if watched is not None:
        found.diagram = diagram(world, lump)
    return found if lump == 1 else _in_tuples(_told(found, shortest), lump)


@standing()
def watch(scenario: Scenario, replication: int, stretch: Stretch) -> Diagram:
    """The diagram of a stretch of a replication, of which nothing else is wanted: it is run up to the end of
    the stretch, and as long again to see what becomes of what is under way then (at least 1 s).
    """
    lump = coarseness(scenario)
    world = World(coarsened(scenario, lump), replication, judge_windows=False, looks=0, watched=stretch)
    world.start()
    longer = max(S, stretch.end - stretch.begin)
    world.kernel.run(min(world.scenario.run.duration, stretch.end + longer))
    world.settle()
    return diagram(world, lump)


def _told(found: Replication, shortest: float) -> Replication:
    """Without latencies in recoveries and seconds that lumps cannot tell: where the median, or in a second
    the mean, is less than ``shortest`` (ns). Histograms stay those of lumps.
    """

    def row(one: dict[str, Any], middle: str) -> dict[str, Any]:
        short = [what for what in LATENCIES if (one[f"{what}_{middle}_ms"] or 0.0) * MS < shortest]
        hidden = tuple(f"{what}_" for what in short)
        return {
            name: None if name.endswith("_ms") and name.startswith(hidden) else value
            for name, value in one.items()
        }

    return replace(
        found,
        recoveries=[row(one, "median") for one in found.recoveries],
        timeline=[row(one, "mean") for one in found.timeline],
    )


def _in_tuples(found: Replication, lump: int) -> Replication:
    """What was counted in lumps, as counts of real tuples: throughput, backlog, ledger, recoveries,
    messages.
    """
    names = {table: [column.name for column in in_lumps(columns)] for table, columns in TABLES.items()}
    keys = {part: [column.key for column in in_lumps(block("runs", part))] for part in found.totals}
    return replace(
        found,
        recoveries=[real(row, lump, *names["recoveries"]) for row in found.recoveries],
        timeline=[real(row, lump, *names["timeline"]) for row in found.timeline],
        throughput=real(found.throughput, lump, *keys["throughput_per_s"]),
        ledger=real(found.ledger, lump, *keys["ledger"]),
        cost=real(found.cost, lump, *keys["cost"]),
        edges={name: real(edge, lump, "messages") for name, edge in found.edges.items()},
        pairs=[real(pair, lump, "messages") for pair in found.pairs],
        tasks=[real(row, lump, *names["tasks"]) for row in found.tasks],
    )


def evaluate(world: World, replication: int) -> Replication:
    """Read a world that has run to its end."""
    found = curves(world)
    without = found if not world.outages else reference(world.scenario, replication)
    balance = world.balance()
    found, without = on_common_axis(found, without)
    rows, outside = measures.recoveries(world, found, without)
    steady, first = measures.steady_seconds(world, outside, found.axis)
    end_to_end = (world.recorder.from_first or world.recorder.latency).over(steady, first)
    complete = None
    if world.completion is not None:
        acked = "acker" in world.scenario.strategy.roles
        complete = world.completion.latency if acked else end_to_end
    return Replication(
        number=replication,
        recoveries=rows,
        timeline=measures.timeline(world, found, without),
        latency=world.recorder.latency.over(steady, first),
        end_to_end=end_to_end,
        throughput=_throughput(world, found),
        ledger=balance
        | {
            "replayed": len(world.ledger.replayed),
            "duplicated": world.ledger.duplicated,
            "false_timeouts": len(world.ledger.false_timeouts),
            "late": len(world.ledger.late),
        },
        windows=_windows(world),
        cost=_cost(world, found, without),
        edges=_edges(world.job),
        pairs=[] if world.usage is None else _pairs(world.job),
        dependability=_dependability(world, rows),
        wrong_without=len(without.bad) if world.outages else 0,
        tasks=utilisation(world.job),
        used=None if world.usage is None else Used.of(world.usage),
        complete=complete,
        trace=world.trace,
        world=world if world.trace is not None else None,
    )


def _dependability(world: World, rows: list[dict[str, Any]]) -> dict[str, float | None]:
    scenario = world.scenario
    found = availability(rows, scenario.run.warmup / S, scenario.run.duration / S)
    if scenario.detector is None or not scenario.detector.false_detections:
        return found
    return found | {"false_detections": sum(row["kind"] == "false_detection" for row in rows)}


def _throughput(world: World, found: Curves) -> dict[str, float | None]:
    first, last = -(-world.scenario.run.warmup // S), world.scenario.run.duration // S
    if last <= first:
        return {"mean": None, "min": None, "max": None}
    per_second = found.done[found.axis.slots_of(first, last)].reshape(-1, SECOND).sum(axis=1)
    every = len(per_second) == last - first  # in seconds that are not kept nothing is done
    return {
        "mean": float(per_second.sum() / (last - first)),
        "min": float(per_second.min()) if every else 0.0,
        "max": float(per_second.max()),
    }


def _windows(world: World) -> dict[str, int]:
    if world.reference is not None:
        counts = world.reference.counts
    else:  # nothing can have disturbed them
        seen = world.windows.count
        counts = {"emitted": seen, "correct": seen, "wrong": 0, "missing": 0}
    return counts if world.readers is None else counts | {"expired": world.readers.expired}


def _edges(job: Job) -> dict[str, dict[str, int]]:
    edges: dict[str, dict[str, int]] = {
        e.name: {"messages": 0, "bytes": 0, "remote_bytes": 0} for e in job.topology.edges
    }
    for sender in job.tasks:
        for outlet in sender.outlets:
            edge = edges[outlet.edge.name]
            for channel in (channel for replicas in outlet.channels for channel in replicas):
                edge["messages"] += channel.messages
                edge["bytes"] += channel.bytes
                edge["remote_bytes"] += channel.remote_bytes
    return edges


def _pairs(job: Job) -> list[dict[str, int]]:
    pairs: dict[tuple[int, int], dict[str, int]] = {}
    for channel in (channel for task in job.bolt_tasks for channel in task.inputs):
        for way in channel.by_way:
            if way.remote and way.messages:
                hosts = way.from_host, way.to_host
                new = {"from_host": hosts[0], "to_host": hosts[1], "messages": 0, "bytes": 0}
                pair = pairs.setdefault(hosts, new)
                pair["messages"] += way.messages
                pair["bytes"] += way.bytes
    return list(pairs.values())


def _cost(world: World, found: Curves, without: Curves) -> dict[str, float | None]:
    job, measured = world.job, world.recoveries
    # what an hour of the machines costs that have tasks or stand by
    prices = [h.price for h in job.deployment.cluster.hosts if h.number in job.used or h.reserve]
    given = [price for price in prices if price is not None]
    # whether barriers may have to wait in full queues
    held_back = job.needs.log and any(bound.holds_back for bound in job.deployment.bounds.values())
    return {
        "cpu_s": found.cpu_s,
        "network_bytes": found.network_bytes,
        "normal_cpu_s": without.cpu_s,
        "normal_network_bytes": without.network_bytes,
        "store_bytes": sum(store.bytes for store in (job.store, *job.stores.values())),
        "peak_buffered_tuples": measured.peak_buffered,
        "hosts": len(job.used),
        **({"price_per_h": math.fsum(given)} if given else {}),
        **(world.snapshots.figures() if held_back else {}),
        **({} if world.readers is None else world.readers.delay_figures()),
    }
