from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tideover.scenarios import yaml_source
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_text
from tideover.scenarios.precedence import read_settings, settle
from tideover.sim.distributions import Constant, Exponential
from tideover.sim.registry import kind_of
from tideover.sim.units import MS, S


def failing(*settings: str, source: str = "wordcount") -> str:
    with pytest.raises(ScenarioError) as caught:
        load(source, settings)
    return str(caught.value)


def test_any_key_can_be_set() -> None:
    s = load(
        "wordcount",
        [
            "run.duration=300 s",
            "failures.0.at=80s",
            "topology.sentences.rate = 20/s",
            "topology.count.service={kind: exponential, mean: 2 ms}",
            "topology.count.window.trigger=marker",
            "store.latency=2 ms",
            "links.pairs.0-1=5 ms",
            "hosts=3",
            "name=other",
            "run.log_resolution=1 s",
        ],
    )
    assert s.run.duration == 300 * S
    assert s.failures[0].at == 80 * S
    assert s.topology["sentences"].arrivals.rate == 20.0
    assert s.topology["count"].service == Exponential(mean=2 * MS)
    assert (s.topology["count"].bolt.window.trigger, s.topology["count"].bolt.window.length) == (
        "marker",
        30 * S,
    )
    assert s.store.latency == 2 * MS
    assert s.links.pairs == {"0-1": Constant(value=5 * MS)}
    assert (s.hosts, s.name, s.run.log_resolution) == (3, "other", S)


def test_later_settings_win_and_lists_can_be_replaced() -> None:
    assert load("wordcount", ["run.seed=2", "run.seed=3"]).run.seed == 3
    assert load("wordcount", ["failures=[]"]).failures == ()
    s = load("wordcount", ["failures=[{kind: crash_task, at: 10 s, component: split}]", "failures.0.at=20 s"])
    assert s.failures[0].at == 20 * S


def test_null_takes_a_key_away() -> None:
    assert load("stableford-phase2", ["run.log_resolution=null"]).run.log_resolution is None
    assert load("wordcount", ["run.warmup=null"]).run.warmup == 0
    assert load("stableford-phase2", ["strategy.timeout_phase=null"]).strategy.timeout_phase is None
    assert "--set: run.duration: is empty" in failing("run.duration=null")


@pytest.mark.parametrize("setting", ["strategy.kind=rsm", "strategy=rsm", "strategy={kind: rsm}"])
def test_picking_a_strategy_takes_its_parameters_from_the_block(setting: str) -> None:
    strategy = load("wordcount", [setting]).strategy
    assert kind_of(strategy) == "rsm"
    assert strategy.checkpoint_interval == 5 * S


def test_a_setting_wins_over_the_block() -> None:
    both = ["strategy.kind=rsm", "strategy.checkpoint_interval=7 s"]
    assert load("wordcount", both).strategy.checkpoint_interval == 7 * S
    assert load("wordcount", both[::-1]).strategy.checkpoint_interval == 7 * S
    assert (
        load("wordcount", ["strategies.source_replay.message_timeout=7 s"]).strategy.message_timeout == 7 * S
    )


OWN = """\
topology:
  a: {spout: keys, rate: 1/s}
  b: {bolt: forward, from: {a: shuffle}, service: 1 ms}
strategy: {kind: source_replay, message_timeout: 11 s}
run: {duration: 10 s}
"""


def test_keys_of_the_file_for_another_kind_are_dropped_but_settings_are_not() -> None:
    assert (
        kind_of(load_text(OWN, settings=["strategy.kind=active_replication"]).strategy)
        == "active_replication"
    )
    with pytest.raises(ScenarioError, match=r"^--set: strategy.message_timeout: unknown key"):
        load_text(OWN, settings=["strategy.kind=active_replication", "strategy.message_timeout=9 s"])


def test_the_file_wins_over_its_block_unless_the_kind_was_set() -> None:
    text = OWN + "strategies: {source_replay: {message_timeout: 22 s, ack_cost: 1 ms}}\n"
    strategy = load_text(text).strategy
    assert (strategy.message_timeout, strategy.ack_cost) == (11 * S, MS)
    assert load_text(text, settings=["strategy.kind=source_replay"]).strategy.message_timeout == 22 * S


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("rate=50/s", "--set: rate: unknown key; did you mean 'topology.sentences.rate'?"),
        ("sentences.rate=50/s", "did you mean 'topology.sentences.rate'?"),
        ("run.rate=50/s", "--set: run.rate: unknown key; did you mean 'topology.sentences.rate'?"),
        ("topology.rate=50/s", "there is no component 'rate'; did you mean 'topology.sentences.rate'?"),
        ("duration=50 s", "did you mean 'run.duration'?"),
        ("service=1 ms", "did you mean 'topology.split.service' or 'topology.count.service'?"),
        ("split.parallelism=2", "did you mean 'topology.split.parallelism'?"),
        ("at=80s", "did you mean 'failures.0.at'?"),
        ("failures.at=80s", "did you mean 'failures.0.at'?"),
        ("checkpoint_interval=5s", "did you mean 'strategy.checkpoint_interval'?"),
        ("rsm.checkpoint_interval=5s", "did you mean 'strategies.rsm.checkpoint_interval'?"),
        ("strategy.serialise_time=5ms", "unknown key; it belongs to rsm, not to source_replay"),
        ("stor.latency=1 s", "--set: stor: unknown key; did you mean 'store'?"),
        ("run.sed=1", "--set: run.sed: unknown key; did you mean 'seed'?"),
        (
            "topology.cout.window=1 s",
            "--set: topology.cout.window: unknown component 'cout'; did you mean 'count'?",
        ),
        ("topology.count.windw=1 s", "--set: topology.count.windw: unknown key; did you mean 'window'?"),
        ("strategy.mesage_timeout=1 s", "did you mean 'message_timeout'?"),
        ("strategy.kind=rms", "--set: strategy.kind: unknown strategy 'rms'; did you mean 'rsm'?"),
        ("failures.1.at=80s", "--set: failures.1.at: no entry '1' in failures; entries are 0 to 0"),
        ("failures.x.at=80s", "no entry 'x'"),
        ("failures.-1.at=80s", "no entry '-1'"),
        ("failures.0.at=80", "--set: failures.0.at: 80 has no unit"),
        ("failures.0.at=300 s", "--set: failures.0.at: is not within the run"),
        ("failures.0.component=x", "--set: failures.0.component: there is no component 'x'"),
        ("run.seed=true", "--set: run.seed: must be a whole number, not true"),
        ("run.seed.x=1", "--set: run.seed.x: run.seed is 1 and has no keys of its own"),
        ("run.duration=[1", "--set: run.duration: is not valid YAML"),
        ("run.duration=!!int 1", "--set: run.duration: has the tag"),
        ("run.duration=" + "[" * 5000, "--set: run.duration: is nested more than"),
        ("run=5", "--set: run: must be a mapping of keys, not 5"),
        ("topology={}", "--set: topology: is empty"),
        ("run.duration", "--set: run.duration: must be key=value"),
        ("=5", "--set: =5: must be key=value"),
        ("", "--set: '': must be key=value"),
        ("run..seed=5", "must be key=value"),
        ("run.seed=", "--set: run.seed: must be"),
    ],
)
def test_broken_settings(setting: str, says: str) -> None:
    if setting == "run.seed=":  # nothing: back to the default
        assert load("wordcount", [setting]).run.seed == 1
        return
    shown = failing(setting)
    assert says in shown
    assert len(shown.splitlines()) == 1
    assert len(shown) < 600


def test_all_broken_settings_are_reported() -> None:
    assert len(failing("run.duration", "failures.9.at=1 s").splitlines()) == 2
    assert len(failing("run.duration=5", "hosts=0").splitlines()) == 2


def test_the_tree_that_is_changed_stays_as_it_was() -> None:
    root = yaml_source.parse("a: &x {b: 1}\nc: *x\nd: [1, 2]\n", "x.yaml")
    changed = settle(root, read_settings(["a.b=2", "d.0=9"]))
    assert root.plain() == {"a": {"b": 1}, "c": {"b": 1}, "d": [1, 2]}
    assert changed.plain() == {"a": {"b": 2}, "c": {"b": 1}, "d": [9, 2]}


@settings(max_examples=50)
@given(st.text(max_size=40))
def test_any_text_is_a_setting_or_a_scenario_error(text: str) -> None:
    for setting in (text, f"run.seed={text}", f"{text}=1"):
        with contextlib.suppress(ScenarioError):
            load_text(OWN, settings=[setting])
