"""One fault and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tideover.sim.recorder import Span


@dataclass
class Outage:
    """A fault that struck, with the moments of its recovery (ns; None: not reached, or there is no such
    stage).

    tasks            the physical tasks that it hit
    masked           each of them had a live replica that went on
    restored_at      state is back (read from a store, or copied from a replica)
    last_replay      arrival of the last tuple replayed because of it, at a task that it hit
    restored, replayed, dropped, extra    effects restored, tuples replayed, discarded as duplicates, and
                                          applied twice
    """

    number: int
    kind: str
    component: str
    failed_at: int
    detected_at: int
    ready_at: int
    span: Span
    tasks: list[Any] = field(default_factory=list)
    masked: bool = False
    restored_at: int | None = None
    last_replay: int | None = None
    restored: int = 0
    replayed: int = 0
    dropped: int = 0
    extra: int = 0
    missing_closed: int = 0
    """Effects that were missing when their roots were settled for good."""
    lost_effects: list[tuple[Any, Any]] = field(default_factory=list)
