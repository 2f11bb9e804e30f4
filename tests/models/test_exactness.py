"""The engine against the per-tuple reference: times, counts and figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.oracle import Figures, Trace, judge
from tests.oracle.comparison import unequal
from tests.oracle.faults import STRIKES
from tests.oracle.layout import MACHINES
from tests.oracle.protocol import PROTOCOLS
from tests.oracle.random_changes import SETTINGS
from tests.oracle.random_worlds import APART, STRATEGY_NAMES, overlapping, worlds
from tests.oracle.worlds import MS, bolt, spout, world
from tideover.models.accounts import recoveries
from tideover.models.config import Scenario
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.sim.faults import FAULTS
from tideover.sim.kernel import standing

LISTS = ("processed", "windows", "emitted", "completed", "failed", "committed", "destroyed", "overflowed")
QUICK = settings(
    max_examples=50,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate,),  # add Phase.shrink to find the smallest world that fails: it takes minutes
    suppress_health_check=list(HealthCheck),
)
FEW = settings(QUICK, max_examples=8)
"""Of what is tried besides: each strategy has its 50 worlds."""
LONG = settings(QUICK, max_examples=700, derandomize=False)
"""As many as let `make test-long` end within two hours on two cores; each run draws others."""
SHARED = settings(LONG, max_examples=200)
"""Of a mechanism that is tried with five strategies or more: these have 1,000 worlds together, or more."""


def few_and_many(few: settings = FEW, many: settings = LONG) -> pytest.MarkDecorator:
    """The test is for ``how`` many worlds; the many take long."""
    long = pytest.param(many, marks=pytest.mark.long)
    return pytest.mark.parametrize("how", [few, long], ids=["few", "many"])


def in_order(name: str, rows: list[Any]) -> list[Any]:
    """One fixed order: what a task processed stays in its order, the rest is sorted."""
    return sorted(rows, key=(lambda row: row[:3]) if name == "processed" else repr)


@standing()  # all of these worlds go when it ends, or when more have gathered
def differences(scenario: Scenario) -> dict[str, Any]:
    """{field: (what only the reference has, what only the engine has)}, or both if the order differs;
    {figure: (the reference's, the engine's)}.
    """
    return compared(scenario, *judge(scenario))


def compared(scenario: Scenario, expected: Trace, figures: Figures) -> dict[str, Any]:
    """The same, of a reference that has run."""
    found = simulate(scenario, trace=True)
    wrong: dict[str, Any] = {}
    for name in LISTS:
        ours, theirs = in_order(name, getattr(expected, name)), in_order(name, getattr(found.trace, name))
        if ours != theirs:
            only = [row for row in ours if row not in theirs], [row for row in theirs if row not in ours]
            wrong[name] = only if any(only) else (ours, theirs)
    for name, ours, theirs in (
        ("final_state", expected.final_state, found.trace.final_state),
        ("ledger", expected.ledger, found.ledger),
    ):
        if ours != theirs:
            wrong[name] = {
                key: (ours.get(key), theirs.get(key))
                for key in {**ours, **theirs}
                if ours.get(key) != theirs.get(key)
            }
    return wrong | unequal(figures, found, scenario)


def check(scenario: Scenario) -> None:
    assert not differences(scenario)


def checked(scenario: Scenario) -> Any:
    """The trace of a run that is as in the reference."""
    check(scenario)
    return simulate(scenario, trace=True).trace


@standing()
def agree(
    scenarios: st.SearchStrategy[Scenario],
    how: settings = QUICK,
    holds: Callable[[Scenario], None] = check,
) -> None:
    """The engine equals the reference in as many of these worlds as ``how`` says, no two of them alike."""
    known: set[str] = set()

    @how
    @given(scenarios)
    def tried(scenario: Scenario) -> None:
        text = repr(scenario)
        assume(text not in known)  # of 50 that hypothesis draws up to ten are another one once more
        holds(scenario)
        known.add(text)

    tried()


@pytest.mark.parametrize("inputs", [("s", "p"), ("p", "s")])
def test_it_does_not_matter_in_which_order_a_bolt_names_what_it_reads(inputs: tuple[str, str]) -> None:
    """q reads s, the first component, and p, the second: a root n has uid 2n from s, and 2n + 1 from p."""
    topology = {
        "s": spout("values", values=(1,), repeat=True),
        "p": bolt("forward", {"s": "shuffle"}, 4),
        "q": bolt("forward", dict.fromkeys(inputs, "shuffle"), 1),
    }
    rows = checked(world(topology, until=25)).processed
    found = [(row[3], row[6] / MS) for row in rows if row[0] == "q"]
    assert found == [(0, 11), (1, 15), (2, 21), (3, 25)]


TRIED = (*STRATEGY_NAMES, *APART)
EACH = pytest.mark.parametrize("strategy", TRIED)


def test_every_strategy_is_tried() -> None:
    own = {name for name, strategy in STRATEGIES.items() if strategy.__module__.startswith("tideover.")}
    assert own == set(TRIED)


def test_every_kind_of_failure_is_tried() -> None:
    """But for those that stand for others, and of stores, of which test_stores.py has exact lists; somebody
    stops jobs in worlds of their own (`random_changes.planned`).
    """
    own = {
        name for name, part in FAULTS.items() if part.__module__.startswith("tideover.") and not part.expands
    }
    drawn = {*MACHINES, *STRIKES, *(kind for one in PROTOCOLS.values() for kind in one.fault_kinds)}
    assert own - drawn == {"cascade", "lose_store", "planned_restart", "slow_store", "store_down"}


@few_and_many(QUICK)
@EACH
def test_the_engine_equals_the_reference(strategy: str, how: settings) -> None:
    agree(worlds((strategy,)), how)


def test_recoveries_are_the_same_however_few_latencies_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long runs tell recoveries of many latencies before all tasks have told all: here of three."""
    monkeypatch.setattr(recoveries, "MANY", 2)
    agree(overlapping(("aligned_snapshots",)))


@few_and_many()
@EACH
def test_the_engine_equals_the_reference_where_failures_overlap(strategy: str, how: settings) -> None:
    """What fails while it is down, or while others are, is back once, and from the newest of its faults."""
    agree(overlapping((strategy,)), how)


@few_and_many()
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_engine_equals_the_reference_with(setting: str, how: settings) -> None:
    agree(SETTINGS[setting], how)
