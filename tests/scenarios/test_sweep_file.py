"""Sweep files are checked before anything runs."""

from pathlib import Path

import pytest

from tideover.scenarios import library, runs
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.scenarios.sweeps import sweep_file
from tideover.scenarios.sweeps.recipe import Recipe

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
    return sweep_file.read(str(path), settings)


def test_points_are_the_product_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = read_file(tmp_path, FILE)
    units = {"strategy.kind": "", "topology.sentences.rate": "1/s", "failures.0.at": "s"}
    assert (list(found.parameters), found.parameters) == (list(units), units)
    assert [tuple(point.values.values()) for point in found.checked()] == [
        (kind, rate, at)
        for kind in ("source_replay", "rsm")
        for rate in ("10/s", "20/s")
        for at in ("65 s", "75 s")
    ]
    assert [point.number for point in found.checked()] == list(range(8))
    assert found.total * found.replications.least == 24
    last = found.point(found.total - 1).scenario
    expected = ["strategy.kind=rsm", "topology.sentences.rate=20/s", "failures.0.at=75s"]
    same = load("wordcount", ["run.duration=180s", "run.replications=3", *expected])
    assert last == same


def test_the_command_line_changes_keys_of_all_points_and_values_of_the_grid(tmp_path: Path) -> None:
    found = read_file(tmp_path, FILE, "failures.0.at=[70 s]", "run.seed=9", "strategy.kind=none")
    assert [tuple(point.values.values()) for point in found.checked()] == [
        ("none", "10/s", "70 s"),
        ("none", "20/s", "70 s"),
    ]
    assert {point.scenario.run.seed for point in found.checked()} == {9}


def test_the_scenario_may_be_a_file_beside_it_or_stand_inside(tmp_path: Path) -> None:
    inside = tmp_path / "deeper"
    inside.mkdir()
    text = (Path(runs.__file__).parent / "library" / "wordcount.yaml").read_text()
    (inside / "mine.yaml").write_text(text)
    (inside / "sweep.yaml").write_text("scenario: mine.yaml\ngrid: {run.seed: [1, 2]}\n")
    beside = sweep_file.read(inside / "sweep.yaml")
    indented = "".join(f"  {line}\n" for line in text.splitlines())
    within = read_file(tmp_path, f"scenario:\n{indented}grid: {{run.seed: [1, 2]}}\n")
    assert [p.scenario for p in beside.checked()] == [p.scenario for p in within.checked()]


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
    ("replications: 3", "replications: 0", 9, "replications", "at least 1"),
    ("replications: 3", "seed: -1", 9, "seed", "at least 0"),
    ("replications: 3", "replications: 3\nreplications: 4", 10, "replications", "given twice"),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "says"), BROKEN)
def test_a_broken_sweep_file_is_refused_in_its_line(
    old: str, new: str, line: int, key: str, says: str, tmp_path: Path
) -> None:
    assert FILE.count(old) == 1
    with pytest.raises(ScenarioError) as caught:
        read_file(tmp_path, FILE.replace(old, new)).checked()
    found = caught.value.problems
    assert any((p.line, p.key) == (line, key) and says in p.message for p in found), str(caught.value)
    assert all(p.file == str(tmp_path / "sweep.yaml") for p in found)


def test_overlapping_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"grid\.strategy: is swept, so strategy\.kind"):
        read_file(tmp_path, FILE.replace("grid:", "grid:\n  strategy: [rsm, none]"))


def test_a_grid_that_is_too_large_is_refused_at_once() -> None:
    values = list(range(1, 400))
    with pytest.raises(ScenarioError, match="159,201 combinations"):
        sweep_file.read({"scenario": "wordcount", "grid": {"run.seed": values, "strategy.k": values}})


def test_an_unknown_sweep_names_the_known_ones() -> None:
    with pytest.raises(ScenarioError, match=r"neither a file nor a built-in sweep; .*wordcount-sweep"):
        sweep_file.read("nothing-like-it")
    with pytest.raises(ScenarioError, match="did you mean 'wordcount-sweep'"):
        sweep_file.read("wordcount")


@pytest.mark.parametrize("name", library.sweeps())
def test_built_in_sweeps_are_small_and_no_scenarios(name: str) -> None:
    found = sweep_file.read(name)
    assert 4 <= found.total * found.replications.most <= 200
    assert "strategy.kind" in found.parameters
    with pytest.raises(
        ScenarioError, match=f"is a sweep, not a scenario; use it as in tideover sweep {name}"
    ):
        load(name)


def test_a_built_in_sweep_takes_settings() -> None:
    found = sweep_file.read(
        "wordcount-sweep", ["strategy.kind=rsm", "failures.0.at=[70 s]", "run.replications=1"]
    )
    assert [tuple(point.values.values()) for point in found.checked()] == [
        ("rsm", "10/s", "70 s"),
        ("rsm", "50/s", "70 s"),
    ]
    assert found.total * found.replications.least == 2
