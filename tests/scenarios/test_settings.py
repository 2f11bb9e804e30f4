"""What is set, and who wins: laws for every choice of sources, and for the order in which they are given."""

import contextlib
import itertools
import json
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.refused import refused
from tests.sweeps import points
from tideover.models.config import Scenario
from tideover.scenarios import loader, yaml_source
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import Resolved, load, load_text
from tideover.scenarios.precedence import Setting, put, read_settings, settle
from tideover.scenarios.resolved import said
from tideover.scenarios.sweeps import sweep_file
from tideover.scenarios.yaml_source import Giver, Node, Origin, parse
from tideover.sim.distributions import Constant, Exponential
from tideover.sim.registry import kind_of
from tideover.sim.units import MS, S


def failing(*settings: str, source: str = "wordcount") -> str:
    return "\n".join(refused(load, source, settings))


def test_any_key_can_be_set():
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
    window = s.topology["count"].bolt.window
    assert (window.trigger, window.length) == ("marker", 30 * S)
    assert s.store.latency == 2 * MS
    assert s.links.pairs == {"0-1": Constant(value=5 * MS)}
    assert (s.hosts, s.name, s.run.log_resolution) == (3, "other", S)


def test_later_settings_win_and_lists_can_be_replaced():
    assert load("wordcount", ["run.seed=2", "run.seed=3"]).run.seed == 3
    assert load("wordcount", ["failures=[]"]).failures == ()
    s = load("wordcount", ["failures=[{kind: crash_task, at: 10 s, component: split}]", "failures.0.at=20 s"])
    assert s.failures[0].at == 20 * S


def test_null_takes_a_key_away():
    assert load("stableford-phase2", ["run.log_resolution=null"]).run.log_resolution is None
    assert load("wordcount", ["run.warmup=null"]).run.warmup == 0
    assert load("wordcount", ["run.seed="]).run.seed == 1
    assert load("stableford-phase2", ["strategy.timeout_phase=null"]).strategy.timeout_phase is None
    assert "--set: run.duration: is empty" in failing("run.duration=null")


@pytest.mark.parametrize("setting", ["strategy.kind=rsm", "strategy=rsm", "strategy={kind: rsm}"])
def test_picking_a_strategy_takes_its_parameters_from_the_block(setting):
    strategy = load("wordcount", [setting]).strategy
    assert kind_of(strategy) == "rsm"
    assert strategy.checkpoint_interval == 5 * S


OWN = """\
topology:
  a: {spout: keys, rate: 1/s}
  b: {bolt: forward, from: {a: shuffle}, service: 1 ms}
strategy: {kind: source_replay, message_timeout: 11 s}
run: {duration: 10 s}
"""


def test_keys_of_the_file_for_another_kind_are_dropped_but_settings_are_not():
    other = "strategy.kind=active_replication"
    assert kind_of(load_text(OWN, settings=[other]).strategy) == "active_replication"
    with pytest.raises(ScenarioError, match=r"^--set: strategy.message_timeout: unknown key"):
        load_text(OWN, settings=[other, "strategy.message_timeout=9 s"])


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
    ],
)
def test_broken_settings(setting, says):
    shown = failing(setting)
    assert says in shown
    assert len(shown.splitlines()) == 1
    assert len(shown) < 600


def test_all_broken_settings_are_reported():
    assert len(failing("run.duration", "failures.9.at=1 s").splitlines()) == 2
    assert len(failing("run.duration=5", "hosts=0").splitlines()) == 2


def test_the_tree_that_is_changed_stays_as_it_was():
    root = yaml_source.parse("a: &x {b: 1}\nc: *x\nd: [1, 2]\n", "x.yaml")
    changed = settle(root, read_settings(["a.b=2", "d.0=9"]))
    assert root.plain() == {"a": {"b": 1}, "c": {"b": 1}, "d": [1, 2]}
    assert changed.plain() == {"a": {"b": 2}, "c": {"b": 1}, "d": [9, 2]}


@settings(max_examples=50)
@given(st.text(max_size=40))
def test_any_text_is_a_setting_or_a_scenario_error(text):
    for setting in (text, f"run.seed={text}", f"{text}=1"):
        with contextlib.suppress(ScenarioError):
            load_text(OWN, settings=[setting])


SOURCES = ("default", "profile", "block", "file", "sweep", "--set", "grid")
"""From the weakest to the strongest, as the head of precedence.py and the manual have it."""

OTHERS = tuple(source for source in SOURCES if source != "block")
"""Those of keys outside of the strategy."""


class Key(NamedTuple):
    """A key of the scenario below, its short name, and what a profile calls it."""

    key: str
    short: str
    measured: str
    sources: tuple[str, ...] = SOURCES


KEYS = [
    Key("strategy.checkpoint_interval", "interval", "strategy.rsm.checkpoint_interval"),
    Key("topology.job.service", "service", "bolts.forward.service", OTHERS),
    Key("failures.0.restart", "restart", "failures.crash_task.restart", OTHERS),
]


SCENARIO = {
    "topology": {
        "log": {"spout": "keys", "keys": 10, "rate": "1/s"},
        "job": {"bolt": "forward", "from": {"log": "shuffle"}},
    },
    "strategy": {"kind": "rsm"},
    "failures": [{"kind": "crash_task", "at": "30 s", "component": "job"}],
    "run": {"duration": "100 s"},
}


def value_of(scenario: Scenario, key: Key) -> int:
    """In nanoseconds."""
    if key.short == "interval":
        return int(scenario.strategy.checkpoint_interval)
    if key.short == "service":
        return int(scenario.topology["job"].service.value)
    return int(scenario.failures[0].restart)


def resolved(folder: Path, key: Key, sources: set[str], short: frozenset[str] = frozenset()) -> Resolved:
    """The scenario in which each of the sources gives its rank in seconds, some of them by the short name."""

    def seconds(source: str) -> str:
        return f"{1 + SOURCES.index(source)} s"

    def name(source: str) -> str:
        return key.short if source in short else key.key

    sets = {"sets": key.key} | ({"default": seconds("default")} if "default" in sources else {})
    plain = SCENARIO | {"parameters": {key.short: sets}}
    if "block" in sources:
        plain["strategies"] = {"rsm": {"checkpoint_interval": seconds("block")}}
    if "profile" in sources:
        sort, kind, last = key.measured.split(".")
        values: dict = {"failures": {"crash_task": {"detection": "9 s"}}}  # nobody else gives that
        values.setdefault(sort, {}).setdefault(kind, {})[last] = seconds("profile")
        (folder / "measured.yaml").write_text(f"name: measured\nvalues: {json.dumps(values)}\n")
        plain["profile"] = str(folder / "measured.yaml")
    if "file" in sources:
        plain = parse(json.dumps(plain), "plain").plain()
        *above, last = key.key.split(".")
        place = plain
        for step in above:
            place = place[int(step) if step.isdigit() else step]
        place[last] = seconds("file")
    settings = {other.key: "50 s" for other in KEYS if other != key}  # so that the scenario is complete
    if "--set" in sources:
        settings[name("--set")] = seconds("--set")
    if not sources & {"sweep", "grid"}:
        return loader.resolve(plain, settings)
    sweep = {"scenario": plain, "grid": {"run.seed": [1]}}
    if "sweep" in sources:
        sweep["set"] = {name("sweep"): seconds("sweep")}
    if "grid" in sources:
        sweep["grid"] = {name("grid"): [seconds("grid")]}
        if name("--set") == name("grid"):  # it would take the place of the grid's values
            settings.pop(name("--set"), None)
    return sweep_file.read(sweep, settings).resolved(0)


SAID = {
    "default": "default of {short}, scenario",
    "profile": "profile {folder}/measured.yaml:2",
    "block": "scenario",
    "file": "scenario",
    "sweep": "sweep: set.{name}",
    "--set": "--set",
    "grid": "sweep: grid.{name}",
}


@given(data=st.data())
def test_the_strongest_source_wins_and_is_named(tmp_path_factory, data):
    """Whichever sources give a key, and whether by its short name or in full."""
    key = data.draw(st.sampled_from(KEYS))
    sources = data.draw(st.sets(st.sampled_from(key.sources), min_size=1))
    short = frozenset(data.draw(st.sets(st.sampled_from(["sweep", "--set", "grid"]))))
    check(tmp_path_factory.mktemp("w"), key, sources, short)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.short)
def test_of_every_pair_of_sources_the_stronger_wins(tmp_path, key):
    for pair in itertools.combinations(key.sources, 2):
        for short in ({"sweep"}, {"sweep", "grid", "--set"}):
            check(tmp_path, key, set(pair), frozenset(short))


def check(folder: Path, key: Key, sources: set[str], short: frozenset[str]) -> None:
    if {"sweep", "grid"} <= sources and len({"sweep", "grid"} & short) != 1:
        with pytest.raises(ScenarioError, match="is swept, so"):
            resolved(folder, key, sources, short)
        return  # a file says a key once
    found = resolved(folder, key, sources, short)
    winner = max(sources, key=SOURCES.index)
    assert value_of(found.scenario, key) == (1 + SOURCES.index(winner)) * S, sources
    origin = found.root.get(*key.key.split(".")).origin
    name = key.short if winner in short else key.key
    expected = SAID[winner].format(short=key.short, folder=folder, name=name)
    assert said(origin) == (f"--set {key.short}" if winner == "--set" in short else expected)


def test_a_set_of_a_swept_key_takes_the_place_of_the_grids_values():
    spec = {"scenario": "wordcount", "grid": {"run.seed": [1, 2]}}
    assert [p.scenario.run.seed for p in points(sweep_file.read(spec, ["run.seed=[5, 6, 7]"]))] == [5, 6, 7]
    found = sweep_file.read(spec, ["run.seed=5"]).resolved(0)
    assert said(found.root.get("run", "seed").origin) == "--set: grid.run.seed"


LAYERS = [Giver.SWEEP, Giver.SETTING, Giver.POINT, Giver.PROFILE, Giver.DEFAULT]


@given(st.permutations(LAYERS), st.booleans())
def test_the_order_in_which_sources_come_does_not_matter(order, in_file):
    root = parse("run: {seed: file}\n" if in_file else "run: {}\n", "x")
    for giver in order:
        root = put(root, Setting("run.seed", Node(giver.name, Origin("x", None, giver))))
    assert root.plain() == {"run": {"seed": "POINT"}}


@given(st.lists(st.sampled_from([Giver.PROFILE, Giver.DEFAULT]), max_size=4))
def test_what_is_weaker_than_the_file_never_changes_it(givers):
    """Neither a value, nor a null, nor a mapping; but it may add to a mapping."""
    before = parse("a: 1\nb: null\nc: {d: [1]}\n", "x")
    root = before
    for giver in givers:
        for key in ("a", "b", "c", "c.d", "c.d.0"):
            root = put(root, Setting(key, Node(2, Origin("y", 1, giver))))
    assert root is before
    for giver in givers:
        root = put(root, Setting("c.e", Node(giver.name, Origin("y", 1, giver))))
    assert root.plain()["c"].get("e") == (
        None if not givers else "PROFILE" if Giver.PROFILE in givers else "DEFAULT"
    )


@pytest.mark.parametrize("stronger", ["sweep", "--set", "grid"])
def test_a_null_from_outside_leads_to_the_parts_own_default(stronger):
    spec: dict = {"scenario": "wordcount", "grid": {"run.seed": [1]}, "set": {}}
    assert sweep_file.read(spec).resolved(0).scenario.run.warmup == 60 * S
    settings = {}
    if stronger == "--set":
        settings["run.warmup"] = None
    else:
        spec["set" if stronger == "sweep" else "grid"]["run.warmup"] = None if stronger == "sweep" else [None]
    assert sweep_file.read(spec, settings).resolved(0).scenario.run.warmup == 0


def test_a_kind_that_was_set_turns_block_and_file_around():
    """The file's own keys were meant for another kind; what was set itself wins all the same."""
    plain = SCENARIO | {
        "strategy": {"kind": "source_replay", "message_timeout": "11 s"},
        "strategies": {"source_replay": {"message_timeout": "22 s"}},
    }

    def timeout(*settings: str) -> float:
        found = load(plain, ["topology.job.service=1 ms", *settings])
        return float(found.strategy.message_timeout / S)

    kind, own = "strategy.kind=source_replay", "strategy.message_timeout=33 s"
    block = "strategies.source_replay.message_timeout=44 s"
    assert [timeout(), timeout(kind)] == [11, 22]
    assert {timeout(*order) for order in itertools.permutations([kind, own, block])} == {33}
    assert timeout(block) == 44


def test_problems_of_settings_are_told_where_they_were_set(tmp_path):
    """A short parameter's in a sweep file too: at its line, by the name that it has there."""
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "scenario: flink-recovery\nset: {restart: 5}\nseed: x\n"
        "grid:\n  rate: [10/s, 7 s]\n  run.warmup: [3]\n"
    )
    with pytest.raises(ScenarioError) as caught:
        points(sweep_file.read(path, {"run.replications": 0}))
    assert [(p.file, p.line, p.key) for p in caught.value.problems] == [
        (str(path), 2, "set.restart"),
        (str(path), 3, "seed"),
        (str(path), 5, "grid.rate"),
        (str(path), 6, "grid.run.warmup"),
        ("--set", None, "run.replications"),
    ]
