"""A diagram shows the same whatever moves the data."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import LONG, QUICK
from tests.oracle.random_logs import logs
from tests.oracle.random_worlds import overlapping, worlds
from tideover.models.accounts.space_time import Stretch
from tideover.models.config import Scenario
from tideover.models.simulation import watch

Part = tuple[int, int]


def equal(how: settings) -> None:
    """Both data planes are looked at in some stretch of such worlds, in tenths of the run."""

    @how
    @given(
        st.one_of(worlds(("none",)), overlapping(("none",)), logs(("none",))),
        st.sampled_from([(0, 10), (0, 3), (4, 7), (8, 9)]),
    )
    def tried(scenario: Scenario, part: Part) -> None:
        begin, end = (scenario.run.duration * tenth // 10 for tenth in part)
        found = watch(scenario, 0, Stretch(begin, end))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TIDEOVER_TRAINS", "1")
            expected = watch(scenario, 0, Stretch(begin, end))
        for name in ("lanes", "arrows", "events", "downs"):  # of one instant in any order
            ours, theirs = (sorted(getattr(each, name), key=repr) for each in (found, expected))
            assert ours == theirs, name

    tried()


def test_a_diagram_shows_the_same() -> None:
    equal(QUICK)


@pytest.mark.long
def test_a_diagram_shows_the_same_of_many_worlds() -> None:
    equal(LONG)
