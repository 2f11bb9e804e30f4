"""Bounded queues of the reference, against recursions and Markov chains."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from tests.oracle import run
from tests.oracle.layout import Layout
from tests.oracle.test_oracle import ONES
from tests.oracle.worlds import MS, bolt, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Poisson
from tideover.sim.distributions import Exponential
from tideover.sim.draws import Draws, Purpose

SERVICE = 10 * MS


def series(places: tuple[int, ...], until: float) -> Scenario:
    """Servers one after the other, each with a bounded queue; the first always has something to do."""
    topology = {"s": spout(**ONES, gap=0.000_001)}
    up = "s"
    for number, length in enumerate(places):
        topology[f"b{number}"] = queued(bolt("forward", {up: "shuffle"}, Exponential(mean=SERVICE)), length)
        up = f"b{number}"
    return world(topology, until=until)


def services(scenario: Scenario, roots: int) -> npt.NDArray[np.int64]:
    """Of each server, for each tuple."""
    layout = Layout(scenario, Draws(scenario.run.seed, 0))
    names = [name for name in layout.order if name != "s"]
    configs = [layout.config[name] for name in names]
    return np.array(
        [
            [layout.sample(config.service, name, Purpose.SERVICE, n) for n in range(roots)]
            for name, config in zip(names, configs, strict=True)
        ]
    )


@pytest.mark.parametrize("places", [(1, 1), (3, 2), (2, 3, 1), (1, 1, 4)])
def test_blocking_after_service_is_a_recursion(places: tuple[int, ...]) -> None:
    """Tuple n leaves server i when it is done there, and tuple n - B has begun at server i + 1.

    H. G. Perros, *Queueing Networks with Blocking*, Oxford 1994, section 2 ("blocking after service").
    """
    scenario, last = series(places, 1000), len(places) - 1
    found = [row[6] for row in run(scenario).processed if row[0] == f"b{last}"]
    roots = len(found)
    assert roots > 40
    times = services(scenario, roots)
    begun, left = np.zeros((2, len(places), roots), np.int64)
    came_first = 0
    for n in range(roots):
        came_first += 1  # a nanosecond after the call before has left
        if n >= places[0]:
            came_first = max(came_first, begun[0, n - places[0]])
        came = came_first
        for i in range(len(places)):
            begun[i, n] = max(came, left[i, n - 1] if n else 0)
            left[i, n] = begun[i, n] + times[i, n]
            if i < last and n >= places[i + 1]:
                left[i, n] = max(left[i, n], begun[i + 1, n - places[i + 1]])
            came = left[i, n]
    assert found == left[last].tolist()


def stationary(rates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of the Markov chain with these rates from row to column."""
    n = len(rates)
    balance = rates.T - np.diag(rates.sum(axis=1))
    found, *_ = np.linalg.lstsq(np.vstack([balance, np.ones(n)]), np.append(np.zeros(n), 1.0), rcond=None)
    return np.asarray(found)


def within(counted: int, expected: float, per_tuple: float = 1.0) -> None:
    """Four standard deviations; a count of independent events has the variance of its mean."""
    assert abs(counted - expected) <= 4 * math.sqrt(expected * per_tuple), (counted, expected)


@pytest.mark.parametrize("places", [1, 4])
def test_loss_of_a_queue_that_drops(places: int) -> None:
    """M/M/1/K, where K has the one in service: p(K) of the arrivals are lost."""
    load, until = 0.9, 20
    rate = load * 1e9 / SERVICE
    topology = {
        "s": spout("values", values=(1,), repeat=True, arrivals=Poisson(rate=rate)),
        "p": queued(bolt("forward", {"s": "shuffle"}, Exponential(mean=SERVICE)), places, "drop"),
    }
    trace = run(world(topology, until=until * 1000))
    births = np.diag(np.full(places + 1, load), 1) + np.diag(np.full(places + 1, 1.0), -1)
    lost = stationary(births)[-1]
    assert lost == pytest.approx((1 - load) * load ** (places + 1) / (1 - load ** (places + 2)))
    within(len(trace.overflowed), rate * until * lost, per_tuple=places + 1)


@pytest.mark.parametrize("places", [1, 3])
def test_throughput_of_two_servers(places: int) -> None:
    """The first always has something to do: at the second there are up to B + 1, or one more is blocked."""
    until = 20
    trace = run(series((1, places), until * 1000))
    states = places + 3
    births = np.diag(np.ones(states - 1), 1) + np.diag(np.ones(states - 1), -1)
    rate = (1 - stationary(births)[0]) * 1e9 / SERVICE
    assert rate == pytest.approx((places + 2) / (places + 3) * 1e9 / SERVICE)
    within(sum(row[0] == "b1" and row[6] > 1e9 for row in trace.processed), rate * (until - 1))


def test_places_are_shared_alike() -> None:
    """Of three that always have something to send each gets one place after the other, in turn."""
    topology = {name: spout(**ONES, gap=1) for name in "abc"}
    inputs = dict.fromkeys(topology, "global")
    topology["p"] = queued(bolt("forward", inputs, 10), 2)
    trace = run(world(topology, until=1000))
    edges = [row[3] & 3 for row in trace.processed]  # two digits: the spout, and the edge
    assert max(Counter(edges).values()) - min(Counter(edges).values()) <= 1
    assert all(len(set(edges[i : i + 3])) == 3 for i in range(3, len(edges) - 3))
