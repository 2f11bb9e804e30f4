"""What acking costs in normal operation, without the acker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tideover.models.strategies.base import Protocol, Strategy
from tideover.sim.units import Duration

if TYPE_CHECKING:
    from tideover.models.task import BoltTask
    from tideover.models.topology import Component
    from tideover.models.windows import Held
    from tideover.models.world import World


class Acking(Strategy):
    """A strategy whose bolts ack; by itself what the failure-free twin of such a strategy runs."""

    ack_cost: Annotated[Duration, Field(description="time that one ack takes at the bolt")] = 0

    def protocol(self, world: World) -> AckCosts:
        return AckCosts(world, self)


class AckCosts(Protocol):
    """Acks take time at the bolt: each tuple's at once, a window's in one burst at its end."""

    def __init__(self, world: World, strategy: Acking) -> None:
        super().__init__(world)
        self.ack_cost = strategy.ack_cost

    def overhead_ns(self, component: Component) -> int:
        return self.ack_cost if component.anchored and not component.window else 0

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        return self.ack_cost * sum(len(h.uid) for h in held) if task.component.anchored else 0
