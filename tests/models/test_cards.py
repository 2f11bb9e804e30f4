"""Network cards: by hand, against the per-tuple reference, against closed forms; serialisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.models.chain import ONES
from tests.models.test_exactness import check
from tests.models.traced import trace_of
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tests.theory.queues import estimate
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Poisson
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.simulation import Replication, simulate
from tideover.models.world import World

NIC = 256_000  # a tuple of 256 B takes 1 ms


def machines(*nics: int | None) -> Hosts:
    return Hosts(machines={f"m{i}": MachineType(count=1, nic=nic) for i, nic in enumerate(nics)})


def served(found: Replication, component: str) -> list[tuple[int, float, float]]:
    """(uid, arrival, departure in ms) at a component."""
    rows = [row for row in found.trace.processed if row[0] == component]
    return [(row[3], row[5] / MS, row[6] / MS) for row in sorted(rows, key=lambda row: row[6])]


def test_a_message_pays_both_cards_and_the_wire() -> None:
    """s (host 0) -> p (host 1) -> q (host 1): 1 ms out, 5 ms on the wire, 2 ms in (half the bandwidth); from
    p to q, on one host, nothing.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(1,)),
        "q": bolt("forward", {"p": "shuffle"}, 0, hosts=(1,)),
    }
    links = Links(latency=ms(5), local=ms(0))
    found = simulate(world(topology, hosts=machines(NIC, NIC // 2), links=links, until=35), trace=True)
    assert served(found, "p") == [(0, 18, 19), (1, 28, 29)]
    assert served(found, "q") == [(0, 19, 19), (1, 29, 29)]


def test_all_channels_of_a_host_share_its_card() -> None:
    """a and b (host 0) both send at 10, to p (host 1) and q (host 2): the one of the lower task is first; p's
    sender at host 3 shares p's card in.
    """
    topology = {
        "a": spout(**ONES, hosts=(0,)),
        "b": spout(**ONES, hosts=(0,)),
        "c": spout(**ONES, hosts=(3,)),
        "p": bolt("forward", {"a": "shuffle", "c": "shuffle"}, 0, hosts=(1,)),
        "q": bolt("forward", {"b": "shuffle"}, 0, hosts=(2,)),
    }
    found = simulate(world(topology, hosts=machines(NIC, NIC, None, None), until=15), trace=True)
    assert [row[1] for row in served(found, "p")] == [11, 12]  # c's comes at 10, a's at 11 and waits for it
    assert [row[1] for row in served(found, "q")] == [12]


def test_serialisation_is_service_of_the_bolts_between_hosts() -> None:
    """s -> p on another host (deserialises 2 ms) -> two replicas' worth of work: q.0 on p's host, q.1 not."""
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(1,)),
        "q": bolt("forward", {"p": "all"}, 0, hosts=(1, 0), parallelism=2),
    }
    links = Links(latency=ms(0), local=ms(0), serialise=3 * MS, deserialise=2 * MS)
    found = simulate(world(topology, hosts=2, links=links, until=20), trace=True)
    assert served(found, "p") == [(0, 10, 16)]
    assert [row[1:] for row in served(found, "q")] == [(16, 16), (16, 18)]


def test_a_batch_takes_no_time_to_serialise() -> None:
    """s (host 0) -> p (host 1) -> q (host 0): the batch of the tuples sent at 10 and 20 is triggered at 25,
    comes out at 27, and passes p and q at that instant, though p ends a window with each tuple.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "p": bolt("windowed_count", {"s": "shuffle"}, 0, hosts=(1,), window={"tuples": 1}),
        "q": bolt("forward", {"p": "shuffle"}, 0, hosts=(0,)),
    }
    links = Links(latency=ms(5), local=ms(0), serialise=3 * MS, serialise_cost=100, deserialise=2 * MS)
    times: dict[str, Any] = dict.fromkeys(("plan_time", "task_time", "state_time", "commit_time"), 0)
    times |= {"trigger_interval": 25 * MS, "output_time": 2 * MS}
    scenario = world(topology, "micro_batch", hosts=machines(NIC, NIC), links=links, until=45, **times)
    for who in ("engine", "reference"):
        trace = trace_of(scenario, who)
        rows = sorted(trace.processed, key=lambda row: (row[0], row[3]))
        times_of = [(row[0], row[5] / MS, row[6] / MS) for row in rows]
        assert times_of == [("p", 27, 27), ("p", 27, 27), ("q", 27, 27), ("q", 27, 27)]
        assert [(row[3], row[4] / MS) for row in trace.windows] == [(1, 27), (2, 27)]


@pytest.mark.parametrize("cards", [(NIC, None), (None, NIC)], ids=["out", "in"])
def test_the_wait_at_a_card_is_that_of_m_d_1(cards: tuple[int | None, ...]) -> None:
    """Poisson arrivals at load 0.8: mean time at the card = s + 0.8 s / (2 (1 - 0.8)) = 3 s."""
    arrivals = Poisson(rate=0.8 * NIC / 256)
    topology = {
        "s": spout("keys", arrivals=arrivals, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, 0, hosts=(1,)),
    }
    scenario = world(topology, hosts=machines(*cards), until=20_000)
    means = [simulate(scenario, replication).latency.mean / MS for replication in range(10)]
    assert estimate(means).covers(3)


def test_a_card_carries_its_bandwidth_and_no_more() -> None:
    """Ten times too much: one tuple of 256 B leaves each millisecond, and the card is always busy."""
    topology = {"s": spout(**ONES, gap=0.1, hosts=(0,)), "p": bolt("forward", {"s": "shuffle"}, hosts=(1,))}
    scenario = world(topology, hosts=machines(NIC, None), until=50)
    found = simulate(scenario, trace=True)
    assert np.diff([row[1] for row in served(found, "p")]) == pytest.approx(1)
    one = World(scenario)
    one.run()
    (card,) = one.job.network.cards
    assert (card.name, card.host, card.busy_ns(50 * MS)) == ("card out", 0, 49.9 * MS)


def ring(load: float, levels: int, hosts: int, seconds: float, latency: float) -> Scenario:
    """A spout and ``levels`` bolts, one task of each on each host; messages take 1 ms at a card, of which
    each carries ``load``; ``latency``: ms between hosts.
    """
    everywhere = tuple(range(hosts))
    rate = load * 1000 / (levels * (hosts - 1) / hosts)
    arrivals = Poisson(rate=rate)
    topology: dict[str, Any] = {
        "s": spout("keys", keys=64, parallelism=hosts, arrivals=arrivals, hosts=everywhere)
    }
    for i in range(levels):
        inputs = {f"p{i - 1}" if i else "s": "shuffle"}
        topology[f"p{i}"] = bolt("forward", inputs, 0.05, parallelism=hosts, hosts=everywhere)
    links = Links(latency=ms(latency), local=ms(0))
    return world(topology, hosts=machines(*[NIC] * hosts), links=links, until=seconds * 1000)


@pytest.mark.parametrize("latency", [0, 1, 100])
@pytest.mark.parametrize(("levels", "hosts"), [(2, 3), (3, 3), (3, 10)])
def test_cards_that_form_a_cycle_equal_the_reference(levels: int, hosts: int, latency: float) -> None:
    """Every card carries messages of spouts and of bolts, so what it sends brings about what it is to send:
    at once, in the time of a message, or in that of a hundred.
    """
    check(ring(0.9, levels, hosts, seconds=0.5, latency=latency))


def test_a_log_is_in_the_order_in_which_it_is_read() -> None:
    """With the second tuple comes the first's marker, which is read before it. Read again after the crash,
    this tuple is the third of four: one is left behind the snapshot that is asked for while it is served.
    """
    topology = {
        "s": spout("values", values=(1,), repeat=True, gap=20, parallelism=2, hosts=(0, 0)),
        "p": bolt(
            "windowed_count", {"s": "global"}, 9, window={"length": 20 * MS, "trigger": "marker"}, hosts=(1,)
        ),
        "q": bolt("forward", {"s": "global"}, hosts=(2,)),  # the markers of p wait for its tuples
    }
    hit = fault("crash_task", 24, component="p")
    times = {"checkpoint_interval": 16 * MS, "checkpoint_phase": 10 * MS}
    scenario = world(topology, "aligned_snapshots", (hit,), 47, hosts=machines(NIC, NIC, NIC), **times)
    check(scenario)
    assert simulate(scenario).cost["peak_buffered_tuples"] == (1 + 4) + 4  # and four that come to q
