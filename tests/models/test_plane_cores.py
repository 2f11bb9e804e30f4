"""Cores that tasks share, on the compiled data plane: the same as the reference, to the nanosecond."""

from __future__ import annotations

import pytest

from tests.models.test_exactness import QUICK, SHARED, agree
from tests.oracle.random_cores import crowded, crowded_and_failing

WORLDS = {"of any kind": crowded, "where failures overlap": crowded_and_failing}


@pytest.mark.parametrize("kind", WORLDS)
def test_tasks_that_share_cores_equal_the_reference(kind: str) -> None:
    agree(WORLDS[kind](("none",)), QUICK)


@pytest.mark.long
@pytest.mark.parametrize("kind", WORLDS)
def test_tasks_that_share_cores_equal_the_reference_in_many_worlds(kind: str) -> None:
    agree(WORLDS[kind](("none",)), SHARED)
