"""Changelogs, by hand. Times in ms.

    s ──▶ p (1) ──▶ count (1)

s emits root n at 10 n + 10; commits are due at 20, 40, 60, … A commit takes 5 where nothing else is said. At
20 k p is serving root 2 k - 1, so its turn comes at 20 k + 1, and p is kept until 20 k + 6; count serves
nothing then, and is kept from 20 k to 20 k + 5.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES, counted, crashed, lost
from tests.models.test_exactness import checked
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.advice import warnings
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.stores import RocksDB
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.changelog import ChangelogTopics
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load

ONCE = {"guarantee": "exactly_once", "transaction_timeout": 0}
UNDISTURBED = [(0, 12), (1, 26), (2, 32), (3, 46), (4, 52)]
"""(root, counted at), at least once."""
IN_TIME = [(0, 27), (1, 28), (2, 47), (3, 48)]
"""The same exactly once, as far as p's commits of 21 and 41 go."""


def run(*failures: Any, until: float = 79, state: RocksDB | None = None, **more: Any) -> Replication:
    topology: dict[str, SpoutConfig | BoltConfig] = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "count": bolt("windowed_count", {"p": "shuffle"}, 1, window={"length": 1000 * MS}),
    }
    topology["count"] = topology["count"].model_copy(update={"state": state})
    for name in ("commit_time", "batch_interval", "restore_time", "restore_cost"):
        if name in more:
            more[name] = round(more[name] * MS)
    more = {"commit_interval": 20 * MS, "commit_time": 5 * MS, "entry_size": 0} | more
    found = simulate(world(topology, "changelog", failures, until, **more), trace=True)
    ledger = found.ledger
    assert ledger["emitted"] == ledger["completed"] + ledger["in_flight"]
    return found


def open_for(time: float) -> dict[str, Any]:
    """Exactly once: the broker aborts transactions as soon as they are so old."""
    return ONCE | {"transaction_timeout": round(time * MS), "abort_interval": 1}


def total(found: Replication) -> int:
    """What is in the count's state at the end."""
    return sum(found.trace.final_state["count", 0, 0].values())


def steps(found: Replication, task: str) -> list[tuple[str, float]]:
    return [(step.what, step.at / MS) for step in found.trace.steps if step.who == task]


def test_a_commit_comes_between_two_tuples_and_keeps_the_task() -> None:
    """Count is kept from 20 to 25 and from 40 to 45, so that roots 1 and 3, which come at 21 and 41, are done
    at 26 and 46. The changes are written at once, the offsets 5 later.
    """
    found = run(until=55)
    assert counted(found) == UNDISTURBED
    assert steps(found, "count.0") == [
        *(("commit begins", 20), ("changes written", 20), ("offsets committed", 25)),
        *(("commit begins", 40), ("changes written", 40), ("offsets committed", 45)),
    ]
    of_p = [(21, 26), (41, 46)]
    written = [(("commit begins", begun), ("offsets committed", held)) for begun, held in of_p]
    assert steps(found, "p.0") == [*written[0], *written[1]]


def test_what_was_written_after_the_committed_offsets_counts_twice() -> None:
    """Count crashes at 63, amid its third commit, and is ready at 73: the changelog has the state of 60, with
    roots 0 to 4, the offsets are those of 40, behind root 2. It reads 3, 4 and 5 (which it had not done)
    again, and then 6, which came at 71: two roots have their effect twice.
    """
    found = run(crashed(63, 10))
    assert counted(found) == [*UNDISTURBED, (3, 74), (4, 75), (5, 76), (6, 77)]
    assert found.ledger["duplicated"] == 2
    assert total(found) == 7 + 2
    (row,) = found.recoveries
    assert (row["restored"], row["replayed"], row["extra"]) == (5, 3, 2)


def test_a_task_without_state_sends_its_outputs_again() -> None:
    """P crashes at 63, amid the commit that began at 61; its offsets are those of 41, behind root 3. Ready at
    73 it sends 4, 5 and 6 by 76, and count has 4 and 5 twice. No other task is touched.
    """
    found = run(crashed(63, 10, "p"))
    assert counted(found) == [*UNDISTURBED, (5, 66), (4, 75), (5, 76), (6, 77)]
    assert found.ledger["duplicated"] == 2


def test_exactly_once_readers_wait_for_the_commit() -> None:
    """P's commits are made at 26, 46 and 66: what it has sent since the last one reaches count then."""
    found = run(**ONCE)
    assert counted(found) == [(0, 27), (1, 28), (2, 47), (3, 48), (4, 67), (5, 68)]


def test_exactly_once_an_open_transaction_is_aborted() -> None:
    """P crashes at 63: what it has sent since the turn of its last commit, at 41, is void: 4 and 5. Ready at
    73 it sends them again, and 6 and 7 behind them, and the commit of 81 covers them at 86.
    """
    found = run(crashed(63, 10, "p"), until=95, **ONCE)
    assert counted(found) == [(0, 27), (1, 28), (2, 47), (3, 48), (4, 87), (5, 88), (6, 89), (7, 90)]
    assert found.ledger["duplicated"] == 0
    assert [(row[0], row[4] / MS) for row in found.trace.destroyed] == [("count", 63), ("count", 63)]


def test_what_a_dead_task_has_left_open_holds_up_its_readers() -> None:
    """P crashes at 58, with root 4 sent. The broker aborts what is open for 60, since the turn of 41: at 101.
    Ready at 73 it sends 4 again, and 5, 6 and 7 behind it; what it commits at 86 is there at 101, 4 to 7;
    count is kept until 105. The commit of 101 holds up nobody: 8 and 9 come at 106.
    """
    found = run(crashed(58, 15, "p"), until=112, **open_for(60))
    assert counted(found) == [*IN_TIME, *((root, 102 + root) for root in range(4, 10))]
    assert found.ledger["duplicated"] == 0


def test_who_dies_amid_its_commit_waits_for_the_broker() -> None:
    """P crashes at 63, amid the commit of 61: nobody may read offsets before the broker aborts it, at 101.
    Then it sends 4 to 9, and 10 and 11 as they come, and the commit of 121 covers all of them at 126.
    """
    found = run(crashed(63, 10, "p"), until=135, **open_for(60))
    assert counted(found) == [*IN_TIME, *((root, 123 + root) for root in range(4, 12))]
    assert found.ledger["duplicated"] == 0


@pytest.mark.parametrize(
    ("more", "back"), [({}, 105), ({"standby_replicas": 1}, 105), ({"local_state": True}, 77)]
)
def test_a_restore_waits_for_what_was_left_open(more: dict[str, Any], back: float) -> None:
    """Count crashes at 63, with 2 and 3 in the transaction since the turn of 40, which the broker aborts at
    105. Ready at 73 it needs 4 for the one entry of its changelog, but cannot read to its end before 105; no
    standby can. A process that is back with its directory aborts the transaction by itself, at 73; what is in
    the directory is not committed, so that the entry is read: 77.
    """
    found = run(crashed(63, 10), until=112, restore_cost=4, **open_for(65), **more)
    assert counted(found)[4:6] == [(2, back + 1), (3, back + 2)]
    assert found.ledger["duplicated"] == 0


@pytest.mark.parametrize(("there", "back"), [(True, 76), (False, 79)])
def test_exactly_once_a_planned_stop_leaves_a_directory_that_can_be_used(there: bool, back: float) -> None:
    """Count has committed at 65, p at 66, and both are down until 76. What is not on the disk takes 3."""
    stop = fault("planned_restart", 63, down=ms(10))
    found = run(stop, until=82, restore_cost=3, local_state=there, **ONCE)
    assert counted(found)[4] == (4, back + 1)


@pytest.mark.parametrize(("at", "lasts", "back"), [(68, 8, 76), (77, 10, 90)])
def test_a_crash_leaves_a_directory_as_it_is_if_nobody_works_there(at: int, lasts: int, back: int) -> None:
    """As above, but count crashes as well: at 68 it is down, and so is back at 76 with all that it has left;
    at 77 it works, and reads the changelog, of an entry, from 87 on.
    """
    stop, crash = fault("planned_restart", 63, down=ms(10)), crashed(at, lasts)
    found = run(stop, crash, until=95, restore_cost=3, local_state=True, **ONCE)
    restored = [s.at / MS for s in found.trace.steps if (s.who, s.what) == ("count.0", "log read again")]
    assert restored[-1] == back


@pytest.mark.parametrize(
    ("failure", "more", "since_root_4", "twice"),
    [
        # The same without the 5: at 60 changes and offsets hold, behind root 4; root 5, done at 62, is read
        # again.
        (crashed(63, 10), {"commit_time": 0}, [(4, 52), (5, 62), (5, 74), (6, 75)], 0),
        # A batch every 8: at 56 the changelog gets root 4, done at 52, and at 60 a commit holds. At 64 root
        # 5, done at 62, is written, and the crash at 65 finds the offsets of 60: it is read again.
        (crashed(65, 8), {"commit_time": 0, "batch_interval": 8}, [(4, 52), (5, 62), (5, 74), (6, 75)], 1),
        # Exactly once, count goes back to the commit of 40 (it was kept until 45), with 0 and 1; 2 and 3 are
        # read again at 73, and 4 and 5, of which it heard at 66.
        (crashed(63, 10), ONCE, [(2, 74), (3, 75), (4, 76), (5, 77)], 0),
    ],
    ids=["commits at once", "batches between commits", "exactly once"],
)
def test_what_comes_again(
    failure: Any, more: dict[str, Any], since_root_4: list[tuple[int, float]], twice: int
) -> None:
    found = run(failure, **more)
    assert counted(found)[4:] == since_root_4
    assert found.ledger["duplicated"] == twice
    assert total(found) == len({root for root, _ in counted(found)}) + twice


@pytest.mark.parametrize(
    ("more", "back"), [({}, 66), ({"standby_replicas": 1}, 64), ({"local_state": True}, 62)]
)
def test_a_copy_spares_the_restore(more: dict[str, Any], back: float) -> None:
    """An entry takes 4 to restore, and each commit, which takes no time, writes one. Count crashes at 61,
    with root 5 in service, and is ready at 62. The changelog has one entry: 66. A standby works on the batch
    of 60 until 64. The disk has all of it: 62.
    """
    found = run(crashed(61, 1), until=69, commit_time=0, restore_cost=4, **more)
    assert counted(found)[5:] == [(5, back + 1)]
    assert total(found) == 6


@pytest.mark.parametrize(("segment_size", "entries"), [(0, 1), (30, 1), (20, 2), (31, 3)])
def test_a_restore_reads_the_newest_segment_as_it_was_written(segment_size: int, entries: int) -> None:
    """The same without a copy, and each commit, at 20, 40 and 60, writes the one entry of 10 B once more. A
    segment that is full is compacted, and the next one begins.
    """
    more = {"commit_time": 0, "restore_cost": 4, "entry_size": 10, "segment_size": segment_size}
    found = run(crashed(61, 1), until=79, **more)
    assert counted(found)[5] == (5, pytest.approx(62 + 4 * entries + 1))


@pytest.mark.parametrize(("standbys", "back"), [(0, 62 + 1001 * 0.01), (1, 62)])
def test_a_standby_has_all_but_the_tail(standbys: int, back: float) -> None:
    """A `state` of 1000 entries, 10 us each, and the bolt's own: with a standby only the batch of 60 is left
    to be worked on, its 2 entries and that of the count, which takes it until 60.03.
    """
    state = RocksDB(entries=1000, accesses=1, access_cost=0)
    more = {"commit_time": 0, "restore_cost": 0.01, "standby_replicas": standbys}
    found = run(crashed(61, 1), until=75, state=state, **more)
    assert counted(found)[5] == (5, pytest.approx(back + 1))


def test_a_planned_stop_waits_for_commits_and_nothing_counts_twice() -> None:
    """Asked for at 63: count is committing until 65, and p until 66, and both do nothing more. Then they are
    down for 10. Root 5, which count has had since 62, is read from its log, and 6 from that of p.
    """
    found = run(fault("planned_restart", 63, down=ms(10)), until=79)
    assert counted(found) == [*UNDISTURBED, (5, 77), (6, 78)]
    assert (found.ledger["duplicated"], total(found)) == (0, 7)
    (row,) = found.recoveries
    assert [row[name] for name in ("failed_at_s", "ready_at_s")] == pytest.approx([0.066, 0.076])


def test_a_failure_before_all_have_committed_ends_a_planned_stop() -> None:
    """As above, but p crashes at 64, and is back at 74: count, which has closed at 65, goes on, too."""
    found = run(fault("planned_restart", 63, down=ms(10)), crashed(64, 10, "p"))
    assert (5, 66) in counted(found)
    assert max(at for _, at in counted(found)) > 75
    assert [row["kind"] for row in found.recoveries] == ["crash_task"]


def test_a_failure_when_the_last_has_just_committed_ends_it_too() -> None:
    """P commits at 66, and count crashes before they go down; p goes on, with root 6 of 70, and count has 5
    and 6 at 76.
    """
    found = run(fault("planned_restart", 63, down=ms(10)), crashed(66, 10, turn="before batch"))
    assert counted(found) == [*UNDISTURBED, (5, 77), (6, 78)]
    assert [row["kind"] for row in found.recoveries] == ["crash_task"]


def test_what_comes_to_a_task_that_has_closed_was_not_read() -> None:
    """Asked for at 69.5, and count pauses until 90. P has committed at 74.5, and root 6, of 70, waits; root 7
    comes at 80. At 85 p loses its state: it reads 6 once more, and then 7. Count commits first, until 95.
    """
    stop, pause = (
        fault("planned_restart", 69.5, down=ms(10)),
        fault("pause", 69, component="count", duration=21 * MS),
    )
    found = run(stop, pause, lost(85, "p"), until=98.5)
    assert counted(found)[6:] == [(6, 96), (7, 97), (8, 98)]
    assert [(row["kind"], row["replayed"]) for row in found.recoveries] == [("pause", 0), ("lose_state", 1)]


def test_a_lost_state_is_read_again_by_a_process_that_lives() -> None:
    """At 61 root 5 is in service: it is given up, and read again at once; nothing else is late."""
    found = run(lost(61), commit_time=0, local_state=True, restore_cost=4)
    assert counted(found)[4:] == [(4, 52), (5, 66), (6, 72)]


TRANSACTIONS = {"strategy.guarantee": "exactly_once"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            TRANSACTIONS | {"strategy.batch_interval": "1 s"},
            "batch_interval has no meaning with exactly_once",
        ),
        (
            TRANSACTIONS | {"strategy.transaction_timeout": "50 ms"},
            "must not be shorter than the distance of",
        ),
        ({"queues": 10}, "waits in logs, which have room for any number of tuples"),
    ],
)
def test_what_does_not_go_with_it_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        load("wordcount", {"strategy.kind": "changelog"} | given)


def test_commits_that_leave_no_time_are_remarked() -> None:
    given = {"strategy.kind": "changelog", "strategy.commit_interval": "1 s", "strategy.commit_time": "1 s"}
    said = warnings(load("wordcount", given))
    assert any("a commit takes as long as the distance of two" in each for each in said)


def test_a_commit_whose_turn_a_second_pause_puts_off_comes_before_the_next_is_due() -> None:
    """p is stopped from 100 to 150, and at 150 once more, until 200: the commit that was due at 100 has its
    turn at 150, and is made at 200, at once. So the one that is due then is not left out: it waits for the
    tuple of 105, in service until 204.
    """
    topology = {"s": spout("keys", 10, offset=5, keys=1), "p": bolt("forward", {"s": "shuffle"}, 4)}
    pauses = tuple(fault("pause", at, component="p", duration=50 * MS) for at in (100, 150))
    scenario = world(topology, "changelog", pauses, 250, commit_interval=50 * MS)
    trace = checked(scenario)
    assert [step.at / MS for step in trace.steps if step.what == "commit begins"] == [50, 200, 204]


def test_what_it_promises_goes_by_the_guarantee() -> None:
    assert ChangelogTopics(guarantee="exactly_once").promises() == "exactly once"
    assert ChangelogTopics().promises() == "at least once"
