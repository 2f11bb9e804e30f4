"""The engine against the per-tuple reference: all times and all counts, for trains of any length."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.oracle import run
from tests.oracle.random_worlds import STRATEGY_NAMES, overlapping, worlds
from tideover.models.config import Scenario
from tideover.models.simulation import simulate
from tideover.models.world import World

LISTS = ("processed", "windows", "emitted", "completed", "failed", "destroyed")
CAPS = (1, 7, 20_000)  # the last one is more than any of these worlds has
QUICK = settings(
    max_examples=50,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate,),  # add Phase.shrink to find the smallest world that fails: it takes minutes
    suppress_health_check=list(HealthCheck),
)
LONG = settings(QUICK, max_examples=1000, derandomize=False)


def in_order(name: str, rows: list[Any]) -> list[Any]:
    """One fixed order: what a task processed stays in its order, the rest is sorted."""
    return sorted(rows, key=(lambda row: row[:3]) if name == "processed" else repr)


def outages(world: World) -> list[tuple[int, int | None, int | None]]:
    """(number, detected, ready) of the outages that have hit anything, in order; None: not before the end."""

    def told(moment: int) -> int | None:
        return moment if moment <= world.scenario.run.duration else None

    return [(o.number, told(o.detected_at), told(o.ready_at)) for o in world.outages if o.returns]


def differences(scenario: Scenario, cap: int) -> dict[str, Any]:
    """{field: (what only the reference has, what only the engine has)}, or both if the order differs."""
    expected = run(scenario)
    found = simulate(scenario, trace=True, train_cap=cap)
    assert found.trace is not None
    wrong: dict[str, Any] = {}
    for name in LISTS:
        ours, theirs = in_order(name, getattr(expected, name)), in_order(name, getattr(found.trace, name))
        if ours != theirs:
            only = [row for row in ours if row not in theirs], [row for row in theirs if row not in ours]
            wrong[name] = only if any(only) else (ours, theirs)
    assert found.world is not None
    if expected.outages != (moments := outages(found.world)):
        wrong["outages"] = expected.outages, moments
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
    return wrong


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_the_engine_equals_the_reference(strategy: str) -> None:
    @QUICK
    @given(worlds((strategy,)))
    def check(scenario: Scenario) -> None:
        for cap in CAPS:
            assert not differences(scenario, cap), f"trains of at most {cap}"

    check()


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_the_engine_equals_the_reference_where_failures_overlap(strategy: str) -> None:
    """What fails while it is down, or while others are, is back once, and from the newest of its faults."""

    @QUICK
    @given(overlapping((strategy,)))
    def check(scenario: Scenario) -> None:
        assert not differences(scenario, CAPS[-1])

    check()


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_the_engine_equals_the_reference_in_many_worlds(strategy: str) -> None:
    @LONG
    @given(worlds((strategy,)), st.sampled_from(CAPS))
    def check(scenario: Scenario, cap: int) -> None:
        assert not differences(scenario, cap), f"trains of at most {cap}"

    check()
