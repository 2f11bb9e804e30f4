"""Tables of what runs on a cluster: who is held up by full queues, and what flows over each edge."""

from __future__ import annotations

from tideover.reports.formatting import number, size, strategy_name
from tideover.reports.tables import Record, Table

MOST_BLOCKED = 20
"""Tasks of which a table says how long full queues held them up."""


def blocked_table(result: Record) -> Table:
    """Of each task which part of its time it was busy, blocked by full queues, and neither; no rows where
    queues have no end. Who is blocked most comes first.
    """
    found = result.get("utilisation") or {}
    blocked = found.get("blocked") or {}
    rows = tuple(
        (task, *(f"{100 * part:.1f} %" for part in (busy, held_up, max(0.0, 1 - busy - held_up))))
        for task in sorted(blocked, key=lambda task: -blocked[task])[:MOST_BLOCKED]
        for busy, held_up in [(found["tasks"][task], blocked[task])]
    )
    notes = ["Part of the time that each was up; blocked: a full queue further on kept it from doing more."]
    if len(blocked) > MOST_BLOCKED:
        notes.append(
            f"Of {len(blocked)} tasks the {MOST_BLOCKED} that are blocked most; tasks.parquet has all."
        )
    title = f"Busy, blocked, idle: {strategy_name(result['strategy'])}"
    return Table(title, ("task", "busy", "blocked", "idle"), rows, tuple(notes))


def flows_table(result: Record) -> Table:
    """What flows over each edge, per second."""
    rows = tuple(
        (
            each["edge"],
            number(each["messages_per_s"]),
            size(each["bytes_per_s"]),
            size(each["between_hosts_per_s"]),
        )
        for each in result["flows"]
    )
    columns = ("edge", "messages/s", "bytes/s", "between hosts, bytes/s")
    notes = ("Mean over the whole run; without acks, checkpoints and copies.",)
    return Table(f"What flows: {strategy_name(result['strategy'])}", columns, rows, notes)
