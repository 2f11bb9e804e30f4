"""One replication from start to end, and what it says: ``simulate`` and ``watch`` are the engine's entrance,
for the command line, the library, sweeps and searches. What its figures mean stands in `evaluation.measures`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tideover.models.accounts.trace import Stretch, Trace
from tideover.models.coarsening import coarsened, coarseness, finest
from tideover.models.config import Scenario
from tideover.models.evaluation import bottleneck, measures
from tideover.models.evaluation.bottleneck import Used
from tideover.models.evaluation.curves import curves, on_common_axis
from tideover.models.evaluation.diagram import Diagram, diagram
from tideover.models.evaluation.undisturbed import reference
from tideover.models.schema import LATENCIES, TABLES
from tideover.models.world import World
from tideover.sim.histogram import Histogram
from tideover.sim.kernel import standing
from tideover.sim.units import MS, S

Row = dict[str, Any]


@dataclass
class Replication:
    """What one replication says.

    recoveries, timeline, tasks    rows of the tables of this name (`tideover.models.schema`)
    throughput, ledger, windows, cost, dependability    blocks of the record
    latency        measured latencies (ns), outside recoveries and catch-up
    end_to_end     the same, from each root's first emission
    edges          messages and bytes by edge
    pairs          messages and bytes by the hosts of sender and receiver, of those that differ; as for
                   ``used``
    used           how busy everything was over time; None: nothing is shared, or nobody asked
    complete       latencies from emission until all is acked, or processed if nothing is (ns); as for
                   ``used``
    wrong_without  windows that are wrong or missing in its reference, too, where nothing fails
    trace          every tuple's times, if asked for
    diagram        who sent what to whom, if a stretch was watched
    """

    number: int
    recoveries: list[Row]
    timeline: list[Row]
    latency: Histogram
    end_to_end: Histogram
    throughput: dict[str, float | None]
    ledger: dict[str, int]
    windows: dict[str, int]
    cost: dict[str, float | None]
    dependability: dict[str, float | None]
    edges: dict[str, dict[str, int]] = field(default_factory=dict)
    pairs: list[dict[str, int]] = field(default_factory=list)
    tasks: list[Row] = field(default_factory=list)
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
    def usage(self) -> list[Row]:
        return [] if self.used is None else self.used.rows()

    @property
    def totals(self) -> dict[str, Row]:
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
    lump, shortest = coarseness(scenario), finest(scenario)
    world = World(coarsened(scenario, lump), replication, trace=trace, watched=watched)
    world.run()
    found = evaluate(world, replication)
    if watched is not None:
        found.diagram = diagram(world, lump)
    return found if lump == 1 else _in_tuples(found, lump, shortest)


@standing()
def watch(scenario: Scenario, replication: int, stretch: Stretch) -> Diagram:
    """The diagram of a stretch of a replication, of which nothing else is wanted: it is run up to the end of
    the stretch, and as long again to see what becomes of what is under way then (at least 1 s).
    """
    world = World(coarsened(scenario), replication, judge_windows=False, looks=0, watched=stretch)
    world.start()
    longer = max(S, stretch.end - stretch.begin)
    world.kernel.run(min(world.scenario.run.duration, stretch.end + longer))
    world.settle()
    return diagram(world, coarseness(scenario))


def evaluate(world: World, replication: int) -> Replication:
    """Read a world that has run to its end."""
    found = curves(world)
    quiet = not (world.outages or world.job.supervisor.asked_to_stop)
    without = found if quiet else reference(world.scenario, replication)
    balance = world.balance()
    found, without = on_common_axis(found, without)
    rows, outside = measures.recoveries(world, found, without)
    steady, first = measures.steady_seconds(world, outside, found.axis)
    end_to_end = (world.recorder.from_first or world.recorder.latency).over(steady, first)
    complete = None
    if world.usage is not None:
        acked = "acker" in world.scenario.strategy.roles
        complete = world.recoveries.complete if acked else end_to_end
    return Replication(
        number=replication,
        recoveries=rows,
        timeline=measures.timeline(world, found, without),
        latency=world.recorder.latency.over(steady, first),
        end_to_end=end_to_end,
        throughput=measures.throughput(world, found),
        ledger=measures.ledger(world, balance),
        windows=measures.windows(world),
        cost=measures.cost(world, found, without),
        edges=bottleneck.edges(world.job),
        pairs=[] if world.usage is None else bottleneck.pairs(world.job),
        dependability=measures.dependability(world, rows),
        wrong_without=len(without.bad) if world.outages else 0,
        tasks=bottleneck.utilisation(world.job),
        used=None if world.usage is None else Used.of(world.usage),
        complete=complete,
        trace=world.trace,
        world=world if world.trace is not None else None,
    )


def _in_tuples(found: Replication, lump: int, shortest: float) -> Replication:
    """What was counted in lumps, as counts of real tuples (or roots).

    Without latencies in recoveries and seconds that lumps cannot tell: where the median, or in a second the
    mean, is less than ``shortest`` (ns). Histograms stay those of lumps.
    """
    units = ("tuples", "roots", "tuples/s")

    def counts(table: str, block: str = "") -> set[str]:
        columns = (c for c in TABLES[table] if c.unit in units and block in ("", *c.record[:1]))
        return {name for c in columns for name in (c.name, *c.record[-1:])}

    def real(row: Row, names: set[str]) -> Row:
        return {k: v * lump if k in names and v is not None else v for k, v in row.items()}

    def told(row: Row, table: str, middle: str) -> Row:
        short = tuple(f"{what}_" for what in LATENCIES if (row[f"{what}_{middle}_ms"] or 0.0) * MS < shortest)
        full = real(row, counts(table))
        return {k: None if k.endswith("_ms") and k.startswith(short) else v for k, v in full.items()}

    return replace(
        found,
        recoveries=[told(row, "recoveries", "median") for row in found.recoveries],
        timeline=[told(row, "timeline", "mean") for row in found.timeline],
        throughput=real(found.throughput, counts("runs", "throughput_per_s")),
        ledger=real(found.ledger, counts("runs", "ledger")),
        cost=real(found.cost, counts("runs", "cost")),
        edges={name: real(edge, {"messages"}) for name, edge in found.edges.items()},
        pairs=[real(pair, {"messages"}) for pair in found.pairs],
        tasks=[real(row, counts("tasks")) for row in found.tasks],
    )
