"""The state of a task, copied, written to the store, read back and given back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES
from tests.oracle.worlds import MS, bolt, spout, world
from tideover.models.job.components import Store
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.saved_state import SavedState, read, save
from tideover.models.world import World
from tideover.sim.kernel import Rank


def counting(**window: Any) -> tuple[World, BoltTask]:
    """s ──▶ count (1), which has counted root n at 10n + 11. The store takes 2, and 1 for a byte."""
    topology = {"s": spout(**ONES), "count": bolt("windowed_count", {"s": "shuffle"}, 1, window=window)}
    running = World(world(topology, store=Store(latency=2 * MS, bandwidth=1000)))
    running.start()
    return running, running.job.bolts["count", 0][0]


def test_a_copy_stays_as_it_was_and_can_be_given_back() -> None:
    """At 35 roots 0, 1, 2 are counted, at 75 seven. The state of 35 still holds three then; given back it is
    the task's, and what the task counts afterwards does not reach it. At the beginning nothing is counted.
    """
    running, task = counting(length=1000 * MS)
    running.kernel.run(35 * MS)
    early = SavedState.of(task)
    running.kernel.run(75 * MS)
    assert task.state is not None
    assert (task.state.size, len(early.effects()), early.entries) == (7, 3, 1)
    assert early.state is not None
    task.state = early.state.copy()
    running.kernel.run(95 * MS)
    assert (task.state.size, len(early.effects())) == (5, 3)
    first = SavedState.at_the_beginning(task)
    assert (first.entries, first.windows, set(first.epochs.values())) == (0, 0, {0})


@pytest.mark.parametrize(
    ("window", "ended"),
    [({"tuples": 2}, 3), ({"length": 25 * MS, "trigger": "marker"}, 2)],
)
def test_the_newest_window_that_has_ended(window: dict[str, Any], ended: int) -> None:
    """At 74, seven roots: three windows of two tuples have ended; of windows of 25, those of 25 and 50."""
    running, task = counting(**window)
    running.kernel.run(74 * MS)
    assert task.windows.newest == SavedState.of(task).newest == ended


@pytest.mark.parametrize("wanted", [True, False])
def test_writing_and_reading_take_their_time(wanted: bool) -> None:
    """Asked at 35: copied at 35 + 8, which keeps the task (root 3, come at 40, is counted at 44), written at
    43 + 2 + 4, and safe 5 later, at 54; but if it is not wanted any more at 43, it is not written. Asked at
    60: read at 60 + 2 + 4, and restored 7 later, at 73.
    """
    running, task = counting(length=1000 * MS)
    kernel, moments = running.kernel, list[int]()

    def note() -> None:
        moments.append(kernel.now // MS)

    kernel.at(
        35 * MS, Rank.CHECKPOINT, lambda: save(running.job, task, 8 * MS, 4, lambda: wanted, note, 5 * MS)
    )
    kernel.at(60 * MS, Rank.RESTORE, lambda: read(running.job, task, 4, 7 * MS, note))
    assert task.state is not None
    kernel.run(44 * MS - 1)
    assert task.state.size == 3
    kernel.run(44 * MS)
    assert task.state.size == 4
    kernel.run(100 * MS)
    assert moments == ([54, 73] if wanted else [73])
    assert running.job.store.bytes == (8 if wanted else 4)
