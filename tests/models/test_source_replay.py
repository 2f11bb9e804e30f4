"""Source replay against its laws, worked out here by hand or by a few lines of scalar arithmetic. Times in
milliseconds.

The small world of most tests is   s ──shuffle──▶ count   with a window that a tick ends, or   s ──▶ p
without state.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.models.chain import windows
from tests.models.counting import ONES, completed, counting, emitted, failed
from tests.models.test_exactness import check
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.evaluation.curves import curves
from tideover.models.job.spouts import Kafka, Kestrel, Source
from tideover.models.mechanisms.acking import Acks
from tideover.models.simulation import Replication, simulate
from tideover.models.world import World
from tideover.scenarios.loader import load, load_text

PUBLISHED = [(10, 5, 59), (10, 15, 60), (10, 30, 60), (20, 5, 60), (20, 15, 60), (20, 30, 60)]
"""tuples/s, seconds into the window, recovery in s: stableford_phase2_recovery.csv."""


ONCE: dict[str, Any] = {"kind": "values", "values": (1,)}
UNHURT = {"in_flight": 0, "lost": 0, "false_timeouts": 0, "late": 0}


def timed(
    topology: dict[str, Any], timeout: float, *failures: Any, until: float, phase: float = 0, **more: Any
) -> Scenario:
    """A world whose roots time out ``timeout`` after a rotation, of which the first is at ``phase``."""
    times = {"message_timeout": round(timeout * MS), "timeout_phase": round(phase * MS)}
    return world(topology, "source_replay", failures, until, **times, **more)


def counts(failures: Any, timeout: float, until: float, *sizes: float, phase: float = 0, **more: Any) -> Any:
    """s ──▶ count, of which roots time out. ``sizes``: window, gap and offset."""
    times = {"message_timeout": round(timeout * MS), "timeout_phase": round(phase * MS)}
    return counting(failures, *sizes, until=until, **times, **more)


def loses(at: float) -> Any:
    return fault("lose_state", at, component="count")


# -- the published experiment --------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "into", "published"), PUBLISHED)
def test_published_cells(rate: int, into: int, published: int) -> None:
    """Recovery as Stableford logged it, from the mechanism alone: rotation and windows start together, T = 30
    s.

    Nothing is fitted: neither service times nor luck move a recovery by more than a period of the spout.
    """
    more = [f"topology.sentences.rate={rate}/s", f"failures.0.at={60 + into} s"]
    scenario = load("stableford-phase2", more)
    assert scenario.strategy.timeout_phase == 0  # type: ignore[attr-defined]
    assert scenario.run.log_resolution == 1000 * MS
    for replication in range(3):
        run = simulate(scenario, replication)
        (recovery,) = run.recoveries
        assert abs(recovery["state_recovery_s"] - published) <= 1.5
        assert run.ledger["false_timeouts"] == 0
        assert run.ledger["replayed"] == rate * into


# -- the law of timeout = window = T -------------------------------------------------------------------------


def law(start: int, t: int, phase: int, period: int) -> int:
    """2T if a rotation fell inside (window start, t], else (b - t) + T + f (ns; mechanisms: source replay,
    point 5).
    """
    b = phase + (math.floor((t - phase) / period) + 1) * period
    return 2 * period if b - period > start else (b - t) + period + (t - start)


def last_retry(calls: list[int], start: int, t: int, phase: int, period: int) -> int:
    """When the last root lost in (start, t] is emitted again, by going through the calls one by one."""
    lost = [c for c in calls if start < c <= t]
    queue: list[int] = []
    due = [(phase + (math.ceil((e - phase) / period) + 1) * period, e) for e in lost]
    last = 0
    for call in calls:
        while due and due[0][0] < call:
            queue.append(due.pop(0)[1])
        if queue:
            queue.pop(0)
            last = call
    assert not due
    assert not queue
    return last


@st.composite
def experiments(draw: st.DrawFn) -> dict[str, int]:
    """In ns: any period of the spout, T of 8 to 60 of them (and a bit), rotation phase, offset, failure in
    window 2 or 3.
    """
    gap = draw(st.integers(2 * MS, 20 * MS))
    timeout = gap * draw(st.integers(8, 60)) + draw(st.one_of(st.just(0), st.integers(1, gap - 1)))
    into = draw(st.integers(gap, timeout))
    return {
        "gap": gap,
        "timeout": timeout,
        "phase": draw(st.one_of(st.just(0), st.integers(0, timeout - 1))),
        "offset": draw(st.integers(1, gap - 1)),
        "start": timeout * draw(st.integers(2, 3)),
        "into": into,
    }


@settings(max_examples=80, deadline=None)
@given(experiments())
def test_law_of_recovery(e: dict[str, int]) -> None:
    """With timeout = window = T: 2T if a rotation fell inside (window start, t], else (b - t) + T + f.

    Exactly, recovery is the moment of the call that emits the last lost root again, minus t. The law is what
    this becomes for a spout of vanishing period p. One period is lost before the failure (the last root was
    emitted up to p before t); where rotations are not in step with windows and T is no multiple of p, the
    calls stand differently to the rotation than they stood to the window: another. In step (phase 0, T a
    multiple of p) the law holds to within one period. It speaks of roots in the newest bucket: one was
    emitted since the rotation.
    """
    t = e["start"] + e["into"]
    timeout, gap, offset, phase = (e[name] / MS for name in ("timeout", "gap", "offset", "phase"))
    scenario = counts(
        (loses(t / MS),), timeout, (t + 4 * e["timeout"]) / MS, timeout, gap, offset, phase=phase
    )
    calls = [e["offset"] + e["gap"] * n for n in range(1, (t + 4 * e["timeout"]) // e["gap"])]
    newest = t - (t - e["phase"]) % e["timeout"]
    assume(any(max(newest, e["start"]) < c <= t for c in calls))
    run = simulate(scenario)
    found = round(run.recoveries[0]["state_recovery_s"] * 1000 * MS)
    assert found == last_retry(calls, e["start"], t, e["phase"], e["timeout"]) - t
    error = found - law(e["start"], t, e["phase"], e["timeout"])
    in_step = e["timeout"] % e["gap"] == 0 and e["phase"] == 0
    assert -(1 if in_step else 2) * e["gap"] <= error <= e["gap"]
    assert run.ledger["false_timeouts"] == 0
    assert run.ledger["lost"] == 0


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (0, 2000),  # the rotation of 1000 is not inside (1000, 1050]; b = 2000: 950 + 1000 + 50
        (20, 2000),  # the rotation of 1020 is inside: 2T
        (60, 1060),  # b = 1060: 10 + 1000 + 50
        (50, 1050),  # the rotation of 1050 is that of t: nothing lost is younger, so all is as if b = t
    ],
)
def test_why_sixty_seconds_and_not_thirty(phase: int, expected: int) -> None:
    """The law's two cases around their bounds; T = 1000, failure 50 into a window, a call every ms at .5:
    recovery ends .5 before the law says.
    """
    t = 1050
    (recovery,) = simulate(counts((loses(t),), 1000, 4000, 1000, 1, 0.5, phase=phase)).recoveries
    assert 1000 * recovery["state_recovery_s"] == pytest.approx(expected - 0.5, abs=1e-9)
    if phase != 50:
        assert law(1000 * MS, t * MS, phase * MS, 1000 * MS) == expected * MS


# -- any timeout, phase and number of buckets ----------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    timeout=st.integers(5 * MS, 60 * MS),
    buckets=st.integers(2, 6),
    phase=st.integers(0, 60 * MS),
    gap=st.integers(1 * MS, 9 * MS),
    offset=st.integers(0, 9 * MS),
)
def test_every_timeout_follows_the_rotating_map(
    timeout: int, buckets: int, phase: int, gap: int, offset: int
) -> None:
    """A root emitted in ((m-1)T', mT'] relative to the phase is failed at (m+B-1)T': B buckets, rotated every
    T'.

    s ──▶ count, whose window never ends: so nothing is ever acked, and every emission, first or retry, has to
    time out. Two buckets give the (m+1)T' of the mechanism: one to two timeouts. No rotation comes before the
    phase, which may be long.
    """
    until = 300
    sizes, more = (1000, gap / MS, offset / MS), {"phase": phase / MS, "timeout_buckets": buckets}
    run = simulate(counts((), timeout / MS, until, *sizes, **more), trace=True)
    expected = []
    for _, _, root, attempt, time in run.trace.emitted:
        m = -((phase - time) // timeout)
        at = phase + max(0, m + buckets - 1) * timeout
        assert at == phase or (buckets - 1) * timeout <= at - time < buckets * timeout
        if at <= until * MS:
            expected.append((at, time, root, attempt))
    assert run.trace.failed == [(root, attempt, at) for at, _, root, attempt in sorted(expected)]
    assert run.ledger["false_timeouts"] == len({root for _, _, root, _ in expected})


def test_retries_are_served_one_per_call_and_push_new_roots_back() -> None:
    """Calls at 15, 25, …; window 50, T = 50, rotations at 50, 100, …

    Roots 0, 1, 2 (15, 25, 35) are lost at 42. Emitted in (0, 50], they fail at 100. The calls of 105, 115,
    125 serve them in their order, and root 9, whose call would have been that of 105, comes at 135.
    """
    run = simulate(counts((loses(42),), 50, 160), trace=True)
    assert failed(run) == [(0, 0, 100), (1, 0, 100), (2, 0, 100)]
    first = [(n, 0, 15 + 10 * n) for n in range(9)]
    again, later = [(n, 1, 105 + 10 * n) for n in range(3)], [(n, 0, 45 + 10 * n) for n in (9, 10, 11)]
    assert emitted(run) == [*first, *again, *later]
    assert run.ledger["replayed"] == 3
    assert (run.ledger["duplicated"], run.ledger["lost"], run.ledger["false_timeouts"]) == (0, 0, 0)
    # 45 | 55 … 95 | 105 … 145, of which three are replays
    assert windows(run) == [(1, 50, 1), (2, 100, 5), (3, 150, 5)]


def test_a_replay_gets_a_new_creation_stamp() -> None:
    """The same world, with a service of 2: latency is 2 for every tuple, also for those emitted 90 after
    their first attempt.
    """
    run = simulate(counts((loses(42),), 50, 160, service=2))
    assert (run.recoveries[0]["latency_max_ms"], run.recoveries[0]["latency_mean_ms"]) == (2, 2)


# -- who else can crash --------------------------------------------------------------------------------------


def test_the_acker_forgets_what_it_knew() -> None:
    """s (every 10) ──▶ p (4). The acker is down from 23 to 38: acks of 24 and 34 are lost, and root 3,
    emitted at 40, is the first that it knows.

    Roots 1 and 2 (20, 30: both in (0, 30]) fail at 60 and go out again at 70 and 80 (the call of 60 comes
    before the rotation of 60), and their tuples have two effects each.
    """
    topology = {"s": spout(**ONES), "p": bolt("forward", {"s": "shuffle"}, 4)}
    hit = fault("crash_task", 23, component="acker", restart=15)
    run = simulate(timed(topology, 30, hit, until=95), trace=True)
    assert failed(run) == [(1, 0, 60), (2, 0, 60)]
    assert emitted(run)[5:] == [(5, 0, 60), (1, 1, 70), (2, 1, 80), (6, 0, 90)]
    assert [row[:2] for row in completed(run)] == [(0, 0), (3, 0), (4, 0), (5, 0), (1, 1), (2, 1), (6, 0)]
    assert [row[2] for row in completed(run)] == [14, 44, 54, 64, 74, 84, 94]
    assert run.ledger == UNHURT | {"emitted": 7, "completed": 7, "replayed": 2, "duplicated": 2}


@pytest.mark.parametrize(("buckets", "restart", "false"), [(2, 10, 2), (3, 10, 0), (2, 0, 2), (3, 0, 0)])
@pytest.mark.parametrize("engine", [True, False])
def test_what_the_acker_had_forgotten_is_no_loss_when_it_dies(
    buckets: int, restart: int, false: int, engine: bool
) -> None:
    """s (10, 20, …) ──▶ count (window 50), timeout 20 in three buckets: roots 0 and 1 fail at 60. With two
    buckets the acker has forgotten both at 40, so that its crash at 45 takes nothing of them, though their
    acks of 50 find it dead (or without their entries): these timeouts are false. With three buckets the crash
    takes their entries.
    """
    hit = fault("crash_task", 45, component="acker", restart=restart)
    scenario = counts((hit,), 20, 62, offset=0, timeout_buckets=3, acker_buckets=buckets)
    ledger = simulate(scenario).ledger if engine else oracle.run(scenario).ledger
    assert ledger["false_timeouts"] == false


def test_the_acker_dies_with_its_host_only() -> None:
    """The same, but the acker lives on host 1, where p does: a crash of p's task leaves it alone, a crash of
    the host takes it too.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, 4, hosts=(1,)),
        "q": bolt("forward", {"s": "shuffle"}, 1, hosts=(0,)),
    }

    def run(kind: str, at: float, acker_host: int = 1, **more: Any) -> Replication:
        hit = fault(kind, at, **more)
        return simulate(timed(topology, 30, hit, until=95, hosts=2, acker_host=acker_host), trace=True)

    # p misses the roots of 20, 30 and 40; with the host the acker has lost nothing more: root 0 was done at
    # 14
    for hit in ({"kind": "crash_task", "component": "p"}, {"kind": "crash_host", "host": 1}):
        assert failed(run(at=15, restart=30, **hit)) == [(1, 0, 60), (2, 0, 60), (3, 0, 90)]
    assert failed(run("crash_host", 13, host=1, restart=1)) == [(0, 0, 60)]
    # the acker, the spout and q: nobody waits for root 0 any more, which p still serves
    alone = run("crash_host", 11.5, acker_host=0, host=0, restart=0)
    assert failed(alone) == []
    assert (0, 0, 14) not in completed(alone)


def test_a_spout_that_crashes_forgets_pending_roots_and_retries() -> None:
    """The count loses roots 0, 1, 2 at 42; they fail at 100 and root 0 goes out again at 105. Then the spout
    crashes (108 to 112).

    Roots 1 and 2, in its retry queue, are lost. It goes on with new roots, from 122, and its rotations start
    anew at 112.
    """
    run = simulate(
        counts((loses(42), fault("crash_task", 108, component="s", restart=4)), 50, 160), trace=True
    )
    first = [(n, 0, 15 + 10 * n) for n in range(9)]
    assert emitted(run) == [*first, (0, 1, 105), (9, 0, 122), (10, 0, 132), (11, 0, 142), (12, 0, 152)]
    assert run.ledger["lost"] == 2
    assert run.ledger["completed"] == run.ledger["emitted"] - 2
    assert failed(run) == [(0, 0, 100), (1, 0, 100), (2, 0, 100)]


def test_pending_roots_of_a_crashed_spout_never_time_out() -> None:
    """s crashes at 25, p (30) is serving root 0 and has root 1: both get through, but nobody listens; root 1
    would have failed at 60.
    """
    topology = {"s": spout(**ONES), "p": bolt("forward", {"s": "shuffle"}, 40)}
    hit = fault("crash_task", 25, component="s", restart=500)
    run = simulate(timed(topology, 30, hit, until=200), trace=True)
    assert failed(run) == []
    assert completed(run) == []
    assert (run.ledger["completed"], run.ledger["lost"], run.ledger["in_flight"]) == (2, 0, 0)


# -- false timeouts ------------------------------------------------------------------------------------------


def test_false_timeouts_are_counted_apart() -> None:
    """s (every 30) ──▶ p (50), T = 30: a root that waits too long is sent again although nothing was lost.

    Emitted at 30 and 60; p is done with root 0 at 80, with root 1 at 130. Root 0, of (0, 30], fails at 60,
    root 1, of (30, 60], at 90. Their retries of 90 and 120 queue behind (180, 230), fail again at 120 and
    150, and so on: retries take all calls, no third root is ever emitted, and acks of earlier attempts are
    ignored. No fault: each of the seven timeouts is a false one, of one of two roots, and both have had their
    effect more than once.
    """
    topology = {"s": spout("values", 30, 0, values=(1, 1, 1)), "p": bolt("forward", {"s": "shuffle"}, 50)}
    run = simulate(timed(topology, 30, until=241), trace=True)
    attempts = [(n % 2, n // 2, 30 + 30 * n) for n in range(8)]
    assert emitted(run) == attempts
    assert failed(run) == [(root, attempt, time + 30) for root, attempt, time in attempts if time + 30 <= 241]
    assert completed(run) == []
    assert run.recoveries == []
    twice = dict.fromkeys(("emitted", "completed", "replayed", "duplicated", "false_timeouts"), 2)
    assert run.ledger == UNHURT | twice


@pytest.mark.parametrize(
    ("length", "timeout", "ack", "false"),
    [
        (30, 30, 0, False),  # as in the word count: the window is as long as the least timeout
        (30, 30, 0.9, False),  # a burst of 27 ms behind a window of 30
        (26, 30, 0.98, False),
        (33, 30, 0, True),
        (33, 30, 0.5, True),
        (30, 20, 0.2, True),
        (20, 22, 1.2, True),  # a burst of 24 ms behind a window of 20: it outlasts the timeout
    ],
)
def test_false_timeouts_come_where_they_are_warned_of(
    length: int, timeout: int, ack: float, false: bool
) -> None:
    """s (every ms) ──▶ count: acks of a window leave one after the other when it ends.

    A tuple x ms into a window of L waits L - x for its end and x * ack for its turn. It times out T ms or
    more after its emission, T if a rotation follows at once. So L > T or L * ack > T makes false timeouts, if
    the phase is right, and nothing else does.
    """
    found = 0
    for phase in range(timeout):
        scenario = load_text(f"""
topology:
  s: {{spout: keys, keys: 1, rate: 1000/s, offset: 0.5 ms}}
  count: {{bolt: windowed_count, from: {{s: shuffle}}, service: 1 ns, window: {length} ms}}
strategy:
  {{kind: source_replay, message_timeout: {timeout} ms, timeout_phase: {phase} ms, ack_cost: {ack} ms}}
run: {{duration: 0.4 s}}
""")
        assert any("false timeouts" in text for text in warnings(scenario)) is false
        found += simulate(scenario).ledger["false_timeouts"]
    assert (found > 0) is false


def test_a_failure_makes_no_false_timeout_and_a_slow_bolt_none_of_a_failure() -> None:
    """Window 50, T = 40: 10 to 50 ms in the window, then acked; rotations of 40, 80, …: roots that wait over
    a rotation and a timeout.

    Calls at 15, 25, …; roots of (0, 40] fail at 80, acked at 50: fine. Those of (40, 80], in the window of
    100 (55 … 75), fail at 120: fine. Those of (80, 120] fail at 160. So no root waits that long, and the one
    failure at 72 gives 55, 65 -> replayed by the fault, at 120.
    """
    run = simulate(counts((loses(72),), 40, 200), trace=True)
    assert failed(run) == [(4, 0, 120), (5, 0, 120)]
    assert run.ledger["false_timeouts"] == 0
    tight = simulate(counts((loses(72),), 25, 130), trace=True)
    # T = 25: root 4 and 5 (55 in (50, 75], 65 too) fail at 100, lost at 72; of the window of 100, no other is
    # that old at a rotation
    assert failed(tight)[:2] == [(4, 0, 100), (5, 0, 100)]
    assert tight.ledger["false_timeouts"] == len({root for root, _, _ in failed(tight)} - {4, 5})


def test_what_a_task_loses_that_is_still_down_when_another_fails_counts_for_its_own_failure() -> None:
    """p is down from 60 to 160, and has lost nothing when q fails at 70; roots 1 and 2, of 100 and 150, find
    it down, and are emitted again. q has lost root 0.
    """
    topology = {
        "s": spout("values", gap=50, values=(1,) * 5),
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "q": bolt("windowed_count", {"p": "shuffle"}, window={"length": 1000 * MS}),
    }
    failures = (fault("crash_task", 60, component="p", restart=100), fault("lose_state", 70, component="q"))
    found = simulate(timed(topology, 200, *failures, until=6000))
    assert [row["replayed"] for row in found.recoveries] == [2, 1]


# -- what waits to be emitted again --------------------------------------------------------------------------


def test_what_waits_already_is_read_while_more_is_put_behind_it() -> None:
    """Root 0 is given up by the sweep at 50, root 1 by the rotation at 52: the read of 0 has begun then."""
    source = Kestrel(poll_cost=5 * MS, timeout=30 * MS, sweep_interval=50 * MS)
    reads = spout("values", values=(1, 1)).model_copy(update={"source": source})
    topology = {"s": reads, "q": bolt("forward", {"s": "shuffle"}, 500)}
    scenario = timed(topology, 20, until=65, phase=12)
    check(scenario)
    found = emitted(simulate(scenario, trace=True))
    assert found == [(0, 0, 15), (1, 0, 25), (0, 1, 55), (1, 1, 60)]


def test_a_root_that_leaves_and_comes_back_at_once_is_one_root() -> None:
    """The root of 10 is counted at 15, where its ack waits for the end of the window, and given up at 16: it
    is not in the backlog in between, and one root in the 10 ms up to 20.
    """
    topology = {
        "s": spout(**ONCE),
        "q": bolt("windowed_count", {"s": "shuffle"}, 5, window={"length": 1000 * MS}),
    }
    run = World(timed(topology, 4, until=20))
    run.run()
    assert curves(run).present.tolist() == [0, 1, 1]


def test_a_replay_counts_for_its_failure_though_its_root_was_emitted_once_more() -> None:
    """Root 0 is hit at 12, and given up at 24; its replay of 30 is in service from then to 90. It is given up
    as well, emitted again at 50, and another failure strikes at 55: the replay still is because of the first.
    """
    topology = {"s": spout(**ONCE), "q": bolt("forward", {"s": "shuffle"}, 60)}
    failures = (fault("crash_task", 12, component="q"), fault("crash_task", 55, component="s"))
    scenario = timed(topology, 10, *failures, until=100, phase=4)
    check(scenario)
    run = simulate(scenario, trace=True)
    assert emitted(run)[:3] == [(0, 0, 10), (0, 1, 30), (0, 2, 50)]
    assert [row["replayed"] for row in run.recoveries] == [1, 0]


@pytest.mark.parametrize("order", [("x", "p", "q"), ("q", "x", "p")])
def test_a_root_that_several_failures_hit_counts_for_the_newest(order: tuple[str, ...]) -> None:
    """s (50, 100, …) ─┬▶ x (5) ──▶ p     p is down from 60 to 160, q from 120 to 180.
                       └▶ q

    Root 1 (100) is lost at p, at 105. Root 2 (150) is lost at q, at 150, and then at p, at 155: by the older
    failure, but later, wherever the bolts stand in the file. Both fail at 400 (T = 200) and go out again at
    450 and 500: p has root 1 again at 455, 295 after it was ready, q has root 2 at 500, 320 after.
    """
    inputs = {"x": ("s", 5), "p": ("x", 1), "q": ("s", 1)}
    bolts = {name: bolt("forward", {inputs[name][0]: "shuffle"}, inputs[name][1]) for name in order}
    topology = {"s": spout("values", 50, values=(1,) * 5), **bolts}
    failures = (
        fault("crash_task", 60, component="p", restart=100),
        fault("crash_task", 120, component="q", restart=60),
    )
    scenario = timed(topology, 200, *failures, until=6000)
    rows = simulate(scenario).recoveries
    assert [row["replayed"] for row in rows] == [1, 1]
    assert [row["state_recovery_s"] for row in rows] == pytest.approx([0.295, 0.32], abs=1e-9)
    check(scenario)


@pytest.mark.parametrize(
    ("source", "again"),
    [
        (Kestrel(poll_cost=5 * MS, timeout=1000 * MS, sweep_interval=50 * MS), 105),
        (Kafka(poll_cost=5 * MS, commit_interval=1000 * MS), 57),
    ],
)
def test_what_a_queue_gives_out_after_a_crash_is_because_of_no_failure(source: Source, again: int) -> None:
    """Root 0 is hit at 20 and given up at 50, because of that. The spout crashes at 52, before it has read it
    again: it is forgotten why, though the queue gives it out as the same attempt (at the first sweep, at 100:
    it was given up, however long the timeout is).
    """
    reads = spout(**ONCE).model_copy(update={"source": source})
    topology = {"s": reads, "q": bolt("forward", {"s": "shuffle"}, 20)}
    failures = (fault("crash_task", 20, component="q"), fault("crash_task", 52, component="s"))
    scenario = timed(topology, 30, *failures, until=130, phase=20)
    check(scenario)
    run = simulate(scenario, trace=True)
    assert emitted(run)[:2] == [(0, 0, 15), (0, 1, again)]
    assert [row["replayed"] for row in run.recoveries] == [0, 0]
    assert [row["wait_s"] for row in run.recoveries] == [0.03, 0]


def test_failures_are_followed_as_long_as_their_roots_are_kept() -> None:
    """A root each ms. The crash at 20 destroys one that is in service, which is given up at a rotation, and
    emitted again because of that. When it is done, and thousands of roots have come since, nobody follows
    the failure any more.
    """
    topology = {
        "s": spout("values", values=(1,), repeat=True, gap=1),
        "q": bolt("forward", {"s": "shuffle"}, 0.5),
    }
    crashed = fault("crash_task", 20.2, component="q")
    one = World(world(topology, "source_replay", (crashed,), 6000, message_timeout=50 * MS))
    (pending,) = (each.maps[0] for each in one.job.context.holders if isinstance(each, Acks))
    one.start()
    one.kernel.run(150 * MS)
    assert pending.emitted_for(0)
    one.kernel.run(6000 * MS)
    assert not pending.emitted_for(0)
