"""Who runs where, and who fails with whom: workers, hosts, racks.

Two hosts, each a rack, with two workers: s on host 0; p and count on host 1, in workers 0 and 1. Root n
leaves at 10 (n + 1), and takes 1 ms at p and 1 ms at the count; what fails at 25 is back at 45. Times in ms.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.models.test_exactness import QUICK
from tests.oracle.layout import Layout
from tests.oracle.random_clusters import on_clusters
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario, deployment_of
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
from tideover.models.simulation import simulate
from tideover.models.world import World
from tideover.sim.draws import Draws

AT_P, AT_COUNT = [("p", 2, 30), ("p", 3, 40)], [("count", 2, 31), ("count", 3, 41)]


def scenario(kind: str, strategy: str = "none", **more: Any) -> Scenario:
    where = {name: more.pop(name) for name in ("host", "worker", "rack") if name in more}
    topology = {
        "s": spout("values", values=(1,), repeat=True, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(1,)),
        "count": bolt("windowed_count", {"p": "shuffle"}, 1, hosts=(1,), window={"length": 1000 * MS}),
    }
    cluster = Hosts(machines={"m": MachineType(count=2)}, racks=2, workers=2)
    return world(topology, strategy, (fault(kind, 25, restart=20, **where),), 95, hosts=cluster, **more)


@pytest.mark.parametrize(
    ("kind", "where", "said", "lost", "counted"),
    [
        # p alone: the count keeps roots 0 and 1, and gets 4 to 8
        ("crash_worker", {"host": 1, "worker": 0}, "worker 0 of host 1", AT_P, 7),
        ("crash_worker", {"host": 1, "worker": 1}, "worker 1 of host 1", AT_COUNT, 5),
        ("crash_host", {"host": 1}, "host 1", AT_P, 5),
        ("crash_rack", {"rack": 1}, "rack 1", AT_P, 5),
        # nobody lives there
        ("crash_worker", {"host": 0, "worker": 1}, "worker 1 of host 0", [], 9),
        # the spout: it calls again 10 ms after it is back, at 55, 65, 75, 85 (95 is the end)
        ("crash_rack", {"rack": 0}, "rack 0", [], 6),
    ],
)
def test_who_fails_with_whom(
    kind: str, where: dict[str, int], said: str, lost: list[tuple[str, int, int]], counted: int
) -> None:
    run = simulate(scenario(kind, **where), trace=True)
    assert [(name, uid, time // MS) for name, _, _, uid, time in run.trace.destroyed] == lost
    assert run.trace.final_state["count", 0, 0] == {0: counted}
    assert [(row["kind"], row["component"]) for row in run.recoveries] == [(kind, said)]


@pytest.mark.parametrize(
    ("kind", "where", "together"),
    [
        ("crash_worker", {"host": 1, "worker": 0}, None),
        ("crash_host", {"host": 1}, "host 1 has tasks of p and count: its crash takes tuples together"),
        ("crash_rack", {"rack": 1}, "rack 1 has tasks of p and count: its crash takes tuples together"),
        ("crash_rack", {"rack": 0}, None),
    ],
)
def test_a_buffer_that_fails_with_its_reader_is_remarked_on(
    kind: str, where: dict[str, int], together: str | None
) -> None:
    """p has the buffer of the count."""
    saved = scenario(kind, "rsm", checkpoint_interval=20 * MS, **where)
    told = [text for text in warnings(saved) if "together" in text]
    assert [text[: len(together or "")] for text in told] == ([together] if together else [])


@pytest.mark.parametrize(("worker", "acker_lost"), [(0, True), (1, False)])
def test_the_acker_lives_in_the_first_worker_of_its_host(worker: int, acker_lost: bool) -> None:
    done = World(scenario("crash_worker", "source_replay", host=1, worker=worker, acker_host=1))
    done.run()
    (outage,) = done.outages
    assert [thing.name for thing in outage.returns] == ["count.0"] * worker + ["p.0", "acker"] * acker_lost


@settings(QUICK, max_examples=50)
@given(on_clusters(("none", "active_replication")))
def test_who_runs_where_equals_the_reference(scenario: Scenario) -> None:
    cluster, layout = deployment_of(scenario).cluster, Layout(scenario, Draws(1, 0))
    assert dict(cluster.at) == layout.host
    assert {place: worker.number for place, worker in cluster.worker_of.items()} == layout.worker


@pytest.mark.parametrize(
    ("prices", "reserve", "found"),
    [
        ((0.25, 0.5, 1), 0, {"price_per_h": 0.75}),  # nobody is on the third
        ((0.25, 0.5, 1), 1, {"price_per_h": 1.75}),
        ((0.25, None), 0, {"price_per_h": 0.25}),
        ((None, None), 0, {}),
    ],
)
def test_the_price_of_an_hour(
    prices: tuple[float | None, ...], reserve: int, found: dict[str, float]
) -> None:
    """Of the machines that have tasks or stand by; of those whose price is given; nothing if none is."""
    machines = {f"type{i}": MachineType(count=1, price=price) for i, price in enumerate(prices)}
    where = Hosts(machines=machines, reserve=reserve)
    cost = simulate(scenario("crash_rack", rack=0).model_copy(update={"hosts": where})).cost
    assert {name: value for name, value in cost.items() if name == "price_per_h"} == found
