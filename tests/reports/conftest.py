"""Made-up results, made once."""

from __future__ import annotations

import pytest

from tests.reports.made_up import SHAPES, FakeResult, Reproduction, fake_reproduction, fake_result


@pytest.fixture(scope="session")
def four() -> list[FakeResult]:
    """One result for each strategy."""
    return [fake_result(name) for name in SHAPES]


@pytest.fixture(scope="session")
def reproduction() -> Reproduction:
    return fake_reproduction()
