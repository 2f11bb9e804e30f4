"""Queues with bounds on the compiled data plane, against the per-tuple reference: equal to the nanosecond."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.test_exactness import FEW, LONG, QUICK, SHARED, agree
from tests.oracle.random_queues import queues, series
from tests.oracle.test_oracle import ONES
from tests.oracle.worlds import bolt, ms, queued, spout, world
from tideover.models.job.components import Links
from tideover.models.simulation import simulate

NONE = ("none",)
KINDS = pytest.mark.parametrize(
    "when_full", [("block",), ("credits",), ("drop",), ("block", "drop", "credits")]
)


@KINDS
def test_queues_with_bounds_are_as_in_the_reference(when_full: tuple[str, ...]) -> None:
    agree(queues(NONE, when_full), QUICK)


@pytest.mark.parametrize("strategy", ["upstream_backup", "hybrid", "rsm"])
@pytest.mark.parametrize("when_full", ["block", "drop", "credits"])
def test_what_is_kept_goes_with_queues_as_in_the_reference(strategy: str, when_full: str) -> None:
    agree(queues((strategy,), (when_full,)), FEW)


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["upstream_backup", "hybrid", "rsm"])
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
