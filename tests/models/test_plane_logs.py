"""Logs and transactions on the compiled data plane, against the reference: equal to the nanosecond."""

from __future__ import annotations

import pytest

from tests.models.test_exactness import FEW, SHARED, agree
from tests.oracle.random_cores import crowded, crowded_and_failing
from tests.oracle.random_networks import networks
from tests.oracle.random_together import troubled
from tests.oracle.random_worlds import overlapping, worlds

LOGS = ("changelog",)
BESIDES = {
    "shared cores": crowded(LOGS),
    "shared cores, where failures overlap": crowded_and_failing(LOGS),
    "cards": networks(LOGS),
    "a bit of everything": troubled(worlds(LOGS)),
    "a bit of everything, where failures overlap": troubled(overlapping(LOGS)),
}
EACH = pytest.mark.parametrize("besides", BESIDES)


@EACH
def test_logs_are_as_in_the_reference_with(besides: str) -> None:
    agree(BESIDES[besides], FEW)


@pytest.mark.long
@EACH
def test_logs_are_as_in_the_reference_in_many_worlds_with(besides: str) -> None:
    agree(BESIDES[besides], SHARED)
