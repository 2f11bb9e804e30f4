"""Recovery using state management: its settings, what checkpoints cost, and what is not replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from tideover.models.advice import replays, saving
from tideover.models.strategies.base import Promise, Strategy, Work
from tideover.sim.units import MS, Duration, Rate, Size

if TYPE_CHECKING:
    from tideover.models.advice.plan import Plan
    from tideover.models.topology import Component


class StateManagementSettings(Strategy):
    """Of checkpoints, buffers, restores and replays."""

    promise: ClassVar[Promise] = "exactly once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task"})
    per_tuple: ClassVar[frozenset[str]] = frozenset({"replay_cost"})
    after_failures: ClassVar[frozenset[str]] = frozenset(
        {"replay_cost", "replay_rate", "restore_time", "restore_cost"}
    )
    costs: ClassVar[dict[str, tuple[str, ...]]] = {"checkpoints": ("serialise_time", "serialise_cost")}
    recovery_costs: ClassVar[dict[str, tuple[str, ...]]] = {
        "restores": ("restore_time", "restore_cost"),
        "replays": ("replay_cost", "replay_rate"),
    }

    checkpoint_interval: Annotated[Duration, Field(ge=MS, description="distance of two checkpoints")]
    spout_buffer: Annotated[bool, Field(description="spouts keep an upstream buffer too")] = False
    replay_cost: Annotated[Duration, Field(description="time to replay one tuple from a buffer")] = 0
    replay_rate: Annotated[Rate | None, Field(description="most tuples replayed per second")] = None
    serialise_time: Annotated[Duration, Field(description="time that a checkpoint keeps the task")] = 0
    serialise_cost: Annotated[Duration, Field(description="the same, for each entry of the state")] = 0
    restore_time: Annotated[Duration, Field(description="time to restore a checkpoint that was read")] = 0
    restore_cost: Annotated[Duration, Field(description="the same, for each entry of the state")] = 0
    entry_size: Annotated[Size, Field(description="bytes of an entry in the store")] = 64

    def cycle(self) -> tuple[int, int]:
        return self.checkpoint_interval, self.checkpoint_interval

    @property
    def checkpoints(self) -> saving.Saving:
        """How a task saves its state."""
        every, time, cost = self.checkpoint_interval, self.serialise_time, self.serialise_cost
        return saving.Saving("checkpoint_interval", every, time, cost, self.entry_size)

    def load(self, component: Component) -> Work:
        return self.checkpoints.load(component.keys) if component.window else Work()

    def remarks(self, plan: Plan) -> list[str]:
        return [
            *saving.by_task(plan, self.checkpoints),
            *replays.reordered(plan),
            *_unbuffered(plan, self.spout_buffer),
            *replays.lost_together(plan),
        ]


def _unbuffered(plan: Plan, spout_buffer: bool) -> list[str]:
    """What fails and is not replayed to: a task that reads a spout which keeps nothing, and one without
    state.
    """
    found = []
    for c in plan.topology.components:
        faults = [fault for fault in plan.hit(c.name) if fault.kills]
        if not faults or c.is_spout:
            continue
        spouts = [edge.up.name for edge in c.inputs if edge.up.is_spout]
        if not c.window and any(fault.kind == "crash_task" or fault.lasts for fault in faults):
            found.append(
                f"{c.name}: has no state, so R+SM replays nothing to it: what it has in its queue when it "
                "crashes, and what comes while it is down, is lost"
            )
        elif c.window and spouts and not spout_buffer:
            found.append(
                f"{c.name}: reads the spout {spouts[0]}, which keeps no buffer: what came since the last "
                "checkpoint is lost; set strategy.spout_buffer=true"
            )
    return found
