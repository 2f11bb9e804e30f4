"""Aligned snapshots: their settings, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from tideover.models.advice import failures, saving
from tideover.models.advice.loads import entries_of
from tideover.models.strategies.base import Promise, Strategy, Work
from tideover.sim.units import MS, Duration, Size

if TYPE_CHECKING:
    from tideover.models.advice.plan import Plan
    from tideover.models.topology import Component

TEN_MINUTES = 600 * 10**9


class SnapshotSettings(Strategy):
    """When a job is snapshot, and what that and a restore take."""

    promise: ClassVar[Promise] = "exactly once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task", "crash_host"})
    after_failures: ClassVar[frozenset[str]] = frozenset({"restore_time", "restore_cost"})
    costs: ClassVar[dict[str, tuple[str, ...]]] = {"snapshots": ("snapshot_time", "snapshot_cost")}
    recovery_costs: ClassVar[dict[str, tuple[str, ...]]] = {"restores": ("restore_time", "restore_cost")}

    checkpoint_interval: Annotated[Duration, Field(ge=MS, description="distance of two triggers")]
    checkpoint_phase: Annotated[
        Duration | None, Field(description="first trigger after the start; one interval if not given")
    ] = None
    min_pause: Annotated[
        Duration, Field(description="least time from the end of a snapshot to the next trigger")
    ] = 0
    checkpoint_timeout: Annotated[
        Duration, Field(gt=0, description="a snapshot that takes longer is abandoned")
    ] = TEN_MINUTES
    snapshot_time: Annotated[
        Duration, Field(description="time that a snapshot keeps a task that has state")
    ] = 0
    snapshot_cost: Annotated[Duration, Field(description="the same, for each entry of the state")] = 0
    upload_time: Annotated[
        Duration,
        Field(description="time until a task's snapshot is durable, after the store has it; it works on"),
    ] = 0
    entry_size: Annotated[Size, Field(description="bytes of an entry in the store")] = 64
    restore_time: Annotated[Duration, Field(description="time to restore a task's state that was read")] = 0
    restore_cost: Annotated[Duration, Field(description="the same, for each entry of the state")] = 0

    def cycle(self) -> tuple[int, int]:
        first = self.checkpoint_interval if self.checkpoint_phase is None else self.checkpoint_phase
        return first, self.checkpoint_interval

    @property
    def checkpoints(self) -> saving.Saving:
        """How a task saves its state."""
        every, time, cost = self.checkpoint_interval, self.snapshot_time, self.snapshot_cost
        return saving.Saving("checkpoint_interval", every, time, cost, self.entry_size)

    def load(self, component: Component) -> Work:
        return self.checkpoints.load(entries_of(component)) if component.window else Work()

    def remarks(self, plan: Plan) -> list[str]:
        return [
            # said of any strategy, but here before what is said of snapshots
            *failures.without_effect(plan, self.kind, self.roles),
            *saving.of_the_job(plan, self.checkpoints, self.upload_time, self.checkpoint_timeout),
        ]
