"""Local recovery: who restarts where it was reads its own disk, and all others the store. Times in
milliseconds, unless a name says otherwise.

s ──▶ count: a root every 10, counted at once; a `state` of 100 MB, saved every 4000. The store takes 10 and
100 MB/s: 1010 for all of it; a disk 10 and 400 MB/s: 260.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES
from tests.models.loaded import log_and_job
from tests.oracle.worlds import MS, bolt, fault, ms, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.detectors.base import DETECTORS
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType, Store
from tideover.models.job.stores import Disk, RocksDB
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.aligned_snapshots import AlignedSnapshots
from tideover.scenarios.errors import ScenarioError

WHOLE = 100_000_000
STATE = RocksDB(entries=10**6, entry_size=100, accesses=0, access_cost=0)


def job(*failures: Any, local: str | None = "ssd", bandwidth: int = 4 * WHOLE, **more: Any) -> Scenario:
    """s ──▶ count."""
    counts = bolt("windowed_count", {"s": "shuffle"}, window={"length": 1000_000 * MS}, hosts=(0,))
    topology = {"s": spout(**ONES, hosts=(1,)), "count": counts.model_copy(update={"state": STATE})}
    store = Store(latency=10 * MS, bandwidth=WHOLE)
    given: dict[str, Any] = {"checkpoint_interval": 4000 * MS, "entry_size": 0, "hosts": 3}
    scenario = world(topology, "aligned_snapshots", failures, 19_500, store=store, **given | more)
    strategy = scenario.strategy.model_copy(update={"local_recovery": local})
    disk = Disk(latency=10 * MS, bandwidth=bandwidth)
    return scenario.model_copy(update={"strategy": strategy, "stores": {"ssd": disk}})


def crash(at: float, **more: Any) -> Any:
    return fault("crash_task", at, component="count", detection=50, restart=50, **more)


def moments(run: Replication, word: str) -> list[float]:
    """When that was done."""
    return [step.at / MS for step in run.trace.steps if step.what == word]


def test_state_is_written_twice_and_the_snapshot_does_not_wait_for_the_copy() -> None:
    """The disk has it after 260, the store after 1010; or, if the disk is the slower one, later, and the
    snapshot is complete as it would be.
    """
    run = simulate(job(), trace=True)
    assert moments(run, "local copy written") == [4260, 8260, 12260, 16260]
    assert moments(run, "snapshot complete") == [5010, 9010, 13010, 17010]
    assert run.cost["store_bytes"] == 8 * WHOLE
    slow = simulate(job(bandwidth=WHOLE // 2), trace=True)
    assert moments(slow, "snapshot complete") == [5010, 9010, 13010, 17010]
    assert moments(slow, "local copy written") == [6010, 10010, 14010, 18010]


SLOW = {"bandwidth": WHOLE // 2}
AT = {"detection": 50, "restart": 50}


def breaks(at: float, host: int, **more: Any) -> Any:
    return fault("crash_host", at, host=host, **AT, **more)


@pytest.mark.parametrize(
    ("failures", "more", "back"),
    [
        # ready at 10000, when nothing is being written: 260 from the disk, 1010 from the store
        ([crash(9900)], {}, 10_260),
        ([crash(9900)], {"local": None}, 11_010),
        # The disk takes 2010, until 10010. A crash at 10010 comes before that, one at 10011 behind it; both
        # find the snapshot complete, since 9010. Ready 100 later: 1010 from the store, 2010 from the disk.
        ([crash(10_010)], SLOW, 10_110 + 1010),
        ([crash(10_011)], SLOW, 10_111 + 2010),
        # A crash at 8500 finds the copy of 8260 on the disk, but its snapshot is not complete before 9010:
        # the job goes back to that of 4000, of which the disk has a copy, too. The store is busy with what it
        # has been asked to write, and nobody waits for it.
        ([crash(8500)], {}, 8860),
        ([crash(8500)], {"local": None}, 9010 + 1010),
        # a host that is repaired has lost its disk; one that is up again at once has not
        ([breaks(9900, 0)], {}, 10_260),
        ([breaks(9900, 0, repair=100 * MS)], {}, 11_010),
        # nor one of another task; one whose disk is new has fetched no copy since
        ([breaks(9800, 2, repair=100 * MS), crash(9900)], {}, 10_260),
        ([breaks(9800, 0, repair=100 * MS), crash(9900)], {}, 11_010),
    ],
)
def test_who_restarts_where_it_was_reads_its_disk(
    failures: list[Any], more: dict[str, Any], back: float
) -> None:
    """If it has what the job goes back to; the moment when the job has gone on."""
    assert moments(simulate(job(*failures, **more), trace=True), "runs again") == [back]


def test_a_task_that_goes_elsewhere_reads_the_store() -> None:
    """Its host crashes, or its process: under heartbeats that is noticed at the same moment. In a free slot
    of another host it takes 750 more than where it was. Its old disk is whole, but not there.
    """
    machines = Hosts(machines={"a": MachineType(count=3, cores=1)})
    detector = DETECTORS["heartbeats"](
        interval=100 * MS, timeout=500 * MS, launch=ms(0), prepare=ms(0), restart_on="free_slot"
    )
    crashed = fault("crash_host", 9600, host=0)

    def back(hit: Any, local: str | None = "ssd") -> float:
        scenario = job(hit, hosts=machines, local=local).model_copy(update={"detector": detector})
        (moment,) = moments(simulate(scenario, trace=True), "runs again")
        return moment

    same = back(fault("crash_task", 9600, component="count"))
    assert back(crashed) == back(crashed, local=None) == same + 750


def test_messages_of_a_snapshot_come_from_the_store() -> None:
    """s ──▶ p ──▶ count (400): with unaligned barriers there is always something in the queue of the count,
    and in the line of p, which is part of their snapshot. The state comes from the disk, in 260; the messages
    (of 256 bytes) from the store, at the same time, in 10 for each of the two tasks and 2.56 us for each.
    """
    scenario = job(crash(9900), unaligned=True)
    topology = dict(scenario.topology)
    topology["p"] = bolt("forward", {"s": "shuffle"}, hosts=(0,))
    counts = bolt("windowed_count", {"p": "shuffle"}, 400, window={"length": 1000_000 * MS}, hosts=(0,))
    topology["count"] = queued(counts.model_copy(update={"state": STATE}), 5, "block", 2)
    links = Links(latency=ms(0), local=ms(0))
    changed = scenario.model_copy(update={"topology": topology, "links": links})
    run = simulate(changed, trace=True)
    assert moments(run, "runs again") == [10_260]
    quick = changed.model_copy(update={"stores": {"ssd": Disk(latency=0, bandwidth=2**50)}})
    (soon,) = moments(simulate(quick, trace=True), "runs again")
    assert soon == pytest.approx(10_020, abs=0.1)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("ssd", None),
        ("hdfs", "'hdfs' is of kind dfs; it has to be on each host"),
        ("nvme", "no store 'nvme'"),
    ],
)
def test_a_store_that_is_no_disk_is_refused(name: str, wrong: str | None) -> None:
    strategy = {"kind": "aligned_snapshots", "checkpoint_interval": "1 s", "local_recovery": name}
    stores = {"hdfs": {"kind": "dfs"}, "ssd": "disk"}
    given: Any = ({"rate": "10/s"}, {"service": "1 ms"}, (), strategy, (), {"stores": stores})
    if wrong is None:
        assert log_and_job(*given, duration="10 s").strategy.named_stores() == {("local_recovery",): "ssd"}
        return
    with pytest.raises(ScenarioError, match=wrong):
        log_and_job(*given, duration="10 s")


def test_a_disk_that_is_the_store_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="is the store itself"):
        AlignedSnapshots(checkpoint_interval=4000 * MS, store="ssd", local_recovery="ssd")
