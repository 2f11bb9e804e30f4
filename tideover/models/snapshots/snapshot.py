"""What a snapshot consists of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tideover.models.saved_state import SavedState
    from tideover.models.task import BoltTask


class Part(NamedTuple):
    """One task in a snapshot: its state, and how far it had read its log (in messages)."""

    state: SavedState
    position: int


@dataclass(eq=False)
class Snapshot:
    """One snapshot of the job: complete when nobody is awaited any more."""

    number: int
    awaited: set[BoltTask]
    parts: dict[BoltTask, Part] = field(default_factory=dict)
