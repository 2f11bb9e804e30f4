"""Mean time in the system, simulated and in closed form.

Law: the 99.9 % confidence interval from independent replications (see ``queues``) covers the closed form,
and half of it is at most 1 % of the closed form. The seeds are fixed, so a test that holds goes on holding.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import ciw
import numpy as np
import pytest

from tests.theory import closed_forms
from tests.theory.closed_forms import full, two_in_series
from tests.theory.queues import REPLICATIONS, SERVICE, Estimate, bolt, estimate, queue, sojourn
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Poisson, Saturating
from tideover.models.job.components import Links, QueueSettings, Run, SpoutConfig
from tideover.models.job.spouts import SPOUTS
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World
from tideover.scenarios.loader import load
from tideover.sim.distributions import Constant, Distribution, Exponential, Lognormal
from tideover.sim.recorder import SLOT
from tideover.sim.units import MS, S

HIGH = pytest.param(0.95, marks=pytest.mark.long)
LOADS = [0.3, 0.5, 0.8, HIGH]


def gap_at(load: float) -> int:
    """Mean gap (ns) at which one server of mean ``SERVICE`` has this load."""
    return round(SERVICE / load)


def seconds(load: float, more: float = 1) -> float:
    """Simulated time of one replication, in seconds.

    What is needed for a given relative width grows as (1 - load)**-2 (W. Whitt, *Planning queueing
    simulations*, Management Science 35, 1989), and with the variability of the services: ``more``.
    """
    return 1 + more * (2 + 0.5 / (1 - load) ** 2)


def holds(found: Estimate, expected: float) -> None:
    assert found.covers(expected), f"{found.mean} +- {found.half} ns, expected {expected}"
    assert found.half <= 0.01 * expected


@pytest.mark.parametrize(
    ("service", "more", "seed", "expected"),
    [
        (Exponential(mean=SERVICE), 1, 1, closed_forms.mm1),
        (Constant(value=SERVICE), 0.5, 2, closed_forms.md1),
        (Lognormal(mean=SERVICE, cv=1.2), 2, 3, partial(closed_forms.mg1, cv=1.2)),
    ],
    ids=["M/M/1", "M/D/1", "M/G/1, lognormal"],
)
@pytest.mark.parametrize("load", LOADS)
def test_one_server(service: Distribution, more: float, seed: int, expected: Any, load: float) -> None:
    gap = gap_at(load)
    scenario = queue(gap, {"server": bolt("source", service)}, seconds(load, more), seed)
    holds(sojourn(scenario), expected(gap, SERVICE))


@pytest.mark.parametrize("load", LOADS)
def test_tandem_of_three(load: float) -> None:
    gap = gap_at(load)
    services = [SERVICE, SERVICE * 4 // 5, SERVICE]
    ups = ["source", "first", "second"]
    three = {
        name: bolt(up, Exponential(mean=service))
        for name, up, service in zip(["first", "second", "third"], ups, services, strict=True)
    }
    holds(sojourn(queue(gap, three, seconds(load), seed=4)), closed_forms.tandem(gap, services))


@pytest.mark.parametrize("load", LOADS)
def test_fields_split_into_parallel_queues(load: float) -> None:
    """Four equal keys over three tasks: the first gets two of them, and so twice the load of the others."""
    shares = [0.5, 0.25, 0.25]
    gap = round(SERVICE / load * max(shares))
    parallel = {"server": bolt("source", Exponential(mean=SERVICE), "fields", tasks=3)}
    found = sojourn(queue(gap, parallel, seconds(load, 0.5), seed=5, keys=4))
    holds(found, closed_forms.split(gap, SERVICE, shares))


def test_ciw_agrees() -> None:
    """An independent simulator finds the same mean for M/M/1: the interval of the difference covers 0.

    G. I. Palmer et al., *Ciw: an open-source discrete event simulation library*, Journal of Simulation 13,
    2019.
    """
    load, customers = 0.6, 6_000
    gap = gap_at(load)
    ours = sojourn(queue(gap, {"server": bolt("source", Exponential(mean=SERVICE))}, 4, seed=6))
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(1 / gap)],
        service_distributions=[ciw.dists.Exponential(1 / SERVICE)],
        number_of_servers=[1],
    )
    means = []
    for replication in range(REPLICATIONS):
        ciw.seed(replication)
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_customers(customers, method="Finish")
        records = [r for r in simulation.get_all_records() if r.id_number > customers // 10]
        means.append(float(np.mean([r.exit_date - r.arrival_date for r in records])))
    theirs = estimate(means)
    assert abs(ours.mean - theirs.mean) <= (ours.half**2 + theirs.half**2) ** 0.5
    assert theirs.half <= 0.05 * theirs.mean


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_littles_law(load: float) -> None:
    """L = lambda W along one path that begins and ends empty: the backlog, summed over time, is the sum of
    all latencies.

    J. D. C. Little, *A proof for the queuing formula L = lambda W*, Operations Research 9, 1961. The backlog
    is known every 10 ms, so each latency is off by the rounding of its two ends, a difference of two uniform
    variables.
    """
    service, n = 50 * MS, 20_000
    gap = round(service / load)
    source = SpoutConfig(spout=SPOUTS["values"](values=tuple([1] * n)), arrivals=Poisson(rate=1e9 / gap))
    two = {
        "first": bolt("source", Exponential(mean=service)),
        "second": bolt("first", Exponential(mean=service // 2)),
    }
    scenario = Scenario(
        name="Little",
        topology={"source": source, **two},
        strategy=STRATEGIES["none"](),
        links=Links(latency=Constant(value=3 * MS), local=Constant(value=0)),
        run=Run(duration=2 * n * gap, seed=7),
    )
    world = World(scenario)
    world.run()
    assert world.balance() == {"emitted": n, "completed": n, "in_flight": 0, "lost": 0}
    end = scenario.run.duration
    backlog, _ = world.recorder.backlog(end)
    whole = world.recorder.latency.over(np.ones(end // S + 1, np.bool_), 0)
    assert backlog[-1] == 0
    assert whole.count == n
    mean_in_system = backlog.mean()
    arrival_rate = n / (len(backlog) * SLOT)
    rounding = SLOT / 6**0.5  # standard deviation of the difference of two uniform roundings
    assert whole.mean is not None
    assert abs(mean_in_system / arrival_rate - whole.mean) <= 3.29 * rounding / n**0.5


@pytest.mark.parametrize(("load", "places"), [(1.0, 4), (0.5, 1)])
def test_what_a_full_queue_loses(load: float, places: int) -> None:
    """M/M/1/K, with K - 1 places to wait: Poisson arrivals that find them taken are lost."""
    lost = full(load, places + 1)
    server = bolt("source", Exponential(mean=SERVICE))
    bounded = server.model_copy(update={"queue": QueueSettings(length=places, when_full="drop")})
    world = World(queue(round(SERVICE / load), {"b": bounded}, 0.4, seed=3))
    world.run()
    balance = world.balance()
    done = balance["completed"] / balance["emitted"]
    assert done == pytest.approx(1 - lost, rel=0.01)
    assert balance["emitted"] == balance["completed"] + balance["in_flight"] + balance["lost"]


@pytest.mark.parametrize(("places", "first"), [(1, 1.0), (3, 1.0), (2, 0.8), (2, 1.25)])
def test_two_servers_with_a_buffer_between_them(places: int, first: float) -> None:
    """The first always has work, and is blocked after service; alike, with one place, they do 3/4 of what
    either does alone. ``first``: its mean service, by that of the second.
    """
    seconds, runs = 0.25, 3
    bolts = {
        "one": bolt("source", Exponential(mean=round(first * SERVICE))),
        "two": bolt("one", Exponential(mean=SERVICE)),
    }
    for name, length in (("one", 1), ("two", places)):
        bolts[name] = bolts[name].model_copy(update={"queue": QueueSettings(length=length)})
    scenario = queue(SERVICE, bolts, seconds, seed=3)
    source = scenario.topology["source"].model_copy(update={"arrivals": Saturating(emit_cost=1)})
    busy = scenario.model_copy(update={"topology": {"source": source, **bolts}})
    done = 0
    for replication in range(runs):
        world = World(busy, replication)
        world.run()
        balance = world.balance()
        assert balance["lost"] == 0
        # one in service, one waiting and one that the spout holds, at the first; the others at the second
        assert balance["in_flight"] <= places + 4
        done += balance["completed"]
    expected = two_in_series(first * SERVICE, SERVICE, places) * 1e9
    assert done / (runs * seconds) == pytest.approx(expected, rel=0.01)


RATE, DOWN = 30, 20


@pytest.mark.parametrize("limit", [40, 50])
def test_catching_up_goes_at_the_pace_that_the_service_allows(limit: int) -> None:
    """log -> ask: the task is down for 20 s, and the log, 30/s, waits; then it catches up at limit - 30, as
    fluid does, though an answer takes 1 ms.
    """
    service = {"kind": "request", "answer": "1 ms", "limit": f"{limit}/s"}
    down = {"detection": f"{DOWN} s", "while_down": "hold"}
    scenario = load(
        {
            "topology": {
                "log": {"spout": "keys", "keys": 10, "rate": f"{RATE}/s"},
                "ask": {"bolt": "forward", "from": {"log": "shuffle"}, "service": service},
            },
            "strategy": "none",
            "failures": [{"kind": "crash_task", "at": "50 s", "component": "ask", **down}],
            "run": {"duration": "250 s", "warmup": "10 s"},
        }
    )
    (recovery,) = simulate(scenario).recoveries
    assert recovery["catch_up_s"] == pytest.approx(DOWN + RATE * DOWN / (limit - RATE), rel=0.01)
