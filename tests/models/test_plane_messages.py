"""Messages of the compiled data plane: each that was ever used is free, or in one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given

from tests.models.test_exactness import FEW, QUICK, TRIED
from tests.oracle.random_together import together
from tests.oracle.random_worlds import overlapping
from tideover.models.config import Scenario
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World

COMPILED = [name for name in TRIED if "compiled" in vars(STRATEGIES[name])]


def lists_of(p: Any) -> Iterator[Any]:
    """All lists of messages in a data plane."""
    for task in (p.tasks[number] for number in range(p.n_tasks)):
        yield from (task.queue, task.held, task.aside, task.read, task.line.messages, task.replay.messages)
    for channel in (p.channels[number] for number in range(p.n_channels)):
        yield from (channel.wire, channel.returning)
        yield from (way for w in [channel.passage] if w for way in (w.leaving, w.flying))
        yield from (buffer.kept for buffer in [channel.buffer] if buffer)
        yield from (of.withheld for of in [channel.transactions] if of)


def chain(p: Any, first: int, most: int) -> list[int]:
    """Messages from this one on, as far as there are some, and no more than ``most``."""
    found: list[int] = []
    while first >= 0 and len(found) < most:
        found.append(first)
        first = p.messages[first].next
    return found


def settled(scenario: Scenario) -> None:
    """The law, after a run."""
    world = World(scenario)
    assume(world.job.plane is not None)
    world.run()
    assert world.job.plane is not None
    p = world.job.plane.p
    free = chain(p, p.freed, p.used + 1)
    placed = [m for each in lists_of(p) for m in chain(p, each.head, each.n)]
    placed += [p.tasks[number].serving for number in range(p.n_tasks) if p.tasks[number].serving >= 0]
    assert sorted([*free, *placed]) == list(range(p.used))
    assert p.in_use == len(placed)


@pytest.mark.parametrize("strategy", COMPILED)
def test_no_message_is_lost_or_in_two_places(strategy: str) -> None:
    FEW(given(overlapping((strategy,)))(settled))()


def test_no_message_is_lost_where_queues_are_full() -> None:
    QUICK(given(together(("none", "source_replay", "active_replication")))(settled))()
