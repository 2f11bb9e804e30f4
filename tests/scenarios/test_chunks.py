"""How a sweep's runs are cut into chunks, and chunks into the shares of tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tideover.scenarios.sweeps.survey import CHUNK_S, MOST_RUNS, Surveyed, Unit, chunks, shares, units


def surveyed(number: int, reference: str, cost_s: float) -> Surveyed:
    return Surveyed(
        number, f"identity {number} {reference} {cost_s}", "document", reference, cost_s, 1.0, (), ()
    )


POINTS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.02, 0.5, 3.0, 20.0])), max_size=12)
COUNTS = st.integers(0, 6)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Surveyed], list[tuple[int, int]]]:
    points = [surveyed(i, reference, cost) for i, (reference, cost) in enumerate(draw(POINTS))]
    firsts = [draw(COUNTS) for _ in points]
    return points, [(first, first + draw(COUNTS)) for first in firsts]


@given(worlds())
def test_every_run_is_in_one_chunk_and_in_one_share(
    world: tuple[list[Surveyed], list[tuple[int, int]]],
) -> None:
    points, wanted = world
    asked = {(p.number, n) for p, (a, b) in zip(points, wanted, strict=True) for n in range(a, b)}
    made = list(chunks(units(points, wanted), timeline=True))
    found = [(unit.point, unit.replication) for chunk in made for unit in chunk.units]
    assert (len(found), set(found)) == (len(asked), asked)
    assert len({chunk.name for chunk in made}) == len(made)
    for chunk in made:
        assert len(chunk.units) == 1 or (chunk.cost_s <= CHUNK_S and len(chunk.units) <= MOST_RUNS)
        shared = shares(chunk.units, 3)
        assert sorted(unit for share in shared for unit in share) == sorted(chunk.units)


@given(worlds(), worlds())
def test_a_chunk_is_named_after_its_runs(one: tuple, other: tuple) -> None:
    """The same runs, the same name, whoever asks; with rows per second it is another."""
    first, second = (list(chunks(units(*world), timeline=True)) for world in (one, other))
    for a in first:
        for b in second:
            assert (a.name == b.name) == (a.units == b.units)
    again = list(chunks(units(*one), timeline=False))
    assert not {chunk.name for chunk in first} & {chunk.name for chunk in again}


def test_runs_of_one_reference_follow_one_another() -> None:
    points = [surveyed(i, reference, 0.1) for i, reference in enumerate("abab")]
    every = list(units(points, [(0, 2)] * 4))
    assert [(unit.point, unit.replication) for unit in every] == [
        *[(0, 0), (2, 0), (0, 1), (2, 1)],
        *[(1, 0), (3, 0), (1, 1), (3, 1)],
    ]
    assert [unit.reference for unit in every[:3]] == ["a 0", "a 0", "a 1"]


COSTS = st.lists(st.floats(0.01, 100), min_size=1, max_size=40)


@given(COSTS, st.integers(1, 8))
def test_no_share_has_more_than_the_mean_and_one_run(costs: list[float], count: int) -> None:
    """As each run goes to whoever has least: Graham's bound. The shares come the most costly first."""
    todo = [Unit(i, 0, f"run {i}", "", f"reference {i}", cost) for i, cost in enumerate(costs)]
    loads = [sum(unit.cost_s for unit in share) for share in shares(todo, count)]
    assert loads == sorted(loads, reverse=True)
    assert loads[0] <= sum(costs) / count + max(costs) * (1 - 1 / count) + 1e-9


def test_a_run_a_hundred_times_as_long_has_a_share_of_its_own() -> None:
    costs = [10.0, *[0.1] * 100]
    todo = [Unit(i, 0, f"run {i}", "", f"reference {i}", cost) for i, cost in enumerate(costs)]
    first, *others = shares(todo, 2)
    assert {unit.cost_s for unit in first} == {10.0}
    assert sum(len(share) for share in others) == 100
