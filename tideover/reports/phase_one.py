"""Stableford's first phase as a table: a real restart under both strategies, and what settings change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.formatting import UNDEFINED, strategy_name
from tideover.reports.published import group
from tideover.reports.tables import Table

if TYPE_CHECKING:
    import pandas as pd

NIMBUS, COST, QUEUE = "detector.nimbus_task_timeout", "strategies.rsm.replay_cost", "queues.length"
TASKS = 3
"""Each has a worker of its own."""
COLUMNS = (
    "strategy",
    "free workers",
    "queues",
    "Nimbus's timeout",
    "replay of a tuple",
    "restarts",
    "all back after, s",
    "replayed until, s",
    "published, s",
    "latency grows, s/min",
    "greatest latency, s",
    "new roots/s",
    "roots lost",
)
SOURCE = (
    'T. Stableford, "Implementing operator state checkpoint based fault-tolerance in Apache Storm", City '
    "University London, 2015, phase 1"
)
FINDINGS = (
    "Published: source replay recovered sooner, and under R+SM the latency grew without end, while the spout "
    "went on at its full rate; under source replay it did not. The replay burst explains it.",
    "A replayed word takes 3.1 ms of its sender (fitted in phase 2), and a new "
    "one comes every 2.4 ms: what the outage has left takes 1.3 times as long to replay as it took to come, "
    "and what comes meanwhile waits behind it, so that the latency grows by 0.23 s a second until the replay "
    "is over. A slower replay is worse, a faster one ends it.",
    "The spout: under R+SM nothing holds it back; under source replay the retries take its calls.",
    "The race of the two timeouts makes the outage longer, where a worker is free: the count is launched "
    "twice, and more is to be replayed. Where none is, Nimbus has the upstream worker restarted, too, and "
    "its buffer is gone: R+SM then has nothing to replay, and loses what came since the last checkpoint. A "
    "timeout of 120 s at Nimbus ends the race.",
    "Full queues do not explain it (stableford-phase1-queues): where they hold senders back, the spout does "
    "not keep its rate under R+SM, and with it the replay is shorter, and the latency has an end. Queues of "
    "16,384 are never full, and change nothing.",
)


def rows(recoveries: pd.DataFrame, runs: pd.DataFrame, timeline: pd.DataFrame) -> list[dict[str, Any]]:
    """One a point of the sweep; times from the failure, means over the replications. ``replayed_in``: of how
    many of them ``replayed_until_s`` is the mean; nothing was replayed in the others.
    """
    known = {strategy: measured for strategy, _, measured in group("stableford", "real_restart").rows}
    found = []
    for point in sorted(set(recoveries["point"].tolist())):
        mine = recoveries[recoveries["point"] == point]
        first = mine.groupby("replication").first()
        lengths = timeline[timeline["point"] == point]
        done = runs[runs["point"] == point]
        seconds = float(lengths.groupby("replication").size().mean())
        replayed = mine.assign(over=mine["ready_at_s"] + mine["state_recovery_s"]).groupby("replication")
        until = replayed["over"].max() - first["failed_at_s"]
        over, strategy = until.mean(), str(mine["strategy"].iloc[0])
        found.append(
            {
                "point": point,
                "strategy": strategy,
                "free_workers": int(mine["hosts"].iloc[0]) - TASKS,
                "queue_length": int(mine[QUEUE].iloc[0]) if QUEUE in mine else None,
                "nimbus_s": float(mine[NIMBUS].iloc[0]),
                "replay_cost_s": float(mine[COST].iloc[0]),
                "restarts": len(mine) / len(first),
                "back_s": float(
                    (mine.groupby("replication")["ready_at_s"].max() - first["failed_at_s"]).mean()
                ),
                "replayed_until_s": None if over != over else float(over),
                "replayed_in": int(until.count()),
                "replications": len(first),
                "published_s": known.get(strategy),
                "growth_s_per_min": _growth(lengths, mine),
                "greatest_latency_s": float(lengths["latency_max_ms"].max()) / 1000,
                "new_roots_per_s": float(done["emitted"].mean()) / seconds,
                "roots_lost": float(done["lost"].mean()),
            }
        )
    return found


def _growth(timeline: pd.DataFrame, recoveries: pd.DataFrame) -> float:
    """By how much the mean latency grows (s per minute) in the 30 s after all is back, by least squares."""
    found = []
    for replication, mine in recoveries.groupby("replication"):
        begin = float(mine["ready_at_s"].max()) + 2
        shown = timeline[timeline["replication"] == replication]
        part = shown[(shown["second"] >= begin) & (shown["second"] < begin + 30)].dropna(
            subset=["latency_mean_ms"]
        )
        if len(part) > 1:
            slope = np.polyfit(part["second"].astype(float), part["latency_mean_ms"].astype(float), 1)[0]
            found.append(float(slope) * 60 / 1000)
    return sum(found) / len(found) if found else 0.0


def table(found: list[dict[str, Any]]) -> Table:
    """As a reader sees it."""
    cells = tuple(
        (
            strategy_name(row["strategy"]),
            str(row["free_workers"]),
            "no end" if row["queue_length"] is None else f"{row['queue_length']:,}",
            f"{row['nimbus_s']:g} s",
            f"{1000 * row['replay_cost_s']:g} ms" if row["strategy"] == "rsm" else "–",
            f"{row['restarts']:.1f}",
            f"{row['back_s']:.1f}",
            _until(row),
            UNDEFINED if row["published_s"] is None else f"{row['published_s']:g}",
            f"{row['growth_s_per_min']:.1f}",
            f"{row['greatest_latency_s']:.1f}",
            f"{row['new_roots_per_s']:.1f}",
            f"{row['roots_lost']:,.0f}",
        )
        for row in found
        if row["strategy"] == "rsm" or row["replay_cost_s"] == found[0]["replay_cost_s"]
    )
    return Table("A count whose process dies, at 95 tuples/s", COLUMNS, cells, text_columns=1)


def _until(row: dict[str, Any]) -> str:
    """When the replay was over, and in how many replications there was one, if not in all."""
    if row["replayed_until_s"] is None:
        return "nothing"
    told = f"{row['replayed_until_s']:.1f}"
    few = row["replayed_in"] < row["replications"]
    return f"{told} in {row['replayed_in']} of {row['replications']}" if few else told
