"""How far apart checkpoints should be, by the formulas of the literature: plans and lost time show them.

All of them weigh what checkpoints take against the work that a failure takes back. In all: ``cost``, how long
one checkpoint keeps the system from working (c), and ``mtbf``, the mean time between failures (M), which come
at random (Poisson, rate 1/M); both in the same unit as the answer. The answer is the time *from one
checkpoint's start to the next one's*, as a scenario says it; Young and Daly give the time of work between two
checkpoints, so the checkpoint itself is added to theirs.
"""

from __future__ import annotations

import math


def young(cost: float, mtbf: float) -> float:
    """Young's first-order optimum: work for sqrt(2 c M), then a checkpoint.

    J. W. Young, *A First Order Approximation to the Optimum Checkpoint Interval*, CACM 17(9), 1974.

    >>> young(2.0, 900.0)
    62.0
    """
    _check(cost, mtbf)
    return math.sqrt(2 * cost * mtbf) + cost


def daly(cost: float, mtbf: float) -> float:
    """Daly's higher-order estimate: for c < 2 M, sqrt(2 c M) (1 + sqrt(c / 2M) / 3 + (c / 2M) / 9) - c of
    work, else M.

    J. T. Daly, *A Higher Order Estimate of the Optimum Checkpoint Interval for Restart Dumps*, Future
    Generation Computer Systems 22(3), 2006.
    """
    _check(cost, mtbf)
    if cost >= 2 * mtbf:
        return mtbf + cost
    part = cost / (2 * mtbf)
    return math.sqrt(2 * cost * mtbf) * (1 + math.sqrt(part) / 3 + part / 9)


def closed_form(cost: float, mtbf: float) -> float:
    """The interval of greatest utilisation: T* = c + (1 + W0(-exp(-c/M - 1))) M, with Lambert's W.

    S. Jayasekara, A. Harwood, S. Karunasekera, *A Utilization Model for Optimization of Checkpoint Intervals
    in Distributed Stream Processing Systems*, Future Generation Computer Systems, 2020 (arXiv 1911.11915).

    Where it comes from: d/dT of (T - c) / (exp(T/M) - 1) is 0 where 1 - exp(-T/M) = (T - c)/M. With x for
    that, 1 - x = exp(-x - c/M), and with y = x - 1, y exp(y) = -exp(-c/M - 1): so y is W0 of the latter (the
    other branch has x < 0). How long a restart takes is a factor that does not depend on T.
    """
    from scipy.special import lambertw

    _check(cost, mtbf)
    return cost + mtbf * (1 + float(lambertw(-math.exp(-cost / mtbf - 1)).real))


def at_load(cost: float, mtbf: float, load: float, down: float = 0.0) -> float:
    """The interval at which a stream is behind for the least part of the time, where checkpoints are short
    beside it: sqrt(2 c (M / load + down / (1 - load))).

    As the load goes to 1 and failures are rare, it is Young's: a program that always has work.

    >>> round(at_load(2.0, 900.0, 0.5)), round(at_load(2.0, 900.0, 1 - 1e-9))
    (85, 60)
    """
    _check(cost, mtbf)
    if not 0 < load < 1:
        raise ValueError(f"a load of {load}: more than 0 and less than 1 is needed")
    return math.sqrt(2 * cost * (mtbf / load + down / (1 - load)))


def _check(cost: float, mtbf: float) -> None:
    if not (cost >= 0 and mtbf > 0 and math.isfinite(cost) and math.isfinite(mtbf)):
        raise ValueError(
            f"a checkpoint of {cost} and a mean time of {mtbf} between failures: give positive ones"
        )
