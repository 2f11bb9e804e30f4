"""Availability: the part of the time outside of every recovery, or of repair.

Machine repair: n machines with exponential lives (rate a each) and repairs (rate b), and r crews: the number
that is down is a birth and death chain, up by (n - k) a, down by min(k, r) b. With one crew the number that
is up is Erlang's loss system: machines come out of repair at rate b, each stays for its life, and none comes
while all n are up. So the crew is idle for the part of the time in which n lines are busy, and that depends
on the mean life alone.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.oracle.worlds import bolt, spout, world
from tests.theory.closed_forms import erlang_b
from tests.theory.queues import estimate
from tideover.models.evaluation.measures import availability
from tideover.models.simulation import simulate
from tideover.sim.distributions import Constant, Distribution, Exponential, Uniform
from tideover.sim.draws import Draws
from tideover.sim.fault_kinds import MachinesFail
from tideover.sim.faults import FAULTS, Site
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


def available(n: int, crews: int, life: float, repair: float) -> float:
    """The stationary answer, by the balance of each cut."""
    weights = [1.0]
    for k in range(n):
        weights.append(weights[-1] * (n - k) / life / (min(k + 1, crews) / repair))
    parts = np.array(weights) / sum(weights)
    return float(1 - parts @ np.arange(n + 1) / n)


@pytest.mark.parametrize(
    ("n", "crews", "life", "repair"),
    [(1, 1, 9, 1), (5, 5, 9, 3), (5, 1, 9, 1), (5, 2, 9, 4), (20, 3, 30, 4)],
)
def test_machines_are_up_as_often_as_the_chain_says(n: int, crews: int, life: float, repair: float) -> None:
    """Some 20,000 repairs in each of four runs: the mean time down is known to 0.5 % or so."""
    fault = MachinesFail(
        lifetime=Exponential(mean=round(life * S)), repair=Exponential(mean=round(repair * S)), crews=crews
    )
    end = round(20_000 * (life + repair) / n) * S
    runs = [fault.strikes(0, Draws(7, replication), Site(end, n)) for replication in range(4)]
    down = [each.out_of_order for run in runs for _, each in run]
    assert 1 - sum(down) / (len(runs) * n * end) == pytest.approx(available(n, crews, life, repair), rel=0.01)


@pytest.mark.parametrize(
    "life",
    [Exponential(mean=9 * S), Constant(value=9 * S), Uniform(low=1 * S, high=17 * S)],
    ids=lambda life: life.kind,
)
def test_a_crew_is_idle_as_often_as_erlang_says(life: Distribution) -> None:
    """Five machines that live for 9 s on average, repairs of 3 s: 11 % of the time, however lives vary."""
    n, end = 5, 10_000 * S
    fault = MachinesFail(lifetime=life, repair=Exponential(mean=3 * S), crews=1)
    idle = []
    for replication in range(10):
        over = time = 0
        for moment, each in fault.strikes(0, Draws(1, replication), Site(end, n)):
            time += max(0, moment - over)
            over = max(over, moment + each.out_of_order)
        idle.append((time + max(0, end - over)) / end)
    found, expected = estimate(idle), erlang_b(n, 9 / 3)
    assert found.covers(expected)
    assert found.half < 0.1 * expected


def test_tasks_are_up_as_often_as_their_machines() -> None:
    """Two hosts with a bolt's task each: the run's time up is what the schedule leaves of it."""
    fault = MachinesFail(lifetime=Exponential(mean=9 * S), repair=Exponential(mean=3 * S), crews=1)
    topology = {
        "s": spout(gap=30_000, hosts=(0,)),
        "b": bolt("forward", {"s": "shuffle"}, parallelism=2, hosts=(0, 1)),
    }
    run = simulate(world(topology, "none", (fault,), 200_000, hosts=2))
    end = 200 * S
    struck = list(fault.strikes(0, Draws(1), Site(end, 2)))
    down = sum(min(each.out_of_order, end - moment) for moment, each in struck)
    assert len(struck) > 20
    assert sum(row["up_s"] for row in run.tasks) == pytest.approx(2 * 200 - down / S, abs=1e-6)
