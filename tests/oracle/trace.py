"""What is compared with the engine."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Trace:
    """Everything that happened in one replication, in plain lists; times in nanoseconds."""

    processed: list[tuple[str, int, int, int, int, int, int]] = field(default_factory=list)
    """(component, task, replica, uid, attempt, arrival, departure), in order of departure within a task."""
    windows: list[tuple[str, int, int, int, int, dict[int, int]]] = field(default_factory=list)
    """(component, task, replica, window number, time, {key: count})."""
    emitted: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    """(spout, task, root, attempt, time)."""
    completed: list[tuple[int, int, int]] = field(default_factory=list)
    """(root, attempt, time) of the trees that the acker found complete and the spout was waiting for."""
    failed: list[tuple[int, int, int]] = field(default_factory=list)
    """(root, attempt, time) of the timeouts."""
    committed: list[tuple[str, int, int, int]] = field(default_factory=list)
    """(component, task, number, time) of the transactions whose content readers see."""
    destroyed: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    """(component, task, replica, uid, time): destroyed in a queue, in service or on arrival at a down task"""
    overflowed: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    """The same: found its queue full."""
    final_state: dict[tuple[str, int, int], dict[int, int]] = field(default_factory=dict)
    """{(component, task, replica): {key: count}} of the stateful tasks."""
    in_flight: int = 0
    """Distinct roots in queues, in service, on the wire or waiting for a retry."""
    ledger: dict[str, int] = field(default_factory=dict)
    """emitted, completed, in_flight, lost, replayed, duplicated, false_timeouts: see `ledger.py`."""

    outages: list[tuple[int, int | None, int | None]] = field(default_factory=list)
    """(number of the fault, when it was noticed, when all that it had hit was back), without pauses; None:
    not before the end.
    """

    def normal(self) -> Trace:
        """The same with every list in one fixed order, to be compared."""
        lists = ("windows", "emitted", "completed", "failed", "committed", "destroyed", "overflowed")
        for name in lists:
            setattr(self, name, sorted(getattr(self, name), key=repr))
        self.processed.sort(key=lambda row: row[:3])  # stable: the order within a task stays
        return self
