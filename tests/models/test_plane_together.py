"""All that the compiled data plane has, together: equal to the reference, to the nanosecond."""

from __future__ import annotations

import pytest

from tests.models.test_exactness import QUICK, SHARED, agree
from tests.oracle.random_together import together

EACH = pytest.mark.parametrize("strategy", ["none", "source_replay"])


@EACH
def test_all_together_equals_the_reference(strategy: str) -> None:
    agree(together((strategy,)), QUICK)


@pytest.mark.long
@EACH
def test_all_together_equals_the_reference_in_many_worlds(strategy: str) -> None:
    agree(together((strategy,)), SHARED)
