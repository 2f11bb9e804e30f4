"""Factors of a sweep file and constraints between them: how they combine; what is refused, in its line."""

import itertools
import math
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.refused import broken_file, refused, told
from tests.sweeps import points
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.sweeps.factors import Range
from tideover.scenarios.sweeps.sweep_file import Recipe, read
from tideover.sim.units import parse_bandwidth, parse_duration, parse_rate, parse_size

RATE, AT, SEED, KIND = "topology.sentences.rate", "failures.0.at", "run.seed", "strategy.kind"


def recipe(**blocks: Any) -> Recipe:
    return read({"scenario": "wordcount", **blocks})


def rows(found: Recipe) -> list[tuple[Any, ...]]:
    return [tuple(found.values(number).values()) for number in range(found.total)]


def left(grid: dict[str, list[Any]], *where: str) -> list[tuple[Any, ...]]:
    """What the constraints leave of a grid."""
    return rows(recipe(grid=grid, where=list(where)))


def column(found: Recipe, key: str) -> list[Any]:
    return [found.values(number)[key] for number in range(found.total)]


# Ranges.


def test_a_range_is_the_list_of_its_values():
    for given_, wanted in (
        ({"from": "10/s", "to": "100/s", "steps": 10}, [f"{10 * i}/s" for i in range(1, 11)]),
        ({"from": "1 s", "to": "1 min", "steps": 3}, ["1 s", "30.5 s", "1 min"]),
        (
            {"from": "1 ms", "to": "10 s", "steps": 5, "scale": "log"},
            ["1 ms", "10 ms", "0.1 s", "1 s", "10 s"],
        ),
        ({"from": 1, "to": 4, "steps": 4}, [1, 2, 3, 4]),
        ({"from": 0, "to": 10, "steps": 5}, [0, 3, 5, 8, 10]),
        ({"from": 1, "to": 8, "steps": 8, "scale": "log"}, [1, 2, 3, 4, 6, 8]),
        ({"from": 0.0, "to": 1, "steps": 3}, [0.0, 0.5, 1]),
    ):
        assert column(recipe(grid={SEED: given_}), SEED) == wanted


UNITS = {
    "s": (parse_duration, 1e9, 1e-9),
    "/s": (parse_rate, 1, 0),
    "B": (parse_size, 1, 1),
    "B/s": (parse_bandwidth, 1, 1),
}


@given(
    st.sampled_from([*UNITS]), st.integers(1, 1000), st.integers(1, 10**6), st.integers(2, 30), st.booleans()
)
def test_the_values_of_a_range_are_read_by_their_unit(unit, low, more, steps, log):
    """Law: the i-th of n values is low + i/(n-1) (high - low), or low (high/low)^(i/(n-1)), but for what is
    rounded (six digits of the range, or of the value) and what a unit cannot hold; both ends are as written.
    """
    parse, scale, grain = UNITS[unit]
    high = low + more
    ends = (f"{low} {unit}".replace(" /", "/"), f"{high} {unit}".replace(" /", "/"))
    found = Range(low, high, ends, "1/s" if unit == "/s" else unit, log=log)
    for i in range(steps):
        part = i / (steps - 1)
        wanted = low * (high / low) ** part if log else low + part * (high - low)
        error = abs(parse(found.at(part)) / scale - wanted)  # type: ignore[operator]
        assert error <= 1e-5 * (wanted if log else more) + grain
    assert (found.at(0), found.at(1)) == ends


# Values in step.


def test_zipped_factors_take_their_first_values_together_and_so_on():
    group = {RATE: ["10/s", "20/s", "20/s"], SEED: [1, 1, 2]}
    assert rows(recipe(zip=group)) == [("10/s", 1), ("20/s", 1), ("20/s", 2)]
    assert rows(recipe(zip=[group])) == rows(recipe(zip=group))
    with_range = {RATE: ["10/s", "20/s", "20/s"], SEED: {"from": 1, "to": 3, "steps": 3}}
    assert rows(recipe(zip=with_range)) == [("10/s", 1), ("20/s", 2), ("20/s", 3)]


def test_everything_combines():
    """The product of the grid's lists, the groups and the points of the sample, which change fastest."""
    sample = {"design": "latin_hypercube", "size": 3, "factors": {"run.duration": ["200 s", "300 s"]}}
    groups = [{RATE: ["10/s", "20/s"], SEED: [1, 2]}, {AT: ["65 s", "75 s"]}]
    found = recipe(grid={KIND: ["rsm", "none"]}, zip=groups, sample=sample)
    drawn = rows(recipe(sample=sample))
    wanted = itertools.product(
        [("rsm",), ("none",)], [("10/s", 1), ("20/s", 2)], [("65 s",), ("75 s",)], drawn
    )
    assert rows(found) == [tuple(itertools.chain(*parts)) for parts in wanted]
    assert found.parameters == {KIND: "", RATE: "1/s", SEED: "", AT: "s", "run.duration": "s"}
    assert pickle.loads(pickle.dumps(found)) == found


# Samples.


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 2**63 - 1))
def test_a_latin_hypercube_has_one_point_in_each_part_of_each_range(size, seed):
    """Law (McKay, Beckman, Conover 1979): cut into as many equal parts as there are points, by the value or
    by its logarithm, each part of each factor's range holds one.
    """
    factors = {
        RATE: {"from": "10/s", "to": "1000/s", "scale": "log"},
        "run.duration": {"from": "100 s", "to": "300 s"},
    }
    block = {"design": "latin_hypercube", "size": size, "seed": seed, "factors": factors}
    found = recipe(sample=block)
    rates = [math.log(parse_rate(text) / 10) / math.log(100) for text in column(found, RATE)]
    durations = [(parse_duration(text) / 1e9 - 100) / 200 for text in column(found, "run.duration")]
    for parts in (rates, durations):
        near = [part * size for part in parts]
        # What is rounded to a millionth may have crossed a border.
        assert sorted(math.floor(one) for one in near) == [*range(size)] or any(
            abs(one - round(one)) < 1e-4 * size for one in near
        )
    assert rows(recipe(sample=block)) == rows(found)


def test_sobol_points_are_a_net():
    """Law: of 64 scrambled Sobol' points each eighth of one factor's range crossed with each eighth of the
    other's holds exactly one, and another seed gives other points.
    """
    factors = {key: {"from": 0.0, "to": 1.0} for key in (RATE, AT)}
    found = recipe(sample={"design": "sobol", "size": 64, "factors": factors})
    cells = [tuple(int(8 * value) for value in row) for row in rows(found)]
    assert sorted(cells) == [*itertools.product(range(8), range(8))]
    assert found.remarks == ()
    other = recipe(sample={"design": "sobol", "size": 64, "seed": 2, "factors": factors})
    assert rows(other) != rows(found)
    fewer = recipe(sample={"design": "sobol", "size": 48, "factors": factors})
    assert rows(fewer) == rows(found)[:48]
    assert "a power of two of them, as 32 or 64" in fewer.remarks[0]


def test_whole_numbers_and_listed_values_are_equally_likely():
    """Law: of the n points of a Latin hypercube, k values have n/k each if k divides n."""
    factors = {SEED: {"from": 1, "to": 4}, KIND: ["rsm", "none", "source_replay"]}
    found = recipe(sample={"design": "latin_hypercube", "size": 120, "seed": 3, "factors": factors})
    seeds, kinds = column(found, SEED), column(found, KIND)
    assert {value: seeds.count(value) for value in seeds} == dict.fromkeys([1, 2, 3, 4], 30)
    assert {value: kinds.count(value) for value in kinds} == dict.fromkeys(factors[KIND], 40)


def test_whole_numbers_by_logarithm_are_as_likely_as_their_share():
    """Law: k of 1 to 15 has the share log2((k + 1) / k) / 4 of the points, but for one at each end."""
    factors = {SEED: {"from": 1, "to": 15, "scale": "log"}}
    found = column(recipe(sample={"design": "latin_hypercube", "size": 4000, "factors": factors}), SEED)
    for k in range(1, 16):
        assert found.count(k) == pytest.approx(1000 * np.log2((k + 1) / k), abs=2)


# What is set on the command line.


def test_a_setting_takes_the_place_of_a_swept_keys_values():
    group = {RATE: ["10/s", "20/s"], SEED: [1, 2]}
    sample = {"design": "sobol", "size": 2, "factors": {"run.duration": {"from": "200 s", "to": "300 s"}}}
    spec = {"scenario": "wordcount", "zip": group, "sample": sample}
    found = read(spec, ["run.seed=7", "run.duration=250 s"])
    assert rows(found) == [("10/s", 7, "250 s")] * 2 + [("20/s", 7, "250 s")] * 2
    assert column(read(spec, ["run.seed=[8, 9]"]), SEED) == [8, 8, 9, 9]
    ranged = read({"scenario": "wordcount", "grid": {SEED: [1]}}, ["run.seed={from: 2, to: 6, steps: 3}"])
    assert column(ranged, SEED) == [2, 4, 6]
    with pytest.raises(ScenarioError, match=r"rate: has 2 values, and run\.seed has 3; .* as many") as caught:
        read(spec | {"zip": {RATE: ["10/s", "20/s"], SEED: [1, 2]}}, ["run.seed=[7, 8, 9]"])
    assert len(caught.value.problems) == 1


# What is wrong.

FILE = """\
scenario: wordcount
grid:
  topology.sentences.rate: {from: 10/s, to: 100/s, steps: 4}
zip:
  - failures.0.at: [65 s, 75 s]
    run.seed:
      [1, 2]
sample:
  design: sobol
  size: 4
  factors:
    run.duration: {from: 200 s, to: 300 s, scale: log}
"""

BROKEN = [
    ("steps: 4", "stps: 4", 3, f"grid.{RATE}.stps", "did you mean 'steps'"),
    (", steps: 4", "", 3, f"grid.{RATE}.steps", "is missing"),
    ("steps: 4", "steps: 1", 3, f"grid.{RATE}.steps", "from 2 to 10,000"),
    ("from: 10/s, ", "", 3, f"grid.{RATE}.from", "is missing"),
    ("to: 100/s, ", "", 3, f"grid.{RATE}.to", "is missing"),
    ("to: 100/s", "to: 9/s", 3, f"grid.{RATE}.to", "a range goes up"),
    ("to: 100/s", "to: 9 s", 3, f"grid.{RATE}.to", "not two numbers, or two quantities"),
    ("to: 100/s", "to: many", 3, f"grid.{RATE}.to", "not two numbers, or two"),
    ("10/s, to: 100/s", "0, to: 1", 3, f"grid.{RATE}.steps", "there are only 2 whole numbers"),
    ("steps: 4", "steps: 4, scale: ln", 3, f"grid.{RATE}.scale", "linear and log"),
    ("[65 s, 75 s]", "[65 s]", 5, "zip.0.failures.0.at", "has 1 values, and run.seed has 2"),
    ("[1, 2]", "[1, 2, 3]", 5, "zip.0.failures.0.at", "has 2 values, and run.seed has 3"),
    ("[1, 2]", "{}", 6, "zip.0.run.seed", "must be a list of values"),
    ("design: sobol", "design: sobool", 9, "sample.design", "one of latin_hypercube, sobol"),
    ("  design: sobol\n", "", 8, "sample.design", "is missing"),
    ("size: 4", "size: 0", 10, "sample.size", "from 1 to 100,000"),
    ("size: 4", "size: 4\n  sed: 3", 11, "sample.sed", "did you mean 'seed'"),
    (FILE[FILE.index("  factors:") :], "", 8, "sample.factors", "is missing"),
    ("from: 200 s", "from: 0 s", 12, "sample.factors.run.duration.from", "begins above 0"),
    ("scale: log", "steps: 4", 12, "sample.factors.run.duration.steps", "unknown key"),
    ("run.duration", "run.seed", 6, "zip.0.run.seed", "is swept, so run.seed cannot be set as well"),
    ("    run.seed:\n      [1, 2]\n", "  - 3\n", 6, "zip.1", "must be a mapping"),
    ("300 s", "300", 12, "sample.factors.run.duration.to", "not two numbers"),
]


@pytest.mark.parametrize("row", BROKEN)
def test_broken_factors_are_refused_in_their_line(row, tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(FILE)
    assert read(path).total == 4 * 2 * 4
    broken_file(read, path, FILE, row)


def test_a_value_of_a_range_that_spoils_a_point_is_told_in_the_line_of_the_range(tmp_path):
    path = tmp_path / "sweep.yaml"
    other = "topology.count.parallelism: {from: 0, to: 4, steps: 5}"
    path.write_text(FILE.replace("topology.sentences.rate: {from: 10/s, to: 100/s, steps: 4}", other))
    told(refused(lambda: points(read(path))), f"{path}:3: grid.topology.count.parallelism: ", "at least 1")


INTERVAL, WINDOW, K, HOSTS = "strategy.checkpoint_interval", "topology.count.window", "strategy.k", "hosts"
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
SIGNS |= {"==": operator.eq, "!=": operator.ne}


@settings(max_examples=50)
@given(
    st.lists(st.integers(-3, 9), min_size=1, max_size=5, unique=True),
    st.lists(st.integers(-3, 9), min_size=1, max_size=5, unique=True),
    st.sampled_from([*SIGNS]),
    st.integers(1, 3),
    st.integers(-2, 2),
)
def test_what_is_left_is_what_python_would_leave(a, b, sign, factor, more):
    """Law: of the product, in its order, the rows for which the comparison holds; never none."""
    where = f"{HOSTS} {sign} {factor} * {K} {'+' if more >= 0 else '-'} {abs(more)}"
    wanted = [(x, "s", y) for x in a for y in b if SIGNS[sign](x, factor * y + more)]
    grid = {HOSTS: a, "strategy.kind": ["s"], K: b}
    if not wanted:
        with pytest.raises(ScenarioError, match=rf"where: leaves none of {len(a) * len(b)} points"):
            recipe(grid=grid, where=[where])
        return
    found = recipe(grid=grid, where=[where])
    assert rows(found) == wanted
    assert found.total == len(wanted)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert rows(again) == wanted


def test_quantities_are_compared_in_their_units():
    grid = {INTERVAL: ["500 ms", "30 s", "2 min"], WINDOW: ["30 s", "1 min"]}
    assert left(grid, "checkpoint_interval < count.window") == [
        ("500 ms", "30 s"),
        ("500 ms", "1 min"),
        ("30 s", "1 min"),
    ]
    assert left(grid, "strategy.checkpoint_interval >= 0.5 min", "window<=30s") == [
        ("30 s", "30 s"),
        ("2 min", "30 s"),
    ]
    assert left(grid, "2 * checkpoint_interval + 59.9 s - 0.9 s = window") == [("500 ms", "1 min")]


def test_thirds_add_up():
    """0.1 s + 0.2 s is 0.3 s, and not more."""
    grid = {INTERVAL: ["0.1 s"]}
    assert left(grid, "checkpoint_interval + 0.2 s <= 0.3 s") == [("0.1 s",)]
    with pytest.raises(ScenarioError, match="leaves none"):
        recipe(grid=grid, where=["checkpoint_interval + 0.2 s > 0.3 s"])


def test_a_key_of_the_scenario_need_not_be_swept():
    """The word count's window is 30 s, as its file or what is set for all points says."""
    grid = {INTERVAL: ["10 s", "30 s", "40 s"]}
    where = "checkpoint_interval < topology.count.window"
    assert left(grid, where) == [("10 s",)]
    assert rows(recipe(grid=grid, where=[where], set={WINDOW: "35 s"})) == [("10 s",), ("30 s",)]


def test_texts_are_equal_or_not():
    grid = {KIND: ["rsm", "none", "source_replay"], "run.seed": [1, 2]}
    assert left(grid, "kind != none", "run.seed = 2") == [("rsm", 2), ("source_replay", 2)]


def test_nothing_is_neither_less_nor_more_nor_equal():
    grid = {INTERVAL: [None, "10 s"]}
    assert left(grid, "checkpoint_interval <= 10 s") == [("10 s",)]
    assert left(grid, "checkpoint_interval != 10 s") == [(None,)]


def test_points_of_a_sample_are_left_out_as_well():
    ends = {"from": 0.0, "to": 1.0}
    sample = {"design": "sobol", "size": 64, "factors": {"a.x": ends, "a.y": ends}}
    every, found = recipe(sample=sample), recipe(sample=sample, where=["x + y < 1", "x < y"])
    assert rows(found) == [(x, y) for x, y in rows(every) if x + y < 1 and x < y]
    assert 0 < found.total < 64


GRID = {INTERVAL: ["10 s"], "strategies.rsm.checkpoint_interval": ["5 s"], K: [1], KIND: ["rsm", "none"]}
NO_CONSTRAINTS = [
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


@pytest.mark.parametrize(("where", "says"), NO_CONSTRAINTS)
def test_a_broken_constraint_is_refused(where, says):
    (said,) = refused(lambda: recipe(grid=GRID, where=["k = 1", where]))
    assert says in said.partition(" where.1: ")[2]


def test_constraints_are_a_list():
    with pytest.raises(ScenarioError, match="where: must be a list of comparisons"):
        recipe(grid=GRID, where="k = 1")


def test_a_large_product_is_allowed_if_little_of_it_is_left():
    grid = {"run.seed": [*range(999)], HOSTS: [*range(999)]}
    found = recipe(grid=grid, where=["hosts = run.seed"])
    assert (found.total, found.values(998)) == (999, {"run.seed": 998, HOSTS: 998})
    with pytest.raises(ScenarioError, match=r"grid: has 1,001,000 combinations; at most 1,000,000"):
        recipe(grid={SEED: [*range(1001)], HOSTS: [*range(1000)]}, where=["hosts = run.seed"])
