"""Laws of checkpoints: what the formulas for their interval are optima of."""

import math


def utilisation(interval: float, cost: float, mtbf: float, restart: float = 0.0) -> float:
    """Part of the time that goes into work that stays: (T - c) / ((exp(T/M) - 1) (M + R)).

    An interval of T begins anew, ``restart`` (R) after each failure in it, until it is through once without
    one. On average it fails exp(T/M) - 1 times before, which takes as many times M + R all in all (nothing
    fails while it restarts); T - c of that is work.

    >>> round(utilisation(10.0, 1.0, 1e9), 6)
    0.9
    """
    if interval <= cost:
        return 0.0
    kept = math.exp(-interval / mtbf) / -math.expm1(-interval / mtbf)
    return kept * (interval - cost) / (mtbf + restart)


def behind(interval: float, cost: float, mtbf: float, load: float, down: float = 0.0) -> float:
    """Part of the time in which a stream is behind because of checkpoints and failures, to first order in
    how often it fails; infinite if it never catches up.

    ``load``: part of the time that it works without checkpoints; so what waits is worked off in load /
    (1 - load) of the time for which it stood still. It does for ``cost`` in each interval, and after a
    failure for ``down``; what came since the last checkpoint, which is half an interval old on average, is
    then done again, while checkpoints go on.

    >>> round(behind(85.0, 2.0, 900.0, 0.5), 3)
    0.097
    """
    part = cost / interval
    spare = 1 - load - part
    if spare <= 0:
        return math.inf
    return part / (1 - load) + (down * (1 - part) + load * interval / 2) / spare / mtbf
