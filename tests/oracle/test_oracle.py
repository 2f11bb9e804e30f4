"""The reference itself, against worlds worked out by hand. Times in milliseconds."""

from __future__ import annotations

import pytest

from tests.oracle import Trace, run
from tests.oracle.layout import SENTENCES, WORDS
from tests.oracle.worlds import MS, ONES, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Links, Store
from tideover.models.strategies.base import STRATEGIES


def departures(trace: Trace, component: str, task: int = 0, replica: int = 0) -> list[tuple[int, float]]:
    """(uid, departure) at one task."""
    rows = [row for row in trace.processed if row[:3] == (component, task, replica)]
    return [(row[3], row[6] / MS) for row in rows]


def windows(trace: Trace, replica: int = 0) -> list[tuple[int, float, dict[int, int]]]:
    return [(row[3], row[4] / MS, row[5]) for row in trace.windows if row[2] == replica]


def test_queues_follow_one_another() -> None:
    scenario = world(
        {
            "s": spout(**ONES),
            "p": bolt("forward", {"s": "shuffle"}, 4),
            "q": bolt("forward", {"p": "shuffle"}, 15),
        },
        links=Links(latency=ms(1), local=ms(0)),
        until=62,
    )
    trace = run(scenario)
    assert departures(trace, "p") == [(0, 15), (1, 25), (2, 35), (3, 45), (4, 55)]
    assert departures(trace, "q") == [(0, 31), (1, 46), (2, 61)]
    assert [row[5] / MS for row in trace.processed if row[0] == "q"] == [16, 26, 36]
    assert trace.in_flight == 3
    assert trace.ledger["emitted"] == 6
    assert (trace.ledger["completed"], trace.ledger["in_flight"], trace.ledger["lost"]) == (3, 3, 0)


def test_equal_arrivals_are_taken_by_upstream_task() -> None:
    slow = Links(latency=ms(0), local=ms(0), pairs={"1-2": ms(5)})
    topology = {
        "a": spout(**ONES, hosts=(0,)),
        "b": spout(**ONES, offset=5, hosts=(1,)),  # sends at 15, before a's tuple of 20 leaves
        "p": bolt("forward", {"b": "global", "a": "global"}, 1, hosts=(2,)),
    }
    trace = run(world(topology, links=slow, hosts=3, until=25))
    # roots: number << 1 | spout task; on the edges: << 1 | place of the sender (a first)
    assert departures(trace, "p") == [(0b000, 11), (0b100, 21), (0b011, 22)]


def test_words_have_their_places() -> None:
    topology = {
        "s": spout("sentences"),
        "split": bolt("split_words", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"split": "fields"}, window={"tuples": 9}),
    }
    trace = run(world(topology, until=40))
    sentences = [SENTENCES[key] for key in _sentence_keys(topology, 4)]
    words = [
        (root << 3 | place, word)
        for root, text in enumerate(sentences)
        for place, word in enumerate(text.split())
    ]
    assert [row[3] for row in trace.processed if row[0] == "count"] == [uid for uid, _ in words]
    first = [WORDS.index(word) for _, word in words[:9]]
    assert windows(trace)[0][2] == {key: first.count(key) for key in sorted(first)}
    assert trace.windows[0][3] == 1
    assert len(trace.final_state["count", 0, 0]) <= len(words) % 9


def _sentence_keys(topology: dict, n: int) -> list[int]:
    from tests.oracle.layout import Layout
    from tideover.sim.draws import Draws

    layout = Layout(world(topology), Draws(1, 0))
    return [layout.root("s", 0, number).key for number in range(n)]


def crashed(while_down: str, kind: str = "crash_task") -> Trace:
    topology = {"s": spout(**ONES), "p": bolt("forward", {"s": "shuffle"}, 4)}
    hit = fault(kind, 22, component="p", detection=5, restart=10, while_down=while_down)
    return run(world(topology, failures=(hit,), until=55))


def test_a_crash_destroys_what_is_in_the_task() -> None:
    trace = crashed("drop")
    assert departures(trace, "p") == [(0, 14), (3, 44), (4, 54)]
    assert trace.destroyed == [("p", 0, 0, 1, 22 * MS), ("p", 0, 0, 2, 30 * MS)]
    assert trace.ledger["lost"] == 2


def test_senders_may_wait_while_it_is_down() -> None:
    trace = crashed("hold")
    assert departures(trace, "p") == [(0, 14), (2, 41), (3, 45), (4, 54)]
    assert [row[5] / MS for row in trace.processed] == [10, 37, 40, 50]
    assert trace.ledger["lost"] == 1


def test_a_task_that_lost_its_state_keeps_its_queue() -> None:
    assert departures(crashed("hold", "lose_state"), "p") == [(0, 14), (1, 41), (2, 45), (3, 49), (4, 54)]


def counting(
    strategy: str = "none", failures: tuple = (), offset: float = 1, service: float = 0, **more: object
) -> Scenario:
    topology = {
        "s": spout(**ONES, offset=offset),
        "count": bolt("windowed_count", {"s": "shuffle"}, service, window={"length": 30 * MS}),
    }
    return world(topology, strategy, failures, **more)


def test_lost_counts_are_missing_in_the_window() -> None:
    trace = run(counting(failures=(fault("lose_state", 35, component="count"),)))
    assert windows(trace) == [(1, 30, {0: 2}), (2, 60, {0: 2}), (3, 90, {0: 3})]
    assert trace.ledger["lost"] == 1
    assert trace.final_state == {("count", 0, 0): {0: 1}}


def test_a_window_ends_when_the_queue_before_the_tick_is_served() -> None:
    trace = run(counting(service=25, until=70))
    # arrivals 11, 21, 31, ...: the tick of 30 waits for the second; the tick of 60 for those of 31, 41, 51
    assert windows(trace) == [(1, 61, {0: 2})]
    assert departures(trace, "count") == [(0, 36), (1, 61)]


def test_a_lost_root_waits_one_to_two_timeouts() -> None:
    lost = fault("lose_state", 35, component="count")
    trace = run(counting("source_replay", (lost,), until=125, message_timeout=30 * MS, timeout_phase=0))
    assert trace.failed == [(2, 0, 90 * MS)]  # emitted at 31, in (30, 60]
    assert ("s", 0, 2, 1, 91 * MS) in trace.emitted
    assert (2, 1, 120 * MS) in trace.completed
    assert trace.ledger["false_timeouts"] == 0
    assert trace.ledger["replayed"] == 1


def test_a_root_that_falls_on_the_rotation_times_out_falsely() -> None:
    more = {"message_timeout": 30 * MS, "ack_cost": 1 * MS, "timeout_phase": 0}
    trace = run(
        counting("source_replay", offset=0, until=125, links=Links(latency=ms(2), local=ms(0)), **more)
    )
    assert trace.failed[0] == (2, 0, 60 * MS)  # emitted at 30, counted at 32, acked at 61
    assert (2, 0) not in [row[:2] for row in trace.completed]
    assert trace.ledger["false_timeouts"] == len({root for root, _, _ in trace.failed})


def test_acks_leave_one_after_the_other_and_keep_the_task() -> None:
    more = {"message_timeout": 30 * MS, "ack_cost": 2 * MS, "timeout_phase": 0}
    trace = run(counting("source_replay", service=1, until=50, **more))
    assert trace.completed == [(0, 0, 32 * MS), (1, 0, 34 * MS)]
    assert departures(trace, "count") == [(0, 12), (1, 22), (2, 35), (3, 42)]


def test_acks_that_were_not_sent_are_lost_with_the_state() -> None:
    more = {"message_timeout": 30 * MS, "ack_cost": 2 * MS, "timeout_phase": 0}
    trace = run(counting("source_replay", (fault("lose_state", 33, component="count"),), until=65, **more))
    assert [row[:2] for row in trace.completed][:1] == [(0, 0)]
    assert trace.failed == [(1, 0, 60 * MS)]
    assert trace.ledger["false_timeouts"] == 0


def test_the_cap_lets_a_call_follow_a_completion() -> None:
    topology = {"s": spout(**ONES), "p": bolt("forward", {"s": "shuffle"}, 25)}
    trace = run(world(topology, "source_replay", message_timeout=1000 * MS, max_spout_pending=1))
    assert [row[4] / MS for row in trace.emitted] == [10, 45, 80]
    assert [row[2] / MS for row in trace.completed] == [35, 70]


def test_without_the_acker_roots_time_out() -> None:
    topology = {"s": spout(**ONES), "p": bolt("forward", {"s": "shuffle"}, 1)}
    hit = fault("crash_task", 15, component="acker", restart=10)
    trace = run(world(topology, "source_replay", (hit,), message_timeout=30 * MS, timeout_phase=0))
    assert trace.failed == [(1, 0, 60 * MS)]  # emitted at 20, which is at or before the rotation of 30
    assert trace.completed[:2] == [(0, 0, 11 * MS), (1, 1, 71 * MS)]


def test_a_spout_goes_on_with_its_next_root() -> None:
    topology = {"s": spout(**ONES), "p": bolt("forward", {"s": "shuffle"}, 30)}
    hit = fault("crash_task", 25, component="s", restart=12)
    trace = run(world(topology, "source_replay", (hit,), message_timeout=20 * MS, timeout_phase=0, until=70))
    assert [row[2:] for row in trace.emitted] == [
        (0, 0, 10 * MS),
        (1, 0, 20 * MS),
        (2, 0, 47 * MS),
        (3, 0, 57 * MS),
        (4, 0, 67 * MS),
    ]
    assert trace.completed == []  # the spout has forgotten the roots that completed at 40 and 70
    assert trace.failed == []


def test_upstream_buffer_replays_what_the_checkpoint_lacks() -> None:
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "count": bolt("windowed_count", {"p": "shuffle"}, 1, window={"length": 1000 * MS}),
    }
    trace = run(
        world(
            topology,
            "rsm",
            (fault("crash_task", 45, component="count", restart=5),),
            until=65,
            store=Store(latency=2 * MS, bandwidth=2**50),
            entry_size=0,
            checkpoint_interval=20 * MS,
            replay_cost=1 * MS,
        )
    )
    # Checkpoint of 40 (roots 0, 1, 2), written at 42; ready at 50, read until 52, replay leaves p at 53, 54.
    # Root 4 arrives directly at 51 and is discarded.
    assert departures(trace, "count") == [(0, 12), (1, 22), (2, 32), (3, 42), (3, 54), (4, 55), (5, 62)]
    assert trace.final_state["count", 0, 0] == {0: 6}
    assert trace.ledger["replayed"] == 2
    assert (trace.ledger["duplicated"], trace.ledger["lost"]) == (0, 0)


def test_a_buffer_that_dies_too_is_a_loss() -> None:
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(1,)),
        "count": bolt("windowed_count", {"p": "shuffle"}, 1, hosts=(1,), window={"length": 1000 * MS}),
    }
    trace = run(
        world(
            topology,
            "rsm",
            (fault("crash_host", 45, host=1, restart=10),),
            hosts=2,
            checkpoint_interval=20 * MS,
        )
    )
    # Checkpoint of 40: roots 0, 1, 2. Root 3 is lost with buffer and state, root 4 comes at 50 to nobody.
    assert departures(trace, "count")[4:] == [(5, 62), (6, 72), (7, 82), (8, 92)]
    assert trace.final_state["count", 0, 0] == {0: 7}
    assert trace.ledger["lost"] == 2


def test_a_job_goes_back_to_its_last_snapshot() -> None:
    """Eight roots at 1 … 8, 3 each; the barrier of 5 passes the queue, is reached at 7, and takes 2.

    After the crash at 14 roots 0 and 1 are back, and the others are read again.
    """
    topology = {
        "s": spout("values", values=(1,) * 8, gap=1),
        "count": bolt("windowed_count", {"s": "shuffle"}, 3, window={"length": 1000 * MS}),
    }
    hit = fault("crash_task", 14, component="count")
    times = {"checkpoint_interval": 1000 * MS, "checkpoint_phase": 5 * MS, "snapshot_time": 2 * MS}
    trace = run(world(topology, "aligned_snapshots", (hit,), 60, entry_size=0, **times))
    again = [(n, 14 + 3 * (n - 1)) for n in range(2, 8)]
    assert departures(trace, "count") == [(0, 4), (1, 7), (2, 12), *again]
    assert trace.final_state == {("count", 0, 0): {0: 8}}
    assert (trace.ledger["lost"], trace.ledger["duplicated"], trace.ledger["replayed"]) == (0, 0, 6)


def replicated(trigger: str, links: Links, **more: object) -> Scenario:
    topology = {
        "s": spout("values", values=(2, 3, 3, 5), hosts=(0,)),
        "count": bolt(
            "windowed_count", {"s": "shuffle"}, hosts=(1,), window={"length": 42 * MS, "trigger": trigger}
        ),
    }
    return world(topology, "active_replication", hosts=3, links=links, k=1, until=80, **more)


def test_a_timer_makes_replicas_disagree_and_a_marker_does_not() -> None:
    links = Links(latency=ms(0), local=ms(0), pairs={"0-2": ms(5)})
    ticked = run(replicated("tick", links))
    assert windows(ticked, 0) == [(1, 42, {0: 13})]
    assert windows(ticked, 1) == [(1, 42, {0: 8})]
    marked = run(replicated("marker", links))
    assert windows(marked, 0) == [(1, 42, {0: 13})]
    assert windows(marked, 1) == [(1, 47, {0: 13})]


def test_a_replica_copies_its_peer() -> None:
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "count": bolt(
            "windowed_count", {"s": "shuffle"}, 2, hosts=(1,), window={"length": 50 * MS, "trigger": "marker"}
        ),
    }
    hit = fault("crash_task", 25, component="count", restart=10)
    links = Links(latency=ms(1), local=ms(0))
    trace = run(
        world(topology, "active_replication", (hit,), hosts=3, links=links, k=1, copy_time=5 * MS, until=60)
    )
    assert departures(trace, "count", replica=1) == [(0, 13), (1, 23), (2, 33), (3, 43), (4, 53)]
    assert departures(trace, "count", replica=0) == [(0, 13), (1, 23), (3, 43), (4, 53)]
    assert windows(trace, 0) == windows(trace, 1) == [(1, 53, {0: 5})]


def test_replicas_of_a_sender_count_once() -> None:
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 3),
        "count": bolt("windowed_count", {"p": "shuffle"}, 1, window={"length": 1000 * MS}),
    }
    hit = fault("crash_task", 12, component="p", replica=1, restart=10)
    trace = run(world(topology, "active_replication", (hit,), k=1, components=("p",), until=45))
    assert departures(trace, "count") == [(0, 14), (1, 24), (2, 34), (3, 44)]
    assert departures(trace, "p", replica=1) == [
        (1, 25),
        (2, 33),
        (3, 43),
    ]  # copied from its peer at 22, and served anew


def test_one_run_is_like_another() -> None:
    scenario = counting(
        "source_replay", (fault("lose_state", 35, component="count"),), message_timeout=20 * MS
    )
    assert run(scenario, 1) == run(scenario, 1)
    assert run(scenario, 1) != run(scenario, 2)  # the phase of the timeouts is drawn


REPLICAS = STRATEGIES["active_replication"](k=2)


@pytest.mark.parametrize(
    ("kind", "settings", "with_state", "without"),
    [
        ("active_replication", {"k": 2}, 3, 3),
        ("active_replication", {"k": 2, "components": ("other",)}, 1, 1),
        ("active_standby", {}, 2, 2),
        ("estorm", {"members": 3}, 3, 1),
        ("hybrid", {"rest": REPLICAS, "stateless": STRATEGIES["none"]()}, 3, 1),
        *((kind, {}, 1, 1) for kind in ("none", "source_replay", "passive_standby", "upstream_backup")),
    ],
)
def test_worlds_have_as_many_replicas_as_papers_say(kind, settings, with_state, without):
    """A primary and k more; a pair; a fleet for each task with state. The worlds ask the strategy itself."""
    strategy = STRATEGIES[kind](**STRATEGIES[kind].typical | settings)
    assert [strategy.replicas("count", keeps) for keeps in (True, False)] == [with_state, without]
