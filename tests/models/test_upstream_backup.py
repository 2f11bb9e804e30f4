"""Upstream backup: nothing is saved; who sends keeps it until all that depends on it is done.

    s ──▶ p (1) ──▶ count (1)   with a root every 10 ms from 10 on: root n is with p until 10n + 11 and is
counted at 10n + 12. Every 20 ms tasks tell their senders what is done; a replay takes 1 ms a tuple.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import EVERY_10, ONES, chain, counted, windows
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load_text


def crash(at: float, component: str = "count", detection: float = 5, restart: float = 100) -> Any:
    return fault("crash_task", at, component=component, detection=detection, restart=restart)


def backed_up(scenario: Scenario, **keys: Any) -> Replication:
    """The same world, with acks every 20 ms."""
    keys = {"ack_interval": 20 * MS, "replay_cost": MS} | keys
    return simulate(scenario.with_strategy(STRATEGIES["upstream_backup"].model_validate(keys)), trace=True)


@pytest.mark.parametrize("restart", [0, 100, 10_000])
def test_an_empty_secondary_gets_the_whole_window_again(restart: float) -> None:
    """Crash at 45, noticed at 50 (a restart would come no sooner), when root 4 comes to p: the request waits
    for it until 51. Then p sends all five roots, 52 to 56, and each is counted 1 later. Root 5 follows as
    ever.
    """
    done = backed_up(chain((crash(45, restart=restart),), until=65))
    assert counted(done) == [*EVERY_10[:4], *[(n, 53 + n) for n in range(5)], EVERY_10[5]]
    (row,) = done.recoveries
    assert (row["ready_at_s"], row["restored"], row["replayed"], row["dropped"]) == (0.05, 0, 5, 1)
    assert (row["missing"], row["extra"], done.ledger["lost"]) == (0, 0, 0)


def test_a_task_without_state_does_everything_again_and_its_receiver_drops_it() -> None:
    """p crashes at 45, noticed at 50, when the spout sends root 4. The spout has all five, as the count's
    window is open: they come to p at 51 to 55, and leave it 1 later. The count has had 0 to 3; root 4 comes
    at 56. The spout was busy until 55, and its next call is 10 after that.
    """
    done = backed_up(chain((crash(45, "p"),), until=70))
    assert counted(done) == [*EVERY_10[:4], (4, 57), (5, 67)]
    assert (done.ledger["lost"], done.ledger["duplicated"], done.recoveries[0]["dropped"]) == (0, 0, 4)


def test_what_was_sent_again_is_kept_for_who_fails_next() -> None:
    """The same, and then the count crashes at 60, noticed at 65, when root 5 comes to p, until 66. p, which
    went down with all that it had sent, has all five roots again, and root 5: they leave at 67 to 72.
    """
    done = backed_up(chain((crash(45, "p"), crash(60)), until=76))
    assert counted(done) == [*EVERY_10[:4], (4, 57), *[(n, 68 + n) for n in range(6)]]
    assert (done.ledger["lost"], done.recoveries[1]["missing"]) == (0, 0)


def test_acks_go_from_hop_to_hop() -> None:
    """A window of 50 with roots 0 to 3. The acks of the count at 60 say that four messages are done, and p,
    busy with root 5, trims them at 61. p had sent four roots by the mark that it made at 41 (at 40 it served
    root 3): at its next acks, due at 80 and sent at 81 behind root 7, the spout trims its four.
    """
    done = backed_up(chain((), until=95, window={"length": 50 * MS}))
    assert done.trace is not None
    trims = [(s.at / MS, s.who, s.detail) for s in done.trace.steps if s.what == "buffer trimmed"]
    first = {who: at for at, who, detail in reversed(trims) if detail == "up to number 4"}
    assert first == {"p.0": 61, "s.0": 81}
    assert all(detail in ("up to number 0", "up to number 4") for _, _, detail in trims)


def test_a_window_that_is_over_is_not_rebuilt() -> None:
    """The window of 50 has four roots; the count crashes at 55, before its acks of 60, when p serves root 5.
    At 61 p sends all six, of which the secondary knows that the first four are over: they are dropped, as is
    root 5 as it comes directly. The window of 100 has five.
    """
    done = backed_up(chain((crash(55),), 115, {"length": 50 * MS}))
    assert windows(done) == [(1, 50, 4), (2, 100, 5)]
    assert (done.recoveries[0]["replayed"], done.recoveries[0]["dropped"]) == (2, 4 + 1)
    assert done.windows == {"emitted": 2, "correct": 2, "wrong": 0, "missing": 0}


def test_what_is_sent_again_of_a_window_that_is_over_is_not_counted() -> None:
    """p crashes when the first window is over, and sends its five roots again, under new numbers: the count
    has had them. Then that crashes. Its secondary knows no root, and p, of which it asks what followed the
    first window, has the five behind that: they are dropped again, since their epoch is over.
    """
    done = backed_up(chain((crash(65, "p"), crash(85)), 180, {"length": 50 * MS, "trigger": "marker"}))
    assert windows(done) == [(1, 52, 5), (2, 101, 4), (3, 150, 5)]
    assert (done.recoveries[1]["replayed"], done.recoveries[1]["dropped"]) == (3, 5)
    assert done.windows == {"emitted": 3, "correct": 3, "wrong": 0, "missing": 0}


@pytest.mark.parametrize("size", [0, 64])
def test_without_a_failure_it_costs_only_its_acks(size: int) -> None:
    """Every tuple at its time under amnesia. The count tells p and its secondary at 20, 40, 60 and 80 that
    nothing is done yet; p has nothing to tell then.
    """
    scenario = chain(until=95)
    done = backed_up(scenario, ack_size=size)
    none = simulate(scenario.with_strategy(STRATEGIES["none"]()), trace=True)
    assert done.trace is not None
    assert none.trace is not None
    assert sorted(done.trace.processed) == sorted(none.trace.processed)
    assert done.timeline == none.timeline
    assert done.cost["network_bytes"] - none.cost["network_bytes"] == 4 * 2 * size
    assert done.cost["cpu_s"] == none.cost["cpu_s"]


def test_sums_that_went_down_with_their_task_come_again() -> None:
    """s ──▶ split ──▶ count ──▶ total, windows by marker of 100 and 100. The count puts window 1 out at 100
    and crashes with what it kept of it; at 175 the total crashes, which had that window in its state alone.
    As it is not done there, spouts still have its tuples: the count has put it out again, and the total gets
    it.
    """
    topology = {
        "s": spout("sentences", 5),
        "split": bolt("split_words", {"s": "shuffle"}),
        "count": bolt(
            "windowed_count", {"split": "shuffle"}, window={"length": 100 * MS, "trigger": "marker"}
        ),
        "total": bolt("windowed_count", {"count": "shuffle"}, window={"tuples": 30}),
    }
    faults = (crash(161, "count", 1, 4), crash(175, "total", 1, 4))
    scenario = world(topology, "upstream_backup", faults, 531, ack_interval=20 * MS)
    done = simulate(scenario)
    assert (done.windows["wrong"], done.windows["missing"], done.ledger["lost"]) == (0, 0, 0)


def test_what_follows_a_window_is_not_done_with_its_marker() -> None:
    """Marker 1 of 50 ms comes to m from s at 50, and from t, behind a slow bolt, at 65: the first root of s,
    of 60, has gone on to the count ahead of it. The count, which has the marker from the slower one at 90
    only, tells at 80 that nothing is done, and crashes at 85: the root comes again.
    """
    topology = {
        "s": spout(**ONES, offset=50),
        "t": spout(**ONES | {"gap": 40}),
        "slow": bolt("forward", {"t": "shuffle"}, 25),
        "slower": bolt("forward", {"t": "shuffle"}, 50),
        "m": bolt("forward", {"s": "shuffle", "slow": "shuffle"}),
        "count": bolt(
            "windowed_count",
            {"m": "shuffle", "slower": "shuffle"},
            window={"length": 50 * MS, "trigger": "marker"},
        ),
    }
    done = simulate(world(topology, "upstream_backup", (crash(85),), 400, ack_interval=20 * MS))
    assert (done.windows["wrong"], done.windows["missing"], done.ledger["lost"]) == (0, 0, 0)


REFUSED = """
topology:
  s: {spout: keys, rate: 10/s}
  c: {bolt: windowed_count, from: {s: {fields: [key]}}, service: 1 ms, window: 10 s}
strategy: {kind: upstream_backup}
run: {duration: 30 s}
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("windowed_count", "running_count", "topology.c: .* goes on from window to window"),
        ("window: 10 s", "window: 10 s, state: {kind: memory}", "topology.c: .* `state` is never done with"),
    ],
)
def test_state_without_an_end_is_refused(old: str, new: str, words: str) -> None:
    """It could not be rebuilt from what upstream keeps, or all would have to be kept."""
    load_text(REFUSED, "good.yaml")
    with pytest.raises(ScenarioError, match=words):
        load_text(REFUSED.replace(old, new), "bad.yaml")


def test_what_an_ack_sets_free_arrives_before_others_act() -> None:
    """s, every 500 ──▶ x (100), y (100) ──▶ q (0) ──▶ r (1), and x, y ──▶ r. At 1100 x and y have done their
    tuple of 1000, and first have their turn with acks and trims of that instant; the marker of 1000 that ends
    their windows is behind. That of x is at r both ways, directly and past q, before y has its turn.
    """
    ends = {"window": {"length": 1000 * MS, "trigger": "marker"}}
    topology = {
        "s": spout("keys", 500, keys=1),
        "x": bolt("windowed_count", {"s": "shuffle"}, 100, **ends),
        "y": bolt("windowed_count", {"s": "shuffle"}, 100, **ends),
        "q": bolt("forward", {"x": "shuffle", "y": "shuffle"}),
        "r": bolt("forward", {"x": "shuffle", "y": "shuffle", "q": "shuffle"}, 1),
    }
    done = backed_up(world(topology, until=1999), ack_interval=500 * MS)
    assert done.trace is not None
    ways = {0: "x", 1: "y", 2: "x and q", 6: "y and q"}
    came = [(ways[row[3] % 16], row[6] / MS) for row in done.trace.processed if row[0] == "r"]
    assert came == [("x", 1101), ("x and q", 1102), ("y", 1103), ("y and q", 1104)]


def test_what_is_done_is_told_once() -> None:
    """s emits at 290 and 580; p hands on at once; count's windows of 500 end by tick. Marks each 100: those
    of p at 300, 400 and 500 say the same (the first root was sent), and that root leaves the count at 500, of
    which p hears behind its own mark. At 600 the newest of the three is told, and the others are forgotten
    with it: that of 600, with the second root, is not done. It is at 1000, and p tells at 1100. (Marks before
    300, of nothing, are told as they are made.)
    """
    topology = {
        "s": spout("values", 290, values=(1, 1)),
        "p": bolt("forward", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"p": "shuffle"}, window={"length": 500 * MS, "trigger": "tick"}),
    }
    found = backed_up(world(topology, until=1150), ack_interval=100 * MS)
    assert found.trace is not None
    told = [step.at / MS for step in found.trace.steps if (step.who, step.what) == ("p.0", "acks sent")]
    assert [at for at in told if at > 300] == [600, 1100]
