"""Batches on the compiled data plane, against the per-tuple reference: equal to the nanosecond."""

from __future__ import annotations

import pytest

from tests.models.test_exactness import FEW, LONG, QUICK, SHARED, agree
from tests.oracle.random_cores import crowded
from tests.oracle.random_networks import networks
from tests.oracle.random_worlds import overlapping, worlds

BATCHES = ("micro_batch", "batch_rerun")
BESIDES = {"cards": networks(BATCHES), "shared cores": crowded(BATCHES)}
EACH = pytest.mark.parametrize("besides", BESIDES)


def test_batches_are_as_in_the_reference() -> None:
    agree(worlds(BATCHES), QUICK)


def test_batches_whose_failures_overlap_are_as_in_the_reference() -> None:
    agree(overlapping(BATCHES), QUICK)


@EACH
def test_batches_feel_neither_cards_nor_cores(besides: str) -> None:
    agree(BESIDES[besides], FEW)


@pytest.mark.long
def test_many_batches_are_as_in_the_reference() -> None:
    agree(worlds(BATCHES), LONG)


@pytest.mark.long
def test_many_batches_whose_failures_overlap_are_as_in_the_reference() -> None:
    agree(overlapping(BATCHES), LONG)


@pytest.mark.long
@EACH
def test_many_batches_feel_neither_cards_nor_cores(besides: str) -> None:
    agree(BESIDES[besides], SHARED)
