"""Constraints between factors: points that break one are left out; a constraint is read, never evaluated."""

from __future__ import annotations

import operator
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.sweeps.recipe import Recipe
from tideover.scenarios.sweeps.sweep_file import read

INTERVAL, WINDOW, K, HOSTS, KIND = (
    "strategy.checkpoint_interval",
    "topology.count.window",
    "strategy.k",
    "hosts",
    "strategy.kind",
)
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
SIGNS |= {"==": operator.eq, "!=": operator.ne}


def recipe(grid: dict[str, list[Any]], *where: str, **blocks: Any) -> Recipe:
    return read({"scenario": "wordcount", "grid": grid, "where": list(where), **blocks})


def rows(found: Recipe) -> list[tuple[Any, ...]]:
    return [tuple(found.values(number).values()) for number in range(found.total)]


@settings(max_examples=50)
@given(
    st.lists(st.integers(-3, 9), min_size=1, max_size=5, unique=True),
    st.lists(st.integers(-3, 9), min_size=1, max_size=5, unique=True),
    st.sampled_from([*SIGNS]),
    st.integers(1, 3),
    st.integers(-2, 2),
)
def test_what_is_left_is_what_python_would_leave(
    a: list[int], b: list[int], sign: str, factor: int, more: int
) -> None:
    """Law: of the product, in its order, the rows for which the comparison holds; never none."""
    where = f"{HOSTS} {sign} {factor} * {K} {'+' if more >= 0 else '-'} {abs(more)}"
    wanted = [(x, "s", y) for x in a for y in b if SIGNS[sign](x, factor * y + more)]
    grid = {HOSTS: a, "strategy.kind": ["s"], K: b}
    if not wanted:
        with pytest.raises(ScenarioError, match=rf"where: leaves none of {len(a) * len(b)} points"):
            recipe(grid, where)
        return
    found = recipe(grid, where)
    assert rows(found) == wanted
    assert found.total == len(wanted)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert rows(again) == wanted


def test_quantities_are_compared_in_their_units() -> None:
    grid = {INTERVAL: ["500 ms", "30 s", "2 min"], WINDOW: ["30 s", "1 min"]}
    assert rows(recipe(grid, "checkpoint_interval < count.window")) == [
        ("500 ms", "30 s"),
        ("500 ms", "1 min"),
        ("30 s", "1 min"),
    ]
    assert rows(recipe(grid, "strategy.checkpoint_interval >= 0.5 min", "window<=30s")) == [
        ("30 s", "30 s"),
        ("2 min", "30 s"),
    ]
    assert rows(recipe(grid, "2 * checkpoint_interval + 59.9 s - 0.9 s = window")) == [("500 ms", "1 min")]


def test_thirds_add_up() -> None:
    """0.1 s + 0.2 s is 0.3 s, and not more."""
    assert rows(recipe({INTERVAL: ["0.1 s"]}, "checkpoint_interval + 0.2 s <= 0.3 s")) == [("0.1 s",)]
    with pytest.raises(ScenarioError, match="leaves none"):
        recipe({INTERVAL: ["0.1 s"]}, "checkpoint_interval + 0.2 s > 0.3 s")


def test_a_key_of_the_scenario_need_not_be_swept() -> None:
    """The word count's window is 30 s, as its file or what is set for all points says."""
    grid = {INTERVAL: ["10 s", "30 s", "40 s"]}
    where = "checkpoint_interval < topology.count.window"
    assert rows(recipe(grid, where)) == [("10 s",)]
    assert rows(recipe(grid, where, set={WINDOW: "35 s"})) == [("10 s",), ("30 s",)]


def test_texts_are_equal_or_not() -> None:
    grid = {KIND: ["rsm", "none", "source_replay"], "run.seed": [1, 2]}
    assert rows(recipe(grid, "kind != none", "run.seed = 2")) == [("rsm", 2), ("source_replay", 2)]


def test_nothing_is_neither_less_nor_more_nor_equal() -> None:
    grid = {INTERVAL: [None, "10 s"]}
    assert rows(recipe(grid, "checkpoint_interval <= 10 s")) == [("10 s",)]
    assert rows(recipe(grid, "checkpoint_interval != 10 s")) == [(None,)]


def test_points_of_a_sample_are_left_out_as_well() -> None:
    ends = {"from": 0.0, "to": 1.0}
    sample = {"design": "sobol", "size": 64, "factors": {"a.x": ends, "a.y": ends}}
    every = read({"scenario": "wordcount", "sample": sample})
    found = read({"scenario": "wordcount", "sample": sample, "where": ["x + y < 1", "x < y"]})
    assert rows(found) == [(x, y) for x, y in rows(every) if x + y < 1 and x < y]
    assert 0 < found.total < 64


GRID = {INTERVAL: ["10 s"], "strategies.rsm.checkpoint_interval": ["5 s"], K: [1], KIND: ["rsm", "none"]}
BROKEN = [
    ("k", "is no comparison; write two sides"),
    ("1 < k < 2", "is no comparison"),
    (3, "is no comparison"),
    ("k < ", "has nothing on one side of a sign"),
    ("k + < 2", "neither a key nor a value"),
    ("k * < 2", "has nothing on one side of a sign"),
    ("1 < 2", "names no swept key"),
    ("strategy.l < 2", "'strategy.l' is neither a key nor a value of one; did you mean 'strategy.k'"),
    ("l < 2", "'l' is neither a key nor a value"),
    ("kind = rms", "'rms' is neither a key nor a value of one; did you mean 'rsm'"),
    ("kind < rsm", "compares texts by <"),
    ("kind + k < 2", "adds a number to a text"),
    ("k < 10 s", "compares a number with a quantity in s"),
    ("k + 3 s < 10 s", "adds a quantity in s to a number"),
    (
        "checkpoint_interval < 3 s",
        "may be strategy.checkpoint_interval or strategies.rsm.checkpoint_interval",
    ),
    ("strategy.checkpoint_interval * strategy.checkpoint_interval < 3", "multiplies a quantity in s by"),
    ("__import__('os') = 1", "neither a key nor a value"),
]


@pytest.mark.parametrize(("where", "says"), BROKEN)
def test_a_broken_constraint_is_refused(where: Any, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read({"scenario": "wordcount", "grid": GRID, "where": ["k = 1", where]})
    (problem,) = caught.value.problems
    assert problem.key == "where.1"
    assert says in problem.message


def test_constraints_are_a_list() -> None:
    with pytest.raises(ScenarioError, match="where: must be a list of comparisons"):
        read({"scenario": "wordcount", "grid": GRID, "where": "k = 1"})


def test_a_large_product_is_allowed_if_little_of_it_is_left() -> None:
    grid = {"run.seed": [*range(999)], HOSTS: [*range(999)]}
    found = recipe(grid, "hosts = run.seed")
    assert (found.total, found.values(998)) == (999, {"run.seed": 998, HOSTS: 998})
    with pytest.raises(ScenarioError, match=r"grid: has 1,001,000 combinations; at most 1,000,000"):
        recipe({"run.seed": [*range(1001)], HOSTS: [*range(1000)]}, "hosts = run.seed")
