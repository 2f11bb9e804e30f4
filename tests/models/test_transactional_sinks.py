"""Transactional sinks: what readers see, and when; what a broker that has waited too long takes. Times in
milliseconds, unless a name says otherwise.

The small world of most tests is   s ──▶ count   with a root at 10, 20, … that is counted at once, and windows
of 20 ended by markers: window w is put out at 20 w, with the roots of 20 w - 10 and 20 w. Snapshots are
triggered at 15, 45, 75, …; the store takes no time, and a part is safe 4 after that. What is complete is
committed 3 later.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario, deployment_of
from tideover.models.job.sinks import DirectSink, Sink, TransactionalSink
from tideover.models.job.stores import RocksDB
from tideover.models.simulation import Replication, simulate

COUNT = bolt("windowed_count", {"s": "shuffle"}, window={"length": 20 * MS})
FORWARD = bolt("forward", {"s": "shuffle"}).model_copy(
    update={"state": RocksDB(entries=1, accesses=0, access_cost=0)}
)
"""Its tuples leave the topology; it has a state, so its part takes time to be safe."""


def job(
    sink: Sink, *failures: Any, last: Any = COUNT, until: float = 200, interval: int = 30, **more: Any
) -> Scenario:
    """s ──▶ last."""
    times = {"checkpoint_interval": interval * MS, "checkpoint_phase": 15 * MS, "upload_time": 4 * MS}
    topology = {"s": spout(**ONES), "last": last}
    return world(topology, "aligned_snapshots", failures, until, entry_size=0, sink=sink, **times, **more)


def committing(timeout: float, commit: float = 3) -> TransactionalSink:
    return TransactionalSink(transaction_timeout=round(timeout * MS), commit_time=round(commit * MS))


def crash(at: float, restart: float) -> Any:
    return fault("crash_task", at, component="last", restart=restart)


def seen(run: Replication) -> dict[int, float]:
    """When readers see each window first."""
    log = run.world.windows
    found = {n: log.first_at(("last", 0, n)) for n in range(1, 12)}
    return {n: moment / MS for n, moment in found.items() if moment is not None}


def done(scenario: Scenario) -> Replication:
    return simulate(scenario, trace=True)


def test_readers_see_windows_when_their_snapshot_is_complete() -> None:
    """Of the snapshots only those at 45, 75, 105, … have something; each is complete 4 and committed 7 after
    its trigger. Window 1 has waited for 52 - 20 = 32 then, window 2 for 12, window 3 for 22; then again, as
    three windows come in two snapshots.
    """
    run, direct = done(job(committing(1000))), done(job(DirectSink()))
    assert seen(run) == {1: 52, 2: 52, 3: 82, 4: 112, 5: 112, 6: 142, 7: 172, 8: 172}
    assert seen(direct) == {n: 20 * n for n in range(1, 11)}
    assert run.cost["visible_s"] == pytest.approx((32 + 12 + 22 + 32 + 12 + 22 + 32 + 12) / 8 / 1000)
    assert run.cost["visible_max_s"] == pytest.approx(0.032)
    assert run.windows == {"emitted": 8, "correct": 8, "wrong": 0, "missing": 0, "expired": 0}
    assert "visible_s" not in direct.cost
    assert "expired" not in direct.windows


def test_what_a_failure_finds_committed_only_in_part_is_committed_when_the_job_is_back() -> None:
    """The crash at 50 comes between the end of snapshot 2 (49) and its commit (52). The job runs again at 70:
    windows 1 and 2 are committed at 73. Snapshots are triggered at 100, 130, … from then on, and committed 7
    later; windows 5 and 8 are put out at such an instant, but behind it.
    """
    run = done(job(committing(1000), crash(50, 20)))
    assert seen(run) == {1: 73, 2: 73, 3: 107, 4: 107, 5: 137, 6: 137, 7: 167, 8: 197, 9: 197}
    committed = [(n, time / MS) for _, _, n, time in run.trace.committed]
    assert committed == [(2, 73), (3, 107), (4, 137), (5, 167), (6, 197)]
    assert (run.ledger["lost"], run.ledger["duplicated"], run.windows["missing"]) == (0, 0, 0)
    (recovery,) = run.recoveries
    assert recovery["output_gap_s"] == pytest.approx((107 - 73) / 1000)  # readers have never seen any before


def test_an_outage_that_outlasts_the_timeout_loses_what_was_pre_committed() -> None:
    """The same crash, and back at 70 or at 90: the transaction was opened with window 1, at 20. A broker that
    waits for 53 aborts it at 73, behind the commit; one that waits for less than that, before. With it are
    lost windows 1 and 2, and the roots in them: 10, 20, 30 and 40.
    """
    for restart, timeout, gone in ((20, 53, 0), (20, 52.999999, 2), (40, 60, 2), (40, 73, 0)):
        run = done(job(committing(timeout), crash(50, restart)))
        assert (run.windows["expired"], run.windows["missing"], run.windows["wrong"]) == (gone, gone, 0)
        assert run.ledger["lost"] == (4 if gone else 0)
        assert run.ledger["duplicated"] == 0
        assert {1, 2} & seen(run).keys() == (set() if gone else {1, 2})


def test_what_is_lost_is_not_to_come() -> None:
    """q (25) ◀── s ──▶ count: q is slow, and takes part in the snapshot of 45 at 60, which is complete then.
    A crash at 61 loses windows 1 and 2 to a broker that waits for 60. The job runs again at 161, and ends at
    180, when q still has the marker of window 2 in its queue: that is missing all the same.
    """
    scenario = job(committing(60), crash(61, 100), until=180)
    more = {"q": bolt("forward", {"s": "shuffle"}, 25)}
    run = done(scenario.model_copy(update={"topology": scenario.topology | more}))
    assert run.world.job.end_markers() >= {2}
    assert (run.windows["expired"], run.windows["missing"]) == (2, 2)


def test_what_is_not_decided_on_is_put_out_again() -> None:
    """A crash at 47, before the snapshot is complete: it goes back to that of 15, which had nothing put out.
    Windows 1 and 2 are put out once more when the job runs, at 147, however short the broker's patience is:
    with the snapshot of 177 they are seen, at 184.
    """
    run = done(job(committing(60), crash(47, 100)))
    assert seen(run) == dict.fromkeys(range(1, 9), 184)
    assert (run.ledger["lost"], run.ledger["duplicated"], run.windows["expired"]) == (0, 0, 0)


def test_the_broker_aborts_also_what_nobody_fails() -> None:
    """Its patience of 25 is less than the 32 for which windows 1, 4 and 7 wait."""
    run = done(job(committing(25)))
    assert seen(run) == {3: 82, 6: 142}
    assert run.windows["expired"] == 6


@pytest.mark.parametrize(("sink", "twice"), [(DirectSink(), 4), (committing(1000), 0)])
def test_tuples_that_leave_are_read_once(sink: Sink, twice: int) -> None:
    """s ──▶ p: roots leave at 10, 20, …. A crash at 60 goes back to the snapshot of 15 (with an interval of
    100), and the roots of 20, 30, 40 and 50 leave again: readers of a direct sink have them twice; what is in
    an open transaction they have never seen. (That of 60 has left just before the crash: data come first.)
    """
    run = done(job(sink, crash(60, 5), last=FORWARD, interval=100))
    twice += bool(twice)
    assert (run.ledger["duplicated"], run.recoveries[0]["extra"], run.ledger["lost"]) == (twice, twice, 0)


def test_readers_wait_for_half_an_interval_a_snapshot_and_a_commit() -> None:
    """s ──▶ p: a root leaves every 10, offset by 5 from the snapshots, which come every 100. In the mean it
    waits for half of that until its transaction is pre-committed, then for 4 and 3.
    """
    run = done(job(committing(1000), last=FORWARD, until=10_115, interval=100))
    assert run.cost["visible_s"] == pytest.approx((100 / 2 + 4 + 3) / 1000, rel=1e-3)
    assert run.cost["visible_max_s"] == pytest.approx((95 + 4 + 3) / 1000)


# -- a failure at every step ---------------------------------------------------------------------------------

STEPS = 240


@pytest.mark.parametrize("last", [COUNT, FORWARD], ids=["windows", "tuples"])
def test_exactly_once_at_every_step(last: Any) -> None:
    """A crash 1 ns before each step of the protocol, at it, and 1 ns behind it: as long as the broker waits,
    nothing is lost and nothing read twice, and what was committed was committed once.
    """
    quiet = done(job(committing(10_000), last=last))
    moments = {step.at + off for step in quiet.trace.steps for off in (-1, 0, 1)}
    for moment in sorted(at for at in moments if 0 < at < 130 * MS):
        run = done(job(committing(10_000), crash(moment / MS, 17), last=last, until=STEPS))
        assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0), moment
        assert (run.windows["wrong"], run.windows["missing"]) == (0, 0), moment


@pytest.mark.parametrize("last", [COUNT, FORWARD], ids=["windows", "tuples"])
def test_exactly_what_was_to_be_committed_is_lost_in_a_long_outage(last: Any) -> None:
    """The same, with an outage of 300 and a broker that waits for 250, longer than any commit of a job that
    runs: lost is what was pre-committed under the complete snapshot, and not committed by then.
    """
    quiet = done(job(committing(10_000), last=last, until=STEPS))
    committed = {n: at for _, _, n, at in quiet.trace.committed}
    steps = [(step.at, step.what, int(step.detail.split()[-1])) for step in quiet.trace.steps]
    complete = {n: at for at, what, n in steps if what == "snapshot complete"}
    lossy = 0
    for moment in sorted({at + off for at, _, _ in steps for off in (-1, 0, 1) if 0 < at < 130 * MS}):
        run = done(job(committing(250), crash(moment / MS, 300), last=last, until=900))
        decided = [n for n in committed if complete[n] < moment <= committed[n]]
        whole = _content(job(committing(10_000), last=last, until=STEPS), decided)
        assert run.ledger["lost"] == whole, (moment, decided)
        assert run.ledger["duplicated"] == 0
        lossy += bool(whole)
    assert lossy >= 6


def _content(scenario: Scenario, numbers: list[int]) -> int:
    """Roots in these transactions: those of triggers 15 + 30 n."""
    spans = [(15 + 30 * (n - 2), 15 + 30 * (n - 1)) for n in numbers]
    if scenario.topology["last"] is FORWARD:
        return sum(begin < at <= end for begin, end in spans for at in range(10, 300, 10))
    windows = [w for begin, end in spans for w in range(1, 15) if begin < 20 * w <= end]
    return 2 * len(windows)


# -- words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout", "restart", "said"),
    [
        (36, 20, "sink.transaction_timeout 0.036 s: a transaction is open for up to 0.037 s"),
        (1_000_000, 20, "sink.transaction_timeout 1000 s: a Kafka broker refuses more than 900 s"),
        (60, 57, "failures.0: the outage of 0.057 s outlasts sink.transaction_timeout 0.06 s"),
        (60, 56, None),
    ],
)
def test_what_an_expert_says_of_the_timeout(timeout: float, restart: float, said: str | None) -> None:
    """Interval 30, upload 4, commit 3. An outage has to leave time for the commit."""
    told = [text for text in warnings(job(committing(timeout), crash(50, restart))) if "transaction" in text]
    assert [text.startswith(said) for text in told] == [True] if said else not told


@pytest.mark.parametrize(
    ("last", "sink", "promise", "twice"),
    [
        (FORWARD, DirectSink(), "at least once", 1),
        (FORWARD, committing(1000), "exactly once", 0),
        (COUNT, DirectSink(), "exactly once", 0),
    ],
)
def test_what_has_left_and_has_no_number_is_promised_at_least_once(
    last: Any, sink: Sink, promise: str, twice: int
) -> None:
    """The crash at 55 goes back to the snapshot of 45, which has the root of 40: that of 50 has left, and
    leaves again. A window that is put out again is known by its number, and a transaction is aborted.
    """
    scenario = job(sink, crash(55, 5), last=last)
    assert scenario.strategy.promises_in(deployment_of(scenario).topology) == promise
    assert done(scenario).ledger["duplicated"] == twice


def test_a_window_by_event_without_a_pair_opens_a_transaction_in_which_readers_see_nothing() -> None:
    """left (10, 20, …) and right (50, 100, …) are joined by event. As right comes at 50 windows 1 and 2 end;
    left alone had anything of them: they are not put out, but what they took in is committed with snapshot 3
    (75), at 82. At 100 windows 3 and 5 have a pair; at 150 windows 6 and 7 have none.
    """
    window = {"length": 20 * MS, "by": "event", "watermark_interval": 5 * MS, "lag": 0}
    topology = {
        "left": spout(**ONES),
        "right": spout(gap=50, **ONES),
        "last": bolt("windowed_join", {"left": "fields", "right": "fields"}, window=window),
    }
    run, direct = (
        done(job(sink).model_copy(update={"topology": topology})) for sink in (committing(1000), DirectSink())
    )
    assert [(n, time / MS) for _, _, n, time in run.trace.committed] == [(3, 82), (4, 112), (6, 172)]
    assert seen(run) == {3: 112, 5: 112}
    assert seen(direct) == {3: 100, 5: 100, 8: 200, 10: 200}
    assert run.windows == {"emitted": 2, "correct": 2, "wrong": 0, "missing": 0, "expired": 0}
    assert run.ledger == direct.ledger
