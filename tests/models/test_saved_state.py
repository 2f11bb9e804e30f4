"""Saved state: copied, written to a store, read back, given back; and what a bolt's `state` adds to it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.job.components import Store
from tideover.models.job.stores import RocksDB
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.saved_state import SavedState, read, save
from tideover.models.simulation import Replication, simulate
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
    assert (task.state.size, len(early.effects()), early.entries) == (7, 3, 1)
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
    kernel.run(44 * MS - 1)
    assert task.state.size == 3
    kernel.run(44 * MS)
    assert task.state.size == 4
    kernel.run(100 * MS)
    assert moments == ([54, 73] if wanted else [73])
    assert running.job.store.bytes == (8 if wanted else 4)


# -- by hand: a million entries of 100 bytes, and a store that takes 10 ms and 100 MB/s ----------------------

WHOLE = 100_000_000


def job(strategy: str, incremental: bool, failures: tuple[Any, ...] = (), interval: int = 4000) -> Scenario:
    """s ──▶ count: a root every 10 ms from 0 on, counted at once, of which each changes 1000 entries; saved
    every ``interval`` ms. Entries of the count's own take no bytes.
    """
    state = RocksDB(entries=10**6, entry_size=100, accesses=1000, access_cost=0, incremental=incremental)
    counts = bolt("windowed_count", {"s": "shuffle"}, window={"length": 1000_000 * MS})
    topology = {"s": spout(**ONES), "count": counts.model_copy(update={"state": state})}
    saving: Any = {"checkpoint_interval": interval * MS, "entry_size": 0}
    store = Store(latency=10 * MS, bandwidth=WHOLE)
    return world(topology, strategy, failures, 19_500, store=store, **saving)


def done(scenario: Scenario) -> Replication:
    return simulate(scenario, trace=True)


def moments(run: Replication, word: str) -> list[float]:
    """When (ms) this step was taken."""
    return [step.at / MS for step in run.trace.steps if step.what == word]


CRASH = fault("crash_task", 9900, component="count", detection=50, restart=50)
WORDS = {"rsm": "checkpoint saved", "aligned_snapshots": "snapshot complete"}
"""Those that write to a store, and the step with which it is there."""


@pytest.mark.parametrize("strategy", WORDS)
@pytest.mark.parametrize(("incremental", "takes"), [(False, 1000), (True, 329.68)])
def test_an_incremental_snapshot_writes_what_has_changed(
    strategy: str, incremental: bool, takes: float
) -> None:
    """A full one has all each time: 1 s for 100 MB, and 10 ms; so has the first. Then 400 roots between two:
    400,000 accesses leave (1 - 1e-6)^400,000 = e^-0.4000002 = 0.6703199 of a million entries untouched, so
    329,680 are written: 32,968,000 bytes in 329.68 ms, and 10 ms.
    """
    run = done(job(strategy, incremental))
    assert moments(run, WORDS[strategy]) == [
        5010,
        *(round(at + 10 + takes, 2) for at in (8000, 12000, 16000)),
    ]
    assert run.cost["store_bytes"] == round(WHOLE * (1 + 3 * takes / 1000))


@pytest.mark.parametrize("strategy", WORDS)
@pytest.mark.parametrize("incremental", [True, False])
def test_a_restore_reads_all_entries(strategy: str, incremental: bool) -> None:
    """Ready at 10000, when nothing is being written: 1 s and 10 ms to read 100 MB."""
    run = done(job(strategy, incremental, (CRASH,)))
    assert moments(run, "state restored") == [11010]


@pytest.mark.parametrize("incremental", [True, False])
def test_a_bolt_that_counts_nothing_is_saved_with_its_state(incremental: bool) -> None:
    """s ──▶ p, under snapshots: as above. The job runs again at 11010; from then until the next snapshot, at
    15010, the roots of 8010 … 15010 are worked on: 701,000 accesses leave e^-0.7010004 = 0.4960889 untouched.
    """
    scenario = job("aligned_snapshots", incremental, (CRASH,))
    state = scenario.topology["count"].state  # type: ignore[union-attr]
    forward = bolt("forward", {"s": "shuffle"}).model_copy(update={"state": state})
    run = done(scenario.model_copy(update={"topology": {"s": spout(**ONES), "count": forward}}))
    assert moments(run, "runs again") == [11010]
    first = next(time for time in moments(run, "snapshot complete") if time > 11010)
    assert first == 15020 + (503.911 if incremental else 1000)


@pytest.mark.parametrize(
    ("strategy", "said"), [("rsm", "a checkpoint of 1000001 entries"), ("aligned_snapshots", "a snapshot")]
)
def test_who_saves_more_often_than_the_store_can_is_told(strategy: str, said: str) -> None:
    """1 s for the bytes and 10 ms, every second."""
    text = f"checkpoint_interval 1 s: {said} takes up to 1.01 s, longer than the interval"
    too_often, in_time = (warnings(job(strategy, True, (CRASH,), interval)) for interval in (1000, 1020))
    assert any(found.startswith(text) for found in too_often)
    assert not any("longer than the interval" in found for found in in_time)
