"""Python's search for garbage while a simulation runs."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise
from statistics import median

import pytest

from tideover.api import loaded
from tideover.models.simulation import simulate
from tideover.sim.kernel import MORE, Kernel, Rank, standing


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_leaves_the_search_for_garbage_as_it_was(fails: bool) -> None:
    """While a kernel runs, what stands is frozen and the search is rare; after it, also if an action fails,
    nothing is frozen and the search is as frequent as before.
    """
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    kernel, seen = Kernel(), list[tuple[int, int]]()

    def act() -> None:
        seen.append((gc.get_freeze_count(), gc.get_threshold()[0]))
        if fails:
            raise ArithmeticError

    kernel.at(5, Rank.SAMPLE, act)
    if fails:
        with pytest.raises(ArithmeticError):
            kernel.run(10)
    else:
        kernel.run(10)
    ((found, threshold),) = seen
    assert found > frozen
    assert threshold == max(before[0], MORE)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_who_wants_no_search_gets_none() -> None:
    """A threshold of 0, by which Python searches for nothing by itself, stays 0 during a run."""
    before = gc.get_threshold()
    gc.set_threshold(0, *before[1:])
    try:
        kernel, seen = Kernel(), list[int]()
        kernel.at(5, Rank.SAMPLE, lambda: seen.append(gc.get_threshold()[0]))
        kernel.run(10)
        assert seen == [0]
    finally:
        gc.set_threshold(*before)


class Loop:
    """Refers to itself, as a world does."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("searches", [True, False])
def test_what_is_built_and_not_kept_is_gone_at_the_end(searches: bool) -> None:
    """What a stretch leaves is searched for garbage when it ends, unless somebody wants no search; it is not
    searched before, though another stretch ends within it.
    """
    gc.collect()
    if not searches:
        gc.disable()
    try:
        with standing():
            left, kept = weakref.ref(Loop()), Loop()
            Kernel().run(10)
            assert left() is not None
        assert (left() is None) == searches
        assert kept.itself is kept
    finally:
        gc.enable()


def test_runs_hold_no_memory() -> None:
    """However often a scenario is simulated, there are as many objects afterwards as before: after most of
    the runs, as another thread may make one meanwhile.
    """
    scenario, counts = loaded("wordcount"), list[int]()
    for _ in range(7):
        simulate(scenario)
        counts.append(len(gc.get_objects()))
    assert median(after - before for before, after in pairwise(counts[1:])) == 0
