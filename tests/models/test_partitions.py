"""Networks that are cut, and links that are slow for a while. Times in ms.

s ──▶ p (1) ──▶ count (1), each on a host of its own: 0, 1 and 2.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import EVERY_10, chain, counted
from tests.oracle.worlds import MS, bolt, fault, ms
from tideover.models.config import Scenario
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load


def cut(at: float, duration: float, *hosts: int, kind: str = "partition", **more: Any) -> Any:
    return fault(kind, at, hosts=hosts, duration=round(duration * MS), **more)


def slow(at: float, duration: float, factor: float, **more: Any) -> Any:
    """The links of host 2."""
    return cut(at, duration, 2, kind="slow_link", latency_factor=factor, **more)


def linked(*failures: Any, latency: float, until: float = 95, **update: Any) -> Scenario:
    """The same world, with so long wires."""
    links = Links(latency=ms(latency), local=ms(0))
    return chain(failures, until).model_copy(update={"links": links, **update})


def done(scenario: Scenario) -> list[tuple[int, float]]:
    """(root, when) of what is counted."""
    return counted(simulate(scenario, trace=True))


def test_what_is_slow_beyond_all_bounds_arrives_no_sooner() -> None:
    """Wires of 4 h that take a million times as long: 456 years, which are more ns than 64 bits have."""
    slower = cut(0, 90, 1, kind="slow_link", latency_factor=1e6)
    run = simulate(linked(slower, latency=4 * 3600 * 1000), trace=True)
    assert not run.trace.processed
    assert run.ledger["in_flight"] == run.ledger["emitted"] > 0


def test_what_is_sent_meanwhile_arrives_at_the_end() -> None:
    """From 35 to 68 nothing gets from p to count: roots 3, 4 and 5, which leave p at 41, 51 and 61, arrive at
    68, and are counted at 69, 70 and 71. Root 6 comes as ever.
    """
    late = [(3, 69), (4, 70), (5, 71)]
    assert done(chain((cut(35, 33, 2),))) == [*EVERY_10[:3], *late, *EVERY_10[6:9]]


def test_what_is_sent_meanwhile_may_be_lost() -> None:
    """The same under no strategy, with 5 on each wire: roots 2 to 5 leave p at 36, 46, 56 and 66, and are
    lost; root 6 comes. So it is with cards that take no time to speak of.
    """
    plain = linked(cut(35, 33, 2, messages="lose"), latency=5, until=110, strategy=STRATEGIES["none"]())
    cards = Hosts(machines={"m": MachineType(count=3, nic=2**50)})
    for one in (plain, plain.model_copy(update={"hosts": cards})):
        run = simulate(one, trace=True)
        assert [root for root, _ in counted(run)] == [0, 1, 6, 7, 8]
        assert run.ledger["lost"] == 4
        lost = [(uid, round(time / MS, 1)) for *_, uid, time in run.trace.destroyed]
        assert lost == [(2, 36), (3, 46), (4, 56), (5, 66)]


def test_what_is_on_the_wire_may_be_lost() -> None:
    """Cut at 38, when root 2 is on the wire, and until 39: that one alone."""
    brief = linked(cut(38, 1, 2, messages="lose"), latency=5, until=110, strategy=STRATEGIES["none"]())
    assert [row[3:] for row in simulate(brief, trace=True).trace.destroyed] == [(2, 38 * MS)]


def test_hosts_on_one_side_go_on_talking() -> None:
    """p and count are both cut off: nothing is late between them, but roots 3, 4 and 5 come to p at 68."""
    run = simulate(chain((cut(35, 33, 1, 2),)), trace=True)
    assert counted(run)[3:6] == [(3, 70), (4, 71), (5, 72)]
    (row,) = run.recoveries
    assert (row["kind"], row["component"], row["ready_at_s"]) == ("partition", "hosts 1, 2", 0.068)


@pytest.mark.parametrize(("listener", "false"), [(None, []), (2, ["s.0", "p.0"]), (0, ["count.0"])])
def test_who_is_not_heard_is_taken_for_dead(listener: int | None, false: list[str]) -> None:
    """Host 2 is cut off for 400, with a timeout of 50: who listens misses those on the other side. When it is
    the count, nothing is lost, nothing counts twice: the work of the zombie is void, and comes again from the
    buffer of p.
    """
    detector = Heartbeats(interval=20 * MS, timeout=50 * MS, listener=listener, launch=ms(5))
    run = simulate(chain((cut(35, 400, 2),), 900).model_copy(update={"detector": detector}))
    dead = [row["component"] for row in run.recoveries if row["kind"] == "false_detection"]
    assert sorted(dead) == sorted(false)
    if listener != 2:
        assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)


def test_acks_pass_a_partition() -> None:
    """p, which is cut off from 35 to 68 on host 1 with the count, acks to an acker that lives with s: root 2,
    there at 31, and all that has come before the cut, is done as ever.
    """
    base = chain((cut(32, 33, 1, 2),))
    acked = base.model_copy(update={"strategy": STRATEGIES["source_replay"](acker_host=0)})
    ends = {**base.topology, "count": bolt("forward", {"p": "shuffle"}, 5)}
    found = simulate(acked.model_copy(update={"topology": ends}), trace=True)
    completed = [(root, time / MS) for root, _, time in found.trace.completed]
    assert completed[:4] == [(0, 16), (1, 26), (2, 36), (3, 71)]


@pytest.mark.parametrize(("strategy", "twice"), [("source_replay", True), ("aligned_snapshots", False)])
def test_what_a_zombie_has_sent_is_fenced_or_counted(strategy: str, twice: bool) -> None:
    """p is cut off with what it has sent from 35 on, and counts as dead. When the network heals at 435 that
    gets through, beside what the spout has emitted again meanwhile: it counts twice, and is told of. Where
    a job begins anew it has new connections, and what its zombies have sent comes to nobody.
    """
    own = {"message_timeout": 50 * MS} if twice else {"checkpoint_interval": 20 * MS}
    detector = Heartbeats(interval=20 * MS, timeout=50 * MS, listener=0, launch=ms(5))
    update = {"detector": detector, "strategy": STRATEGIES[strategy](**own)}
    run = simulate(chain((cut(35, 400, 1, others=(0, 2)),), 1200).model_copy(update=update))
    assert "false_detection" in [row["kind"] for row in run.recoveries]
    assert (run.ledger["duplicated"] > 0, run.ledger["lost"]) == (twice, 0)


def test_what_comes_to_the_wire_meanwhile_takes_longer() -> None:
    """On each wire for 2, for 10 to host 2 from 35 to 55: roots 3 and 4, which leave p at 43 and 53, are 8
    late. Root 2 came to the wire at 33.
    """
    late = linked(slow(35, 20, 5.0), latency=2)
    assert done(late) == [(root, at + 8 * (root in (3, 4))) for root, at in done(linked(latency=2))]
    (row,) = simulate(late).recoveries
    assert (row["kind"], row["component"], row["detected_at_s"]) == ("slow_link", "hosts 2", None)
    assert (row["detect_s"], row["passing_s"], row["restart_s"]) == (0, 0.02, 0)


def test_nothing_overtakes_on_a_wire_that_is_well_again() -> None:
    """Roots 3 and 4 are on the wire for 30: root 3 at 73, 4 at 83, 5 to 7 no sooner."""
    late = linked(slow(35, 20, 15.0), latency=2, until=115)
    assert done(late)[3:8] == [(3, 74), (4, 84), (5, 85), (6, 86), (7, 87)]


def test_between_two_sets_others_are_as_ever() -> None:
    """The link of 0 and 2 is slow, over which nothing goes."""
    assert done(linked(slow(35, 20, 5.0, others=(0,)), latency=2)) == done(linked(latency=2))


def later(late: Scenario, usual: Scenario) -> list[float]:
    """By how much each root is counted later."""
    return [b[1] - a[1] for a, b in zip(done(usual), done(late), strict=True)]


def test_of_several_at_once_the_greatest_holds() -> None:
    """Times 3 from 35 to 75, times 5 from 45 to 55: roots 3 to 6 leave at 43, 53, 63 and 73."""
    late = linked(slow(35, 40, 3.0), slow(45, 10, 5.0), latency=2)
    assert later(late, linked(latency=2)) == [0, 0, 0, 4, 8, 4, 4, 0]


def test_a_slow_card_carries_a_part_of_its_bandwidth() -> None:
    """A message takes 1 at each card; from 35 to 55 twice as long in those on the way to host 2."""
    slower = cut(35, 20, 2, kind="slow_link", transfer_factor=2.0)
    cards = {"hosts": Hosts(machines={"m": MachineType(count=3, nic=256_000)})}
    late, usual = (chain(faults).model_copy(update=cards) for faults in ((slower,), ()))
    assert later(late, usual) == [0, 0, 0, 2, 2, 0, 0, 0]


CUT, SLOW = "kind: partition, hosts", "kind: slow_link, hosts"


@pytest.mark.parametrize(
    ("keys", "says", "settings"),
    [
        (
            f"{CUT}: [0], messages: lose",
            "failures.0.messages: rsm counts on links that lose nothing",
            ["strategy={kind: rsm, checkpoint_interval: 1 s}"],
        ),
        (
            f"{CUT}: [0], messages: lose",
            "failures.0.messages: does not go with bounded queues",
            ["queues=100", "strategy={kind: none}"],
        ),
        (f"{CUT}: [7]", "failures.0.hosts.0: there is no", []),
        (f"{CUT}: []", "at least 1 entries", []),
        (f"{CUT}: [0, 1, 2]", "failures.0.hosts: has all hosts (0 to 2) on one side", ["hosts=3"]),
        (f"{SLOW}: [0]", "failures.0: nothing is slow: give latency_factor or transfer_factor", []),
        (f"{SLOW}: [0], latency_factor: 0.5", "failures.0.latency_factor: must be", []),
        (f"{SLOW}: [7], latency_factor: 2", "failures.0.hosts.0: there is no host 7", []),
        (f"{SLOW}: [0], others: [9], latency_factor: 2", "failures.0.others.0: there is no host 9", []),
        (f"{SLOW}: [0, 1], others: [1], latency_factor: 2", "failures.0: host 1 is on both sides", []),
        (
            f"{SLOW}: [0, 1, 2, 3, 4], latency_factor: 2",
            "failures.0.hosts: has all hosts (0 to 4) on one side",
            ["hosts=5"],
        ),
        (f"{SLOW}: [0], transfer_factor: 2", "failures.0.transfer_factor: has no effect: no machine", []),
    ],
)
def test_what_cannot_be_is_refused(keys: str, says: str, settings: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        load("wordcount", [f"failures=[{{at: 5 s, duration: 1 s, {keys}}}]", *settings])
    assert says in str(caught.value)
