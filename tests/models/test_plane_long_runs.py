"""Long runs on the compiled data plane, which counts in a few slots at a time: equal to the reference."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.models.test_exactness import QUICK, SHARED, agree
from tests.oracle.random_logs import logs
from tests.oracle.random_worlds import overlapping, worlds
from tideover.models.accounts import counted
from tideover.sim import recorder

WORLDS = st.one_of(worlds(("none",)), overlapping(("none",)), logs(("none",)))


@pytest.fixture(params=[4, 37, 1000])
def slots(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is long, and has so many places for slots."""
    monkeypatch.setattr(recorder, "LONG", 0)
    monkeypatch.setattr(counted, "WINDOW", request.param)


@pytest.mark.usefixtures("slots")
def test_the_engine_equals_the_reference_in_long_runs() -> None:
    agree(WORLDS, QUICK)


@pytest.mark.long
@pytest.mark.usefixtures("slots")
def test_the_engine_equals_the_reference_in_many_long_runs() -> None:
    agree(WORLDS, SHARED)
