"""When faults strike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.sim.draws import Draws
from tideover.sim.faults import LoseState
from tideover.sim.units import S


def moment(fault: LoseState, replication: int, index: int = 0, cycle: tuple[int, int] | None = None) -> int:
    (found,) = fault.moments(index, Draws(1, replication), 1000 * S, cycle)
    return found


def test_a_drawn_moment_is_spread_evenly_over_the_span() -> None:
    """at + U with U uniform in [0, 30 s): of 3000 replications the mean of U is 15 s, give or take 5 standard
    errors (30 s / sqrt(12) / sqrt(3000) = 0.158 s); each of 30 seconds has some 100 of them, give or take 5
    standard deviations of a Poisson count.
    """
    fault = LoseState(at=75 * S, within=30 * S, component="count")
    drawn = [moment(fault, number) / S - 75 for number in range(3000)]
    assert min(drawn) >= 0
    assert max(drawn) < 30
    assert sum(drawn) / 3000 == pytest.approx(15, abs=5 * 0.158)
    seconds = [sum(int(u) == second for u in drawn) for second in range(30)]
    assert all(50 < count < 150 for count in seconds)
    assert moment(fault, 0, index=1) != moment(fault, 0)


@given(at=st.integers(0, 10**12), within=st.integers(1, 10**12), number=st.integers(0, 99))
def test_a_drawn_moment_lies_in_its_span(at: int, within: int, number: int) -> None:
    """In [at, at + within), and ``latest`` is the last of them; without a span, or with one of 0, at."""
    fault = LoseState(at=at, within=within, component="count")
    assert at <= moment(fault, number) <= fault.latest == at + within - 1
    for exactly in (None, 0):
        fixed = LoseState(at=at, within=exactly, component="count")
        assert moment(fixed, number) == fixed.latest == at
        assert not fixed.drawn


def test_a_fraction_of_the_interval_is_taken_after_the_draw() -> None:
    """A quarter into the interval that follows the drawn moment: which interval it is differs, where in it
    does not.
    """
    fault = LoseState(at=75 * S, within=60 * S, in_interval=0.25, component="count")
    free = LoseState(at=75 * S, within=60 * S, component="count")
    found = [(moment(free, n), moment(fault, n, cycle=(8 * S, 8 * S))) for n in range(20)]
    assert len({later for _, later in found}) > 3
    for drawn, later in found:
        assert later % (8 * S) == 2 * S
        assert drawn <= later < drawn + 8 * S


SETTINGS = ("failures.0.at=65s", "failures.0.within=30s", "run.replications=3")


def test_the_moment_is_the_same_whatever_the_strategy_and_its_interval() -> None:
    """Strategies and intervals are compared on the same luck; replications differ."""
    found = set()
    for kind in ("rsm", "aligned_snapshots", "source_replay", "active_replication"):
        more = ["strategies.rsm.checkpoint_interval=24s", "topology.sentences.rate=3/s"]
        scenario = load("wordcount", [*SETTINGS, f"strategy.kind={kind}", *more])
        rows = [simulate(scenario, number).recoveries for number in range(3)]
        found.add(tuple(row["failed_at_s"] for (row,) in rows))
    ((one, two, three),) = found
    assert len({one, two, three}) == 3
    assert all(65 <= at < 95 for at in (one, two, three))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            ["failures.0.at=65s", "failures.0.within=200s"],
            "--set: failures.0.within: reaches beyond the run, which ends at 240 s: the failure may come as "
            "late as 265 s",
        ),
        (
            ["failures=[{kind: lose_state, component: count, every: 50 s, within: 5 s}]"],
            "failures.0: within goes with at, not with every",
        ),
        (["failures.0.within=30"], "--set: failures.0.within: 30 has no unit"),
        (
            ["strategy.kind=rsm", "failures.0={kind: lose_state, component: count, at: 200 s, within: 40 s}",
             "failures.0.in_interval=1"],
            "failures.0.in_interval: the first such moment is 240 s",
        ),
    ],
)  # fmt: skip
def test_a_span_that_cannot_be_is_refused(settings: list[str], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load("wordcount", settings)
    assert says in str(caught.value)
    load("wordcount", ["failures.0.at=200s", "failures.0.within=40s"])
