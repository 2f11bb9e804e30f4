"""Links that are slow for a while: by hand, and beside the per-tuple reference. Times in ms.

s ──▶ p (1) ──▶ count (1), each on a host of its own: 0, 1 and 2.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import chain, counted
from tests.models.test_exactness import LONG, QUICK, differences
from tests.oracle.random_networks import hosts_of, networks
from tests.oracle.random_parameters import STRATEGY_NAMES
from tests.oracle.random_times import TICK
from tests.oracle.random_worlds import worlds
from tests.oracle.worlds import MS, fault, ms
from tideover.models.config import Scenario
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load


def slow(at: float, duration: float, *hosts: int, **more: Any) -> Any:
    return fault("slow_link", at, hosts=hosts, duration=round(duration * MS), **more)


def with_latency(scenario: Scenario, latency: float) -> Scenario:
    return scenario.model_copy(update={"links": Links(latency=ms(latency), local=ms(0))})


def test_what_comes_to_the_wire_meanwhile_takes_longer() -> None:
    """On each wire for 2, for 10 to host 2 from 35 to 55: roots 3 and 4, which leave p at 43 and 53, are 8
    late. Root 2 came to the wire at 33.
    """
    usual = with_latency(chain((), 95), 2)
    late = with_latency(chain((slow(35, 20, 2, latency_factor=5.0),), 95), 2)
    expected = [(root, at + 8 * (root in (3, 4))) for root, at in counted(simulate(usual, trace=True))]
    assert counted(simulate(late, trace=True)) == expected
    (row,) = simulate(late).recoveries
    assert (row["kind"], row["component"], row["detected_at_s"]) == ("slow_link", "hosts 2", None)
    assert (row["detect_s"], row["passing_s"], row["restart_s"]) == (0, 0.02, 0)


def test_nothing_overtakes_on_a_wire_that_is_well_again() -> None:
    """Roots 3 and 4 are on the wire for 30: root 3 at 73, 4 at 83, 5 to 7 no sooner."""
    late = with_latency(chain((slow(35, 20, 2, latency_factor=15.0),), 115), 2)
    assert counted(simulate(late, trace=True))[3:8] == [(3, 74), (4, 84), (5, 85), (6, 86), (7, 87)]


def test_between_two_sets_others_are_as_ever() -> None:
    """The link of 0 and 2 is slow, over which nothing goes."""
    late = with_latency(chain((slow(35, 20, 2, others=(0,), latency_factor=5.0),), 95), 2)
    assert counted(simulate(late, trace=True)) == counted(
        simulate(with_latency(chain((), 95), 2), trace=True)
    )


def test_of_several_at_once_the_greatest_holds() -> None:
    """Times 3 from 35 to 75, times 5 from 45 to 55: roots 3 to 6 leave at 43, 53, 63 and 73."""
    faults = (slow(35, 40, 2, latency_factor=3.0), slow(45, 10, 2, latency_factor=5.0))
    late = counted(simulate(with_latency(chain(faults, 95), 2), trace=True))
    usual = counted(simulate(with_latency(chain((), 95), 2), trace=True))
    assert [b[1] - a[1] for a, b in zip(usual, late, strict=True)] == [0, 0, 0, 4, 8, 4, 4, 0]


def test_a_slow_card_carries_a_part_of_its_bandwidth() -> None:
    """A message takes 1 at each card; from 35 to 55 twice as long in those on the way to host 2."""
    card = Hosts(machines={"m": MachineType(count=3, nic=256_000)})
    usual, late = (
        counted(simulate(chain(faults, 95).model_copy(update={"hosts": card}), trace=True))
        for faults in ((), (slow(35, 20, 2, transfer_factor=2.0),))
    )
    assert [b[1] - a[1] for a, b in zip(usual, late, strict=True)] == [0, 0, 0, 2, 2, 0, 0, 0]


@st.composite
def slowed(draw: st.DrawFn, cards: bool, strategies: tuple[str, ...] = STRATEGY_NAMES) -> Scenario:
    """A world of which some links are slow once or twice, besides its own faults."""
    base = networks(strategies) if cards else worlds(strategies)
    found = draw(base.filter(lambda one: len(hosts_of(one)) > 1))
    hosts, faults = hosts_of(found), []
    for _ in range(draw(st.integers(1, 2))):
        one = draw(st.sampled_from(hosts))
        other = draw(st.sampled_from([None, *({host} for host in hosts if host != one)]))
        factors = {"latency_factor": draw(st.sampled_from((1.5, 3.0, 10.0)))}
        if cards:
            factors["transfer_factor"] = draw(st.sampled_from((1.0, 1.5, 4.0)))
        sides = {"others": None if other is None else tuple(other)}
        at, length = draw(st.integers(5, 60)) * TICK / MS, draw(st.integers(1, 60)) * TICK / MS
        faults.append(slow(at, length, one, **sides, **factors))
    longer = found.run.model_copy(update={"duration": found.run.duration + 40 * TICK})
    return found.model_copy(update={"failures": (*found.failures[:1], *faults), "run": longer})


def check(scenario: Scenario) -> None:
    assert not differences(scenario)


@pytest.mark.parametrize("cards", [False, True])
def test_slow_links_equal_the_reference(cards: bool) -> None:
    settings(QUICK, max_examples=8)(given(slowed(cards))(check))()


@pytest.mark.long
@pytest.mark.parametrize("cards", [False, True])
def test_slow_links_equal_the_reference_in_many_worlds(cards: bool) -> None:
    LONG(given(slowed(cards))(check))()


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("hosts: [0]", "failures.0: nothing is slow: give latency_factor or transfer_factor"),
        ("hosts: [0], latency_factor: 0.5", "failures.0.latency_factor: must be"),
        ("hosts: [7], latency_factor: 2", "failures.0.hosts.0: there is no host 7"),
        ("hosts: [0], others: [9], latency_factor: 2", "failures.0.others.0: there is no host 9"),
        ("hosts: [0, 1], others: [1], latency_factor: 2", "failures.0: host 1 is on both sides"),
        ("hosts: [0, 1, 2, 3, 4], latency_factor: 2", "failures.0.hosts: has all hosts (0 to 4) on one side"),
        ("hosts: [0], transfer_factor: 2", "failures.0.transfer_factor: has no effect: no machine"),
    ],
)
def test_a_slow_link_that_cannot_be_is_refused(keys: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load("wordcount", [f"failures=[{{kind: slow_link, at: 5 s, duration: 1 s, {keys}}}]", "hosts=5"])
    assert says in str(caught.value)
