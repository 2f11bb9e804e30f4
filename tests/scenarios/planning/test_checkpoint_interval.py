"""The formulas for checkpoint intervals, held against what they say they optimise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.scenarios.planning.checkpoint_interval import closed_form, daly, utilisation, young


@given(st.floats(1e-3, 1e3), st.floats(1e-6, 20.0))
def test_the_closed_form_has_the_greatest_utilisation(cost, part):
    """Law: no other interval of a fine grid around it, or far from it, is used better."""
    mtbf = cost / part
    best = closed_form(cost, mtbf)
    assert best > cost
    top = utilisation(best, cost, mtbf, 3.0)
    others = cost + (best - cost) * np.geomspace(0.01, 20, 200)
    assert max(utilisation(float(one), cost, mtbf, 3.0) for one in others) <= top * (1 + 1e-9)
    for factor in (0.97, 1.03):
        assert utilisation(cost + (best - cost) * factor, cost, mtbf, 3.0) < top


def test_utilisation_is_what_a_process_with_failures_has():
    """Law: what it says is what a simulation of intervals counts that begin anew."""
    rng = np.random.default_rng(7)
    interval, cost, mtbf, restart = 30.0, 4.0, 50.0, 5.0
    clock, done = 0.0, 0
    while done < 40_000:
        life = rng.exponential(mtbf)
        if life >= interval:
            clock += interval
            done += 1
        else:
            clock += life + restart
    assert done * (interval - cost) / clock == pytest.approx(
        utilisation(interval, cost, mtbf, restart), rel=0.01
    )


@given(st.floats(1e-3, 10.0))
def test_all_agree_where_failures_are_rare(cost):
    """Law: Young's is the first term of the others: they meet as checkpoints get short."""
    mtbf = cost * 1e6
    assert young(cost, mtbf) == pytest.approx(closed_form(cost, mtbf), rel=2e-3)
    assert daly(cost, mtbf) == pytest.approx(closed_form(cost, mtbf), rel=1e-5)


def test_daly_is_nearer_to_the_optimum_than_young():
    for cost, mtbf in ((1.0, 50.0), (5.0, 100.0), (20.0, 600.0)):
        best = closed_form(cost, mtbf)
        assert abs(daly(cost, mtbf) - best) < abs(young(cost, mtbf) - best)


def test_published_cases():
    """Young (1974): sqrt(2 c M). Daly (2006): M where a checkpoint takes twice the MTBF."""
    assert young(5.0, 3600.0) - 5.0 == pytest.approx(math.sqrt(36_000))
    assert daly(200.0, 100.0) - 200.0 == 100.0
    with pytest.raises(ValueError, match="positive"):
        young(1.0, 0.0)
