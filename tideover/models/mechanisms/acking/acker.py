"""Storm's acker: one 64-bit value per root.

The value is the XOR of the ids of all tuples created and acked in the root's tree. When it is zero, the tree
is done (Toshniwal et al., *Storm @Twitter*, SIGMOD 2014, section 3.3).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tideover.models.mechanisms.acking.pending import PendingRoots
from tideover.models.runtime.context import Context
from tideover.models.runtime.keeper import Keeper
from tideover.models.runtime.machine import Machine
from tideover.models.runtime.supervision import Supervisor
from tideover.models.runtime.views import BoltView, OutageView
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train

NEVER = 1 << 62


class Acker(Machine, Keeper):
    """All ackers of a topology as one; acks reach it at the instant at which they are sent. The data plane
    keeps the values, and asks when it came up, and which roots it has forgotten since.

    period, buckets   of its own rotating map (phase 0): older entries are forgotten, and acks for them
                      ignored
    maps              pending roots of each spout task
    """

    knows_the_plane = True

    def __init__(
        self,
        context: Context,
        supervisor: Supervisor,
        plane: Plane,
        period: int,
        buckets: int,
        host: int | None,
    ) -> None:
        super().__init__("acker", host, 0, 0)
        self._context, self._supervisor, self._plane = context, supervisor, plane
        self._period, self._buckets = period, buckets
        bits, spouts = context.topology.spout_bits, len(context.topology.spout_tasks)
        self._mask = (1 << bits) - 1
        structs, p = plane.ffi.new("pending[]", spouts), plane.p
        plane.keep(structs)
        self.maps = [PendingRoots(bits, number, plane, structs[number]) for number in range(spouts)]
        p.pending, p.rotation, p.buckets = structs, period, buckets
        p.alive_since, p.acker_outage = -1, -1

    def watched(self) -> None:
        """Outages are watched: the data plane is to know because of which older attempts were made."""
        for map_ in self.maps:
            map_.remembered = self._tell_causes
        self._tell_causes()

    def _tell_causes(self) -> None:
        known = [(*key, outage) for map_ in self.maps for key, outage in map_._causes.items()]
        self._causes = np.array(known, np.int64).reshape(-1, 3)
        p = self._plane.p
        p.causes, p.n_causes = self._plane.ffi.cast("cause *", self._causes.ctypes.data), len(known)

    def may_repeat(self) -> None:
        """From now on a member of a fleet may ack again what it has acked, until all that was emitted by now
        is forgotten: it matters which others come before, in between and after.
        """
        self._plane.p.in_order_until = self._context.kernel.now + self._buckets * self._period

    # -- faults ----------------------------------------------------------------------------------------------

    def failed(self, outage: OutageView) -> None:
        """All entries are lost; until it is up again acks are too."""
        now, p = self._context.kernel.now, self._plane.p
        # what was emitted at or before this has rotated out
        rotated_out = (-(-now // self._period) - self._buckets) * self._period
        forgotten = max(rotated_out, int(p.alive_since))
        p.alive_since, p.acker_outage = NEVER, outage.number
        for pending in self.maps:
            pending.mark_all(forgotten, outage.number)

    def ready(self, outage: OutageView) -> None:
        """Up again, knowing nothing."""
        self._supervisor.back(self)
        self._plane.p.alive_since, self._plane.p.acker_outage = self._context.kernel.now, -1

    def destroyed(self, outage: int, roots: Ints, attempt: Ints | None) -> None:
        """Tuples of these attempts of roots are gone."""
        for number, pending in enumerate(self.maps):
            mine = np.flatnonzero(roots & self._mask == number)
            pending.mark(roots[mine], None if attempt is None else attempt[mine], outage)

    # -- what the accounts ask -------------------------------------------------------------------------------

    def roots(self) -> Ints:
        """All pending roots."""
        return np.concatenate([pending.roots() for pending in self.maps])

    def replayed(self, task: BoltView, train: Train, outage: int) -> npt.NDArray[np.bool_] | None:
        """Which tuples belong to a root that was emitted again because of the outage."""
        if train.attempt is None or not task.component.anchored:
            return None
        mask = train.attempt > 0
        retried = np.flatnonzero(mask)
        roots = train.uid[retried] >> task.component.bits
        for number, pending in enumerate(self.maps):
            mine = np.flatnonzero(roots & self._mask == number) if self._mask else slice(None)
            mask[retried[mine]] = pending.replayed_for(roots[mine], train.attempt[retried[mine]], outage)
        return mask

    def settled(self, outage: OutageView) -> bool:
        """Whether no root that the outage hit still waits to be emitted again."""
        return not any(pending.waiting_for(outage.number) for pending in self.maps)

    def on_the_way(self, outage: OutageView) -> bool:
        """Whether tuples of roots that were emitted again because of it may be."""
        return any(pending.emitted_for(outage.number) for pending in self.maps)
