"""Machine repair: machines that fail and are repaired, against Markov's answer.

n machines with exponential lives (rate a each) and repairs (rate b), and r crews: the number that is down is
a birth and death chain, up by (n - k) a, down by min(k, r) b. Availability is the mean part that is up.

With one crew the number that is up is Erlang's loss system: machines come out of repair at rate b, each stays
for its life, and none comes while all n are up. So the crew is idle for the part of the time in which n lines
are busy, and that depends on the mean life alone.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.worlds import bolt, spout, world
from tests.theory.closed_forms import erlang_b
from tests.theory.queues import estimate
from tideover.models.simulation import simulate
from tideover.sim.distributions import Constant, Distribution, Exponential, Uniform
from tideover.sim.draws import Draws
from tideover.sim.faults import MachinesFail, Site
from tideover.sim.units import S


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
