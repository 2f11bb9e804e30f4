"""What windows should hold is found once for runs that emit the same roots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.models.test_twin import sentences
from tests.oracle.random_parameters import STRATEGY_NAMES
from tests.oracle.random_worlds import worlds
from tests.oracle.worlds import MS
from tideover.models.accounts import reference_run
from tideover.models.config import Scenario
from tideover.models.evaluation import undisturbed
from tideover.models.strategies.none import Amnesia
from tideover.models.world import World


@pytest.fixture(autouse=True)
def none_kept() -> Iterator[None]:
    reference_run.forget()
    yield
    reference_run.forget()


def judged(scenario: Scenario) -> list[Any]:
    run = World(scenario)
    run.run()
    return [] if run.reference is None else [run.reference.counts, run.reference.bad]


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_windows_are_judged_alike_whatever_ran_before(strategy: str) -> None:
    """Law: any world, after itself and after itself without failures, as if it were the first; also if it is
    looked at every few roots whether they are still the same.
    """

    @settings(max_examples=6, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(worlds((strategy,)))
    def check(scenario: Scenario) -> None:
        reference_run.forget()
        alone = judged(scenario)
        assert judged(scenario) == alone
        reference_run.forget()
        judged(undisturbed.without_failures(scenario))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reference_run, "STEP", 5)
            assert judged(scenario) == alone

    check()


def test_nothing_is_simulated_again_for_the_same_roots() -> None:
    """A failure of a count changes nothing of what spouts emit, nor does its moment; other luck does."""
    scenario = sentences("fields", "constant", False)
    later = scenario.failures[0].model_copy(update={"at": 80 * MS})
    others = [
        scenario.model_copy(update={"failures": (later,)}),
        scenario.model_copy(update={"run": scenario.run.model_copy(update={"warmup": MS})}),
        scenario.with_strategy(Amnesia()),
    ]
    judged(scenario)
    for other in others:
        run = World(other)
        run.run()
        assert run.reference is not None
        assert run.reference._job is None
    run = World(scenario, replication=1)
    assert run.reference is not None
    assert run.reference._job is not None


def test_what_is_emitted_otherwise_is_followed_from_there_on() -> None:
    """A truth that is wrong from some root on, as if another run had emitted others: no window is judged by
    it, and in the end another reference run was.
    """
    scenario = sentences("fields", "constant", False)
    alone = judged(scenario)
    (kept,) = reference_run._kept.values()
    (train,) = kept._parts[0]
    kept._parts[0] = [train.pick(slice(0, train.n // 2))]
    assert judged(scenario) == alone
    assert next(iter(reference_run._kept.values())) is not kept
