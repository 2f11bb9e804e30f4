"""What befalls the links between two sets of hosts for a while, also where tasks move meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.outage import Outage
from tideover.models.runtime.wire import Wire
from tideover.sim.faults.base import Between
from tideover.sim.kernel import Kernel, Rank

Act = Callable[[Wire], None]


@dataclass(eq=False)
class _Fault:
    """One of them, until its outage's end: what it does to a channel that it hits, and what when it passes
    (None: nothing); whether it holds messages; the channels that it has hit.
    """

    outage: Outage
    between: Between
    begin: Act
    end: Act | None
    holds: bool
    hit: dict[Wire, None]


class LinkFaults:
    """Lets faults hit the channels between two sides."""

    def __init__(self, kernel: Kernel, bolts: Sequence[BoltTask], batches: bool) -> None:
        """``batches``: what bolts send one another goes over no wires: who needs it asks ``parted_until``."""
        self._kernel, self._bolts, self._batches = kernel, bolts, batches
        self._faults: list[_Fault] = []

    def strike(self, outage: Outage, between: Between, begin: Act, end: Act | None, holds: bool) -> None:
        """Do this with the channels between the sides now; at the outage's end that."""
        inputs = (channel for bolt in self._bolts for channel in bolt.inputs)
        if self._batches:
            inputs = (channel for channel in inputs if not isinstance(channel.up, BoltTask))
        hit = {channel: None for channel in inputs if _is_between(channel, between)}
        outage.unfelt = not hit
        fault = _Fault(outage, between, begin, end, holds, hit)
        self._faults.append(fault)
        for channel in hit:
            begin(channel)
        if end is not None:
            self._kernel.at(outage.ready_at, Rank.READY, partial(self._over, fault))

    def parted_until(self, one: int, other: int) -> int:
        """Until when (ns) nothing gets from the one host to the other; which it does if that is past."""
        faults = (fault for fault in self._faults if fault.holds and fault.between.part(one, other))
        return max((fault.outage.ready_at for fault in faults), default=0)

    def _over(self, fault: _Fault) -> None:
        self._faults.remove(fault)
        for channel in fault.hit:
            assert fault.end is not None
            fault.end(channel)

    def moved(self, channels: Iterable[Wire]) -> None:
        """Ends of these channels have moved: faults that go on hit those that are between the sides now."""
        self._faults = [fault for fault in self._faults if fault.outage.ready_at > self._kernel.now]
        for channel in channels:
            free = False
            for fault in self._faults:
                between = _is_between(channel, fault.between)
                if between and channel not in fault.hit:
                    fault.hit[channel] = None
                    fault.outage.unfelt = False
                    fault.begin(channel)
                elif not between and channel in fault.hit:
                    del fault.hit[channel]
                    free |= fault.holds
                    if fault.end is not None:
                        fault.end(channel)
            if free:
                channel.let_go(self._kernel.now)
                for fault in self._faults:
                    if fault.holds and channel in fault.hit:
                        channel.hold(fault.outage.ready_at)


def _is_between(channel: Wire, between: Between) -> bool:
    return between.part(channel.up.host, channel.down.host)
