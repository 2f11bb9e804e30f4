"""Aligned snapshots on the compiled data plane, against the reference, where other tests do not look."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.models.test_exactness import QUICK, SHARED, agree
from tests.oracle.random_cores import on_cores
from tests.oracle.random_networks import on_cards
from tests.oracle.random_queues import overtaken, queues
from tests.oracle.random_together import together

SNAPSHOTS = ("aligned_snapshots",)
DROPPED = st.one_of(queues(SNAPSHOTS, ("drop",)), queues(SNAPSHOTS, ("drop",), True))

TOGETHER = together(SNAPSHOTS).filter(
    lambda found: all(getattr(config, "source", None) is None for config in found.topology.values())
)
"""Without queues before spouts, which do not go with this strategy."""
OVERTAKING = st.one_of(overtaken(overlap, late) for overlap in (False, True) for late in (False, True))


def test_what_waits_in_a_log_is_not_lost_for_want_of_room() -> None:
    agree(DROPPED, QUICK)


def test_barriers_that_overtake_meet_messages_in_cards_as_in_the_reference() -> None:
    agree(on_cards(OVERTAKING), QUICK)


@pytest.mark.long
@pytest.mark.parametrize(
    "worlds",
    [DROPPED, TOGETHER, on_cards(OVERTAKING), on_cores(OVERTAKING)],
    ids=["drop", "together", "cards", "cores"],
)
def test_many_snapshots_are_as_in_the_reference(worlds) -> None:  # type: ignore[no-untyped-def]
    agree(worlds, SHARED)
