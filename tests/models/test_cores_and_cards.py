"""Hosts with fewer cores than tasks, and cards: cards that take next to no time change next to nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tests.oracle.worlds import MS, bolt, spout, world
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load_text

WORLD = """\
topology:
  src: {{spout: keys, arrivals: {{kind: poisson, rate: 150/s}}}}
  a: {{bolt: forward, from: {{src: shuffle}}, service: {{kind: exponential, mean: 4 ms}}, parallelism: 2}}
  b: {{bolt: forward, from: {{a: shuffle}}, service: {{kind: exponential, mean: 4 ms}}, parallelism: 2}}
{more}
strategy: {{kind: none}}
hosts: {{machines: {{m: {{count: {hosts}, cores: 1{nic}}}}}}}
links: {{latency: {latency}}}
run: {{duration: {duration}, seed: 3}}
"""
BACK = "  c: {bolt: forward, from: {b: shuffle}, service: 1 ms, parallelism: 2}"


@pytest.mark.parametrize(
    ("hosts", "latency", "duration", "more"),
    [
        (2, "5 ms", "6 s", ""),  # no card hands on what comes to it again
        (3, "1 ms", "3 s", BACK),  # one does, after 1 ms
        (2, "0 s", "3 s", BACK),  # and at once: a port for each level
    ],
)
def test_cards_that_take_no_time_change_nothing(hosts: int, latency: str, duration: str, more: str) -> None:
    """Latencies are what they are without cards, as nearly as several levels share cores (2 %): nothing waits
    for who looks, and the run's length does not matter.
    """
    kinds = ("", ", nic: 1000 Gbit/s")
    texts = [WORLD.format(hosts=hosts, latency=latency, duration=duration, more=more, nic=n) for n in kinds]
    (without, expected), (found, latencies) = map(ends, texts)
    assert abs(found - without) <= 2  # one at the end, at each level
    assert latencies.mean() == pytest.approx(expected.mean(), rel=0.02)
    assert np.quantile(latencies, 0.99) == pytest.approx(np.quantile(expected, 0.99), rel=0.02)


def ends(text: str) -> tuple[int, npt.NDArray[np.float64]]:
    """How many tuples were done anywhere; how long each root took until it was last seen (ns)."""
    done = simulate(load_text(text, "world.yaml"), trace=True)
    assert done.trace is not None
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for *_, root, came, left in done.trace.processed:
        first[root] = min(came, first.get(root, came))
        last[root] = max(left, last.get(root, left))
    return len(done.trace.processed), np.array([last[root] - first[root] for root in last], float)


def test_a_task_waits_for_the_card_of_one_that_shares_its_core() -> None:
    """s ──▶ b on host 0, which begins with 2 ms of work at 11; z, on another host, ──▶ c, 3 ms of work that
    come through host 0's card at 11.5. Half a core each from then on: b is done at 14.5, c at 16.

    b could be moved before z is. The run is looked at every 5 ms only, so it would be done at 13.
    """
    ones = {"kind": "values", "values": (1,), "repeat": True}
    topology = {
        "s": spout(**ones, offset=1, hosts=(0,)),
        "b": bolt("forward", {"s": "shuffle"}, 2, hosts=(0,)),
        "z": spout(**ones, offset=0.5, hosts=(1,)),
        "c": bolt("forward", {"z": "shuffle"}, 3, hosts=(0,)),
    }
    hosts = Hosts(machines={"one": MachineType(count=1, cores=1, nic=256_000), "other": MachineType(count=1)})
    trace = simulate(world(topology, hosts=hosts, until=500), trace=True).trace
    assert trace is not None
    for component, first in (("b", 14.5), ("c", 16)):
        done = [row[6] / MS for row in trace.processed if row[0] == component]
        assert done == [first + 10 * i for i in range(49)]
