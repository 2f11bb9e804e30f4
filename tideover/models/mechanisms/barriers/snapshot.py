"""What a snapshot consists of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from tideover.models.mechanisms.backing import Share
from tideover.models.mechanisms.barriers.in_flight import Waits
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.views import TaskView


class Part(NamedTuple):
    """One task in a snapshot: its state, how far it had read its log (in messages), what its barriers have
    overtaken, and the bytes of that; what of its `state` is written with it.
    """

    state: SavedState
    position: int
    waits: Waits = Waits()
    size: int = 0
    share: Share = Share()


@dataclass(eq=False)
class Snapshot:
    """One snapshot of the job: complete when no task is awaited any more.

    awaited    how many writes of each task are not yet safe
    aligning   the longest that a task has waited for its barriers, from the first to the last (ns)
    """

    number: int
    begun: int
    awaited: Counter[TaskView]
    aligning: int = 0
    parts: dict[TaskView, Part] = field(default_factory=dict)
