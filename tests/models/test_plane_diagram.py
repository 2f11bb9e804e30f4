"""A diagram shows the same whatever moves the data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import FEW, LONG, QUICK
from tests.oracle.random_logs import logs
from tests.oracle.random_worlds import overlapping, worlds
from tideover.models.accounts.space_time import Stretch
from tideover.models.config import Scenario
from tideover.models.evaluation.diagram import Diagram
from tideover.models.simulation import watch

Part = tuple[int, int]


LOOKED_AT = ("source_replay", "rsm", "active_replication", "active_standby", "passive_standby")


def shown(diagram: Diagram, name: str) -> list[Any]:
    """What there is of one instant in any order; without end markers, which come again with a replay: one
    data plane shows when they came first, the other when they came last.
    """
    rows = getattr(diagram, name)
    if name == "arrows":
        rows = [row for row in rows if row.kind != "control" or not row.text[0].startswith("end marker")]
    return sorted(rows, key=repr)


def equal(how: settings, scenarios: st.SearchStrategy[Scenario]) -> None:
    """Both data planes are looked at in some stretch of such worlds, in tenths of the run."""

    @how
    @given(
        scenarios,
        st.sampled_from([(0, 10), (0, 3), (4, 7), (8, 9)]),
    )
    def tried(scenario: Scenario, part: Part) -> None:
        begin, end = (scenario.run.duration * tenth // 10 for tenth in part)
        found = watch(scenario, 0, Stretch(begin, end))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TIDEOVER_TRAINS", "1")
            expected = watch(scenario, 0, Stretch(begin, end))
        for name in ("lanes", "arrows", "events", "downs"):
            assert shown(found, name) == shown(expected, name), name

    tried()


NONE = st.one_of(worlds(("none",)), overlapping(("none",)), logs(("none",)))


def test_a_diagram_shows_the_same() -> None:
    equal(QUICK, NONE)


@pytest.mark.parametrize("strategy", LOOKED_AT)
def test_a_diagram_shows_the_same_of_what_comes_again(strategy: str) -> None:
    equal(FEW, overlapping((strategy,)))


@pytest.mark.long
def test_a_diagram_shows_the_same_of_many_worlds() -> None:
    equal(LONG, NONE)
