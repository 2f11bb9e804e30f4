"""What a receiver knows already: the filter that drops what comes again from another replica."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tideover.sim.train import Ints, Train


class Known:
    """The greatest uid seen on each route (the logical path from the spout), which is the (source, primary)
    of the paper: uids rise on a route, so what is not greater has been here before.

    ``greatest``: shape (routes,), -1 where nothing has been seen.
    """

    def __init__(self, routes: int) -> None:
        self.greatest: Ints = np.full(routes, -1, np.int64)

    def copy(self) -> Known:
        """The same, to go its own way."""
        new = Known(0)
        new.greatest = self.greatest.copy()
        return new

    def fresh(self, train: Train) -> npt.NDArray[np.bool_]:
        """Mask of what is new, which is known from now on; end markers always are (windows align them)."""
        data = None if train.mark is None else train.mark == 0
        if train.route is None:
            if data is None:
                return self._greater(train.uid, 0)
            new = ~data
            new[data] = self._greater(train.uid[data], 0)
            return new
        new = np.ones(train.n, np.bool_)
        for route in np.unique(train.route if data is None else train.route[data]).tolist():
            here = train.route == route
            rows = np.flatnonzero(here if data is None else here & data)
            new[rows] = self._greater(train.uid[rows], route)
        return new

    def _greater(self, uid: Ints, route: int) -> npt.NDArray[np.bool_]:
        """Which uids are greater than all before them on the route."""
        if not len(uid):
            return np.ones(0, np.bool_)
        before = np.maximum.accumulate(np.concatenate(([self.greatest[route]], uid)))
        self.greatest[route] = before[-1]
        new: npt.NDArray[np.bool_] = uid > before[:-1]
        return new
