"""``run --trace``: what the protocol did, in order, and how many tuples moved in between."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from tideover.models.accounts.trace import DETECTED, READY, Trace, moment_text, struck_text, window_text
from tideover.models.simulation import Replication
from tideover.sim.units import S

Event = tuple[int, str]
"""A moment (ns) and what happened then."""


def lines(replication: Replication) -> Iterator[str]:
    """The events of a traced replication, one a line, and a line of counts for each stretch between them."""
    trace = replication.trace
    if trace is None:
        return
    flows = _flows(trace)
    before = -1
    for at, text in [*_events(replication, trace), (1 << 62, "")]:
        if moved := _moved(flows, before, at):
            yield f"{'':>14}   … {moved}"
        if text:
            yield f"{moment_text(at):>16}  {text}"
        before = max(before, at)


def as_data(replication: Replication) -> list[dict[str, Any]]:
    """The events for ``--json``."""
    found = _events(replication, replication.trace) if replication.trace is not None else []
    return [{"replication": replication.number, "at_s": at / S, "event": text} for at, text in found]


def _events(replication: Replication, trace: Trace) -> list[Event]:
    found: list[Event] = []
    for row in replication.recoveries:
        what = row["component"]
        found.append((_ns(row["failed_at_s"]), struck_text(what, row["kind"])))
        if row["detected_at_s"] is not None and row["detected_at_s"] > row["failed_at_s"]:
            found.append((_ns(row["detected_at_s"]), f"{what}: {DETECTED}"))
        if row["ready_at_s"] is not None and row["ready_at_s"] > row["failed_at_s"]:
            found.append((_ns(row["ready_at_s"]), f"{what}: {READY}"))
    found += [(step.at, step.text) for step in trace.steps]
    for component, task, replica, number, at, sums in trace.windows:
        copy = f"/{replica}" if replica else ""
        count = sum(sums.values())
        found.append((at, f"{component}.{task}{copy}: {window_text(number, count, len(sums))}"))
    return sorted(found, key=lambda event: event[0])


def _ns(seconds: float) -> int:
    return round(seconds * S)


def _flows(trace: Trace) -> dict[str, list[int]]:
    """Moments at which tuples moved, by what they did."""
    flows = {
        "roots emitted": [row[-1] for row in trace.emitted if row[3] == 0],
        "sent again": [row[-1] for row in trace.emitted if row[3] > 0],
        "tuples processed": [row[-1] for row in trace.processed],
        "roots complete": [row[-1] for row in trace.completed],
        "tuples destroyed": [row[-1] for row in trace.destroyed],
    }
    return {what: sorted(times) for what, times in flows.items()}


def _moved(flows: dict[str, list[int]], after: int, until: int) -> str:
    """How many moved after one moment and at or before another, in words."""
    counts = {what: bisect_right(times, until) - bisect_right(times, after) for what, times in flows.items()}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)
