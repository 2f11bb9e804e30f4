"""Runs that share a reference are done one after the other, and in the same share of the work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover import api
from tideover.models.evaluation import undisturbed as reference
from tideover.scenarios.loader import load
from tideover.scenarios.work import Unit, shares, together, units

SHORT = {
    "run.duration": "30s",
    "run.warmup": "5s",
    "topology.count.window": "5s",
    "failures.0.within": "0 s",
}


def labels(*settings: str) -> list[str]:
    return [unit.reference for unit in units(load("wordcount", ["run.replications=2", *settings]))]


def test_units_share_a_reference_if_they_differ_only_after_the_failure() -> None:
    """The moment of the failure, the time of a restore and the number of replications say nothing of a run
    without failures; the luck (replication, seed), the rate and the strategy do.
    """
    base = labels("strategy.kind=rsm")
    assert labels("strategy.kind=rsm", "failures.0.at=70s") == base
    assert labels("strategy.kind=rsm", "strategy.replay_cost=1ms") == base
    assert labels("strategy.kind=rsm", "run.replications=3")[:2] == base
    others = [labels("strategy.kind=rsm", text) for text in ("run.seed=2", "topology.sentences.rate=11/s")]
    every = [*base, *(label for other in [*others, labels()] for label in other)]
    assert len(set(every)) == len(every) == 8


def test_a_sweep_pays_each_reference_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three moments of failure, two rates, two replications: twelve runs, and a reference for each of the
    four pairs of rate and replication. In the order of the grid each run has another reference than the one
    before it; with room for one alone, all twelve would be simulated.
    """
    made: list[int] = []
    world = reference.World
    monkeypatch.setattr(reference, "World", lambda *a, **more: made.append(a[1]) or world(*a, **more))
    monkeypatch.setattr(reference, "KEPT_BYTES", 1)
    monkeypatch.setattr(reference, "_kept", type(reference._kept)())
    spec = {
        "scenario": "wordcount",
        "set": SHORT,
        "grid": {"failures.0.at": ["10 s", "11 s", "12 s"], "topology.sentences.rate": ["10/s", "20/s"]},
        "replications": 2,
    }
    found = api.sweep(spec, master=None)
    assert len(found.recoveries) == 12
    assert sorted(made) == [0, 0, 1, 1]
    assert list(found.recoveries["failed_at_s"]) == [at for at in (10.0, 11.0, 12.0) for _ in range(4)]


def some(sizes: list[int]) -> list[Unit]:
    """Units in groups of these sizes."""
    scenario = load("wordcount")
    return [Unit(f"{g} {i}", scenario, i, str(g)) for g, size in enumerate(sizes) for i in range(size)]


def test_groups_stand_together_in_the_order_of_their_first_units() -> None:
    a, b = some([2, 2])[:2], some([2, 2])[2:]
    assert together([b[0], a[0], b[1], a[1]]) == [*b, *a]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=20), st.integers(1, 16))
def test_shares_hold_everything_in_order_and_are_about_equal(sizes: list[int], count: int) -> None:
    """A cut is moved by at most a quarter of a share, so a share is at most half longer or shorter than an
    equal one (and by one for the division).
    """
    todo = some(sizes)
    found = shares(todo, count)
    assert [unit for share in found for unit in share] == todo
    assert len(found) == min(count, len(todo))
    equal = len(todo) // len(found)
    assert all(equal - 2 * (equal // 4) <= len(share) <= equal + 1 + 2 * (equal // 4) for share in found)


@given(st.lists(st.integers(1, 5), min_size=10, max_size=40), st.integers(2, 4))
def test_no_group_is_cut_that_is_short_beside_a_share(sizes: list[int], count: int) -> None:
    """Of two neighbouring ends of groups of at most s units, one is at most s/2 away from any place: with
    s no more than half a share it is within the quarter by which a cut may be moved.
    """
    todo = some(sizes)
    count = min(count, len(todo) // (2 * max(sizes)) or 1)
    found = shares(todo, count)
    whole = [{unit.reference for unit in share} for share in found]
    assert sum(map(len, whole)) == len(sizes)
