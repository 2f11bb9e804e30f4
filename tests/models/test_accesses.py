"""What tuples look up of their task's state, and what of that is at hand."""

from __future__ import annotations

import tracemalloc

import numpy as np

from tideover.models.job.backends.base import Backend
from tideover.models.runtime.accesses import Touched
from tideover.sim.draws import Draws, Purpose, below


def touched(entries: int, accesses: int = 1) -> Touched:
    return Touched("b", Draws(1), Backend(entries=entries, accesses=accesses))


def test_an_entry_is_at_hand_from_its_access_to_the_commit_of_the_prepare_that_follows() -> None:
    """One entry, so each access is to the same; two a tuple."""
    found, one = touched(1, 2), np.arange(1)
    assert found.look_up(np.arange(3)).tolist() == [1, 0, 0]
    assert found.prepare() == 1
    assert found.look_up(one).tolist() == [0]
    found.commit()
    assert found.look_up(one).tolist() == [0]  # it was changed after the prepare
    assert found.prepare() == 1
    found.commit()
    assert found.look_up(one).tolist() == [1]
    found.forget()
    assert found.look_up(one).tolist() == [1]


def test_a_look_up_is_missed_once_by_whoever_is_first() -> None:
    """Law: of what nobody has changed, each entry is missed by the first tuple that looks it up."""
    uid = np.arange(40)
    entries = below(Draws(1).bits("b", Purpose.ACCESS, np.arange(120)), 50).reshape(40, 3).tolist()
    seen: set[int] = set()
    missed = []
    for row in entries:
        missed.append(len(set(row) - seen))
        seen |= set(row)
    found = touched(50, 3)
    assert [*found.look_up(uid[:17]), *found.look_up(uid[17:])] == missed
    assert found.prepare() == len(seen)


def test_a_state_takes_no_memory_for_what_nobody_looks_up() -> None:
    tracemalloc.start()
    try:
        found = touched(2**30)
        found.look_up(np.arange(1000))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
