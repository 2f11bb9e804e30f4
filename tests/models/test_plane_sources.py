"""Queues before spouts on the compiled data plane: it reads what the reference reads."""

from __future__ import annotations

import pytest

from tests.models.test_exactness import QUICK, SHARED, agree
from tests.models.test_sources import crash, emitted, reading
from tests.oracle.random_logs import logs
from tideover.models.simulation import simulate

EACH = pytest.mark.parametrize("strategy", ["none", "source_replay"])


@EACH
@pytest.mark.parametrize("overlap", [False, True])
def test_the_data_plane_reads_queues_as_the_reference_does(strategy: str, overlap: bool) -> None:
    agree(logs((strategy,), overlap), QUICK)


@pytest.mark.long
@EACH
@pytest.mark.parametrize("overlap", [False, True])
def test_the_data_plane_reads_many_queues_as_the_reference_does(strategy: str, overlap: bool) -> None:
    agree(logs((strategy,), overlap), SHARED)


def test_a_record_is_there_until_it_is_older_than_what_is_kept() -> None:
    """The spout is back at 85 ms, when that of 60 ms is 25 ms old, and those of 40 and 50 ms are older."""
    scenario = reading(100, (crash(35, 50),), poll_cost=3, commit_interval=25, retention=25)
    assert [row[::2] for row in emitted(simulate(scenario, trace=True))][3:5] == [(5, 88), (6, 91)]
