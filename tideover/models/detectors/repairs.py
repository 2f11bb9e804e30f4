"""Which hosts are out of order."""

from __future__ import annotations

from collections.abc import Sequence

from tideover.models.job.machines import Host
from tideover.sim.faults.base import Fault


class Repairs:
    """Until when nothing can be launched on each host, because it has failed and is repaired."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._until: dict[int, int] = {}

    def struck(self, fault: Fault, now: int) -> None:
        """A fault strikes now."""
        if fault.out_of_order:
            for host in self._hosts:
                if fault.breaks(host.number, host.rack):
                    self._until[host.number] = max(self.over(host.number), now + fault.out_of_order)

    def over(self, host: int) -> int:
        """When its newest repair is over (ns); 0: it has had none."""
        return self._until.get(host, 0)
