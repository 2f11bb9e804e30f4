"""Who runs where: hosts, racks, slots, workers, and the ways to place tasks on them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.layout import Layout
from tests.oracle.worlds import bolt, spout, world
from tideover.models.config import Scenario, deployment_of
from tideover.models.job.cluster import Cluster, Hosts
from tideover.models.job.components import MachineType
from tideover.models.job.placements import ByHand, FleetPlacement, KSafe, PlacementError, RoundRobin
from tideover.sim.draws import Draws

BY_MARKER = {"length": 10**9, "trigger": "marker"}
LIMITS = dict.fromkeys(("cores", "nic", "slots", "price"))


def hosts(*counts: int, slots: int | None = None, **more: Any) -> Hosts:
    """Machines of as many types as there are numbers."""
    machines = {f"type{i}": MachineType(count=n, slots=slots) for i, n in enumerate(counts)}
    return Hosts(machines=machines, **more)


def job(where: Any, spouts: int = 1, bolts: int = 2, k: int = 0, **by_hand: Any) -> Scenario:
    """s ──▶ p ──▶ count: the bolts with as many tasks each, and k replicas more."""
    topology = {
        "s": spout("values", values=(1,), repeat=True, parallelism=spouts),
        "p": bolt("forward", {"s": "shuffle"}, parallelism=bolts, **by_hand),
        "count": bolt("windowed_count", {"p": "shuffle"}, parallelism=bolts, window=BY_MARKER),
    }
    strategy = {"k": k} if k else {}
    return world(topology, "active_replication" if k else "none", hosts=where, **strategy)


def cluster(*args: Any, **more: Any) -> Cluster:
    return deployment_of(job(*args, **more)).cluster


def test_a_number_of_hosts_is_short_for_machines_without_limits() -> None:
    short, long = cluster(5, bolts=4, k=2), cluster(hosts(2, 3), bolts=4, k=2)
    assert list(short.at.items()) == list(long.at.items())
    assert [host.number for host in short.hosts] == [host.number for host in long.hosts] == [*range(5)]
    assert {name: getattr(short.hosts[0], name) for name in LIMITS} == LIMITS


def test_machines_racks_and_reserve_by_hand() -> None:
    """Hosts 0 and 1 are small, 2 to 4 big; racks in turn; the last one stands by."""
    machines = {
        "small": MachineType(count=2, cores=2, nic=125_000_000, slots=3, price=0.1),
        "big": MachineType(count=3),
    }
    found = cluster(Hosts(machines=machines, racks=2, reserve=1), bolts=4)
    assert [h.type for h in found.hosts] == ["small"] * 2 + ["big"] * 3
    assert [(h.rack, h.reserve) for h in found.hosts] == [(0, 0), (1, 0), (0, 0), (1, 0), (0, 1)]
    small = found.hosts[1]
    assert (small.cores, small.nic, small.slots, small.price) == (2, 125_000_000, 3, 0.1)
    assert [host.number for host in found.hosts if host.rack == 1] == [1, 3]
    assert [found.at["p", task, 0] for task in range(4)] == [1, 2, 3, 0]  # behind the spout, on host 0
    assert [found.at["count", task, 0] for task in range(4)] == [1, 2, 3, 0]


def test_the_tasks_of_a_host_go_round_its_workers() -> None:
    """Nine tasks on two hosts of three workers each, in physical order."""
    found = cluster(hosts(2, workers=3), bolts=4)
    assert {key: worker.places for key, worker in found.workers.items()} == {
        (0, 0): (("s", 0, 0), ("count", 1, 0)),
        (0, 1): (("p", 1, 0), ("count", 3, 0)),
        (0, 2): (("p", 3, 0),),
        (1, 0): (("p", 0, 0), ("count", 2, 0)),
        (1, 1): (("p", 2, 0),),
        (1, 2): (("count", 0, 0),),
    }
    assert found.worker_of["p", 2, 0].number == 1


def test_a_host_without_a_slot_is_passed_over() -> None:
    """Three hosts with two slots; the first is given away by hand."""
    found = cluster(hosts(3, slots=2), bolts=2, hosts=(0, 0))
    assert found.at == {
        ("s", 0, 0): 1,
        ("p", 0, 0): 0,
        ("p", 1, 0): 0,
        ("count", 0, 0): 1,  # number 3: it would be host 0's turn
        ("count", 1, 0): 2,  # number 4: host 1's turn, which has the spout and a count
    }


def test_too_few_slots_are_refused() -> None:
    with pytest.raises(PlacementError, match=r"^hosts: no slot is left for task 1 of count: 5 tasks, and 4"):
        cluster(hosts(2, slots=2))


def test_k_safe_by_hand() -> None:
    """Five hosts in two racks (0, 2, 4 and 1, 3); the spout on 0, p.0 on 1, p.1 on 2, count.0 on 3, count.1
    on 4; then the replicas in turn, each where the fewest tasks are in the other rack.
    """
    found = cluster(hosts(5, racks=2, placement=KSafe()), k=1)
    assert [found.at["p", task, 1] for task in (0, 1)] == [2, 3]  # of 2, 4, 0 and of 3, 1: one task each
    # of 4, 0, 2 (has two), and of 1, 3 (two)
    assert [found.at["count", task, 1] for task in (0, 1)] == [4, 1]


def test_k_safe_needs_as_many_hosts_as_replicas() -> None:
    assert cluster(hosts(3, placement=KSafe()), k=2)
    with pytest.raises(PlacementError, match=r"^hosts: no host is left for replica 2 of task 0 of p: its 3 "):
        cluster(hosts(4, reserve=2, placement=KSafe()), k=2)


def test_k_safe_spreads_evenly_where_racks_let_it() -> None:
    """17 tasks (the spout has no replica) on 6 hosts: 2 or 3 each, whatever was named by hand."""
    found = cluster(hosts(6, racks=3, placement=KSafe()), bolts=4, k=1, hosts=(0, 0, 1, 1))
    assert sorted(Counter(found.at.values()).values()) == [2, 3, 3, 3, 3, 3]


def test_estorm_by_hand() -> None:
    """Three slots each. s on 0, p.0 on 1, p.1 on 2, count.0 on 3, count.1 on 0; then a shadow of p and one of
    count in turn: p.0 reads s, on 0; count.0 reads p, on 1 and 2: the first of them; for p.1 host 0 has no
    slot left, and of 1 and 3 the latter has fewer; count.1 goes to 2, which has fewer than 1.
    """
    found = cluster(hosts(4, slots=3, placement=FleetPlacement()), k=1)
    shadows = {place[:2]: host for place, host in found.at.items() if place[2] == 1}
    assert shadows == {("p", 0): 0, ("count", 0): 1, ("p", 1): 3, ("count", 1): 2}


def test_estorm_spreads_shadows() -> None:
    """s on 0, then p on 1 to 3, 0 and 1: five shadows on four hosts, two each at most. all but
    p.3 could be where s is; p.0 and p.1 are, the others where the fewest tasks are and none of their fleet.
    """
    topology = {
        "s": spout("values", values=(1,), repeat=True),
        "p": bolt("forward", {"s": "shuffle"}, parallelism=5),
    }
    where = hosts(4, placement=FleetPlacement())
    found = deployment_of(world(topology, "active_replication", hosts=where, k=1)).hosts
    assert [found["p", task, 1] for task in range(5)] == [0, 0, 2, 3, 2]


def test_estorm_makes_bytes_local_not_senders() -> None:
    """The count reads a, with 30 tuples/s of 256 B, and b, whose two tasks on one host send 10/s each."""
    topology = {
        "a": spout("values", gap=1000 / 30, values=(1,), repeat=True, hosts=(1,)),
        "b": spout("values", gap=100, values=(1,), repeat=True, parallelism=2, hosts=(2, 2)),
        "count": bolt("windowed_count", {"a": "shuffle", "b": "shuffle"}, hosts=(0,), window=BY_MARKER),
    }
    where = hosts(4, placement=FleetPlacement())
    found = deployment_of(world(topology, "active_replication", hosts=where, k=1)).hosts
    assert found["count", 0, 1] == 1
    topology["b"] = topology["b"].model_copy(update={"tuple_size": 1024})
    found = deployment_of(world(topology, "active_replication", hosts=where, k=1)).hosts
    assert found["count", 0, 1] == 2


def test_estorm_keeps_fleets_apart() -> None:
    assert cluster(hosts(2, placement=FleetPlacement()), k=1)
    said = r"^hosts: no host .* its 3 replicas need different hosts and a slot, and 2 hosts "
    with pytest.raises(PlacementError, match=said):
        cluster(hosts(2, placement=FleetPlacement()), k=2)


def by_hand(*p: tuple[int, ...], count: tuple[tuple[int, ...], ...] = ((2, 0), (2, 1)), **more: Any) -> Hosts:
    return hosts(3, placement=ByHand(tasks={"s": ((0,),), "p": p, "count": count}), **more)


def test_each_replica_by_hand() -> None:
    where = by_hand((0, 1), (1, 2))
    expected = {("s", 0): (0,), ("p", 0): (0, 1), ("p", 1): (1, 2)}
    expected |= {("count", 0): (2, 0), ("count", 1): (2, 1)}
    found = cluster(where, k=1).at
    assert found == {(*task, r): host for task, row in expected.items() for r, host in enumerate(row)}
    assert cluster(where).at == {(*task, 0): row[0] for task, row in expected.items()}


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (
            by_hand((0, 0), (1, 2)),
            r"p\.0\.1: two replicas of task 0 of p on host 0; give each a host of its own",
        ),
        (by_hand((0, 3), (1, 2)), r"p\.0\.1: there is no host 3 for tasks; those are 0 to 2"),
        (by_hand((0, 2), (1, 0), reserve=1), r"count\.0\.0: there is no host 2 for tasks; those are 0 to 1"),
        (by_hand((0, 1)), r"p: has 1 lists of hosts for 2 tasks; give one for each"),
        (by_hand((0,), (1, 2)), r"p\.0: names 1 hosts for 2 replicas of task 0; give one for each"),
        (by_hand((0, 1), (0, 2), slots=2), r"p\.1\.0: host 0 has no slot left \(slots: 2\)"),
    ],
)
def test_by_hand_too_a_placement_has_to_hold(where: Hosts, said: str) -> None:
    with pytest.raises(PlacementError, match=r"^hosts\.placement\.tasks\." + said):
        cluster(where, k=1)


CLUSTERS = st.builds(
    hosts,
    st.integers(1, 4),
    st.integers(1, 3),
    slots=st.sampled_from([None, 3, 5, 9]),
    racks=st.integers(1, 2),
    workers=st.integers(1, 3),
    reserve=st.integers(0, 1),
    placement=st.sampled_from((RoundRobin(), KSafe(), FleetPlacement())),
)


@given(CLUSTERS, st.integers(1, 2), st.integers(1, 5), st.integers(0, 2))
def test_every_task_has_a_place_and_no_host_more_than_its_slots(
    where: Hosts, spouts: int, bolts: int, k: int
) -> None:
    """Every replica is on one host and in one worker of it; slots and the reserve hold; no primary moves
    because there are replicas.
    """
    try:
        found = cluster(where, spouts, bolts, k)
    except PlacementError:
        return
    expected = [("s", task, 0) for task in range(spouts)]
    expected += [(name, t, r) for name in ("p", "count") for t in range(bolts) for r in range(k + 1)]
    assert list(found.at) == expected
    taken = Counter(found.at.values())
    assert all(
        not host.reserve and taken[host.number] <= (host.slots or 99)
        for host in found.hosts
        if taken[host.number]
    )
    lived = [(place, worker.host) for worker in found.workers.values() for place in worker.places]
    assert sorted(lived) == sorted(found.at.items())
    assert all(worker.number < where.workers for worker in found.workers.values())
    alone = cluster(where, spouts, bolts, 0)
    assert all(found.at[place] == host for place, host in alone.at.items())


@given(CLUSTERS, st.integers(1, 5), st.integers(0, 2))
def test_k_safe_keeps_replicas_apart(where: Hosts, bolts: int, k: int) -> None:
    """On different hosts always, and in different racks if there are as many among the hosts in use."""
    try:
        found = cluster(where.model_copy(update={"placement": KSafe()}), bolts=bolts, k=k)
    except PlacementError:
        return
    racks = len({host.rack for host in found.hosts if not host.reserve})
    for name in ("p", "count"):
        for task in range(bolts):
            fleet = [found.at[name, task, replica] for replica in range(k + 1)]
            assert len(set(fleet)) == k + 1
            assert len({found.hosts[host].rack for host in fleet}) == k + 1 or racks <= k


@given(st.none() | st.integers(1, 6), st.integers(1, 2), st.integers(1, 5), st.integers(0, 2))
def test_a_number_of_hosts_places_as_the_oracle_does(
    where: int | None, spouts: int, bolts: int, k: int
) -> None:
    scenario = job(where, spouts, bolts, k)
    assert dict(deployment_of(scenario).hosts) == Layout(scenario, Draws(1, 0)).host
