"""A network that is cut: what waits, who is taken for dead, and the reference beside it. Times in ms.

s ──▶ p (1) ──▶ count (1), each on a host of its own: 0, 1 and 2.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import EVERY_10, chain, counted
from tests.models.test_exactness import LONG, QUICK, differences
from tests.models.test_schedules_exactness import HAPPENED
from tests.oracle.random_networks import hosts_of, networks
from tests.oracle.random_parameters import STRATEGY_NAMES
from tests.oracle.random_times import TICK
from tests.oracle.random_worlds import worlds
from tests.oracle.worlds import MS, bolt, fault, ms
from tideover.models.config import Scenario
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load


def cut(at: float, duration: float, *hosts: int, **more: Any) -> Any:
    return fault("partition", at, hosts=hosts, duration=round(duration * MS), **more)


def test_what_is_sent_meanwhile_arrives_at_the_end() -> None:
    """From 35 to 68 nothing gets from p to count: roots 3, 4 and 5, which leave p at 41, 51 and 61, arrive at
    68, and are counted at 69, 70 and 71. Root 6 comes as ever.
    """
    done = simulate(chain((cut(35, 33, 2),), 95), trace=True)
    late = [(3, 69), (4, 70), (5, 71)]
    assert counted(done) == [*EVERY_10[:3], *late, *EVERY_10[6:9]]


def test_what_is_sent_meanwhile_may_be_lost() -> None:
    """The same under no strategy, with 5 on each wire: roots 2 to 5 leave p at 36, 46, 56 and 66, and are
    lost; root 6 comes. So it is with cards that take no time to speak of.
    """
    plain = with_none(chain((cut(35, 33, 2, messages="lose"),), 110), 5)
    cards = Hosts(machines={"m": MachineType(count=3, nic=2**50)})
    for one in (plain, plain.model_copy(update={"hosts": cards})):
        done = simulate(one, trace=True)
        assert [root for root, _ in counted(done)] == [0, 1, 6, 7, 8]
        assert done.ledger["lost"] == 4
        assert done.trace is not None
        lost = [(uid, round(time / MS, 1)) for name, _, _, uid, time in done.trace.destroyed]
        assert lost == [(2, 36), (3, 46), (4, 56), (5, 66)]


def test_what_is_on_the_wire_may_be_lost() -> None:
    """Cut at 38, when root 2 is on the wire, and until 39: that one alone."""
    done = simulate(with_none(chain((cut(38, 1, 2, messages="lose"),), 110), 5), trace=True)
    assert done.trace is not None
    assert [(uid, time / MS) for name, _, _, uid, time in done.trace.destroyed] == [(2, 38)]


def with_none(scenario: Scenario, latency: float) -> Scenario:
    links = Links(latency=ms(latency), local=ms(0))
    return scenario.model_copy(update={"strategy": STRATEGIES["none"](), "links": links})


def test_hosts_on_one_side_go_on_talking() -> None:
    """p and count are both cut off: nothing is late between them, but roots 3, 4 and 5 come to p at 68."""
    done = simulate(chain((cut(35, 33, 1, 2),), 95), trace=True)
    assert counted(done)[3:6] == [(3, 70), (4, 71), (5, 72)]
    (row,) = done.recoveries
    assert (row["kind"], row["component"], row["ready_at_s"]) == ("partition", "hosts 1, 2", 0.068)


@pytest.mark.parametrize(("listener", "false"), [(None, []), (2, ["s.0", "p.0"]), (0, ["count.0"])])
def test_who_is_not_heard_is_taken_for_dead(listener: int | None, false: list[str]) -> None:
    """Host 2 is cut off for 400, with a timeout of 50: who listens misses those on the other side. When it is
    the count, nothing is lost, nothing counts twice: the work of the zombie is void, and comes again from the
    buffer of p.
    """
    detector = Heartbeats(interval=20 * MS, timeout=50 * MS, listener=listener, launch=ms(5))
    done = simulate(chain((cut(35, 400, 2),), 900).model_copy(update={"detector": detector}))
    dead = [row["component"] for row in done.recoveries if row["kind"] == "false_detection"]
    assert sorted(dead) == sorted(false)
    if listener != 2:
        assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)


def test_acks_pass_a_partition() -> None:
    """p, which is cut off from 35 to 68 on host 1 with the count, acks to an acker that lives with s: root 2,
    there at 31, and all that has come before the cut, is done as ever.
    """
    base = chain((cut(32, 33, 1, 2),), 95)
    acked = base.model_copy(update={"strategy": STRATEGIES["source_replay"](acker_host=0)})
    ends = {**base.topology, "count": bolt("forward", {"p": "shuffle"}, 5)}
    found = simulate(acked.model_copy(update={"topology": ends}), trace=True)
    assert found.trace is not None
    assert [(root, time / MS) for root, _, time in found.trace.completed][:4] == [
        (0, 16),
        (1, 26),
        (2, 36),
        (3, 71),
    ]


@pytest.mark.parametrize(("strategy", "twice"), [("source_replay", True), ("aligned_snapshots", False)])
def test_what_a_zombie_has_sent_is_fenced_or_counted(strategy: str, twice: bool) -> None:
    """p is cut off with what it has sent from 35 on, and counts as dead. When the network heals at 435 that
    gets through, beside what the spout has emitted again meanwhile: it counts twice, and is told of. Where
    a job begins anew it has new connections, and what its zombies have sent comes to nobody.
    """
    own = {"message_timeout": 50 * MS} if twice else {"checkpoint_interval": 20 * MS}
    detector = Heartbeats(interval=20 * MS, timeout=50 * MS, listener=0, launch=ms(5))
    update = {"detector": detector, "strategy": STRATEGIES[strategy](**own)}
    done = simulate(chain((cut(35, 400, 1, others=(0, 2)),), 1200).model_copy(update=update))
    assert "false_detection" in [row["kind"] for row in done.recoveries]
    assert (done.ledger["duplicated"] > 0, done.ledger["lost"]) == (twice, 0)


@st.composite
def partitioned(
    draw: st.DrawFn, cards: bool = False, strategies: tuple[str, ...] = STRATEGY_NAMES
) -> Scenario:
    """A world of which one host is cut off once or twice, from all others or from one, besides its own
    faults.
    """
    base = networks(strategies) if cards else worlds(strategies)
    found = draw(base.filter(lambda one: len(hosts_of(one)) > 1))
    cuts = []
    for _ in range(draw(st.integers(1, 2))):
        host = draw(st.sampled_from(hosts_of(found)))
        at, length = draw(st.integers(5, 60)) * TICK / MS, draw(st.integers(1, 30)) * TICK / MS
        other = draw(st.sampled_from([None, *(each for each in hosts_of(found) if each != host)]))
        may_lose = STRATEGIES[found.strategy.kind].loses_messages
        messages = draw(st.sampled_from(("hold", "lose"))) if may_lose else "hold"
        cuts.append(cut(at, length, host, others=None if other is None else (other,), messages=messages))
    longer = found.run.model_copy(update={"duration": found.run.duration + 100 * TICK})
    return found.model_copy(update={"failures": (*found.failures[:1], *cuts), "run": longer})


def check(scenario: Scenario) -> None:
    found = differences(scenario)
    assert not {name: both for name, both in found.items() if name in HAPPENED}


KINDS = {"any": partitioned(), "cards": partitioned(True), "trident": partitioned(strategies=("trident",))}
"""With Trident what hands on waits until it is cut off no more."""


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_equal_the_reference(kind: str) -> None:
    settings(QUICK, max_examples=8)(given(KINDS[kind])(check))()


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_partitions_equal_the_reference_in_many_worlds(kind: str) -> None:
    LONG(given(KINDS[kind])(check))()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            [
                "failures=[{kind: partition, at: 5 s, hosts: [0], duration: 1 s, messages: lose}]",
                "strategy={kind: rsm, checkpoint_interval: 1 s}",
            ],
            "failures.0.messages: rsm counts on links that lose nothing",
        ),
        (
            [
                "failures=[{kind: partition, at: 5 s, hosts: [0], duration: 1 s, messages: lose}]",
                "queues=100",
                "strategy={kind: none}",
            ],
            "failures.0.messages: does not go with bounded queues",
        ),
        (
            ["failures=[{kind: partition, at: 5 s, hosts: [7], duration: 1 s}]"],
            "failures.0.hosts.0: there is no",
        ),
        (["failures=[{kind: partition, at: 5 s, hosts: [], duration: 1 s}]"], "at least 1 entries"),
        (
            ["failures=[{kind: partition, at: 5 s, hosts: [0, 1, 2], duration: 1 s}]", "hosts=3"],
            "failures.0.hosts: has all hosts (0 to 2) on one side",
        ),
    ],
)
def test_a_partition_that_cannot_be_is_refused(settings: list[str], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load("wordcount", settings)
    assert says in str(caught.value)
