"""Effects that are applied more than once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tideover.models.accounts.ledger import Applied


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=7), max_size=5))
def test_a_repetition_counts_once_in_whatever_trains_it_comes(trains: list[list[int]]) -> None:
    """Law: of an effect that is applied n times, n - 1 are repetitions, in one train or in several."""
    component: Any = SimpleNamespace(bits=0)
    applied = Applied(component, replicas=1, once=False)
    repeated = sum(applied.apply(np.array(train, np.int64), 0) for train in trains)
    every = [uid for train in trains for uid in train]
    assert repeated == len(every) - len(set(every))
