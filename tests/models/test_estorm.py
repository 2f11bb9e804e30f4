"""E-Storm: fleets of shadows, what a member that comes back does, and where members are.

s ──▶ p (1 ms, with state, one shadow) ──▶ q    a one every 10 ms from 10 ms on; times in ms
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.counting import completed, failed
from tests.models.test_exactness import QUICK, check, checked
from tests.models.traced import trace_of
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario, deployment_of
from tideover.models.job.arrivals import Burst, Periodic
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.job.placements import FleetPlacement
from tideover.models.job.spouts import Kafka
from tideover.models.job.stores import Disk, Memory, Redis
from tideover.models.simulation import Replication, simulate
from tideover.sim.registry import kind_of

STATE = Memory(entries=10, entry_size=100)


def job(failures: tuple[Any, ...] = (), tasks: int = 1, until: float = 395, **more: Any) -> Scenario:
    """Twelve ones; rotations every 100: what is not acked 100 to 200 after its emission comes again."""
    p = bolt("forward", {"s": "fields"}, 1, parallelism=tasks).model_copy(update={"state": STATE})
    topology = {"s": spout("values", values=(1,) * 12), "p": p, "q": bolt("forward", {"p": "shuffle"})}
    settings: dict[str, Any] = {"message_timeout": 100 * MS, "timeout_phase": 0, "entry_size": 100}
    stores = {"station": more.pop("station", Redis(latency=0, bandwidth=2**50, operations=1e9))}
    found = world(topology, "estorm", failures, until, **settings | more)
    strategy = found.strategy.model_copy(update={"store": "station"})
    return found.model_copy(update={"stores": stores, "strategy": strategy})


def run(*given: Any, **more: Any) -> Replication:
    return simulate(job(*given, **more), trace=True)


def processed(done: Replication, component: str, replica: int = 0) -> list[int]:
    """When (ms) a replica was done with tuples."""
    return [row[6] // MS for row in done.trace.processed if (row[0], row[2]) == (component, replica)]


def stages(done: Replication) -> list[list[int]]:
    """Of each failure: how long (ms) the restart took, then the writes, then the reads."""
    return [
        [round(1e3 * row.get(name, 0)) for name in ("restart_s", "write_s", "restore_s")]
        for row in done.recoveries
    ]


def test_shadows_process_and_emit_nothing() -> None:
    """Both members have every tuple, q has each once."""
    done = run()
    assert processed(done, "p") == processed(done, "p", 1) == [10 * i + 1 for i in range(1, 13)]
    assert processed(done, "q") == [10 * i + 1 for i in range(1, 13)]
    assert (done.ledger["completed"], done.ledger["duplicated"]) == (12, 0)


POLLED = Kafka(poll_cost=MS)


@pytest.mark.parametrize(
    ("config", "later"),
    [
        ({}, [3, 6, 9, 12]),
        ({"arrivals": Burst(rate=10, peak=100, length=100 * MS, every=200 * MS)}, [3, 3, 3, 3]),
        ({"source": POLLED}, [3, 3, 3, 3]),
        ({"source": POLLED, "arrivals": Periodic(pause=MS)}, [3, 6, 9, 12]),
    ],
    ids=["gaps", "schedule", "records", "records at its limit"],
)
def test_a_copy_for_a_shadow_takes_the_spout(config: dict[str, Any], later: list[int]) -> None:
    """3 ms in each call: a gap is so much longer, a call of a schedule or of a record comes so much later,
    after the one before it is over.
    """

    def calls(cost: int) -> list[int]:
        s = spout("values", values=(1,) * 4).model_copy(update=config)
        topology = {"s": s, "p": bolt("forward", {"s": "shuffle"}).model_copy(update={"state": STATE})}
        trace = trace_of(world(topology, "estorm", (), 150, copy_cost=cost))
        return [row[-1] for row in sorted(trace.emitted)]

    assert [a - b for a, b in zip(calls(3 * MS), calls(0), strict=True)] == [by * MS for by in later]


def test_a_call_that_came_while_the_spout_was_held_back_is_left_out() -> None:
    """From 100 on calls are due every 10 ms, and each takes 3 ms for a copy. One root at a time, each done 19
    after it was emitted, that is 22 after its call was due: the call due 20 after it came meanwhile, so the
    next is that due after 30, though the other's copies would be made by 23.
    """
    s = spout("values", values=(1,) * 4, arrivals=Burst(rate=10, peak=100, length=100 * MS, every=200 * MS))
    topology = {"s": s, "p": bolt("forward", {"s": "shuffle"}, 19).model_copy(update={"state": STATE})}
    scenario = world(topology, "estorm", (), 195, copy_cost=3 * MS, max_spout_pending=1)
    assert np.diff([row[-1] for row in checked(scenario).emitted])[1:].tolist() == [30 * MS, 30 * MS]


def test_a_root_is_done_when_all_members_have_acked() -> None:
    """On four hosts s, p and q are on 0, 1, 2, the shadow of p on 2, 30 ms away from s: it acks 31 ms after
    the emission, where q is done after 2 x 5 + 1.
    """
    links = Links(latency=ms(5), local=ms(0), pairs={"0-2": ms(30)})
    done = run(hosts=4, links=links, until=200)
    found = [(root, time // MS) for root, _, time in sorted(done.trace.completed)]
    assert found == [(i, 10 * (i + 1) + 31) for i in range(12)]


def test_who_comes_back_reads_what_a_shadow_writes() -> None:
    """p crashes at 52 and is ready at 60: the tuple of 60 finds it down, that of 70 is held. At 62 the shadow
    begins to write 1,000 B at 1 MB/s, 1 ms, and is kept by that; p reads for 1 ms, and loads for 10: at 74 it
    goes on, with the tuple of 70. The one of 60 has been processed by the shadow alone: its root times out.
    """
    station = Disk(latency=0, bandwidth=10**6)
    more = {"station": station, "transaction_time": 2 * MS, "load_time": 10 * MS, "hosts": 1}
    done = run((fault("crash_task", 52, component="p", restart=8),), **more)
    assert processed(done, "p")[:7] == [11, 21, 31, 41, 51, 75, 81]
    assert processed(done, "p", 1)[:7] == [11, 21, 31, 41, 51, 61, 71]
    assert failed(done) == [(5, 0, 200)]
    assert [done.ledger[name] for name in ("completed", "lost", "false_timeouts")] == [12, 0, 0]
    assert stages(done) == [[8, 3, 11]]


def test_all_that_were_hit_write_before_they_read() -> None:
    """Two tasks share the station: 1 ms each to write, then 1 ms each to read."""
    more = {"station": Disk(latency=0, bandwidth=10**6), "hosts": 1}
    done = run((fault("crash_task", 52, component="p", restart=8, together=2),), tasks=2, **more)
    assert stages(done) == [[8, 2, 2]]


def failing_again(*failures: Any, tasks: int = 2) -> Replication:
    """p crashes at 52 and is ready at 62, when its shadow begins to write 1,000 B at 500 kB/s, 2 ms; with two
    tasks p.0 is written at 64, p.1 at 66.
    """
    first = fault("crash_task", 52, component="p", restart=10, together=tasks)
    station = Disk(latency=0, bandwidth=5 * 10**5)
    return run((first, *failures), tasks, station=station, hosts=1)


def test_nobody_waits_for_a_task_that_fails_again() -> None:
    """p.1 crashes again at 65, while it is written for, and is ready at once: p.0 waits for nobody else. The
    station is busy until 66 with what p.1 does not want any more; p.0 reads until 68, the shadow of p.1
    writes until 70, p.1 reads until 72.
    """
    done = failing_again(fault("crash_task", 65, component="p", task=1))
    assert stages(done) == [[10, 3, 3], [0, 5, 2]]
    assert processed(done, "p")[:7] == [11, 21, 31, 41, 51, 71, 81]


def test_a_task_that_fails_again_does_not_read_what_was_written_for_it() -> None:
    """p.0 crashes again at 65, when it has been written for and waits for p.1: at 66 that one reads alone,
    for 2 ms. p.0 is ready at 75; its shadow writes until 77, it reads until 79.
    """
    done = failing_again(fault("crash_task", 65, component="p", restart=10))
    assert stages(done) == [[10, 4, 2], [10, 2, 2]]
    assert processed(done, "p")[:7] == [11, 21, 31, 41, 51, 81, 91]


def test_a_member_that_loses_its_state_while_it_writes_is_not_asked_again() -> None:
    """The shadow of p loses its state at 63, while it writes, and lives. Nobody else is there: p goes on with
    nothing at 63, and is asked for its state by the shadow at once. The station is busy until 64; p writes
    until 66, the shadow reads until 68.
    """
    done = failing_again(fault("lose_state", 63, component="p", replica=1), tasks=1)
    assert stages(done) == [[10, 0, 1], [0, 3, 2]]
    assert processed(done, "p")[:7] == [11, 21, 31, 41, 51, 71, 81]
    assert processed(done, "p", 1)[:7] == [11, 21, 31, 41, 51, 61, 71]


@pytest.mark.parametrize("until", [395, 595])
def test_what_is_written_before_a_restart_is_over_is_no_stage_of_its_own(until: float) -> None:
    """The shadow of p and q share a host, which crashes at 52 and would be ready at 60. q crashes again at
    55, until 555: with that the first restart has lasted 503, also if the run ends before. The shadow is
    written for at 62 and reads at once, and neither makes the recovery any longer.
    """
    first = fault("crash_host", 52, host=2, restart=8)
    again = fault("crash_task", 55, component="q", restart=500)
    scenario = job((first, again), until=until, hosts=3, transaction_time=2 * MS)
    check(scenario)
    assert stages(simulate(scenario)) == [[503, 0, 0], [500, 0, 0]]


def forgetting(stamps: tuple[int, ...], until: float, **more: Any) -> Replication:
    """s, each 20 ms ──▶ count, 20 ms of event time, a look each 50; at 52 it and its shadow lose all."""
    events = tuple(stamp * MS for stamp in stamps)
    window = {"by": "event", "length": 20 * MS, "watermark_interval": 50 * MS}
    topology = {
        "s": spout("values", 20, values=(1,) * len(events), stamps=events),
        "count": bolt("windowed_count", {"s": "shuffle"}, window=window),
    }
    failures = tuple(fault("lose_state", 52, component="count", replica=r) for r in range(2))
    settings: dict[str, Any] = {"message_timeout": 100 * MS, "timeout_phase": 0}
    return simulate(world(topology, "estorm", failures, until, **settings | more), trace=True)


def windows(done: Replication) -> list[tuple[int, float]]:
    """(number, when) of what was put out."""
    return sorted((row[3], row[4] / MS) for row in done.trace.windows)


def test_a_window_that_comes_again_is_void_for_a_shadow_too() -> None:
    """The events 10 and 30 come at 20 and 40. At 50 the watermark is 30: window 1, with the first, is put
    out. The fault takes its acks, which were to leave at 55, and what the watermark was; both roots time out
    at 200, and come again at 220 and 240. At 250 window 1 comes again, as it was: with either member the
    first root has left once, and the second is in the state once.
    """
    done = forgetting((10, 30), 290, ack_cost=5 * MS)
    assert windows(done) == [(1, 50), (1, 250)]
    assert failed(done) == [(0, 0, 200), (1, 0, 200)]
    assert [done.ledger[name] for name in ("completed", "replayed", "duplicated")] == [2, 2, 0]


def test_what_is_in_a_void_window_is_with_no_shadow_either() -> None:
    """At 50 the first of the events 10 and 30 is acked, with window 1. The state is lost, so that the event
    15, which comes at 60, is not late. At 80 another 30 comes; at 100 window 1 comes again, with the event 15
    in it, which is acked: but its readers have had window 1, and drop it. The first 30 waits for its timeout.
    """
    done = forgetting((10, 30, 15, 30), 150)
    assert windows(done) == [(1, 50), (1, 100)]
    assert [root for root, *_ in completed(done)] == [0, 2]
    assert [done.ledger[name] for name in ("completed", "in_flight", "lost", "duplicated")] == [2, 1, 1, 0]


# -- placement, against a greedy one that is written down from `docs/semantics.md`, place by place -----------

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
        parallelism, selectivity = draw(st.integers(1, 5)), draw(st.sampled_from((0.5, 1.0, 2.0)))
        made = bolt("generic", inputs, parallelism=parallelism, selectivity=selectivity)
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
    """One place after the other, each the best there is; nobody has more than an even share of the shadows,
    rounded up, while another host has room.
    """
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
    even = math.ceil(sum(map(len, turns.values())) / len(hosts))
    for turn in range(max(map(len, turns.values()))):
        for name in order:
            if turn < len(turns[name]):
                place, shadows = turns[name][turn], [at[other] for other in at if other[2]]
                apart = {at[other] for other in at if other[:2] == place[:2]}
                free = [h for h in hosts if room(h) and h not in apart]
                spread = [h for h in free if shadows.count(h) < even]
                at[place] = best(place, at, spread or free, topology, flow)
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

    return max(hosts, key=worth)


@QUICK
@given(scenarios())
def test_shadows_sit_where_a_greedy_search_puts_them(scenario: Scenario) -> None:
    assert dict(deployment_of(scenario).hosts) == greedy(scenario)
