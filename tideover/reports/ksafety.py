"""The maximum throughput of k-safety beside the published one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tideover.models.config import Scenario
from tideover.models.evaluation.bottleneck import Load
from tideover.reports import published
from tideover.reports.tables import Table
from tideover.sim.registry import kind_of

MACHINES = "hosts.machines.node.count"
ROWS = {
    ("none", 4): ("Storm without acking", "1x", "fitted (emit_cost)"),
    ("active_replication", 4): ("k-safety k=1", "1x", "fitted (service)"),
    ("active_replication", 8): ("k-safety k=1", "2x", "predicted"),
    ("source_replay", 4): ("Storm with acking", "1x", "predicted, not published"),
}
"""The published names of strategies and machines, and where the figure comes from."""
COLUMNS = ("system", "machines", "published/s", "simulated/s", "error", "limited by", "verdict")
FINDINGS = (
    "One set of hosts and costs stands behind all rows. Without replicas the spout is the limit (10 us a "
    "tuple), and the cores have a third of their time left.",
    "With k = 1 on the same machines there are twice the tasks, and each sends its tuples to both replicas "
    "of the next stage: 4 messages for 1. The cores are the limit then; on twice the machines the spout is.",
    "With acks the spout also serialises a message to the acker for each tuple, and deserialises its answer: "
    "22 us in place of 10. That, not what acks cost the bolts, takes more than half of the throughput.",
)


def rows(scenarios: Sequence[Scenario], records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One for each system: what the busiest resource leaves room for, or the spout, if that is less.

    ``records``: of the runs of the scenarios, as ``run --json`` has them.
    """
    known = {(row[0], row[1]): row[2] for row in published.group("ksafety", "throughput").rows}
    found = []
    for scenario, record in zip(scenarios, records, strict=True):
        kind, machines = kind_of(scenario.strategy), getattr(scenario.hosts, "count", 0)
        if (kind, machines) not in ROWS:
            continue
        system, size, verdict = ROWS[kind, machines]
        carried, limit = _limit(scenario, record["resources"])
        measured = known.get((system, size))
        found.append(
            {
                "system": system,
                "machines": size,
                "published_per_s": measured,
                "simulated_per_s": carried,
                "error": None if measured is None else carried / measured - 1,
                "limited_by": limit,
                "verdict": verdict,
            }
        )
    order = [row[:2] for row in ROWS.values()]
    return sorted(found, key=lambda row: order.index((row["system"], row["machines"])))


def _limit(scenario: Scenario, resources: Sequence[Mapping[str, Any]]) -> tuple[float, str]:
    """Tuples/s that can be carried, and what stands in the way of more: all loads grow with the rate."""
    source: Any = scenario.topology["source"]
    links, calls = scenario.links, source.arrivals
    acks = kind_of(scenario.strategy) == "source_replay"
    spout = 1e9 / (calls.emit_cost + (links.serialise + links.deserialise if acks else 0))
    busiest = Load(**max(resources, key=lambda resource: resource["busy"]))
    room = 1e9 / (calls.pause + calls.emit_cost) / busiest.busy
    return (spout, "the spout") if spout <= room else (room, busiest.words)


def table(found: list[dict[str, Any]]) -> Table:
    """As a reader sees it."""
    cells = tuple(
        (
            row["system"],
            row["machines"],
            "–" if row["published_per_s"] is None else f"{row['published_per_s']:,}",
            f"{row['simulated_per_s']:,.0f}",
            "–" if row["error"] is None else f"{100 * row['error']:+.1f} %",
            row["limited_by"],
            row["verdict"],
        )
        for row in found
    )
    title = published.group("ksafety", "throughput").title
    return Table(title, COLUMNS, cells, text_columns=2)
