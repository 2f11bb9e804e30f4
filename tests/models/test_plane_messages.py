"""Messages of the data plane: each that was ever used is free, or in one place; so is each chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from tests.models.test_exactness import FEW, QUICK, TRIED
from tests.oracle.random_together import together
from tests.oracle.random_worlds import overlapping
from tideover.models.config import Scenario
from tideover.models.world import World
from tideover.sim.plane.plane import Plane


def lists_of(p: Any) -> Iterator[Any]:
    """All lists of messages in a data plane."""
    for task in (p.tasks[number] for number in range(p.n_tasks)):
        yield from (task.queue, task.held, task.aside, task.line.messages)
    for channel in (p.channels[number] for number in range(p.n_channels)):
        yield from (channel.wire, channel.returning)
        yield from (way for w in [channel.passage] if w for way in (w.leaving, w.flying))
        yield from (of.withheld for of in [channel.transactions] if of)


def stores_of(p: Any) -> Iterator[Any]:
    """All rows that are kept in a data plane."""
    for task in (p.tasks[number] for number in range(p.n_tasks)):
        yield from (task.read, task.replay.rows)
    for channel in (p.channels[number] for number in range(p.n_channels)):
        yield from (buffer.kept for buffer in [channel.buffer] if buffer)


def chunks(plane: Plane, first: Any, most: int) -> list[int]:
    """Addresses of the chunks from this one on, no more than ``most``: each begins with that of the next."""
    found: list[int] = []
    while first != plane.ffi.NULL and len(found) < most:
        found.append(int(plane.ffi.cast("intptr_t", first)))
        first = plane.ffi.cast("chunk **", first)[0]
    return found


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
    world.run()
    plane, p = world.job.plane, world.job.plane.p
    free = chain(p, p.freed, p.used + 1)
    placed = [m for each in lists_of(p) for m in chain(p, each.head, each.n)]
    placed += [p.tasks[number].serving for number in range(p.n_tasks) if p.tasks[number].serving >= 0]
    assert sorted([*free, *placed]) == list(range(p.used))
    assert p.in_use == len(placed)
    used = plane.n_chunks - p.n_fresh
    firsts = [p.spare, *(each.first for each in stores_of(p))]
    assert len({each for first in firsts for each in chunks(plane, first, used + 1)}) == used
    assert sum(len(chunks(plane, first, used + 1)) for first in firsts) == used
    assert p.n_spare == p.n_fresh + len(chunks(plane, p.spare, used + 1))
    assert all(bool(each.n) == (each.first != plane.ffi.NULL) for each in stores_of(p))


@pytest.mark.parametrize("strategy", TRIED)
def test_no_message_is_lost_or_in_two_places(strategy: str) -> None:
    FEW(given(overlapping((strategy,)))(settled))()


def test_no_message_is_lost_where_queues_are_full() -> None:
    QUICK(given(together(("none", "source_replay", "active_replication")))(settled))()
