"""What a bolt task has counted, and seen: what a fault makes it forget, and copies keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .layout import Datum, Logical


@dataclass
class State:
    """What a fault makes a task forget."""

    counts: dict[tuple[int, Any], int] = field(default_factory=dict)  # {(epoch or pane, key): sum}
    """Of a join the key is one of a side: (key, upstream component)."""
    held: list[Datum] = field(default_factory=list)  # the tuples in the counts, as processed, with that epoch
    tuples: int = 0  # since the last window
    taken: int = 0  # since the state was empty
    markers: dict[Logical, int] = field(default_factory=dict)  # newest processed, by upstream task
    handed: int = 0  # the newest marker handed on
    newest: dict[str, int] = field(default_factory=dict)  # event, by upstream component
    heard: dict[str, int] = field(
        default_factory=dict
    )  # when something came from it; or was first looked for
    watermark: int = -1  # -1: there is none
    ended: int = -1  # in batches: the watermark up to which windows were put out
    left: dict[Logical, int] = field(default_factory=dict)  # greatest id, by upstream task
    put_out: dict[Logical, int] = field(default_factory=dict)
    compares: dict[Logical, tuple[int, int]] = field(default_factory=dict)  # what comes, with these ids
    waits: list[Datum] = field(default_factory=list)  # until all are compared

    def copy(self) -> State:
        new = State(dict(self.counts), list(self.held), self.tuples, self.taken)
        new.markers, new.handed = dict(self.markers), self.handed
        new.newest, new.heard, new.watermark = dict(self.newest), dict(self.heard), self.watermark
        new.ended = self.ended
        new.left, new.put_out, new.compares = dict(self.left), dict(self.put_out), dict(self.compares)
        new.waits = list(self.waits)
        return new

    def keys(self) -> dict[int, int]:
        sums: dict[int, int] = {}
        for (_, key), value in sorted(self.counts.items()):
            sums[key] = sums.get(key, 0) + value
        if any(isinstance(key, tuple) for key in sums):
            sums = self._pairs(sums)
        return {key: total for key, total in sums.items() if total}

    def _pairs(self, sums: dict[Any, int]) -> dict[int, int]:
        """How many pairs there are of each key, one of each side."""
        pairs: dict[int, int] = {}
        for (key, side), left in sums.items():
            for (other, other_side), right in sums.items():
                if key == other and side < other_side:
                    pairs[key] = left * right
        return pairs

    @property
    def effects(self) -> list[Datum]:
        """Those of the tuples that belong to roots."""
        return [datum for datum in [*self.held, *self.waits] if datum.anchored]

    def ids(self) -> State:
        """What a checkpoint has of it, if it has ids only; who has it back compares."""
        return State(
            left=dict(self.left),
            put_out=dict(self.put_out),
            compares={up: (self.left.get(up, -1), most) for up, most in self.put_out.items()},
            markers=dict(self.markers),
            handed=self.handed,
        )

    @property
    def entries(self) -> int:
        """What a checkpoint has to write: sums by epoch and key."""
        return sum(total != 0 for total in self.counts.values())
