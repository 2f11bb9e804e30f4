"""Sweep files are checked before anything runs; a recipe makes any point by its number, wherever it is."""

import itertools
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from tests.scenarios.refused import broken_file, refused, told
from tests.sweeps import points
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios import library, runs
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.scenarios.sweeps.sweep_file import Recipe, fixed, read

FILE = """\
scenario: wordcount
set: {run.duration: 180 s}
grid:
  strategy.kind: [source_replay, rsm]
  topology.sentences.rate: [10/s, 20/s]
  failures.0.at:
    - 65 s
    - 75 s
replications: 3
"""


def read_file(tmp_path: Path, text: str, *settings: str) -> Recipe:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    return read(str(path), settings)


def test_the_command_line_changes_keys_of_all_points_and_values_of_the_grid(tmp_path):
    found = read_file(tmp_path, FILE, "failures.0.at=[70 s]", "run.seed=9", "strategy.kind=none")
    every = [tuple(point.values.values()) for point in points(found)]
    assert every == [("none", "10/s", "70 s"), ("none", "20/s", "70 s")]
    assert {point.scenario.run.seed for point in points(found)} == {9}


def test_the_scenario_may_be_a_file_beside_it_or_stand_inside(tmp_path):
    inside = tmp_path / "deeper"
    inside.mkdir()
    text = (Path(runs.__file__).parent / "library" / "wordcount.yaml").read_text()
    (inside / "mine.yaml").write_text(text)
    (inside / "sweep.yaml").write_text("scenario: mine.yaml\ngrid: {run.seed: [1, 2]}\n")
    beside = read(inside / "sweep.yaml")
    indented = "".join(f"  {line}\n" for line in text.splitlines())
    within = read_file(tmp_path, f"scenario:\n{indented}grid: {{run.seed: [1, 2]}}\n")
    assert [p.scenario for p in points(beside)] == [p.scenario for p in points(within)]


# What is replaced in the file, by what, then line, key, part of the message.
BROKEN = [
    ("scenario: wordcount", "scenario: wordcont", 1, "scenario", "did you mean 'wordcount'"),
    ("scenario: wordcount", "scenario: ./no.yaml", 1, "scenario", "does not exist"),
    ("scenario: wordcount", "scenario: 3", 1, "scenario", "neither a name nor a path"),
    ("scenario: wordcount\n", "", 1, "scenario", "is missing"),
    ("set:", "sett:", 2, "sett", "did you mean 'set'"),
    ("180 s", "180", 2, "set.run.duration", "has no unit"),
    ("run.duration", "run.durration", 2, "set.run.durration", "did you mean 'duration'"),
    ("{run.duration: 180 s}", "[1]", 2, "set", "must be a mapping"),
    ("rsm]", "rms]", 4, "grid.strategy.kind", "did you mean 'rsm'"),
    ("20/s]", "20]", 5, "grid.topology.sentences.rate", "has no unit"),
    ("[10/s, 20/s]", "10/s", 5, "grid.topology.sentences.rate", "must be a list"),
    ("[10/s, 20/s]", "[]", 5, "grid.topology.sentences.rate", "an empty list"),
    ("20/s]", "10/s]", 5, "grid.topology.sentences.rate", "twice"),
    ("sentences.rate", "sentence.rate", 5, "grid.topology.sentence.rate", "did you mean 'sentences'"),
    ("- 75 s", "- 200 s", 8, "grid.failures.0.at", "not within the run"),
    ("failures.0", "failures.1", 7, "grid.failures.1.at", "no entry '1'"),
    ("grid:", "grid:\n  strategy: [rsm, none]", 4, "grid.strategy", "is swept, so strategy.kind"),
    ("replications: 3", "replications: 0", 9, "replications", "at least 1"),
    ("replications: 3", "seed: -1", 9, "seed", "at least 0"),
    ("replications: 3", "replications: 3\nreplications: 4", 10, "replications", "given twice"),
]


@pytest.mark.parametrize("row", BROKEN)
def test_a_broken_sweep_file_is_refused_in_its_line(row, tmp_path):
    broken_file(lambda path: points(read(path)), tmp_path / "sweep.yaml", FILE, row)


def test_a_grid_that_is_too_large_is_refused_at_once():
    values = list(range(1, 400))
    with pytest.raises(ScenarioError, match="159,201 combinations"):
        read({"scenario": "wordcount", "grid": {"run.seed": values, "strategy.k": values}})


def test_an_unknown_sweep_names_the_known_ones():
    with pytest.raises(ScenarioError, match=r"neither a file nor a built-in sweep; .*wordcount-sweep"):
        read("nothing-like-it")
    with pytest.raises(ScenarioError, match="did you mean 'wordcount-sweep'"):
        read("wordcount")


@pytest.mark.parametrize("name", library.sweeps())
def test_built_in_sweeps_are_small_and_no_scenarios(name):
    found = read(name)
    assert 4 <= found.total * found.replications.most <= 200
    assert "strategy.kind" in found.parameters
    use = f"is a sweep, not a scenario; use it as in tideover sweep {name}"
    told(refused(load, name), "", use)


SPEC = {
    "scenario": "wordcount",
    "set": {"run.duration": "180 s"},
    "grid": {
        "strategy.kind": ["source_replay", "rsm"],
        "topology.sentences.rate": ["10/s", "20/s", "30/s"],
        "run.seed": [4, 5],
    },
    "replications": 3,
}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_a_number_names_what_the_product_has_there(sizes, data):
    """Law: point n is the n-th of `itertools.product` of the lists: the last key changes fastest."""
    keys = ["run.seed", "run.duration", "topology.sentences.rate", "topology.count.parallelism"]
    grid = {key: [f"{key} {i}" for i in range(size)] for key, size in zip(keys, sizes, strict=False)}
    recipe = read({"scenario": "wordcount", "grid": grid})
    wanted = list(itertools.product(*grid.values()))
    assert recipe.total == len(wanted)
    number = data.draw(st.integers(0, recipe.total - 1))
    assert recipe.values(number) == dict(zip(grid, wanted[number], strict=True))


def test_a_point_is_the_scenario_with_its_values_set():
    recipe = read(SPEC)
    assert (recipe.name, recipe.replications) == ("word count", fixed(3))
    assert recipe.parameters == {"strategy.kind": "", "topology.sentences.rate": "1/s", "run.seed": ""}
    for number in range(recipe.total):
        point = recipe.point(number)
        given = [f"{key}={value}" for key, value in point.values.items()]
        assert point.scenario == load("wordcount", ["run.duration=180s", "run.replications=3", *given])
    assert points(recipe) == [recipe.point(number) for number in range(recipe.total)]


@pytest.mark.parametrize("number", [-1, 12])
def test_there_are_no_other_points(number):
    with pytest.raises(ScenarioError, match=f"there is no point {number}; points are 0 to 11"):
        read(SPEC).values(number)


def test_a_recipe_reads_points_when_they_are_asked_for(tmp_path):
    """A value that spoils a point says so there, in its line, and the others can be made."""
    path = tmp_path / "sweep.yaml"
    path.write_text("scenario: wordcount\ngrid:\n  run.seed: [1, 2]\n  run.warmup:\n    - 5 s\n    - 5\n")
    recipe = read(path)
    assert recipe.point(2).values == {"run.seed": 2, "run.warmup": "5 s"}
    with pytest.raises(ScenarioError, match=r"sweep\.yaml:6: grid\.run\.warmup: 5 has no unit"):
        recipe.point(3)


def test_replications_are_the_same_for_all_points():
    """The number of runs is known without any point being made."""
    assert read({"scenario": "wordcount", "grid": {}}).replications == fixed(5)
    recipe = read({"scenario": "wordcount", "grid": {"run.replications": [5, 7]}})
    assert recipe.point(0).scenario.run.replications == 5
    with pytest.raises(ScenarioError, match=r"run\.replications: is 7 in point 1; it cannot be swept"):
        recipe.point(1)


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_a_pickled_recipe_makes_the_same_points(pickler):
    recipe = read(SPEC)
    recipe.point(0)
    again = pickle.loads(pickler.dumps(recipe))  # type: ignore[attr-defined]
    assert again == recipe
    assert points(again) == points(recipe)


def test_what_is_pickled_does_not_grow_with_the_number_of_points():
    """It has the lists, not their product: ten times the points by one more list of ten values are as many
    bytes more as any ten values.
    """
    ten = [*range(1, 11)]
    grid = {"run.seed": ten, "topology.count.parallelism": ten, "topology.split.parallelism": ten}
    sizes = [
        len(pickle.dumps(read({"scenario": "wordcount", "grid": dict([*grid.items()][:count])})))
        for count in (1, 2, 3)
    ]
    assert sizes[2] - sizes[1] == pytest.approx(sizes[1] - sizes[0], rel=0.1)


def elsewhere(file: Path, asked: str) -> str:
    """What another process prints of a pickled recipe."""
    code = f"import pickle, sys; recipe = pickle.load(open(sys.argv[1], 'rb')); print({asked})"
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True, cwd=file.parent)
    return done.stdout.strip()


def test_parts_of_others_travel_with_the_recipe(tmp_path):
    """A strategy that was defined here, and nowhere that could be imported, is known in another process."""

    class Own(Strategy):
        def protocol(self, world):
            raise NotImplementedError

    STRATEGIES.register("own")(Own)
    try:
        recipe = read({"scenario": "wordcount", "grid": {"strategy.kind": ["own"]}})
        (tmp_path / "recipe").write_bytes(cloudpickle.dumps(recipe))
    finally:
        STRATEGIES.discard("own")
    assert elsewhere(tmp_path / "recipe", "type(recipe.point(0).scenario.strategy).__name__") == "Own"


@pytest.mark.parametrize("swept", [False, True])
def test_a_recipe_needs_no_file_of_a_profile(swept, tmp_path):
    """Law: the points of a pickled recipe are the same where the files that it was made from are not: in
    another process and directory, after they are gone.
    """
    names = ["one", "two"] if swept else ["one"]
    for name in names:
        text = f"name: {name}\nvalues: {{failures: {{lose_state: {{detection: 5 s}}}}}}\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    scenario = (Path(library.__file__).parent / "library" / "wordcount.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(scenario + ("" if swept else "profile: one.yaml\n"))
    paths = [str(tmp_path / f"{name}.yaml") for name in names]
    grid = {"strategy.kind": ["rsm"]} | ({"profile": paths} if swept else {})
    recipe = read({"scenario": tmp_path / "mine.yaml", "grid": grid})
    (tmp_path / "recipe").write_bytes(pickle.dumps(recipe))
    here = points(recipe)
    for file in tmp_path.glob("*.yaml"):
        file.unlink()
    assert points(pickle.loads(pickle.dumps(recipe))) == here
    asked = "[recipe.point(number).scenario.profile.name for number in range(recipe.total)]"
    assert elsewhere(tmp_path / "recipe", asked) == f"{names}"
