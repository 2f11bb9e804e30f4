"""Stores: who waits for whom, and what they lose."""

from __future__ import annotations

from typing import Any

import pytest

from tests.no_data import kernel_without_data
from tests.oracle.worlds import bolt, fault, spout, world
from tideover.models.job.stores import STORES, StoreKind
from tideover.models.runtime.job import Storage
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.sim.kernel import Rank

S = 1_000_000_000


def played(kind: StoreKind, hosts: int, requests: list[tuple[int, int, int, bool]]) -> list[int]:
    """When each request (moment in ms, host, KiB, whether it writes) was done, in ms."""
    kernel = kernel_without_data()
    storage = Storage.of(kind, "store", kernel, hosts)
    done: dict[int, int] = {}

    def ask(i: int, host: int, size: int, write: bool) -> None:
        act: Any = storage.write if write else storage.read
        act(host, size * 1024, Rank.TRIM, lambda: done.setdefault(i, kernel.now), operations=2)

    for i, (moment, host, size, write) in enumerate(requests):
        kernel.at(moment * 10**6, Rank.CHECKPOINT, lambda i=i, h=host, s=size, w=write: ask(i, h, s, w))
    kernel.run(100 * S)
    return [done[i] // 10**6 for i in range(len(requests))]


def test_redis_has_one_thread_and_a_wire() -> None:
    """2 operations at 1,000/s: 2 ms; 10 KiB at 1,000 KiB/s: 10 ms; and 5 ms on the way, during which the
    thread serves others: the second, asked at 1 ms, is served from 12 to 24 ms.
    """
    redis = STORES["redis"].model_validate({"latency": 5 * 10**6, "bandwidth": 1_024_000, "operations": 1e3})
    assert played(redis, 4, [(0, 0, 10, True), (1, 3, 10, False), (50, 1, 0, True)]) == [17, 29, 57]


def test_each_host_has_its_disk() -> None:
    """Latency 5 ms and 10 ms of bytes, one after the other on host 0; that of host 1 is free."""
    disk = STORES["disk"].model_validate({"latency": 5 * 10**6, "bandwidth": 1_024_000})
    assert played(disk, 2, [(0, 0, 10, True), (1, 0, 10, False), (1, 1, 10, True)]) == [15, 30, 16]


def test_a_file_lies_on_several_hosts() -> None:
    """The write of host 2 goes to hosts 2 and 0, 15 ms each; there the one of host 0, to 0 and 1, waits. The
    read of host 1 comes behind it, and has the disk from 30 to 45 ms; that of host 2 from 15 to 30.
    """
    dfs = STORES["dfs"].model_validate({"latency": 5 * 10**6, "bandwidth": 1_024_000, "replication": 2})
    asked = [(0, 2, 10, True), (0, 0, 10, True), (1, 1, 10, False), (1, 2, 10, False)]
    assert played(dfs, 3, asked) == [15, 30, 30, 30]


def test_more_copies_than_hosts_are_one_on_each() -> None:
    dfs = STORES["dfs"].model_validate({"latency": 0, "bandwidth": 1_024_000, "replication": 3})
    assert played(dfs, 2, [(0, 1, 10, True), (0, 0, 10, False)]) == [10, 20]


@pytest.mark.parametrize(("kind", "more"), [("slow_store", {"factor": 3.0}), ("store_down", {})])
def test_a_failing_store_keeps_checkpoints_waiting(kind: str, more: dict[str, Any]) -> None:
    """A count saves its state, 10 ms of latency, from 20 on. The fault holds from 15 to 25 ms: slow, it
    takes 30 ms for the write, until 50; down, it begins with it at 25.
    """
    topology = {
        "s": spout("values", values=(1,) * 12),
        "count": bolt("windowed_count", {"s": "shuffle"}, window={"length": 10_000 * 10**6}),
    }
    failing = fault(kind, 15, duration=10 * 10**6, **more)
    found = world(topology, "rsm", (failing,), 95, checkpoint_interval=20 * 10**6)
    slow = found.model_copy(update={"store": found.store.model_copy(update={"latency": 10 * 10**6})})
    run = simulate(slow, trace=True)
    saved = [step.at // 10**6 for step in run.trace.steps if step.what == "checkpoint saved"]
    assert saved[0] == {"slow_store": 50, "store_down": 35}[kind]
    assert run.ledger["lost"] == 0


def test_an_unknown_store_is_refused() -> None:
    failing = "failures=[{kind: store_down, at: 5 s, duration: 1 s, store: redis}]"
    with pytest.raises(
        ScenarioError, match=r"failures\.0\.store: there is no store 'redis' in stores; known: memory"
    ):
        load("wordcount", ["stores={memory: redis}", failing])


def lossy(strategy: dict[str, Any], *failures: dict[str, Any]) -> Any:
    """s ──▶ count, whose window outlasts the run: tuples at 0.15 s, 0.25 s, …, checkpoints every 3 s, 179
    tuples in the one of 18 s.
    """
    arrivals = {"kind": "constant", "rate": "10/s", "offset": "50 ms"}
    count = {"bolt": "windowed_count", "from": {"s": "shuffle"}, "service": "1 ms", "window": "100 s"}
    scenario: dict[str, Any] = {
        "topology": {"s": {"spout": "keys", "keys": 1, "arrivals": arrivals}, "count": count},
        "strategy": {"checkpoint_interval": "3 s"} | strategy,
        "failures": [*failures],
        "run": {"duration": "60 s"},
    }
    return simulate(load(scenario))


EMPTY = {"kind": "lose_store", "at": "20 s"}
CRASH = {"kind": "crash_task", "component": "count", "restart": "100 ms"}
WITH_CHECKPOINTS = [
    {"kind": "rsm", "spout_buffer": True},
    {"kind": "aligned_snapshots"},
    {"kind": "storm_checkpoint"},
]


@pytest.mark.parametrize("strategy", WITH_CHECKPOINTS, ids=lambda one: one["kind"])
@pytest.mark.parametrize(("crash", "lost"), [("20.5 s", 179), ("22.5 s", 0)])
def test_a_store_that_lost_all_takes_what_only_it_had(
    strategy: dict[str, Any], crash: str, lost: int
) -> None:
    """The store is empty at 20 s. A crash before the next checkpoint, of 21 s, loses what the last one had
    and no more; behind it nothing: it is whole.
    """
    ledger = lossy(strategy, EMPTY, CRASH | {"at": crash}).ledger
    assert ledger["lost"] == lost
    assert ledger["duplicated"] == 0


@pytest.mark.parametrize("strategy", WITH_CHECKPOINTS, ids=lambda one: one["kind"])
def test_live_state_needs_no_store(strategy: dict[str, Any]) -> None:
    """Nothing is restored, so nothing is missed; recoveries that end before do not change either."""
    assert lossy(strategy, EMPTY).ledger["lost"] == 0
    assert lossy(strategy, CRASH | {"at": "10 s"}, EMPTY).ledger["lost"] == 0


def test_who_is_reading_when_the_store_loses_all_has_nothing() -> None:
    """The store needs 2 s to answer; the crash is at 19.5 s, the loss at 20 s."""
    slow = {"kind": "slow_store", "at": "19 s", "duration": "10 s", "factor": 2000.0}
    for strategy in WITH_CHECKPOINTS[:2]:
        assert lossy(strategy, slow, CRASH | {"at": "19.5 s"}, EMPTY).ledger["lost"] == 179


def test_a_store_that_loses_changelogs_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"failures\.0\.kind: lose_store does not go with changelog"):
        load("wordcount", ["strategy.kind=changelog", "failures=[{kind: lose_store, at: 5 s}]"])
