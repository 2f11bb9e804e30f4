"""What the library takes from Python: numpy's numbers, numbers with units, settings as a mapping."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tideover
from tests.sweeps import points
from tideover import api
from tideover.scenarios import library
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.sweeps import sweep_file
from tideover.sim.units import parse_bandwidth, parse_duration, parse_rate, parse_size

TWO_STRATEGIES = ["none", "rsm"]


def test_numpys_numbers_are_numbers_in_a_mapping() -> None:
    """A mapping with numpy's integers, an array and a tuple is the scenario that it is with Python's own."""
    plain = to_data(tideover.load("wordcount"))
    plain["topology"]["split"]["hosts"], plain["topology"]["split"]["parallelism"] = [0, 1], 2
    data = to_data(tideover.load("wordcount"))
    data["topology"]["split"]["hosts"] = np.array([0, 1])
    data["topology"]["split"]["parallelism"] = np.int8(2)
    data["run"]["seed"] = np.int64(plain["run"]["seed"])
    data["failures"] = tuple(data["failures"])
    assert tideover.load(data) == tideover.load(plain)


@pytest.mark.parametrize(
    "values",
    [np.arange(3), np.arange(3.0).astype(int), pd.Series([0, 1, 2]), range(3), (0, np.uint8(1), 2)],
    ids=lambda values: type(values).__name__,
)
def test_a_grid_takes_any_list_of_numbers(values: object) -> None:
    """The points of ``run.seed`` in 0, 1, 2, whatever the list is made of; as settings, too."""
    spec = {"scenario": "wordcount", "grid": {"run.seed": [0, 1, 2]}}
    wanted = points(sweep_file.read(spec))
    assert [point.scenario.run.seed for point in wanted] == [0, 1, 2]
    assert points(sweep_file.read(spec | {"grid": {"run.seed": values}})) == wanted
    assert points(sweep_file.read(spec | {"grid": {"run.seed": [7]}}, {"run.seed": values})) == wanted


def test_paths_are_texts(tmp_path: Path) -> None:
    """A sweep in Python names its scenario by a ``Path`` as well as by a text."""
    path = tmp_path / "mine.yaml"
    path.write_text(library.text("wordcount"))
    found = sweep_file.read({"scenario": path, "grid": {"run.seed": [1]}})
    assert found.point(0).scenario == tideover.load(path)


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ({"scenario": "wordcount", "grid": {"run.seed": {1, 2}}}, "grid.run.seed"),
        ({"scenario": "wordcount", "grid": {"run.seed": [1, object()]}}, "grid.run.seed.1"),
        ({"scenario": "wordcount", "grid": {"run.seed": [1]}, "set": {"hosts": 1j}}, "set.hosts"),
    ],
)
def test_what_no_file_could_hold_is_refused_with_its_key(source: dict[str, object], key: str) -> None:
    """A set, an object or a complex number is named with its place, before numpy, json or pydantic see it."""
    with pytest.raises(tideover.ScenarioError, match=rf"^sweep: {key}: is an? \w+; give a number, a text"):
        sweep_file.read(source)
    # The same for settings, which stand for ``--set``.
    with pytest.raises(tideover.ScenarioError, match=r"^--set: run\.seed: is a set; give a number"):
        tideover.load("wordcount", {"run.seed": {3}})


# Settings.


def test_what_with_is_given_twice_is_refused() -> None:
    """In the mapping and by name: it is not clear which one is meant."""
    base = tideover.load("wordcount")
    said = r"^with_: strategy: is given twice, in the mapping and by"
    with pytest.raises(tideover.ScenarioError, match=said):
        base.with_({"strategy": "none"}, strategy=tideover.Amnesia())
    with pytest.raises(tideover.ScenarioError, match=r"^with_: rate: is given twice"):
        tideover.load("demeter-ads").with_({"rate": "1000/s"}, rate="2000/s")


def test_settings_may_be_a_mapping() -> None:
    """A mapping says what the texts ``key=value`` say, for one scenario, several strategies, and a sweep."""
    texts = ["run.seed=3", "run.duration=120 s", "topology.split.hosts=[0]", "run.log_resolution=null"]
    mapping = {
        "run.seed": np.int64(3),
        "run.duration": tideover.seconds(120),
        "topology.split.hosts": np.array([0]),
        "run.log_resolution": None,
    }
    assert tideover.load("wordcount", mapping) == tideover.load("wordcount", texts)
    loaded = tideover.load("wordcount")
    assert api.loaded(loaded, settings=mapping) == tideover.load("wordcount", texts)
    compared = [api.compared("wordcount", TWO_STRATEGIES, given) for given in (mapping, texts)]
    assert compared[0] == compared[1]
    spec = {"scenario": "wordcount", "grid": {"failures.0.at": ["65 s", "75 s"]}}
    assert points(sweep_file.read(spec, mapping)) == points(sweep_file.read(spec, texts))


def test_a_short_parameter_may_be_set_by_a_mapping() -> None:
    """``rate`` and ``capacity`` (given as a rate, set as the time of one tuple) as with ``--set``."""
    texts = ["rate=30000/s", "capacity=40000/s"]
    mapping = {"rate": tideover.per_second(30_000), "capacity": tideover.per_second(40_000)}
    assert tideover.load("flink-recovery", mapping) == tideover.load("flink-recovery", texts)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tideover.run("wordcount", "run.seed=3"),
        lambda: tideover.compare("wordcount", settings="run.seed=3"),
        lambda: tideover.sweep("wordcount-sweep", "run.seed=3", master=None),
        lambda: tideover.load("wordcount", "run.seed=3"),
    ],
    ids=["run", "compare", "sweep", "load"],
)
def test_a_text_is_no_list_of_settings(call: object) -> None:
    """One error that shows both ways to write it, not one for each character."""
    said = r"^settings is the text 'run\.seed=3'; give a list, \['run\.seed=3'\], or a mapping, "
    with pytest.raises(TypeError, match=said + r"\{'run\.seed': '3'\}$"):
        call()  # type: ignore[operator]


def test_pairs_are_no_settings_and_a_text_is_no_list_of_strategies() -> None:
    with pytest.raises(TypeError, match=r"settings has \('run\.seed', 3\); give texts"):
        tideover.load("wordcount", [("run.seed", 3)])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"^strategies is the text 'rsm'; give a list, \['rsm'\]$"):
        tideover.compare("wordcount", "rsm")


# Numbers with units.

LARGEST = 10**12


@given(st.integers(1, LARGEST))
def test_a_number_with_a_unit_is_what_a_file_would_say(number: int) -> None:
    """A file's text of so many seconds, milliseconds, 1/s, B or B/s, from any kind of number."""
    rate = number % 10**9 + 1
    for kind in (int, float, np.int64, np.float64):
        assert parse_duration(tideover.seconds(kind(number % 10**6))) == number % 10**6 * 10**9
        assert parse_duration(tideover.milliseconds(kind(number % 10**9))) == number % 10**9 * 10**6
        assert parse_rate(tideover.per_second(kind(rate))) == rate
        assert parse_size(tideover.n_bytes(kind(number))) == number
        assert parse_bandwidth(tideover.bytes_per_second(kind(number))) == number


@given(st.floats(1e-9, 1e6))
def test_a_fraction_of_a_second_is_rounded_to_the_nearest_nanosecond(number: float) -> None:
    """Within half a nanosecond of the number, and what is lost of a float of this size (2⁻⁵³ of it)."""
    assert abs(parse_duration(tideover.seconds(number)) - number * 1e9) <= 0.5 + number * 1e9 * 2**-52


@pytest.mark.parametrize("values", [[1, 2.5], (1, 2.5), np.array([1, 2.5]), pd.Series([1, 2.5])])
def test_of_several_numbers_it_is_a_list(values: object) -> None:
    """As a grid takes it: the swept values are then these texts."""
    assert tideover.seconds(values) == ["1 s", "2.5 s"]
    spec = {"scenario": "wordcount", "grid": {"failures.0.at": tideover.seconds(np.array([65, 75.5]))}}
    times = [point.scenario.failures[0].at for point in points(sweep_file.read(spec))]
    assert times == [65_000_000_000, 75_500_000_000]


@pytest.mark.parametrize("value", ["3", "3 s", True, None, 3j])
def test_a_unit_is_given_to_numbers_only(value: object) -> None:
    """A text has its own, a truth is no number."""
    with pytest.raises(TypeError, match="is not a number"):
        tideover.seconds(value)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "call",
    [
        lambda: tideover.seconds(-1),
        lambda: tideover.seconds(float("nan")),
        lambda: tideover.milliseconds(1e-7),
        lambda: tideover.per_second(0),
        lambda: tideover.n_bytes(1.5),
        lambda: tideover.bytes_per_second(0),
    ],
)
def test_a_number_that_no_file_could_hold_is_refused_at_once(call: object) -> None:
    """Negative, not a number, under 1 ns, a rate of zero, part of a byte, a bandwidth of zero."""
    with pytest.raises(ValueError, match=r"^'"):
        call()  # type: ignore[operator]
