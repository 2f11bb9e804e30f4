"""The recursion of a first-in first-out server, for a whole train at once."""

from __future__ import annotations

import numpy as np

from tideover.sim.train import Ints

SMALL = 24
"""Below this many tuples the scalar loop is faster than five numpy calls (see benchmarks)."""
SPAN = np.dtype("m8[ns]")
"""int64 by another name: numpy's running maximum of int64 goes through memory, and takes three times as
long.
"""


def departures(arrival: Ints, service: Ints, free_at: int) -> Ints:
    """Departure times D[i] = max(A[i], D[i-1]) + S[i], with D[-1] = ``free_at`` (Lindley's recursion).

    With C the running sum of S, D[i] - C[i] is the running maximum of A[i] - C[i-1]. In integers the result
    does not depend on where a train is cut. ``arrival`` rises; ``service`` is overwritten.
    """
    n = len(arrival)
    if service[-1] == 0 and not service.any():  # a batch that comes out
        return np.maximum(arrival, free_at)
    if n <= SMALL:
        out = np.empty(n, np.int64)
        last = free_at
        for i, (a, s) in enumerate(zip(arrival.tolist(), service.tolist(), strict=True)):
            last = (a if a > last else last) + s
            out[i] = last
        return out
    done = service.cumsum()
    np.subtract(done, service, out=service)
    np.subtract(arrival, service, out=service)
    if service[0] < free_at:
        service[0] = free_at
    top = service.view(SPAN)
    np.maximum.accumulate(top, out=top)
    done += service
    return done
