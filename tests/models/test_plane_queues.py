"""Queues with bounds on the compiled data plane, against the per-tuple reference: equal to the nanosecond."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.test_exactness import FEW, LONG, QUICK, SHARED, agree, differences
from tests.oracle.random_queues import queues, series
from tests.oracle.test_oracle import ONES
from tests.oracle.worlds import MS, bolt, fault, ms, queued, spout, world
from tideover.models.job.components import Links
from tideover.models.simulation import simulate

NONE = ("none",)
KINDS = pytest.mark.parametrize(
    "when_full", [("block",), ("credits",), ("drop",), ("block", "drop", "credits")]
)


@KINDS
def test_queues_with_bounds_are_as_in_the_reference(when_full: tuple[str, ...]) -> None:
    agree(queues(NONE, when_full), QUICK)


KEEPING = pytest.mark.parametrize("strategy", ["upstream_backup", "passive_standby", "hybrid", "rsm"])


@KEEPING
@pytest.mark.parametrize("when_full", ["block", "drop", "credits"])
def test_what_is_kept_goes_with_queues_as_in_the_reference(strategy: str, when_full: str) -> None:
    agree(queues((strategy,), (when_full,)), FEW)


@pytest.mark.long
@KEEPING
def test_what_is_kept_goes_with_many_queues_as_in_the_reference(strategy: str) -> None:
    agree(queues((strategy,), ("block", "drop", "credits")), SHARED)


def test_full_queues_where_failures_overlap_are_as_in_the_reference() -> None:
    agree(queues(NONE, overlap=True), QUICK)


@pytest.mark.long
@KINDS
def test_many_queues_with_bounds_are_as_in_the_reference(when_full: tuple[str, ...]) -> None:
    agree(queues(NONE, when_full), SHARED)


@pytest.mark.long
def test_many_queues_of_one_sender_are_as_in_the_reference() -> None:
    agree(series(NONE), SHARED)


@pytest.mark.long
def test_many_full_queues_where_failures_overlap_are_as_in_the_reference() -> None:
    agree(queues(NONE, overlap=True), LONG)


def test_a_credit_counts_ahead_of_what_leaves_at_that_instant() -> None:
    """p is done with a root every 2 ms; q begins with it 1 ms later, and after another one p knows that the
    place is free: just when it is done with the next root. So it never waits.
    """
    topology: dict[str, Any] = {
        "s": spout(**ONES, gap=2),  # type: ignore[arg-type]
        "p": bolt("forward", {"s": "shuffle"}, 2),
        "q": queued(bolt("forward", {"p": "shuffle"}, 1), 1, "credits"),
    }
    links = Links(latency=ms(1), local=ms(1), pairs={})
    run = simulate(world(topology, "none", until=100, links=links))
    blocked = {row["task"]: row["blocked_s"] for row in run.tasks}
    assert blocked["p.0"] == 0


def test_a_queue_that_drops_counts_what_waits_and_not_what_begins_at_once() -> None:
    """Two words come at one instant to a server that is free: the first begins, and the second waits."""
    topology: dict[str, Any] = {
        "s": spout("sentences", gap=50),
        "p": bolt("split_words", {"s": "shuffle"}, 1),
        "q": queued(bolt("forward", {"p": "shuffle"}, 2), 1, "drop"),
    }
    trace = simulate(world(topology, "none", until=99), trace=True).trace
    assert trace is not None
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
    found = simulate(scenario, trace=True).trace
    assert found is not None
    served = [(row[5] / MS, row[6] / MS) for row in found.processed if row[0] == "q"]
    assert served == [*((came, came + n) for came in (30, 60, 90) for n in (1, 2)), (120, 121)]
    assert [row[4] / MS for row in found.overflowed] == [120]
    assert not differences(scenario)


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
    assert not differences(scenario)
