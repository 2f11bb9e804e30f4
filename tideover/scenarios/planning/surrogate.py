"""What candidates that were not tried may be like, from those that were."""

from __future__ import annotations

import numpy as np

from tideover.scenarios.planning.candidate import Floats

SLACK = 0.02
"""An objective that is predicted to be missed by less than this part of its limit may be met after all."""
BETTER = 0.01
"""A candidate is tried if it is predicted to be cheaper by this part, or to miss less by so much."""
_MOST = 0.99
"""A greater margin says no more than that the limit is far."""
_LEAST = 1e-9
"""Less than this part of the most is as good as nothing: it has to have a logarithm."""


def promising(
    tried: Floats, costs: Floats, margins: Floats, others: Floats, leader: float | None
) -> list[int]:
    """Which of ``others`` may be better, the most promising first: their numbers.

    tried    where candidates were tried, (n, d): numbers of values of ordered choices
    costs    what they cost, (n,)
    margins  how far each objective is from its limit, (n, m); at least 0 where it holds
    others   where candidates were not tried, (k, d)
    leader   cost of the cheapest that holds; None: none does

    Costs and margins are interpolated by thin plate splines: radial basis functions, as in Gutmann (2001), "A
    radial basis function method for global optimization", J. Global Optimization 19. Nothing is predicted
    from fewer points than determine a plane.
    """
    from scipy.interpolate import RBFInterpolator

    if not len(others) or np.linalg.matrix_rank(tried - tried.mean(axis=0)) < tried.shape[1]:
        return []
    scale = np.maximum(np.ptp(tried, axis=0), 1.0)
    least = -np.log1p(-np.minimum(margins, _MOST))  # of a value and its limit the logarithm of their quotient
    dearest = max(float(np.max(costs)), 1e-300)
    seen = np.column_stack([np.log(np.maximum(costs / dearest, _LEAST)), np.maximum(least, np.log(_LEAST))])
    found = RBFInterpolator(tried / scale, seen, kernel="thin_plate_spline")(others / scale)
    cost, margin = np.exp(found[:, 0]) * dearest, found[:, 1:].min(axis=1)
    if leader is not None:
        good = np.flatnonzero((cost < (1 - BETTER) * leader) & (margin > -SLACK))
        return good[np.argsort(cost[good], kind="stable")].tolist()
    good = np.flatnonzero(margin > least.min(axis=1).max() + BETTER)
    return good[np.argsort(-margin[good], kind="stable")].tolist()
