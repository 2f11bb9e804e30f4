"""Links between two sets of hosts that are cut, or slow, for a while; tasks may move meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.sim.registry import kind_of

from .channels import Channel
from .clock import Rank, control

if TYPE_CHECKING:
    from .outages import Outage
    from .program import World
    from .tasks import Task


class Cut:
    """One such fault."""

    def __init__(self, world: World, fault: Any, outage: Outage) -> None:
        self.world, self.fault, self.outage = world, fault, outage
        self.over = world.clock.now + fault.duration
        count = 1 + max(world.layout.every_host)
        others = set(range(count)) - {*fault.hosts} if fault.others is None else {*fault.others}
        self.sides = ({*fault.hosts}, others)
        self.holds = kind_of(fault) == "partition"
        self.loses = self.holds and fault.messages == "lose"
        self.hit: list[Channel] = []
        outage.unfelt = True
        for task in world.tasks:
            for channel in task.outputs.values():
                wire = not world.layout.needs.batches or task in world.spouts
                if wire and self.parts(channel):
                    self.begin(channel)
        if self.loses or not self.holds:
            world.clock.at(self.over, control(Rank.READY, 0), self.ends)

    def parts(self, channel: Channel) -> bool:
        up, down = (self.world.layout.host[end.physical] for end in (channel.up, channel.down))
        return self.is_between(up, down)

    def is_between(self, up: int, down: int) -> bool:
        return any(up in one and down in other for one, other in (self.sides, self.sides[::-1]))

    def begin(self, channel: Channel) -> None:
        self.hit.append(channel)
        self.outage.unfelt = False
        if self.loses:
            channel.lose(self.outage.number)
        if self.holds:
            channel.hold(self.over)
        else:
            channel.slow[self.outage] = self.fault.latency_factor, self.fault.transfer_factor

    def ends(self) -> None:
        for channel in list(self.hit):
            self.end(channel)

    def end(self, channel: Channel) -> None:
        self.hit.remove(channel)
        if self.loses:
            channel.losing.remove(self.outage.number)
        if not self.holds:
            channel.slow.pop(self.outage)


class Cuts:
    """All of them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.all: list[Cut] = []

    def strike(self, fault: Any, outage: Outage) -> None:
        self.all.append(Cut(self.world, fault, outage))
        layout = self.world.layout
        there = [task for task in self.world.tasks if layout.host[task.physical] in fault.hosts]
        # bolts of batches live in executors, wherever they are placed
        outage.tasks = [t for t in there if not layout.needs.batches or t.component in layout.spouts]

    def parted_until(self, one: int, other: int) -> int:
        """When these two hosts hear of one another again."""
        return max((cut.over for cut in self.all if cut.holds and cut.is_between(one, other)), default=0)

    def moved(self, task: Task) -> None:
        """It lives elsewhere now: what goes on does so for the channels that are between the sides now."""
        going_on = [cut for cut in self.all if cut.over > self.world.clock.now]
        for channel in [*task.inputs.values(), *task.outputs.values()]:
            left = [cut for cut in going_on if channel in cut.hit and not cut.parts(channel)]
            for cut in left:
                cut.end(channel)
            if any(cut.holds for cut in left):
                channel.let_go()
            for cut in going_on:
                if channel not in cut.hit and cut.parts(channel):
                    cut.begin(channel)
                elif cut.holds and channel in cut.hit and left:
                    channel.hold(cut.over)
