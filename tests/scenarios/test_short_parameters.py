"""Short parameters: what they set, who wins, what is refused."""

# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.profile_texts import PROFILE, outage
from tideover.scenarios import loader
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_text
from tideover.sim.units import MS, S


def test_a_short_parameter_sets_its_key() -> None:
    text = outage().replace("profile: measured.yaml\n", "")
    assert load_text(text, settings=["rate=50/s"]).topology["log"].arrivals.rate == 50
    assert load_text(text, settings=["capacity=400/s"]).topology["job"].service.value == 2_500_000
    both = text.replace("sets: topology.log.rate", "sets: [topology.log.rate, failures.0.at]")
    with pytest.raises(ScenarioError, match=r"--set: failures.0.at: '50/s' is not a duration"):
        load_text(both, settings=["rate=50/s"])


def test_layers_of_a_default(tmp_path: Path) -> None:
    """--set, then the file, then the profile, then the default of the short parameter."""
    text = outage().replace("service: 5 ms}", "parallelism: 1}")
    text = text.replace("inverse: true", "inverse: true, default: 1000/s")
    (tmp_path / "measured.yaml").write_text(PROFILE)

    def service(*settings: str, name: str = "a.yaml", source: str = text) -> int:
        (tmp_path / name).write_text(source)
        return int(load(tmp_path / name, settings).topology["job"].service.value)

    assert service("profile=null") == MS
    assert service() == 2 * MS
    assert service("capacity=250/s") == 4 * MS
    assert service(source=text.replace("parallelism: 1}", "service: 3 ms}")) == 3 * MS


def test_defaults_of_the_strategy_go_only_where_they_belong() -> None:
    text = outage().replace("profile: measured.yaml\n", "").replace("strategy: none", "strategy: {kind: rsm}")
    text += "  interval: {sets: strategy.checkpoint_interval, default: 6 s}\n"
    assert load_text(text).strategy.checkpoint_interval == 6 * S
    block = "strategies: {rsm: {checkpoint_interval: 8 s}}\n"
    assert load_text(text + block).strategy.checkpoint_interval == 8 * S
    assert load_text(text, settings=["interval=5 s"]).strategy.checkpoint_interval == 5 * S
    found = loader.load_for_strategies(
        {**_plain(text), "strategies": {"rsm": {"checkpoint_interval": "8 s"}, "none": {}}},
        settings=["interval=5 s"],
    )
    assert found["rsm"].strategy.checkpoint_interval == 5 * S


def _plain(text: str) -> dict:
    from tideover.scenarios import yaml_source

    plain = yaml_source.parse(text, "a").plain()
    assert isinstance(plain, dict)
    return plain


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
        ("service: 5 ms}", "parallelism: 1}", ["run.seed=1"], "a:3: topology.job.service: is missing"),
        ("input rate", "input rate, default: 3", ["topology.log={spout: keys, keys: 1}"], "a:8: topology.log.rate: 3 has no unit"),
        ("sets: topology.log.rate", "default: 3 s, sets: topology.x.rate", [], "a:8: parameters.rate.sets: topology.x.rate: unknown component 'x'"),
        ("parameters:", "parameters: 3", [], ""),
    ],
)  # fmt: skip
def test_broken_parameters(old: str, new: str, settings: list[str], says: str) -> None:
    text = outage().replace("profile: measured.yaml\n", "").replace(old, new, 1)
    with pytest.raises(ScenarioError) as caught:
        load_text(text, "a", settings)
    assert says in str(caught.value)
    assert "Traceback" not in str(caught.value)
