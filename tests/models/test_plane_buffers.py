"""Upstream buffers in the compiled data plane, against the reference."""

from __future__ import annotations

import pytest

from tests.models.test_exactness import LONG, QUICK, agree
from tests.oracle.random_worlds import overlapping, worlds

WORLDS = pytest.mark.parametrize(
    "scenarios", [worlds(("rsm",)), overlapping(("rsm",))], ids=["any", "overlap"]
)


@WORLDS
def test_buffers_equal_the_reference(scenarios) -> None:  # type: ignore[no-untyped-def]
    agree(scenarios, QUICK)


@pytest.mark.long
@WORLDS
def test_buffers_equal_the_reference_in_many_worlds(scenarios) -> None:  # type: ignore[no-untyped-def]
    agree(scenarios, LONG)
