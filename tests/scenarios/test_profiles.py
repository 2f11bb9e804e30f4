"""Profiles and short parameters: what a scenario takes from them, who wins, what is predicted and refused."""

import hashlib
import json
import math
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import tideover
from tests.scenarios.refused import refused, told
from tests.sweeps import points
from tideover.scenarios import library, loader, profiles, yaml_source
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_text
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.prediction import least_relative
from tideover.scenarios.reference import json_schema
from tideover.scenarios.sweeps import sweep_file
from tideover.sim.units import MS, S

SCENARIO = """\
name: test
topology:
  log: {spout: keys, keys: 10, rate: 100/s}
  job: {bolt: forward, from: {log: shuffle}, service: 5 ms}
  end: {bolt: windowed_count, from: {job: shuffle}, service: 1 ms, window: 30 s}
strategy: {kind: rsm}
strategies: {rsm: {checkpoint_interval: 7 s}}
failures:
  - {kind: crash_task, at: 30 s, component: job, while_down: hold}
  - {kind: crash_task, at: 31 s, component: end, detection: 1 s}
run: {duration: 100 s, warmup: 5 s}
profile: measured.yaml
"""
PROFILE = """\
name: measured
provenance: {source: a test}
values:
  strategy: {rsm: {checkpoint_interval: 9 s, restore_time: 3 ms}, source_replay: {ack_cost: 1 ms}}
  failures: {crash_task: {detection: 10 s, restart: 5 s}, crash_host: {restart: 7 s}, driver: {restart: 9 s}}
  bolts: {forward: {service: 2 ms}, windowed_count: {service: 2 ms}}
  run: {seed: 5}
intervals:
  failures.crash_task.restart: {low: 3 s, high: 8 s, identified: false}
draws:
  keys: [failures.crash_task.detection, failures.crash_task.restart]
  rows: [[8 s, 4 s], [10 s, 5 s], [12 s, 6 s]]
scatter: {catch_up_s: 0.05}
errors: {leave_one_out: 0.1}
"""


OUTAGE = """\
topology:
  log: {spout: keys, keys: 10, rate: 100/s}
  job: {bolt: forward, from: {log: shuffle}, service: 5 ms}
strategy: none
failures: [{kind: crash_task, at: 30 s, component: job, while_down: hold}]
run: {duration: 100 s, warmup: 5 s, seed: 1}
parameters:
  rate: {sets: topology.log.rate, description: input rate}
  capacity: {sets: topology.job.service, inverse: true, description: most tuples per second}
profile: measured.yaml
"""
"""log -> job at 100/s and a capacity of 200/s; down for d, it has caught up 2 d after the failure."""
BY_HAND = OUTAGE.replace("profile: measured.yaml\n", "")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "measured.yaml").write_text(PROFILE)
    (tmp_path / "test.yaml").write_text(SCENARIO)
    return tmp_path / "test.yaml"


def test_a_profile_gives_what_the_scenario_does_not(files):
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


def test_a_setting_wins_over_the_profile(files):
    s = load(files, ["failures.0.restart=1 s", "run.seed=2"])
    assert (s.failures[0].restart, s.failures[1].restart, s.run.seed) == (S, 5 * S, 2)
    assert load(files, ["profile=null"]).profile is None


def test_the_kind_that_is_simulated_gets_its_own_values(files):
    assert load(files, ["strategy.kind=source_replay"]).strategy.ack_cost == MS
    files.write_text(files.read_text().replace("component: job", "component: driver"))
    assert [f.restart for f in load(files, ["strategy.kind=micro_batch"]).failures] == [9 * S, 5 * S]


def test_a_path_starts_at_the_file_or_where_the_command_runs(files, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "other.yaml").write_text(PROFILE.replace("name: measured", "name: other"))
    monkeypatch.chdir(tmp_path / "here")
    assert load(files).profile.name == "measured"
    assert load(files, ["profile=other.yaml"]).profile.name == "other"
    with pytest.raises(ScenarioError, match=r"--set: profile: there is no file 'measured.yaml'"):
        load(files, ["profile=measured.yaml"])


def test_a_completed_scenario_is_read_back_as_it_was(files):
    found = load(files)
    assert load(to_data(found)) == found
    jsonschema.validate(to_data(found), json_schema())
    assert tideover.run(found, ["failures=[]"]).to_dict()["prediction"] is None


# ruff: noqa: E501
RESTART = "failures.crash_task.restart"
BROKEN = [
    ("name: measured", "nam: measured", 1, "nam", "did you mean 'name'?"),
    ("rsm:", "rms:", 4, "values.strategy.rms", "did you mean 'rsm'?"),
    ("restore_time", "restor_time", 4, "values.strategy.rsm.restor_time", "did you mean 'restore_time'?"),
    ("3 ms", "3", 4, "values.strategy.rsm.restore_time", "3 has no unit"),
    ("9 s, rest", "0 s, rest", 4, "values.strategy.rsm.checkpoint_interval", "greater than or equal"),
    ("driver:", "drivers:", 5, "values.failures.drivers", "unknown kind; did you mean 'driver'?"),
    ("2 ms}, w", "{kind: expo}}, w", 6, "values.bolts.forward.service.kind", "unknown distribution"),
    ("service: 2 ms}, w", "from: {a: shuffle}}, w", 6, "values.bolts.forward.from", "unknown key"),
    ("seed: 5", "seed: x", 7, "values.run.seed", "valid integer"),
    ("low: 3 s, ", "", 9, f"intervals.{RESTART}.low", "is missing"),
    ("restart: {low", "restar: {low", 9, "intervals.failures.crash_task.restar", "did you mean"),
    ("detection, fail", "detectio, fail", 11, "draws.keys.0", "there is no such value"),
    ("[10 s, 5 s]", "[10 s]", 12, "draws.rows.1", "a list of 2 values"),
    ("[10 s, 5 s]", "[10 s, 5]", 12, "draws.rows.1", "5 has no unit"),
    ("catch_up_s: 0.05", "catch_up: 0.05", 13, "scatter.catch_up", "did you mean 'catch_up_s'?"),
    ("catch_up_s: 0.05", "catch_up_s: -1", 13, "scatter.catch_up_s", "at least 0"),
    ("catch_up_s: 0.05", "catch_up_s: 99990", 13, "scatter.catch_up_s", "at most 10"),
    ("catch_up_s: 0.05", "catch_up_s: .nan", 13, "scatter.catch_up_s", "must be a number"),
    ("low: 3 s", "low: banana", 9, f"intervals.{RESTART}.low", "'banana' is not a duration"),
    ("high: 8 s", "high: 8", 9, f"intervals.{RESTART}.high", "8 has no unit"),
    ("low: 3 s", "low: 9 s", 9, f"intervals.{RESTART}", "low is more than high: 9 s and 8 s"),
    ("identified: false", "identified: maybe", 9, f"intervals.{RESTART}.identified", "must be true or false"),
    ("name: measured", "name: [a]", 1, "name", "must be a text, not a list"),
    ("errors:", "ranges: {rate: {low: 2000, high: 3/s}}\nerrors:", 14, "ranges.rate.low", "2000 has no unit"),
    ("errors:", "ranges: {interval: {low: 2 s}}\nerrors:", 14, "ranges.interval.high", "is missing"),
    ("errors:", "ranges: {rate: {low: 2/s, high: 1/s}}\nerrors:", 14, "ranges.rate", "low is more than high"),
    ("errors:", "ranges: {speed: {low: 2/s, high: 3/s}}\nerrors:", 14, "ranges.speed", "unknown key"),
    ("errors:", "ranges: {rate: 3/s}\nerrors:", 14, "ranges.rate", "must be a mapping"),
    (
        "errors:",
        "conditions: {cores: {low: 2, high: 1}}\nerrors:",
        14,
        "conditions.cores",
        "low is more than",
    ),
    ("errors:", "conditions: {cores: {low: 2}}\nerrors:", 14, "conditions.cores", "needs two numbers"),
    (
        "errors:",
        "conditions: {jvm: [true]}\nerrors:",
        14,
        "conditions.jvm",
        "must be a text, a number, a list",
    ),
    ("errors:", "conditions: {jvm: []}\nerrors:", 14, "conditions.jvm", "must be a text, a number, a list"),
    ("errors:", "conditions: shipped\nerrors:", 14, "conditions", "must be a mapping"),
    ("values:", "vals:", 1, "values", "is missing"),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "says"), BROKEN)
def test_broken_profiles(files, old, new, line, key, says):
    profile = files.parent / "measured.yaml"
    profile.write_text(PROFILE.replace(old, new, 1))
    told(refused(load, files), f"{profile}:{line}: {key}: ", says)


def test_an_interval_of_a_distribution_goes_by_its_mean(files):
    profile = files.parent / "measured.yaml"
    key = "bolts.forward.service"
    service = "{kind: exponential, mean: 2 ms}"
    for low, high in (("1 ms", service), (service, "2 ms")):
        profile.write_text(PROFILE.replace("draws:", f"  {key}: {{low: {low}, high: {high}}}\ndraws:"))
        assert profiles.read(profile).intervals[key]["identified"] is True
    profile.write_text(PROFILE.replace("draws:", f"  {key}: {{low: 3 ms, high: {service}}}\ndraws:"))
    with pytest.raises(ScenarioError, match=f"intervals.{key}: low is more than high"):
        profiles.read(profile)


def test_an_empty_profile_is_told_what_a_profile_is(files):
    (files.parent / "measured.yaml").write_text("")
    with pytest.raises(ScenarioError, match=r"measured.yaml:1: \(file\): is empty; a profile is a mapping"):
        load(files)


# Profiles that do not fit.

OTHER = """\
name: other
values:
  strategy: {aligned_snapshots: {checkpoint_interval: 9 s}}
  failures: {crash_host: {restart: 7 s}}
  run: {lag_window: 30 s}
scatter: {catch_up_s: 0.05}
"""


@pytest.mark.parametrize("more", ["", "  bolts: {forward: {service: 2 ms}}\n"])
def test_a_profile_that_gives_nothing_is_refused(files, more):
    """Values of ``run`` alone say how something was measured that is not there; they are nothing.

    job has a service of its own, so a profile that has one for it gives nothing either.
    """
    (files.parent / "measured.yaml").write_text(OTHER.replace("  run:", f"{more}  run:"))
    (problem,) = refused(load, files)
    assert problem.startswith(f"{files}:12: profile: other gives nothing to this scenario: ")
    assert ("topology.job.service" if more else "failures crash_host; the scenario has strategy rsm") in str(
        problem
    )
    assert "; of the built-in scenarios it fits flink-recovery" in problem


@pytest.mark.parametrize("values", ["{}", "{run: {lag_window: 30 s}}"])
def test_a_profile_without_values_is_refused(files, values):
    (files.parent / "measured.yaml").write_text(f"name: bare\nvalues: {values}\n")
    with pytest.raises(ScenarioError, match="bare gives nothing to this scenario: it has no value for any"):
        load(files)


def test_a_profile_may_give_nothing_to_some_of_several(files):
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
    assert len(points(sweep_file.read(swept))) == 2
    with pytest.raises(ScenarioError, match=f"^{files}:12: profile: other gives nothing"):
        points(sweep_file.read(swept | {"grid": {"strategy.kind": ["none", "source_replay"]}}))


def test_what_is_missing_is_told_with_the_profile(files):
    """end has a service, job has none, and the profile has one for other bolts only."""
    files.write_text(files.read_text().replace(", service: 5 ms}", "}"))
    (files.parent / "measured.yaml").write_text(PROFILE.replace("forward: {", "filter: {"))
    (problem,) = refused(load, files)
    assert problem.startswith(f"{files}:4: topology.job.service: is missing")
    only = "only bolts.filter.service and bolts.windowed_count.service"
    assert f"; profile measured does not give bolts.forward.service, {only}; " in problem
    assert "of the built-in scenarios it fits demeter-ads, demeter-cars, estorm-synthetic, flink" in problem


@pytest.mark.parametrize("name", library.profiles())
def test_each_built_in_profile_fits_a_built_in_scenario(name, monkeypatch):
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


def test_a_value_that_fits_its_kind_but_not_the_scenario_is_told_where_it_stands(files):
    profile = files.parent / "measured.yaml"
    profile.write_text(PROFILE.replace("run: {seed: 5}", "run: {log_resolution: 0 s}"))
    with pytest.raises(ScenarioError, match=rf"^{profile}:7: run.log_resolution: must be more than 0 s"):
        load(files)


def test_a_profile_that_is_no_text_is_refused_at_the_scenario(files):
    (files.parent / "measured.yaml").unlink()
    with pytest.raises(ScenarioError, match=rf"^{files}:12: profile: there is no file"):
        load(files)
    with pytest.raises(ScenarioError, match="must be the path of a profile, not 5"):
        load(files, ["profile=5"])
    with pytest.raises(ScenarioError, match="did you mean 'micro-batch-word-count'"):
        load(files, ["profile=micro-batch-wordcount"])


def test_a_profile_can_be_read_again_by_its_name(files):
    found = profiles.read(files.parent / "measured.yaml")
    assert profiles.again(found.file).sha256 == found.sha256
    assert found.intervals["failures.crash_task.restart"]["identified"] is False
    assert found.errors == {"leave_one_out": 0.1}
    assert found.provenance == {"source": "a test"}


def predicted(tmp_path: Path, profile: str, *settings: str) -> dict:
    (tmp_path / "measured.yaml").write_text(profile)
    (tmp_path / "test.yaml").write_text(OUTAGE)
    return tideover.run(tmp_path / "test.yaml", settings).to_dict()


def test_a_prediction_spans_the_draws_and_the_scatter(tmp_path):
    """Draws of detection + restart of 12, 15 and 18 s: catch-up of 24, 30 and 36 s, estimate the middle one.

    Without scatter the ends are the first and the last draw; a scatter of 5 % moves both outwards by less
    than its 2.1 standard deviations, since the ends are those of a mixture, and the estimate a little down.
    """
    found = predicted(tmp_path, PROFILE.replace("0.05", "0"))
    (recovery,) = found["recoveries"]
    assert recovery["catch_up_s"] == pytest.approx(30, abs=0.1)
    exact = found["prediction"]["catch_up_s"]
    assert [exact[k] for k in ("low", "estimate", "high")] == pytest.approx([24, 30, 36], abs=0.1)
    assert (exact["level"], exact["undefined"]) == (0.9, 0)
    wide = predicted(tmp_path, PROFILE)["prediction"]["catch_up_s"]
    assert 30 * 0.95 < wide["estimate"] < 30
    assert 24 * 0.9 < wide["low"] < 24
    assert 36 < wide["high"] < 36 * 1.1


def test_draws_that_do_not_fit_are_left_out_and_told(tmp_path):
    """Snapshots begin every 20 s: a fault at 0.5 of the interval strikes at 30 s, at 0.4 at 48 s, after
    the end.

    The last two draws are left to predict from; without them there is no prediction.
    """
    profile = """\
name: moments
values: {failures: {crash_task: {in_interval: 0.5, restart: 1 s}}}
draws: {keys: [failures.crash_task.in_interval], rows: [[0.4], [0.5], [0.6]]}
scatter: {catch_up_s: 0}
"""
    settings = ["strategy={kind: rsm, checkpoint_interval: 20 s}", "run.duration=47 s"]
    found = predicted(tmp_path, profile, *settings)
    assert found["prediction"]["catch_up_s"]["undefined"] == 0
    (remark,) = [text for text in found["warnings"] if text.startswith("profile moments")]
    assert "1 of its draws do not fit the scenario, and the prediction is without them: " in remark
    assert "failures.0.in_interval: the first such moment is 48 s" in remark
    found = predicted(tmp_path, profile.replace("[[0.4], [0.5], [0.6]]", "[[0.4]]"), *settings)
    assert found["prediction"] is None


RANGES = "ranges: {rate: {low: 90/s, high: 120/s}, interval: {low: 5 s, high: 5 s}}\n"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ([], []),
        (["rate=90/s"], []),
        (["rate=80/s"], ["the rate is 80/s, but measured was 90/s to 120/s"]),
        (["topology.log.parallelism=2"], ["the rate is 200/s, but measured was 90/s to 120/s"]),
        (["strategy={kind: rsm, checkpoint_interval: 5 s}"], []),
        (["strategy={kind: rsm, checkpoint_interval: 6 s}"], ["the interval is 6 s, but measured was 5 s"]),
    ],
)
def test_what_lies_outside_of_what_was_measured_is_told(tmp_path, settings, says):
    """The rate is that of all tasks of all spouts; a strategy without an interval cannot leave its range."""
    warnings = predicted(tmp_path, PROFILE + RANGES, *settings)["warnings"]
    expected = [f"profile measured: {text}: the prediction extrapolates" for text in says]
    assert [text for text in warnings if text.endswith("extrapolates")] == expected


CONDITIONS = "conditions: {jvm: [stock, shipped], cores: {low: 2, high: 8}, gc: G1}\n"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["conditions.jvm=stock"], []),
        (["conditions.cores=8", "conditions.jvm=shipped", "conditions.gc=G1"], []),
        (
            ["conditions.jvm=other"],
            ["jvm is other, but measured was stock and shipped: the profile may not hold"],
        ),
        (["conditions.cores=9"], ["cores is 9, but measured was 2 to 8: the profile may not hold"]),
        (["conditions.cores=many"], ["cores is many, but measured was 2 to 8: the profile may not hold"]),
        (["conditions.disk=ssd"], ["does not say with which disk it was measured; it is ssd"]),
        ([], []),
    ],
)
def test_other_conditions_than_those_measured_are_told(tmp_path, settings, says):
    """A range holds its ends; what only one of both says is told, too."""
    warnings = predicted(tmp_path, PROFILE + CONDITIONS, *settings)["warnings"]
    assert [text for text in warnings if text.startswith("profile")] == [
        f"profile measured: {text}" for text in says
    ]


def test_conditions_change_nothing_else(tmp_path):
    """They are kept with the scenario, and refused if they are no plain values."""
    with_them, without = (predicted(tmp_path, PROFILE, *more) for more in (["conditions.jvm=stock"], []))
    assert with_them["scenario"].pop("conditions") == {"jvm": "stock"}
    assert with_them["scenario"] == without["scenario"]
    assert with_them["recoveries"] == without["recoveries"]
    for value in ("[1]", "true"):
        with pytest.raises(ScenarioError, match=r"conditions\.jvm: must be a text or a number") as refused:
            predicted(tmp_path, PROFILE, f"conditions.jvm={value}")
        assert len(refused.value.problems) == 1


def test_what_is_set_by_hand_is_not_drawn(tmp_path):
    found = predicted(tmp_path, PROFILE.replace("0.05", "0"), "failures.0.detection=10 s")
    exact = found["prediction"]["catch_up_s"]
    assert [exact[k] for k in ("low", "high")] == pytest.approx([2 * (10 + 4), 2 * (10 + 6)], abs=0.1)


def test_an_end_without_a_value_is_null(tmp_path):
    """Down for 18 s at 180/s, the job needs 162 s more: longer than the run. At 12 s: 108 s, too long too."""
    found = predicted(tmp_path, PROFILE, "topology.log.rate=180/s")
    assert found["recoveries"][0]["catch_up_s"] is None
    assert found["prediction"]["catch_up_s"]["high"] is None
    assert found["prediction"]["catch_up_s"]["undefined"] == 1
    (cut,) = (text for text in found["warnings"] if text.startswith("profile"))
    assert "3 of 3 recoveries under its draws are not over at the end of the run (100 s)" in cut
    longer = predicted(tmp_path, PROFILE, "topology.log.rate=180/s", "run.duration=600 s")
    assert longer["recoveries"][0]["catch_up_s"] == pytest.approx(15 * 200 / (200 - 180), rel=0.02)
    assert longer["prediction"]["catch_up_s"]["undefined"] == 0
    assert not [text for text in longer["warnings"] if "end of the run" in text]


def test_a_profile_that_has_changed_gives_no_intervals(tmp_path):
    predicted(tmp_path, PROFILE)
    found = load(tmp_path / "test.yaml")
    (tmp_path / "measured.yaml").write_text(PROFILE + "# another\n")
    result = tideover.run(found)
    assert result.prediction is None
    assert any("has changed" in text for text in result.warnings)


def test_the_same_seed_gives_the_same_prediction(tmp_path):
    first, second = (predicted(tmp_path, PROFILE) for _ in range(2))
    assert json.dumps(first) == json.dumps(second)


@pytest.mark.parametrize("seed", range(5))
def test_no_other_estimate_has_a_smaller_relative_error(seed):
    """The mean of |estimate / value - 1| has its least at one of the values; all of them are tried."""
    values = np.random.default_rng(seed).lognormal(4, 0.6, 31)

    def error(estimate: float) -> float:
        return float(np.abs(estimate / values - 1).mean())

    found = least_relative(values)
    assert error(found) == pytest.approx(min(map(error, values)), rel=1e-12)
    assert found <= np.median(values)


def test_what_mostly_never_ends_has_no_estimate():
    """Of three values, one without an end weighs nothing; with two there is nothing to expect."""
    assert least_relative([math.inf, 10.0, 30.0]) == 10
    assert math.isinf(least_relative([math.inf, 10.0, math.inf]))


# ruff: noqa: E501
def test_a_short_parameter_sets_its_key():
    text = BY_HAND
    assert load_text(text, settings=["rate=50/s"]).topology["log"].arrivals.rate == 50
    assert load_text(text, settings=["capacity=400/s"]).topology["job"].service.value == 2_500_000
    both = text.replace("sets: topology.log.rate", "sets: [topology.log.rate, failures.0.at]")
    with pytest.raises(ScenarioError, match=r"--set: failures.0.at: '50/s' is not a duration"):
        load_text(both, settings=["rate=50/s"])


def test_layers_of_a_default(tmp_path):
    """--set, then the file, then the profile, then the default of the short parameter."""
    text = OUTAGE.replace("service: 5 ms}", "parallelism: 1}")
    text = text.replace("inverse: true", "inverse: true, default: 1000/s")
    (tmp_path / "measured.yaml").write_text(PROFILE)

    def service(*settings: str, name: str = "a.yaml", source: str = text) -> int:
        (tmp_path / name).write_text(source)
        return int(load(tmp_path / name, settings).topology["job"].service.value)

    assert service("profile=null") == MS
    assert service() == 2 * MS
    assert service("capacity=250/s") == 4 * MS
    assert service(source=text.replace("parallelism: 1}", "service: 3 ms}")) == 3 * MS


def test_keys_share_a_parameter():
    """8 are 4 for each of two that share them; the default is shared, too."""
    both = "  tasks: {sets: topology.job.parallelism, divided_by: 2, default: 6}\n"
    text = BY_HAND.replace("parameters:\n", f"parameters:\n{both}")
    assert load_text(text).topology["job"].parallelism == 3
    assert load_text(text, settings=["tasks=8"]).topology["job"].parallelism == 4


def test_defaults_of_the_strategy_go_only_where_they_belong():
    text = BY_HAND.replace("strategy: none", "strategy: {kind: rsm}")
    text += "  interval: {sets: strategy.checkpoint_interval, default: 6 s}\n"
    assert load_text(text).strategy.checkpoint_interval == 6 * S
    block = "strategies: {rsm: {checkpoint_interval: 8 s}}\n"
    assert load_text(text + block).strategy.checkpoint_interval == 8 * S
    assert load_text(text, settings=["interval=5 s"]).strategy.checkpoint_interval == 5 * S
    found = loader.load_for_strategies(
        {
            **yaml_source.parse(text, "a").plain(),
            "strategies": {"rsm": {"checkpoint_interval": "8 s"}, "none": {}},
        },
        settings=["interval=5 s"],
    )
    assert found["rsm"].strategy.checkpoint_interval == 5 * S


@pytest.mark.parametrize(
    ("old", "new", "settings", "says"),
    [
        ("", "", ["rat=50/s"], "--set: rat: unknown key; did you mean 'rate'?"),
        ("", "", ["rate=50"], "--set: topology.log.rate: 50 has no unit"),
        ("", "", ["capacity=2 ms"], "--set: capacity: '2 ms' is not a rate"),
        ("  rate: {", "  run: {", [], "a:8: parameters.run: is the name of a key of every scenario"),
        ("  rate: {", "  a.b: {", [], "a:8: parameters.a.b: a parameter's name"),
        ("sets: topology.log.rate", "set: topology.log.rate", [], "a:8: parameters.rate.set: unknown key"),
        ("sets: topology.log.rate, ", "", [], "a:8: parameters.rate.sets: is missing"),
        ("sets: topology.log.rate", "sets: [1]", [], "a:8: parameters.rate.sets: must be a dotted key"),
        ("inverse: true", "inverse: 1", [], "a:9: parameters.capacity.inverse: must be true or false, not 1"),
        ("inverse: true", "divided_by: 0", [], "a:9: parameters.capacity.divided_by: must be a whole number of at least 1"),
        ("inverse: true", "inverse: true, divided_by: 2", [], "a:9: parameters.capacity.divided_by: must be a whole"),
        ("  rate: {", "  pair: {sets: topology.job.parallelism, divided_by: 2}\n  rate: {", ["pair=3"], "--set: pair: must be a multiple of 2, not 3"),
        ("service: 5 ms}", "parallelism: 1}", ["run.seed=1"], "a:3: topology.job.service: is missing"),
        ("input rate", "input rate, default: 3", ["topology.log={spout: keys, keys: 1}"], "a:8: topology.log.rate: 3 has no unit"),
        ("sets: topology.log.rate", "default: 3 s, sets: topology.x.rate", [], "a:8: parameters.rate.sets: topology.x.rate: unknown component 'x'"),
        ("parameters:", "parameters: 3", [], ""),
    ],
)  # fmt: skip
def test_broken_parameters(old, new, settings, says):
    text = BY_HAND.replace(old, new, 1)
    assert says in "\n".join(refused(load_text, text, "a", settings))
