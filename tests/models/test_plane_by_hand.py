"""Rules of the compiled data plane that random worlds seldom need: by hand, and as in the reference.

Times in ms; a spout emits root number n at 10 (n + 1).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES
from tests.models.crowded import machines
from tests.models.test_exactness import check
from tests.models.test_plane_worlds import happened_where
from tests.oracle.worlds import MS, bolt, fault, ms, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.detectors.storm import Storm
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.operators.window import Window
from tideover.models.simulation import simulate


def served(scenario: Scenario, component: str) -> list[tuple[float, float, int]]:
    """(done, came, root) of the tuples of a component."""
    check(scenario)
    trace = simulate(scenario, trace=True).trace
    return [(row[6] / MS, row[5] / MS, row[3]) for row in trace.processed if row[0] == component]


def done(scenario: Scenario, component: str) -> list[float]:
    """When a component was done with its tuples."""
    return [row[0] for row in served(scenario, component)]


@pytest.mark.parametrize("when_full", ["block", "credits"])
def test_what_a_partition_loses_on_the_wire_gives_its_place_back(when_full: Any) -> None:
    """5 on the wire: root 3 is lost there at 42, with the only place that q has."""
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "q": queued(bolt("forward", {"s": "shuffle"}, 1, hosts=(1,)), 1, when_full),
    }
    links = Links(latency=ms(5), local=ms(0))
    lossy = fault("partition", 42, hosts=(1,), duration=MS, messages="lose")
    scenario = world(topology, failures=(lossy,), until=95, hosts=2, links=links)
    assert done(scenario, "q") == [16, 26, 36, 56, 66, 76, 86]


def test_who_waits_behind_a_sender_that_crashes_takes_the_place_that_it_could_not_take() -> None:
    """p and r send q, which has one place and takes 20, what they have made. From 21 on both wait; p, ahead,
    is stopped when q begins with its second tuple at 31, and crashes at 40. Then r sends, and q begins with
    that at 51.
    """
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "r": bolt("forward", {"s": "shuffle"}, 1),
        "q": queued(bolt("forward", {"p": "shuffle", "r": "shuffle"}, 20), 1),
    }
    stop = fault("pause", 25, component="p", duration=30 * MS)
    crash = fault("crash_task", 40, component="p", restart=100)
    assert done(world(topology, failures=(stop, crash), until=80), "q") == [31, 51, 71]


def test_what_an_action_sends_arrives_behind_what_was_there_at_its_instant() -> None:
    """Windows end each 40: q's by tick, and then p's by marker. r, which takes 50 for each, is busy at 80:
    there q's comes first, too, though p stands before q among r's inputs.
    """
    topology = {
        "s": spout("keys", gap=10, keys=1),
        "p": bolt("windowed_count", {"s": "shuffle"}, window=Window(length=40 * MS, trigger="marker")),
        "q": bolt("windowed_count", {"s": "shuffle"}, window=Window(length=40 * MS)),
        "r": bolt("forward", {"p": "shuffle", "q": "shuffle"}, 50),
    }
    assert done(world(topology, until=250), "r") == [90, 140, 190, 240]


def test_a_partition_loses_no_marks() -> None:
    """5 on each wire: root 3 and the marker of 40 are on the first one at 42. The root is lost; the marker
    ends the window of roots 0 to 2 at 45.
    """
    by_marker = Window(length=40 * MS, trigger="marker")
    topology = {
        "s": spout("keys", gap=10, offset=0, keys=1, hosts=(0,)),
        "q": bolt("windowed_count", {"s": "shuffle"}, window=by_marker, hosts=(1,)),
        "r": bolt("forward", {"q": "shuffle"}, hosts=(1,)),
    }
    links = Links(latency=ms(5), local=ms(5))
    lossy = fault("partition", 42, hosts=(1,), duration=MS, messages="lose")
    assert done(world(topology, failures=(lossy,), until=95, hosts=2, links=links), "r") == [50, 90]


def test_a_marker_has_its_turn_behind_what_waits() -> None:
    """25 for each tuple: when the window ends at 40, roots 1 to 3 wait, until 110; at 80 it is 4 to 7."""
    topology = {
        "s": spout("keys", gap=10, offset=0, keys=1),
        "q": bolt("windowed_count", {"s": "shuffle"}, 25, window=Window(length=40 * MS)),
        "r": bolt("forward", {"q": "shuffle"}),
    }
    assert done(world(topology, until=215), "r") == [110, 210]


def test_what_was_in_service_when_it_is_lost_is_served_first() -> None:
    """p takes 20 for each root, and loses its state at 25 while root 0 is in service; it is restored at once.
    What waits stays in its memory, and root 0, begun anew, is ahead of root 1.
    """
    topology = {
        "s": spout(**ONES),
        "p": bolt("windowed_count", {"s": "shuffle"}, 20, window={"length": 1000 * MS}),
    }
    lost = fault("lose_state", 25, component="p", detection=0, restart=0)
    kept = {"checkpoint_interval": 1000 * MS, "spout_buffer": False}
    scenario = world(topology, "rsm", (lost,), until=90, **kept)
    assert [(at, root) for at, _, root in served(scenario, "p")] == [(45, 0), (65, 1), (85, 2)]


def test_what_waits_for_room_leaves_a_replica_that_waits_for_its_copy() -> None:
    """Both p have made root 3 when q, which takes 20, is full. The first p loses its state at 45; its turn
    comes at 51, when q begins with root 1, and it is down until 70. From then on q has root 3: the copy of
    the other p, which is asked for at 70, comes at 90.
    """
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "q": queued(bolt("forward", {"p": "shuffle"}, 20), 1),
    }
    lost = fault("lose_state", 45, component="p", replica=0, restart=25)
    more = {"k": 1, "components": ("p",), "copy_time": 20 * MS}
    assert done(world(topology, "active_replication", (lost,), 120, **more), "q") == [31, 51, 71, 91, 111]


def test_room_is_found_behind_what_departs_at_its_instant_in_another_group() -> None:
    """Of each root p and then q gets a copy, and what q, which takes 15, has no room for holds up what is
    behind it in the line of s. At 70 q begins with root 4, so root 5 leaves for q, and root 6 for p, which is
    done with root 3 at that instant, and has a place, as it begins with root 5. p may have to wait for r.
    """
    topology = {
        "s": queued(spout(**ONES), send=3),
        "p": queued(bolt("forward", {"s": "shuffle"}, 20), 1, "drop"),
        "q": queued(bolt("forward", {"s": "shuffle"}, 15), 1),
        "r": queued(bolt("forward", {"p": "shuffle"}, 5), 1),
    }
    assert done(world(topology, until=120), "p") == [30, 50, 70, 90, 110]


def test_what_waits_to_be_sent_goes_on_when_its_task_is_restored() -> None:
    """p ends a window at 40. q takes 25 for each message and has one place: the third waits in p's line. It
    finds room at 65, when p is down, until 82; then p sends it, at the instant at which it is restored.
    """
    topology = {
        "s": spout("keys", gap=5, offset=2, keys=20),
        "p": bolt("windowed_count", {"s": "shuffle"}, 1, window={"length": 40 * MS}),
        "q": queued(bolt("forward", {"p": "shuffle"}, 25), 1),
    }
    lost = fault("lose_state", 62, component="p", detection=0, restart=20)
    scenario = world(topology, "rsm", (lost,), until=150, checkpoint_interval=1000 * MS)
    assert done(scenario, "q") == [65, 90, 115, 140]


def test_a_spout_that_replays_uses_no_core() -> None:
    """p loses its state at 25, and the spout sends roots 0 and 1 again at 29 and 33. It is occupied until 33,
    and p, which takes 4, has the only core of their host for itself.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "p": bolt("windowed_count", {"s": "shuffle"}, 4, window={"length": 1000 * MS}, hosts=(0,)),
    }
    lost = fault("lose_state", 25, component="p", detection=0, restart=0)
    kept = {"checkpoint_interval": 1000 * MS, "spout_buffer": True, "replay_cost": 4 * MS}
    scenario = world(topology, "rsm", (lost,), until=60, hosts=machines(1, 1), **kept)
    assert done(scenario, "p") == [14, 24, 33, 37, 47, 57]


def test_a_credit_counts_ahead_of_what_leaves_at_that_instant() -> None:
    """p is done with a root every 2 ms; q begins with it 1 ms later, and after another one p knows that the
    place is free: just when it is done with the next root. So it never waits.
    """
    topology = {
        "s": spout(**ONES, gap=2),
        "p": bolt("forward", {"s": "shuffle"}, 2),
        "q": queued(bolt("forward", {"p": "shuffle"}, 1), 1, "credits"),
    }
    links = Links(latency=ms(1), local=ms(1))
    run = simulate(world(topology, "none", until=100, links=links))
    blocked = {row["task"]: row["blocked_s"] for row in run.tasks}
    assert blocked["p.0"] == 0


def test_a_queue_that_drops_counts_what_waits_and_not_what_begins_at_once() -> None:
    """Two words come at one instant to a server that is free: the first begins, and the second waits."""
    topology = {
        "s": spout("sentences", gap=50),
        "p": bolt("split_words", {"s": "shuffle"}, 1),
        "q": queued(bolt("forward", {"p": "shuffle"}, 2), 1, "drop"),
    }
    trace = simulate(world(topology, "none", until=99), trace=True).trace
    processed = sum(row[0] == "q" for row in trace.processed)
    sentences = sum(row[0] == "p" for row in trace.processed)
    assert processed == 2 * sentences
    assert trace.overflowed


def test_what_a_replay_has_kept_is_free_behind_all_that_comes_at_its_end() -> None:
    """s (every 30, twice) ──▶ q (1, a place for one) ──▶ r, which crashes at 108: until 120 q replays six
    roots for its standby, one each 2 ms. One of the two roots of 120 has the place, the other finds it taken.
    """
    topology = {
        "s": spout(gap=30, parallelism=2, **ONES),
        "q": queued(bolt("forward", {"s": "global"}, 1), 1, "drop"),
        "r": queued(bolt("windowed_count", {"q": "global"}, window={"length": 1000 * MS}), 1000),
    }
    times = {"ack_interval": 1000 * MS, "replay_rate": 500.0}
    scenario = world(topology, "upstream_backup", (fault("crash_task", 108, component="r"),), 130, **times)
    times = [(came, at) for at, came, _ in served(scenario, "q")]
    assert times == [*((came, came + n) for came in (30, 60, 90) for n in (1, 2)), (120, 121)]
    assert [row[4] / MS for row in simulate(scenario, trace=True).trace.overflowed] == [120]


def test_the_end_of_a_replay_in_a_line_is_sent_again_after_a_crash() -> None:
    """s (every 10) ──▶ r (30, a place for one), and ──▶ p. r crashes at 100; s has the end of the replay in
    its line still when p asks it for another one at 120, and when it crashes itself at 130.
    """
    topology = {
        "s": spout(gap=10, **ONES),
        "r": queued(bolt("windowed_count", {"s": "global"}, 30, window={"length": 1000 * MS}), 1, "credits"),
        "p": bolt("forward", {"s": "global"}, 1),
    }
    failures = [fault("crash_task", at, component=who) for at, who in ((100, "r"), (120, "p"), (130, "s"))]
    scenario = world(topology, "upstream_backup", failures, 2000, ack_interval=5000 * MS)
    check(scenario)


@pytest.mark.parametrize("strategy", ["active_replication", "active_standby"])
def test_a_marker_that_has_come_already_keeps_no_window_open(strategy: str) -> None:
    """Both counts crash at 51, and with them the marker of t, of 50. That of p comes at 70, and the first has
    served it at 80. It is held for the second, which copies the first at 85, with the tuple that is in
    service until 92. At 90, the run's end, no marker waits: the window of 50 is missing.
    """
    by_marker = {"length": 50 * MS, "trigger": "marker"}
    topology = {
        "s": spout(**ONES),
        "t": spout(**ONES | {"gap": 1000}),
        "p": bolt("forward", {"s": "shuffle"}, 12),
        "count": bolt("windowed_count", {"t": "shuffle", "p": "shuffle"}, 10, window=by_marker),
    }
    failures = tuple(fault("crash_task", 51, component="count", replica=r, detection=1) for r in (0, 1))
    scenario = world(topology, strategy, failures, 90, copy_time=33 * MS)
    assert simulate(scenario).windows == {"emitted": 0, "correct": 0, "wrong": 0, "missing": 1}
    check(scenario)


def test_a_replica_that_comes_back_does_not_overtake_what_was_on_its_way_before_a_move() -> None:
    """Host 0 is down from 2 s, with a replica of p, and with q. What the other replica sends q waits at the
    card of host 0, until both move to one host, and the replica there copies the other. It then sends within
    the host, and yet behind all that: q drops nothing that it has not had.
    """
    topology = {
        "a": spout("sentences", gap=500, parallelism=2, hosts=(1, 1)),
        "p": bolt("forward", {"a": "shuffle"}, 100, hosts=(0,)),
        "q": bolt("split_words", {"p": "shuffle"}, 200, hosts=(0,)),
    }
    crash = (fault("crash_host", 2000, host=0, repair=300 * MS, while_down="hold"),)
    hosts = Hosts(
        machines={"a": MachineType(count=5, nic=1717), "b": MachineType(count=1)},
        workers=1,
        reserve=1,
    )
    scenario = world(topology, "active_replication", crash, 5000, 24, components=("p",), hosts=hosts)
    times = {"supervisor_worker_timeout": 1000, "nimbus_task_timeout": 500, "worker_heartbeat": 200}
    times |= {"task_heartbeat": 300, "supervisor_round": 300, "nimbus_round": 1500}
    times |= {"worker_start_timeout": 1000, "task_launch": 1000}
    in_ns = {name: time * MS for name, time in times.items()}
    detector = Storm(launch=ms(150), prepare=ms(0), **in_ns)
    scenario = scenario.model_copy(update={"detector": detector})
    assert simulate(scenario).ledger["lost"] == 0
    happened_where(scenario)
