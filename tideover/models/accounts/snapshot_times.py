"""How long snapshots of the whole job take."""

from __future__ import annotations

from tideover.sim.units import S


class SnapshotTimes:
    """Of each complete snapshot: from its trigger to its end, and how long a task waited for its barriers."""

    def __init__(self) -> None:
        self.durations: list[int] = []
        """ns, as all that follows."""
        self.alignments: list[int] = []
        """The longest of any task, from its first barrier to its last."""

    def on_snapshot(self, begun: int, ended: int, aligning: int) -> None:
        """A snapshot is complete."""
        self.durations.append(ended - begun)
        self.alignments.append(aligning)

    def figures(self) -> dict[str, float | None]:
        """By name of the column; None where there is no complete snapshot."""
        count = len(self.durations)
        return {
            "snapshots": count,
            "snapshot_s": sum(self.durations) / count / S if count else None,
            "snapshot_max_s": max(self.durations) / S if count else None,
            "alignment_s": sum(self.alignments) / count / S if count else None,
        }
