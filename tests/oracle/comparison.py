"""The engine's figures beside the reference's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tideover.models.config import Scenario
from tideover.models.evaluation.curves import curves
from tideover.models.simulation import Replication
from tideover.sim.registry import kind_of
from tideover.sim.units import S

from .acks import AckCosts
from .figures import SECOND, SLOT, STAGES, Figures, Latencies
from .protocol import PROTOCOLS

LATENCIES = ("median", "mean", "std", "p95", "p99", "max")
BIN = 0.01
"""How far a quantile may be off, of a histogram whose bins are at most 1 % wide."""
ROUNDING = 1e-9
"""The same of what is exact but for the float that it is told in."""
MOMENTS = ("detected_at_s", "ready_at_s")
NEVER_READY = ("state_recovery_s", *STAGES)
"""What a recovery tells by its plan, if the run ends before what was hit is back."""
FORWARD = ("detect_s", "restart_s", "restore_s", "replay_s", "state_recovery_s", "catch_up_s", "output_gap_s")
"""A recovery goes forward in time: struck, detected, ready, restored, replayed, whatever else fails."""
PER = SECOND // SLOT

AT_MOST = "cost peak_buffered_tuples"
"""The engine counts pending roots at rotations only, so where bolts ack it may miss the peak."""

Pair = tuple[str, Any, Any]


def unequal(ours: Figures, theirs: Replication, scenario: Scenario) -> dict[str, Any]:
    """{name of a figure: (the reference's, the engine's)} of all that differ."""
    pairs = [*_rows(ours, theirs, scenario.run.duration), *_whole(ours, theirs), *_by_second(ours, theirs)]
    pairs += _by_slot(ours, theirs)
    wrong = {name: both for name, *both in pairs if not _same(name, *both)}
    if issubclass(PROTOCOLS[kind_of(scenario.strategy)], AckCosts) and AT_MOST in wrong:
        peak, engine = wrong[AT_MOST]
        if engine < peak:
            del wrong[AT_MOST]
    return wrong | _backward(theirs)


def _backward(theirs: Replication) -> dict[str, Any]:
    rows = enumerate(theirs.recoveries)
    negative = {
        f"{number} {name}": row[name] for number, row in rows for name in FORWARD if (row[name] or 0) < 0
    }
    return {name: ("not negative", value) for name, value in negative.items()}


def _same(name: str, reference: Any, engine: Any) -> bool:
    if isinstance(reference, str) or reference is None or engine is None:
        return bool(reference == engine)
    off = BIN if name.endswith(("median", "p95", "p99")) else ROUNDING
    return bool(abs(reference - engine) <= off * max(1, abs(reference), abs(engine)))


def _rows(ours: Figures, theirs: Replication, end: int) -> Iterator[Pair]:
    for number, (mine, row) in enumerate(zip(ours.recoveries, theirs.recoveries, strict=True)):
        unknown = NEVER_READY if mine["ready_at_s"] is None else ()
        for name, value in mine.items():
            if isinstance(value, dict):
                engine = {key: row[f"{name}_{key}_ms"] for key in value}
                yield from _latencies(f"{number} {name}", value, engine)
            elif name not in unknown:
                told, engine = value, row[name]
                if name.endswith("_s"):
                    told = None if value is None else value / S
                if name in MOMENTS and engine is not None and round(engine * S) > end:
                    engine = None  # as planned: it is after the end
                yield f"{number} {name}", told, engine


def _whole(ours: Figures, theirs: Replication) -> Iterator[Pair]:
    yield from _latencies("latency", ours.latency, theirs.latency.summary(1e6))
    yield from _latencies("end_to_end", ours.end_to_end, theirs.end_to_end.summary(1e6))
    for what in ("throughput", "windows", "cost"):
        engine = getattr(theirs, what)
        for name, value in getattr(ours, what).items():
            yield f"{what} {name}", value, engine[name]
    for row in theirs.tasks:
        busy, blocked, up = ours.tasks[row["task"]]
        yield f"{row['task']} busy", busy / S, row["busy_s"]
        yield f"{row['task']} blocked", blocked / S, row.get("blocked_s", 0)
        yield f"{row['task']} up", up / S, row["up_s"]


def _latencies(what: str, ours: Latencies, theirs: Latencies) -> Iterator[Pair]:
    for name in theirs:
        yield f"{what} {name}", ours[name], theirs[name]


def _by_second(ours: Figures, theirs: Replication) -> Iterator[Pair]:
    for row in theirs.timeline:
        begin, second = row["second"] * PER, row["second"]
        yield f"backlog in {second}", max(ours.backlog[begin : begin + PER]), row["backlog"]
        without = max(ours.backlog_without_failures[begin : begin + PER])
        yield f"backlog without failures in {second}", without, row["backlog_without_failures"]


def _by_slot(ours: Figures, theirs: Replication) -> Iterator[Pair]:
    """What is normal is asked slot by slot."""
    present = curves(theirs.world).present.tolist()
    if ours.present != present:  # there are thousands of slots
        for slot, both in enumerate(zip(ours.present, present, strict=True)):
            yield f"present in slot {slot}", *both
