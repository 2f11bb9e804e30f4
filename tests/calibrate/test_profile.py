"""A profile, written and taken by a scenario, says what the fit has found."""

from dataclasses import replace

import numpy as np
import pytest

import tideover
from tests.calibrate import campaigns
from tests.calibrate.test_faults import killed, steady_episode
from tideover.calibrate import comparison, profile
from tideover.calibrate.episodes import episodes
from tideover.scenarios import prediction
from tideover.scenarios.loader import load
from tideover.scenarios.profiles import again, read


def fitted(strategy, kinds):
    plain, _ = steady_episode(strategy)
    kills = [killed(kind, 12.3, strategy=strategy, number=i)[0] for i, kind in enumerate(kinds, 1)]
    return comparison.fit([plain, *kills], 1, lambda done, what: None)


@pytest.mark.parametrize(
    ("strategy", "kinds"),
    [
        ("micro_batch", ()),
        pytest.param("micro_batch", ("kill_executor",), marks=pytest.mark.long),
        ("micro_batch", ("kill_executor", "kill_driver")),
        pytest.param("source_replay", ("kill_executor",), marks=pytest.mark.long),
        ("source_replay", ("kill_executor", "kill_driver")),
        pytest.param("active_replication", ("kill_driver",), marks=pytest.mark.long),
    ],
)
def test_any_set_of_kills_gives_a_profile_that_is_taken(strategy, kinds, tmp_path):
    fits = fitted(strategy, kinds)
    ((name, condition),) = profile.profiles(fits).items()
    data = profile.profile(name, condition, fits, {"source": "a test"}, 0.5)
    path = tmp_path / f"{name}.yaml"
    path.write_text(profile.text(data, width=110))
    found = read(path)
    assert len(found.draws) == 100
    assert set(profile.parameters(fits)["parameter"]) == set(data["intervals"])
    places = {profile.PLACES[kind] for kind in kinds}
    unknown = [i for i in data["intervals"].values() if i["low"] == i["high"] or i["low"] == "0 ns"]
    assert not any(interval["identified"] for interval in unknown)
    assert places == {key.rpartition(".")[0] for key in found.values if key.startswith("failures.")}
    scenario = load(
        "micro-batch", [f"profile={path}", "failures.0.detection=0.1 s", "failures.0.restart=2 s"]
    )
    cost = fits.costs[condition].costs
    assert scenario.strategy.plan_time == pytest.approx(cost.plan_s * 1e9, rel=1e-3)
    assert scenario.strategy.locality_wait == 500_000_000
    assert scenario.strategy.recovery == ("replay" if strategy == "source_replay" else "checkpoint")


def test_what_several_episodes_tell_apart_is_identified():
    """Other rates, other durations: what a row costs. There is no state to speak of."""
    bits = np.random.default_rng(7)
    tables = campaigns.steady("s", (2000, 5000, 9000), lambda rows: 0.2 + 2e-5 * rows + 0.001 * bits.normal())
    fits = comparison.fit(episodes(tables), 1, lambda done, what: None)
    ((name, condition),) = profile.profiles(fits).items()
    told = profile.profile(name, condition, fits, {"source": "a test"}, 0.5)["intervals"]
    found = {key.rpartition(".")[2]: interval["identified"] for key, interval in told.items()}
    assert found["service"]
    assert not found["state_cost"]


def test_a_profile_says_which_rates_and_triggers_were_measured(tmp_path):
    """Of its own strategy and pipeline only: the fourth episode is of another."""
    plain, _ = steady_episode("micro_batch")
    mine = [
        replace(plain, rate_per_s=rate, setup=replace(plain.setup, trigger_s=s))
        for rate, s in ((2e6, 1.0), (300.5, 0.5), (7.0, 1.0))
    ]
    elsewhere = replace(plain.setup, strategy="source_replay", trigger_s=9.0)
    other = replace(plain, rate_per_s=1.0, setup=elsewhere)
    fits = fitted("micro_batch", ())
    ((name, condition),) = profile.profiles(fits).items()
    mine[1] = replace(mine[1], setup=replace(mine[1].setup, cores=4))
    data = profile.profile(name, condition, fits, {}, 0.5) | {
        "ranges": profile.ranges(condition, [*mine, other]),
        "conditions": profile.conditions(condition, [*mine, other]),
    }
    (tmp_path / "a.yaml").write_text(profile.text(data, width=110))
    conditions = read(tmp_path / "a.yaml").conditions
    assert {name: str(measured) for name, measured in conditions.items()} == {
        "jvm": "shipped",
        "cores": "2 to 4",
        "parallelism": "2",
    }
    counts = [replace(plain.setup, pipeline="running_count", keys=keys) for keys in (7000, 100)]
    counted = [replace(plain, setup=setup) for setup in counts]
    assert profile.conditions(counted[0].condition, counted)["keys"] == {"low": 100, "high": 7000}
    assert read(tmp_path / "a.yaml").ranges == {"rate": (7.0, 2e6), "interval": (500_000_000, 1_000_000_000)}


def test_built_in_profiles_know_how_java_was_set():
    """Measured with the shipped settings; what is wrong with others is told."""
    for name in ("micro-batch-word-count", "source-replay-word-count", "micro-batch-running-count"):
        profile = again(name)
        scenario = tideover.load("wordcount", ["conditions.jvm=stock", "conditions.cores=2"])
        assert list(prediction._other_conditions(scenario, profile)) == [
            f"profile {name}: jvm is stock, but measured was shipped: the profile may not hold"
        ]
    more = tideover.load("micro-batch", ["topology.split.parallelism=4", "topology.split.hosts=[0, 1, 0, 1]"])
    told = list(prediction._other_conditions(more, again("micro-batch-word-count")))
    assert told == [
        "profile micro-batch-word-count: parallelism is 4, but measured was 2: the profile may not hold"
    ]
    beyond = tideover.load("running-count", ["topology.events.keys=2000000", "trigger=2 s"])
    assert list(prediction._beyond(beyond, again("micro-batch-running-count"))) == [
        "profile micro-batch-running-count: the interval is 2 s, but measured was 1 s: "
        "the prediction extrapolates",
        "profile micro-batch-running-count: keys is 2000000, but measured was 100 to 1000000: "
        "the profile may not hold",
    ]
    as_measured = tideover.load("micro-batch", ["conditions.jvm=shipped"])
    assert not list(prediction._other_conditions(as_measured, again("micro-batch-word-count")))


def test_the_built_in_profiles_predict(monkeypatch):
    """A dozen draws are enough to see intervals, and nothing has to fail to see that a rate is another."""
    monkeypatch.setattr(prediction, "DRAWS", prediction.FEWEST_DRAWS)
    sooner = ["run.warmup=4 s", "failures.0.at=10.3 s", "run.duration=24 s"]
    for name in ("micro-batch-word-count", "source-replay-word-count"):
        result = tideover.run("micro-batch", [f"profile={name}", *sooner])
        assert not any("extrapolates" in text for text in result.warnings)
        beyond = tideover.run("micro-batch", [f"profile={name}", "rate=900/s", "failures=[]"])
        assert any("the rate is 900/s, but measured was" in text for text in beyond.warnings)
        told = result.prediction["output_gap_s"]
        assert told["low"] <= told["estimate"] <= told["high"]
        assert result.to_dict()["windows"]["wrong"] == 0


def test_durations_are_written_as_scenarios_read_them():
    for seconds in (0.0, 3e-9, 4.56e-6, 7.8e-3, 9.0, 123.4):
        tables = {"strategy.trigger_interval": profile.written(seconds)}
        scenario = load("micro-batch", [f"{key}={value}" for key, value in tables.items()])
        assert scenario.strategy.trigger_interval == pytest.approx(seconds * 1e9, rel=1e-3, abs=1)
