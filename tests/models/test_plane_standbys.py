"""Secondaries on the compiled data plane, against the per-tuple reference: equal to the nanosecond."""

from __future__ import annotations

import pytest

from tests.models.test_exactness import LONG, QUICK, agree
from tests.oracle.random_worlds import overlapping, worlds

EACH = pytest.mark.parametrize("strategy", ["passive_standby", "upstream_backup"])


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEOVER_TRAINS", raising=False)


@EACH
def test_secondaries_are_as_in_the_reference(strategy: str) -> None:
    agree(worlds((strategy,)), QUICK)


@EACH
def test_secondaries_of_tasks_whose_failures_overlap_are_as_in_the_reference(strategy: str) -> None:
    agree(overlapping((strategy,)), QUICK)


@pytest.mark.long
@EACH
def test_many_secondaries_are_as_in_the_reference(strategy: str) -> None:
    agree(worlds((strategy,)), LONG)


@pytest.mark.long
@EACH
def test_many_secondaries_of_tasks_whose_failures_overlap_are_as_in_the_reference(strategy: str) -> None:
    agree(overlapping((strategy,)), LONG)
