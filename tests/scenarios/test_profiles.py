"""Profiles: what a scenario takes from them, and what is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jsonschema
import pytest

import tideover
from tests.scenarios.profile_texts import PROFILE, SCENARIO
from tideover.scenarios import library, loader, profiles
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.reference import json_schema
from tideover.scenarios.sweeps import sweep_file
from tideover.sim.units import MS, S


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "measured.yaml").write_text(PROFILE)
    (tmp_path / "test.yaml").write_text(SCENARIO)
    return tmp_path / "test.yaml"


def test_a_profile_gives_what_the_scenario_does_not(files: Path) -> None:
    """The file's own keys and its block ``strategies`` win; what neither has comes from the profile."""
    s = load(files)
    assert (s.strategy.checkpoint_interval, s.strategy.restore_time) == (7 * S, 3 * MS)
    assert [(f.detection, f.restart) for f in s.failures] == [(10 * S, 5 * S), (S, 5 * S)]
    assert s.topology["job"].service.value == 5 * MS
    assert s.run.seed == 5
    assert s.profile is not None
    assert s.profile.name == "measured"
    assert s.profile.sha256 == hashlib.sha256(PROFILE.encode()).hexdigest()
    assert s.profile.taken == {
        "strategy.restore_time": "strategy.rsm.restore_time",
        "failures.0.detection": "failures.crash_task.detection",
        "failures.0.restart": "failures.crash_task.restart",
        "failures.1.restart": "failures.crash_task.restart",
        "run.seed": "run.seed",
    }


def test_a_setting_wins_over_the_profile(files: Path) -> None:
    s = load(files, ["failures.0.restart=1 s", "run.seed=2"])
    assert (s.failures[0].restart, s.failures[1].restart, s.run.seed) == (S, 5 * S, 2)
    assert load(files, ["profile=null"]).profile is None


def test_the_kind_that_is_simulated_gets_its_own_values(files: Path) -> None:
    assert load(files, ["strategy.kind=source_replay"]).strategy.ack_cost == MS
    files.write_text(files.read_text().replace("component: job", "component: driver"))
    assert [f.restart for f in load(files, ["strategy.kind=micro_batch"]).failures] == [9 * S, 5 * S]


def test_a_path_starts_at_the_file_or_where_the_command_runs(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "other.yaml").write_text(PROFILE.replace("name: measured", "name: other"))
    monkeypatch.chdir(tmp_path / "here")
    assert load(files).profile.name == "measured"
    assert load(files, ["profile=other.yaml"]).profile.name == "other"
    with pytest.raises(ScenarioError, match=r"--set: profile: there is no file 'measured.yaml'"):
        load(files, ["profile=measured.yaml"])


def test_a_completed_scenario_is_read_back_as_it_was(files: Path) -> None:
    found = load(files)
    assert load(to_data(found)) == found
    jsonschema.validate(to_data(found), json_schema())
    assert tideover.run(found, ["failures=[]"]).to_dict()["prediction"] is None


# ruff: noqa: E501
BROKEN = [
    ("name: measured", "nam: measured", 1, "nam", "did you mean 'name'?"),
    ("rsm:", "rms:", 4, "values.strategy.rms", "did you mean 'rsm'?"),
    ("restore_time", "restor_time", 4, "values.strategy.rsm.restor_time", "did you mean 'restore_time'?"),
    ("3 ms", "3", 4, "values.strategy.rsm.restore_time", "3 has no unit"),
    ("9 s, rest", "0 s, rest", 4, "values.strategy.rsm.checkpoint_interval", "greater than or equal"),
    ("driver:", "drivers:", 5, "values.failures.drivers", "unknown kind; did you mean 'driver'?"),
    (
        "forward: {service: 2 ms}",
        "forward: {service: {kind: expo}}",
        6,
        "values.bolts.forward.service.kind",
        "unknown distribution",
    ),
    (
        "forward: {service: 2 ms}",
        "forward: {from: {a: shuffle}}",
        6,
        "values.bolts.forward.from",
        "unknown key",
    ),
    ("seed: 5", "seed: x", 7, "values.run.seed", "valid integer"),
    ("low: 3 s, ", "", 9, "intervals.failures.crash_task.restart.low", "is missing"),
    (
        "  failures.crash_task.restart: {low",
        "  failures.crash_task.restar: {low",
        9,
        "intervals.failures.crash_task.restar",
        "did you mean",
    ),
    (
        "keys: [failures.crash_task.detection",
        "keys: [failures.crash_task.detectio",
        11,
        "draws.keys.0",
        "there is no such value",
    ),
    ("[10 s, 5 s]", "[10 s]", 12, "draws.rows.1", "a list of 2 values"),
    ("[10 s, 5 s]", "[10 s, 5]", 12, "draws.rows.1", "5 has no unit"),
    ("catch_up_s: 0.05", "catch_up: 0.05", 13, "scatter.catch_up", "did you mean 'catch_up_s'?"),
    ("catch_up_s: 0.05", "catch_up_s: -1", 13, "scatter.catch_up_s", "at least 0"),
    ("catch_up_s: 0.05", "catch_up_s: 99990", 13, "scatter.catch_up_s", "at most 10"),
    ("catch_up_s: 0.05", "catch_up_s: .nan", 13, "scatter.catch_up_s", "must be a number"),
    ("low: 3 s", "low: banana", 9, "intervals.failures.crash_task.restart.low", "'banana' is not a duration"),
    ("high: 8 s", "high: 8", 9, "intervals.failures.crash_task.restart.high", "8 has no unit"),
    (
        "low: 3 s",
        "low: 9 s",
        9,
        "intervals.failures.crash_task.restart",
        "low is more than high: 9 s and 8 s",
    ),
    (
        "identified: false",
        "identified: maybe",
        9,
        "intervals.failures.crash_task.restart.identified",
        "must be true or false",
    ),
    ("name: measured", "name: [a]", 1, "name", "must be a text, not a list"),
    (
        "errors:",
        "ranges: {rate: {low: 2000, high: 3000/s}}\nerrors:",
        14,
        "ranges.rate.low",
        "2000 has no unit",
    ),
    ("errors:", "ranges: {interval: {low: 2 s}}\nerrors:", 14, "ranges.interval.high", "is missing"),
    ("errors:", "ranges: {rate: {low: 2/s, high: 1/s}}\nerrors:", 14, "ranges.rate", "low is more than high"),
    ("errors:", "ranges: {speed: {low: 2/s, high: 3/s}}\nerrors:", 14, "ranges.speed", "unknown key"),
    ("errors:", "ranges: {rate: 3/s}\nerrors:", 14, "ranges.rate", "must be a mapping"),
    ("values:", "vals:", 1, "values", "is missing"),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "says"), BROKEN)
def test_broken_profiles(files: Path, old: str, new: str, line: int, key: str, says: str) -> None:
    profile = files.parent / "measured.yaml"
    profile.write_text(PROFILE.replace(old, new, 1))
    with pytest.raises(ScenarioError) as caught:
        load(files)
    place = f"{profile}:{line}: {key}: "
    assert any(str(p).startswith(place) and says in str(p) for p in caught.value.problems), caught.value


def test_an_interval_of_a_distribution_goes_by_its_mean(files: Path) -> None:
    profile = files.parent / "measured.yaml"
    key = "bolts.forward.service"
    service = "{kind: exponential, mean: 2 ms}"
    for low, high in (("1 ms", service), (service, "2 ms")):
        profile.write_text(PROFILE.replace("draws:", f"  {key}: {{low: {low}, high: {high}}}\ndraws:"))
        assert profiles.read(profile).intervals[key]["identified"] is True
    profile.write_text(PROFILE.replace("draws:", f"  {key}: {{low: 3 ms, high: {service}}}\ndraws:"))
    with pytest.raises(ScenarioError, match=f"intervals.{key}: low is more than high"):
        profiles.read(profile)


def test_an_empty_profile_is_told_what_a_profile_is(files: Path) -> None:
    (files.parent / "measured.yaml").write_text("")
    with pytest.raises(ScenarioError, match=r"measured.yaml:1: \(file\): is empty; a profile is a mapping"):
        load(files)


# -- profiles that do not fit --------------------------------------------------------------------------------

OTHER = """\
name: other
values:
  strategy: {aligned_snapshots: {checkpoint_interval: 9 s}}
  failures: {crash_host: {restart: 7 s}}
  run: {lag_window: 30 s}
scatter: {catch_up_s: 0.05}
"""


@pytest.mark.parametrize("more", ["", "  bolts: {forward: {service: 2 ms}}\n"])
def test_a_profile_that_gives_nothing_is_refused(files: Path, more: str) -> None:
    """Values of ``run`` alone say how something was measured that is not there; they are nothing.

    job has a service of its own, so a profile that has one for it gives nothing either.
    """
    (files.parent / "measured.yaml").write_text(OTHER.replace("  run:", f"{more}  run:"))
    with pytest.raises(ScenarioError) as caught:
        load(files)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{files}:12: profile: other gives nothing to this scenario: ")
    assert ("topology.job.service" if more else "failures crash_host; the scenario has strategy rsm") in str(
        problem
    )
    assert "; of the built-in scenarios it fits flink-recovery" in str(problem)


@pytest.mark.parametrize("values", ["{}", "{run: {lag_window: 30 s}}"])
def test_a_profile_without_values_is_refused(files: Path, values: str) -> None:
    (files.parent / "measured.yaml").write_text(f"name: bare\nvalues: {values}\n")
    with pytest.raises(ScenarioError, match="bare gives nothing to this scenario: it has no value for any"):
        load(files)


def test_a_profile_may_give_nothing_to_some_of_several(files: Path) -> None:
    """Under aligned_snapshots it gives the snapshot's time; under none nothing, which is said, and no more."""
    (files.parent / "measured.yaml").write_text(OTHER)
    found = loader.load_for_strategies(files, ["aligned_snapshots", "none"])
    assert [s.profile.taken for s in found.values()] == [
        {
            "strategy.checkpoint_interval": "strategy.aligned_snapshots.checkpoint_interval",
            "run.lag_window": "run.lag_window",
        },
        {},
    ]
    assert found["none"].run.lag_window is None
    result = tideover.run(found["none"])
    assert result.prediction is None
    assert "profile other: gives nothing under none; no value was measured" in result.warnings
    with pytest.raises(ScenarioError, match="other gives nothing"):
        loader.load_for_strategies(files, ["source_replay", "none"])
    swept = {"scenario": str(files), "grid": {"strategy.kind": ["none", "aligned_snapshots"]}}
    assert len(sweep_file.read(swept).checked()) == 2
    with pytest.raises(ScenarioError, match=f"^{files}:12: profile: other gives nothing"):
        sweep_file.read(swept | {"grid": {"strategy.kind": ["none", "source_replay"]}}).checked()


def test_what_is_missing_is_told_with_the_profile(files: Path) -> None:
    """end has a service, job has none, and the profile has one for other bolts only."""
    files.write_text(files.read_text().replace(", service: 5 ms}", "}"))
    (files.parent / "measured.yaml").write_text(PROFILE.replace("forward: {", "filter: {"))
    with pytest.raises(ScenarioError) as caught:
        load(files)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{files}:4: topology.job.service: is missing")
    only = "only bolts.filter.service and bolts.windowed_count.service"
    assert f"; profile measured does not give bolts.forward.service, {only}; " in str(problem)
    assert "of the built-in scenarios it fits demeter-ads, demeter-cars, flink-recovery" in str(problem)


@pytest.mark.parametrize("name", library.profiles())
def test_each_built_in_profile_fits_a_built_in_scenario(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it does not, nobody reads here which scenario it fits."""
    monkeypatch.setattr(loader, "_fitting", lambda profile: "")
    fitting = []
    for scenario in library.names():
        try:
            found = load(scenario, [f"profile={name}"])
        except ScenarioError:
            continue
        assert found.profile.taken
        fitting.append(scenario)
    assert fitting


def test_a_value_that_fits_its_kind_but_not_the_scenario_is_told_where_it_stands(files: Path) -> None:
    profile = files.parent / "measured.yaml"
    profile.write_text(PROFILE.replace("run: {seed: 5}", "run: {log_resolution: 0 s}"))
    with pytest.raises(ScenarioError, match=rf"^{profile}:7: run.log_resolution: must be more than 0 s"):
        load(files)


def test_a_profile_that_is_no_text_is_refused_at_the_scenario(files: Path) -> None:
    (files.parent / "measured.yaml").unlink()
    with pytest.raises(ScenarioError, match=rf"^{files}:12: profile: there is no file"):
        load(files)
    with pytest.raises(ScenarioError, match="must be the path of a profile, not 5"):
        load(files, ["profile=5"])
    with pytest.raises(ScenarioError, match="did you mean 'micro-batch-word-count'"):
        load(files, ["profile=micro-batch-wordcount"])


def test_a_profile_can_be_read_again_by_its_name(files: Path) -> None:
    found = profiles.read(files.parent / "measured.yaml")
    assert profiles.again(found.file).sha256 == found.sha256
    assert found.intervals["failures.crash_task.restart"]["identified"] is False
    assert found.errors == {"leave_one_out": 0.1}
    assert found.provenance == {"source": "a test"}
