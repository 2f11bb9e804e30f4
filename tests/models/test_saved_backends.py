"""A bolt's `state` in what is saved: the engine against the per-tuple reference."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import ONES
from tests.models.test_exactness import LONG, QUICK, differences
from tests.oracle.random_queues import overtaken
from tests.oracle.random_states import saved
from tests.oracle.random_worlds import overlapping, worlds
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.job.components import Store
from tideover.models.job.stores import RocksDB
from tideover.models.simulation import Replication, simulate

STRATEGIES = ("rsm", "aligned_snapshots", "passive_standby")
AT_RANDOM = (*STRATEGIES, "changelog")
"""A changelog has another way to write: what tuples change, and all that is there from the start."""


@pytest.mark.parametrize("strategy", AT_RANDOM)
def test_the_engine_equals_the_reference(strategy: str) -> None:
    @settings(QUICK, max_examples=5)
    @given(saved(overlapping((strategy,))))
    def check(scenario: Scenario) -> None:
        assert not differences(scenario)

    check()


@settings(QUICK, max_examples=4)
@given(saved(overtaken()))
def test_with_barriers_that_overtake_it_equals_the_reference(scenario: Scenario) -> None:
    assert not differences(scenario)


@pytest.mark.long
@pytest.mark.parametrize("strategy", AT_RANDOM)
def test_the_engine_equals_the_reference_in_many_worlds(strategy: str) -> None:
    @LONG
    @given(saved(st.one_of(worlds((strategy,)), overlapping((strategy,)))))
    def check(scenario: Scenario) -> None:
        assert not differences(scenario)

    check()


@pytest.mark.long
@settings(LONG)
@given(saved(st.one_of(overtaken(), overtaken(overlap=True))))
def test_with_barriers_that_overtake_it_equals_the_reference_in_many_worlds(scenario: Scenario) -> None:
    assert not differences(scenario)


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
    assert run.trace is not None
    return [step.at / MS for step in run.trace.steps if step.what == word]


CRASH = fault("crash_task", 9900, component="count", detection=50, restart=50)
WORDS = {"rsm": "checkpoint saved", "aligned_snapshots": "snapshot complete"}
"""Those that write to a store, and the step with which it is there."""


@pytest.mark.parametrize("strategy", WORDS)
def test_a_full_snapshot_writes_all_entries_each_time(strategy: str) -> None:
    """1 s for 100 MB, and 10 ms: four snapshots."""
    run = done(job(strategy, incremental=False))
    assert moments(run, WORDS[strategy]) == [5010, 9010, 13010, 17010]
    assert run.cost["store_bytes"] == 4 * WHOLE


@pytest.mark.parametrize("strategy", WORDS)
def test_an_incremental_snapshot_writes_what_has_changed(strategy: str) -> None:
    """The first has all. Then 400 roots between two: 400,000 accesses leave (1 - 1e-6)^400,000 = e^-0.4000002
    = 0.6703199 of a million entries untouched, so 329,680 are written: 32,968,000 bytes in 329.68 ms, and
    10 ms.
    """
    run = done(job(strategy, incremental=True))
    assert moments(run, WORDS[strategy]) == [5010, 8339.68, 12339.68, 16339.68]
    assert run.cost["store_bytes"] == WHOLE + 3 * 32_968_000


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
