"""E-Storm's placement against a greedy one that is written down from its rules, place by place."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.models.test_exactness import QUICK
from tests.oracle.worlds import bolt, spout, world
from tideover.models.config import Scenario, deployment_of
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
from tideover.models.job.placements import FleetPlacement
from tideover.sim.registry import kind_of

Place = tuple[str, int, int]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """One or two spouts, two to four bolts, two or three members each, and hosts that have room for them."""
    topology: dict[str, Any] = {}
    for name in ("a", "b")[: draw(st.integers(1, 2))]:
        gap = draw(st.sampled_from((5, 10, 20)))
        size = draw(st.sampled_from((64, 256)))
        made = spout("keys", gap, keys=4, parallelism=draw(st.integers(1, 3)))
        topology[name] = made.model_copy(update={"tuple_size": size})
    for name in ("p", "q", "r", "t")[: draw(st.integers(2, 4))]:
        ups = draw(st.lists(st.sampled_from(list(topology)), min_size=1, max_size=2, unique=True))
        inputs = {up: draw(st.sampled_from(("shuffle", "global", "all"))) for up in ups}
        made = bolt(
            "generic",
            inputs,
            parallelism=draw(st.integers(1, 5)),
            selectivity=draw(st.sampled_from((0.5, 1.0, 2.0))),
        )
        topology[name] = made.model_copy(update={"tuple_size": draw(st.sampled_from((64, 256)))})
    members = draw(st.integers(2, 3))
    places = sum(config.parallelism * members for config in topology.values())
    count = draw(st.integers(members + 1, 7))
    slots = draw(st.sampled_from((None, -(-places // count) + 2)))
    machines = {"m": MachineType(count=count, slots=slots)}
    where = Hosts(machines=machines, placement=FleetPlacement())
    return world(topology, "active_replication", hosts=where, k=members - 1)


def rates(scenario: Scenario) -> dict[tuple[str, str], list[Fraction]]:
    """Tuples/ms of each edge, by receiving task."""
    out: dict[str, Fraction] = {}
    found: dict[tuple[str, str], list[Fraction]] = {}
    for name, config in scenario.topology.items():
        if not hasattr(config, "from_"):
            out[name] = Fraction(10**6 * config.parallelism, config.arrivals.pause)
            continue
        n = config.parallelism
        for up, grouping in config.from_.items():
            shares = {"shuffle": [Fraction(1, n)] * n, "global": [1] + [0] * (n - 1), "all": [1] * n}
            found[up, name] = [out[up] * share for share in shares[kind_of(grouping)]]
        received = sum(sum(found[up, name]) for up in config.from_)
        out[name] = received * Fraction(config.bolt.selectivity)
    return found


def greedy(scenario: Scenario) -> dict[Place, int]:
    """One place after the other, each the best there is."""
    topology, members = scenario.topology, 1 + scenario.strategy.k
    machines = scenario.hosts.machines["m"]
    hosts, slots = range(machines.count), machines.slots
    at: dict[Place, int] = {}

    def room(host: int) -> bool:
        return slots is None or list(at.values()).count(host) < slots

    for number, (name, task) in enumerate(
        (name, task) for name, config in topology.items() for task in range(config.parallelism)
    ):
        at[name, task, 0] = next(h % len(hosts) for h in range(number, number + len(hosts)) if room(h))
    depth: dict[str, int] = {}
    for name, config in topology.items():
        depth[name] = 1 + min((depth[up] for up in getattr(config, "from_", ())), default=-1)
    flow = rates(scenario)
    order = sorted((name for name in topology if depth[name]), key=lambda name: depth[name])
    turns = {
        name: [(name, t, r) for r in range(1, members) for t in range(topology[name].parallelism)]
        for name in order
    }
    for turn in range(max(map(len, turns.values()))):
        for name in order:
            if turn < len(turns[name]):
                place = turns[name][turn]
                at[place] = best(place, at, [h for h in hosts if room(h)], topology, flow)
    return at


def best(place: Place, at: dict[Place, int], hosts: list[int], topology: Any, flow: Any) -> int:
    """Where most bytes come from, then most senders, then the fewest tasks are, then the lowest."""
    name, task, _ = place

    def worth(host: int) -> tuple[Any, ...]:
        senders = [
            (up, each)
            for up in topology[name].from_
            for each in range(topology[up].parallelism)
            if at[up, each, 0] == host
        ]
        size = sum(
            flow[up, name][task] * topology[up].tuple_size / topology[up].parallelism for up, _ in senders
        )
        return size, len(senders), -list(at.values()).count(host), -host

    apart = [h for h in hosts if (h not in {at[p] for p in at if p[:2] == place[:2]})]
    return max(apart, key=worth)


@QUICK
@given(scenarios())
def test_shadows_sit_where_a_greedy_search_puts_them(scenario: Scenario) -> None:
    assert dict(deployment_of(scenario).hosts) == greedy(scenario)
