"""Availability: the part of the time outside of every recovery."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.oracle.worlds import bolt, spout, world
from tideover.models.evaluation.measures import availability
from tideover.models.simulation import simulate
from tideover.sim.distributions import Exponential
from tideover.sim.faults import FAULTS
from tideover.sim.units import S


@pytest.mark.parametrize(("between", "lasts"), [(60, 5), (20, 4)])
def test_random_failures_leave_what_the_closed_form_says(between: float, lasts: float) -> None:
    """Failures that come as a Poisson process of rate a, and take d to recover from: that none has struck
    within the last d has the probability exp(-a d), as an M/D/∞ queue is empty.
    """
    moments = np.cumsum(np.random.default_rng(1).exponential(between, 200_000))
    rows = [{"failed_at_s": float(moment), "time_to_recover_s": lasts} for moment in moments]
    found = availability(rows, 0.0, float(moments[-1]))["availability"]
    assert found == pytest.approx(math.exp(-lasts / between), rel=0.01)


def test_a_run_is_available_between_its_recoveries() -> None:
    """A task is down for 3 s after each fault, and all is well behind it; outages less than 4 s apart are
    recovered from together.
    """
    crash = FAULTS["crash_task"](component="b", every=Exponential(mean=15 * S), restart=3 * S)
    topology = {"s": spout(gap=1000), "b": bolt("forward", {"s": "shuffle"}, 1)}
    run = simulate(world(topology, "none", (crash,), 300_000))
    begins = [row["failed_at_s"] for row in run.recoveries]
    ends = [begin + 3 for begin in begins]
    gaps = [begin - end for begin, end in zip([*begins[1:], 300], ends, strict=True)]
    assert len(begins) > 10
    assert any(0 < gap < 4 for gap in gaps)
    down = sum(3 + gap for gap in gaps if gap < 4) + 3 * sum(gap >= 4 for gap in gaps)
    assert run.dependability["availability"] == pytest.approx(1 - down / 300, abs=0.01 * len(begins) / 300)


def test_spans_are_counted_once_and_within_what_is_measured() -> None:
    """Measured from 10 to 110 s: 5 s of the first; 10 of two that overlap; 20 of one without an end."""

    def row(failed: float, lasts: float | None) -> dict[str, float | None]:
        return {"failed_at_s": failed, "time_to_recover_s": lasts}

    rows = [row(5, 10), row(30, 8), row(32, 8), row(34, 0), row(90, None)]
    assert availability(rows, 10, 110) == {"availability": pytest.approx(1 - 35 / 100)}
    assert availability(rows, 110, 110) == {"availability": None}
    assert availability([], 10, 110) == {"availability": 1}
