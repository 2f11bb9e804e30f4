"""Acks: the XOR of a tree, the cap on pending roots, and what acks cost. Times in milliseconds."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.counting import ONES, acked, completed, counting, emitted, failed
from tests.oracle.worlds import MS, bolt, fault, spout
from tideover.models.simulation import simulate
from tideover.sim.distributions import Exponential


def test_a_tree_is_done_only_when_all_of_it_is_acked() -> None:
    """A root is done when the slower branch has acked, and never if one branch has lost it.

    s ─┬▶ fast (1)
       └▶ slow (8)

    slow crashes at 24 with root 1 in service (20 to 28) and is ready at 25. T = 30: root 1, of (0, 30], fails
    at 60; so does no other.
    """
    topology = {
        "s": spout(**ONES),
        "fast": bolt("forward", {"s": "shuffle"}, 1),
        "slow": bolt("forward", {"s": "shuffle"}, 8),
    }
    hit = fault("crash_task", 24, component="slow", restart=1)
    run = acked(topology, (hit,), 30, until=75, timeout_phase=0)
    assert completed(run) == [(0, 0, 18), (2, 0, 38), (3, 0, 48), (4, 0, 58), (5, 0, 68)]
    assert failed(run) == [(1, 0, 60)]
    assert emitted(run)[5:] == [(5, 0, 60), (1, 1, 70)]
    # the effect at fast is applied by both attempts, once the second has come there
    assert (run.ledger["replayed"], run.ledger["duplicated"], run.ledger["in_flight"]) == (1, 1, 1)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    tasks=st.integers(1, 3),
    means=st.tuples(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8)),
)
def test_completion_is_the_latest_ack_of_the_tree(seed: int, tasks: int, means: tuple[int, int, int]) -> None:
    """A root completes at the latest departure of any of its tuples, and not before all are there.

    s ─┬▶ p ──all──▶ r
       └▶ q ─────────┘     p makes 1.5 tuples of one on average, q makes one of every second
    """
    of_p, of_q, of_r = (Exponential(mean=mean) for mean in (means[0] * MS, means[1] * MS, means[2] * MS // 4))
    topology = {
        "s": spout("keys", 10, None, keys=4),
        "p": bolt("generic", {"s": "shuffle"}, of_p, parallelism=tasks, selectivity=1.5),
        "q": bolt("generic", {"s": "shuffle"}, of_q, selectivity=0.5),
        "r": bolt("forward", {"p": "all", "q": "shuffle"}, of_r, parallelism=tasks),
    }
    whole, run = (acked(topology, timeout=10_000, until=until, seed=seed) for until in (3000, 200))
    bits = {c.name: c.bits for c in whole.world.job.topology.components}
    last: dict[int, int] = {}
    for name, _, _, uid, _, _, departure in whole.trace.processed:
        root = uid >> bits[name]
        last[root] = max(departure, last.get(root, 0))
    done = {root: time for root, _, time in run.trace.completed}
    assert done == {root: time for root, time in last.items() if time <= 200 * MS}


def test_the_cap_holds_new_roots_back() -> None:
    """s (every 10) ──▶ p (25), at most two roots in flight: the next call follows 10 after a root has
    completed.

    10, 20 are emitted; p is done at 35: call at 45. Capped again until 60: call at 70. Until 85: 95. p: 35,
    60, 85, 110.
    """
    topology = {"s": spout(**ONES), "p": bolt("forward", {"s": "shuffle"}, 25)}
    run = acked(topology, until=115, max_spout_pending=2)
    assert [time for *_, time in emitted(run)] == [10, 20, 45, 70, 95]
    assert completed(run) == [(0, 0, 35), (1, 0, 60), (2, 0, 85), (3, 0, 110)]


def test_a_timeout_frees_the_cap() -> None:
    """At most one root in flight; p crashes at 12 with root 0 in service. It fails at 60 (T = 30, emitted in
    (0, 30]): the call of 70 = 60 + 10 emits it again; p is done at 75, so the next call is at 85, and the
    next at 100.
    """
    topology = {"s": spout(**ONES), "p": bolt("forward", {"s": "shuffle"}, 5)}
    hit = fault("crash_task", 12, component="p", restart=3)
    run = acked(topology, (hit,), 30, until=102, timeout_phase=0, max_spout_pending=1)
    assert emitted(run) == [(0, 0, 10), (0, 1, 70), (1, 0, 85), (2, 0, 100)]
    assert run.ledger["lost"] == 0


@pytest.mark.parametrize(("cost_us", "gap"), [(500, 10), (100, 4), (1000, 20)])
def test_a_burst_of_acks_shows_in_mean_and_deviation(cost_us: int, gap: int) -> None:
    """A stall of length d in each window W makes those wait d - x who arrive x after its start: the mean
    grows by d^2/(2W), the standard deviation is sqrt(d^3/(3W) - mean^2), about sqrt(d^3/(3W)).

    s ──▶ count, W = 30 s, service 1 us, W / gap tuples a window: d = ack_cost * W / gap. What comes during
    the stall is served at once after it.
    """
    window = 30_000
    stall = cost_us / 1e6 * window / gap  # s
    more: dict[str, Any] = {"until": 330_000, "message_timeout": 60_000 * MS, "service": 0.001}

    def measured(ack_cost: int) -> Any:
        scenario = counting((), window, gap, 0.5 * gap, ack_cost=ack_cost, **more)
        run = scenario.run.model_copy(update={"warmup": window * MS})
        return simulate(scenario.model_copy(update={"run": run})).latency

    latency, base = measured(cost_us * 1000), measured(0)
    summary = latency.summary(1e9)
    growth = (latency.mean - base.mean) / 1e9
    assert growth == pytest.approx(stall**2 / (2 * window / 1000), rel=0.03)
    deviation = math.sqrt(stall**3 / (3 * window / 1000))
    assert summary["std"] == pytest.approx(deviation, rel=0.03 + stall / 60)
    assert summary["std"] == pytest.approx(math.sqrt(deviation**2 - growth**2), rel=0.03)


def test_acks_leave_one_after_the_other() -> None:
    """Window 50, calls at 15, 25, 35, 45, ack_cost 2: acked at 52, 54, 56, 58, in that order. The tuple of 55
    waits until 58.
    """
    run = simulate(counting((), until=70, message_timeout=100 * MS, ack_cost=2 * MS), trace=True)
    assert completed(run) == [(0, 0, 52), (1, 0, 54), (2, 0, 56), (3, 0, 58)]
    rows = [(row[3], row[5] / MS, row[6] / MS) for row in run.trace.processed]
    assert rows[4:] == [(4, 55, 58), (5, 65, 65)]


def test_a_burst_of_acks_begins_late() -> None:
    """The same with 3 for the burst, which delays each of the acks, and what waits behind them; what is acked
    as it is processed, by a bolt without windows, is not delayed.
    """
    costs = {"ack_cost": 2 * MS, "ack_time": 3 * MS}
    run = simulate(counting((), until=70, message_timeout=100 * MS, **costs), trace=True)
    assert completed(run) == [(0, 0, 55), (1, 0, 57), (2, 0, 59), (3, 0, 61)]
    rows = [(row[3], row[5] / MS, row[6] / MS) for row in run.trace.processed]
    assert rows[4:] == [(4, 55, 61), (5, 65, 65)]
    at_once = {"s": spout("values", values=(1, 1)), "p": bolt("forward", {"s": "shuffle"}, 1)}
    assert completed(acked(at_once, until=30, ack_time=3 * MS)) == [(0, 0, 11), (1, 0, 21)]


def test_acks_not_yet_sent_are_lost_with_the_state() -> None:
    """The same; at 55 the state is lost: roots 0 and 1 are acked (52, 54), 2 and 3 are not, though their
    window was emitted.

    They fail at 200 (T = 100) and are replayed, though their counts were put out: counted twice. Root 4, of
    55, waits in the queue and lives.
    """
    hit = fault("lose_state", 55, component="count")
    more = {"message_timeout": 100 * MS, "timeout_phase": 0, "ack_cost": 2 * MS}
    run = simulate(counting((hit,), until=230, **more), trace=True)
    assert failed(run) == [(2, 0, 200), (3, 0, 200)]
    assert run.ledger["duplicated"] == 2
    assert run.ledger["false_timeouts"] == 0


def test_what_is_late_is_not_pending_at_the_rotation() -> None:
    """The events 10, 30, 15 and 40 come at 20, 40, 60 and 80, the watermark is 30 at 50: the first leaves
    with its window there, the third is late and acked as it comes. At the rotation, at 90, two are pending.
    """
    events = tuple(stamp * MS for stamp in (10, 30, 15, 40))
    window = {"by": "event", "length": 20 * MS, "watermark_interval": 50 * MS}
    topology = {
        "s": spout("values", 20, values=(1,) * 4, stamps=events),
        "count": bolt("windowed_count", {"s": "shuffle"}, window=window),
    }
    run = acked(topology, timeout=90, until=140, timeout_phase=0)
    assert run.cost["peak_buffered_tuples"] == 2
