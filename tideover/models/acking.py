"""Acks: what they cost in normal operation, and what can be seen of roots that wait for theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from tideover.models.acker import Acker
from tideover.models.strategies.base import NOTHING, Protocol, Strategy, Work
from tideover.sim.train import Ints, Train
from tideover.sim.units import Duration

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.task import BoltTask
    from tideover.models.topology import Component
    from tideover.models.windows import Held
    from tideover.models.world import World


class Acking(Strategy):
    """A strategy whose bolts ack; by itself what the failure-free twin of such a strategy runs."""

    ack_cost: Annotated[Duration, Field(description="time that one ack takes at the bolt")] = 0

    def load(self, component: Component) -> Work:
        return Work(self.ack_cost) if component.anchored else Work()

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


class AwaitsAcks(AckCosts):
    """An acker knows which roots are pending, and what has become of them."""

    acker: Acker

    def acker_failed(self) -> None:
        self.acker.crash(self.world.kernel.now, self.world.outages[-1].number)

    def acker_ready(self) -> None:
        self.acker.revive(self.world.kernel.now)

    def destroyed(self, outage: int, roots: Ints, attempt: Ints | None) -> None:
        self.acker.destroyed(outage, roots, attempt)

    def copies(self) -> Ints:
        return np.concatenate([NOTHING, *(pending.roots() for pending in self.acker.maps)])

    def replayed(self, task: BoltTask, train: Train, outage: int) -> np.ndarray | None:
        if train.attempt is None or not task.component.anchored:
            return None
        return self.acker.replayed_for(task, train, outage)

    def settled(self, outage: Outage) -> bool:
        return not any(pending.waiting_for(outage.number) for pending in self.acker.maps)
