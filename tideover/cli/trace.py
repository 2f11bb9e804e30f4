"""``run --trace``: what the protocol did, in order, and how many tuples moved in between.

A module of its own, since the engine is imported with it: `run` does so where a trace is asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from tideover.models.accounts.trace import DETECTED, READY, Trace, moment_text, struck_text, window_text
from tideover.models.simulation import Replication
from tideover.sim.units import S


def lines(replication: Replication) -> Iterator[str]:
    """The events of a traced replication, one a line, and a line of counts for each stretch between them."""
    trace = replication.trace
    if trace is None:
        return
    moved = {  # moments at which tuples moved, by what they did
        "roots emitted": [row[-1] for row in trace.emitted if row[3] == 0],
        "sent again": [row[-1] for row in trace.emitted if row[3] > 0],
        "tuples processed": [row[-1] for row in trace.processed],
        "roots complete": [row[-1] for row in trace.completed],
        "tuples destroyed": [row[-1] for row in trace.destroyed],
    }
    flows = {what: sorted(times) for what, times in moved.items()}
    before = -1
    for at, text in [*_events(replication, trace), (1 << 62, "")]:
        counts = {w: bisect_right(times, at) - bisect_right(times, before) for w, times in flows.items()}
        if any(counts.values()):
            said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
            yield f"{'':>14}   … {said}"
        if text:
            yield f"{moment_text(at):>16}  {text}"
        before = max(before, at)


def as_data(replication: Replication) -> list[dict[str, Any]]:
    """The events for ``--json``."""
    found = [] if replication.trace is None else _events(replication, replication.trace)
    return [{"replication": replication.number, "at_s": at / S, "event": text} for at, text in found]


def _events(replication: Replication, trace: Trace) -> list[tuple[int, str]]:
    """Moments (ns), and what happened then."""
    found: list[tuple[int, str]] = []
    for row in replication.recoveries:
        what, failed = row["component"], row["failed_at_s"]
        found.append((round(failed * S), struck_text(what, row["kind"])))
        for name, said in (("detected_at_s", DETECTED), ("ready_at_s", READY)):
            if row[name] is not None and row[name] > failed:
                found.append((round(row[name] * S), f"{what}: {said}"))
    found += [(step.at, step.text) for step in trace.steps]
    for component, task, replica, number, at, sums in trace.windows:
        copy = f"/{replica}" if replica else ""
        count = sum(sums.values())
        found.append((at, f"{component}.{task}{copy}: {window_text(number, count, len(sums))}"))
    return sorted(found, key=lambda event: event[0])
