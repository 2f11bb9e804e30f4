"""What keeps tuples or effects besides the tasks: buffers, checkpoints, logs, maps of pending roots."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tideover.models.job.topology import Component
from tideover.models.runtime.views import BoltView, OutageView
from tideover.sim.train import Ints, Train

Mask = npt.NDArray[np.bool_]
NOTHING: Ints = np.zeros(0, np.int64)


class Keeper:
    """Whatever has copies registers as a keeper (``job.context.keepers``); the accounts ask it what it has.

    A root is lost only if nobody keeps anything that could still complete it, and a recovery is over only
    when every keeper has sent again what the outage took. Copies of state that only spare a restart (a
    standby's) change neither, and need no keeper.

    knows_the_plane   what it says of ``replayed`` the data plane sees itself, once it is ``watched``
    steady            of the same tuples it says the same of ``replayed`` until a fault strikes
    """

    knows_the_plane = False
    steady = False

    def roots(self) -> Ints:
        """Roots that can still be emitted again as a whole."""
        return NOTHING

    def effects(self) -> list[tuple[Component, Ints]]:
        """Effects of which there is a copy that can be brought back: components and uids."""
        return []

    def tuples(self) -> list[tuple[Component, Train]]:
        """Tuples of which there is a copy that can be sent again: the components that they go to, and trains
        without markers.
        """
        return []

    def watched(self) -> None:
        """From now on somebody watches what is sent again."""

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        """Mask of the tuples that were sent again because of the outage; None: none of them."""
        return None

    def settled(self, outage: OutageView) -> bool:
        """Whether everything that was to be sent again because of the outage was."""
        return True

    def store_lost(self, store: str | None) -> None:
        """The store of that name (None: that of the job) has lost all that it had."""

    def on_the_way(self, outage: OutageView) -> bool:
        """Whether something that was sent again because of the outage may not have arrived yet, when another
        one strikes.
        """
        return False
