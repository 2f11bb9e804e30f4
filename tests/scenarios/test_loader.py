"""Scenarios become objects, of built-in parts and of others', under one strategy or all."""

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, ClassVar

import jsonschema
import numpy as np
import pytest
import typer
from pydantic import Field

import tideover
from tests.scenarios.refused import refused, told
from tideover import api
from tideover.cli.app import app
from tideover.models.job.arrivals import Periodic
from tideover.models.operators.base import BOLTS, Bolt
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import library, loader, plugins, yaml_source
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_for_strategies, load_text
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.reference import json_schema
from tideover.scenarios.runs import every_strategy
from tideover.scenarios.sweeps.sweep_file import read as read_sweep
from tideover.sim.distributions import (
    DISTRIBUTIONS,
    Constant,
    Distribution,
    Empirical,
    Exponential,
    Lognormal,
)
from tideover.sim.registry import kind_of
from tideover.sim.units import MS, Duration, S

BUILT_IN = library.names()

# ruff: noqa: E501
RICH = """\
description: every form once
topology:
  fast: {spout: keys, keys: 100, exponent: 1.1, arrivals: {kind: poisson, rate: 100/s}, parallelism: 2, hosts: [0, 1]}
  slow: {spout: keys, pause: 10 ms, emit_cost: 0.53 ms, offset: 0 s, tuple_size: 1 KiB}
  pass: {bolt: forward, from: {fast: shuffle, slow: global}, service: {kind: exponential, mean: 1 ms}}
  some: {bolt: filter, keep: 0.3, from: {pass: {kind: shuffle}}, service: {kind: empirical, values: [1 ms, 2 ms]}}
  more: {bolt: generic, selectivity: 2.5, from: {some: all}, service: {kind: lognormal, mean: 2 ms, cv: 1}}
  even: {bolt: forward, from: {more: direct}, service: 0 s}
  sums: {bolt: windowed_count, from: {even: {fields: [key]}}, service: 0.1 ms, window: {tuples: 100}}
strategy: none
failures:
  - {kind: crash_host, every: {kind: exponential, mean: 1 h}, host: 1, detection: 10 s, restart: 5 s}
  - {kind: crash_task, at: 1m30s, component: fast, task: 1, while_down: hold}
hosts: 2
links: {latency: {kind: uniform, low: 0.1 ms, high: 0.3 ms}, pairs: {"0-1": 5 ms}}
run: {duration: 2 min, replications: 3}
"""


def test_every_form_becomes_the_object_that_it_stands_for():
    s = load_text(RICH, "rich.yaml")
    assert s.name == "rich"
    assert list(s.topology) == ["fast", "slow", "pass", "some", "more", "even", "sums"]
    fast, slow, sums = s.topology["fast"], s.topology["slow"], s.topology["sums"]
    spout = (kind_of(fast.spout), fast.spout.exponent, fast.parallelism, fast.hosts)
    assert spout == ("keys", 1.1, 2, (0, 1))
    assert (kind_of(fast.arrivals), fast.arrivals.rate) == ("poisson", 100.0)
    assert slow.arrivals == Periodic(pause=10 * MS, emit_cost=530_000, fixed_offset=0)
    assert slow.tuple_size == 1024
    assert [kind_of(g) for g in s.topology["pass"].from_.values()] == ["shuffle", "global"]
    assert s.topology["pass"].service == Exponential(mean=MS)
    assert s.topology["some"].service == Empirical(values=(MS, 2 * MS))
    assert s.topology["more"].service == Lognormal(mean=2 * MS, cv=1)
    assert s.topology["even"].service == Constant(value=0)
    assert sums.from_["even"].fields == ("key",)
    assert (sums.bolt.window.tuples, sums.bolt.window.length) == (100, None)
    assert s.failures[0].every == Exponential(mean=3600 * S)
    assert (s.failures[1].at, s.failures[1].while_down) == (90 * S, "hold")
    assert s.links.local == Constant(value=0)
    assert s.links.pairs == {"0-1": Constant(value=5 * MS)}
    assert (s.run.duration, s.run.warmup, s.run.log_resolution) == (120 * S, 0, None)
    assert s.store.latency == MS


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_scenarios_load_and_round_trip(name):
    scenario = load(name)
    assert scenario.description
    data = to_data(scenario)
    assert load(json.loads(json.dumps(data))) == scenario
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    rich = load_text(RICH, "rich.yaml")
    assert load(to_data(rich)) == rich


@pytest.mark.parametrize("name", ["wordcount", "kill-host"])
def test_comparing_takes_every_kind_in_the_block(name):
    found = load_for_strategies(name)
    block = set(loader.tree(name)[0].value["strategies"].value)
    assert set(found) == block > {"none", "source_replay", "rsm"}
    for kind, scenario in found.items():
        assert kind_of(scenario.strategy) == kind
        assert scenario.model_copy(update={"strategy": load(name).strategy}) == load(name)


def test_comparing_takes_chosen_kinds_and_settings():
    settings = ["strategy.message_timeout=7 s", "run.seed=9"]
    found = load_for_strategies("wordcount", ["source_replay", "rsm"], settings)
    assert found["source_replay"].strategy.message_timeout == 7 * S
    assert [s.run.seed for s in found.values()] == [9, 9]


@pytest.mark.parametrize(
    ("kind", "settings", "says"),
    [
        ("rsm", ["strategy.message_timout=7 s"], "--set: strategy.message_timout: unknown key"),
        ("source_replay", ["strategy.message_timout=7 s"], "unknown key; did you mean 'message_timeout'"),
        ("source_replay", ["strategy.kind=rsm"], "give the strategies there"),
        ("foo", [], "unknown strategy 'foo'"),
    ],
)
def test_what_cannot_be_compared_is_refused(kind, settings, says):
    told(refused(load_for_strategies, "wordcount", [kind], settings), "", says)


def test_without_a_block_the_one_strategy_is_compared():
    text = yaml_source.parse(RICH, "x").plain()
    assert list(load_for_strategies(text)) == ["none"]


def test_a_file_is_loaded_by_its_path(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(RICH)
    assert load(path) == load(str(path))
    assert load(path).name == "mine"
    path.write_bytes(b"\xef\xbb\xbf" + RICH.replace("\n", "\r\n").encode())
    assert load(path).hosts == 2


def test_a_sweep_file_is_no_scenario():
    with pytest.raises(ScenarioError, match="grid: belongs to a sweep; use this file with"):
        load_text("scenario: wordcount\ngrid: {run.seed: [1, 2]}\n", "x")


# The library


def test_the_catalogue_describes_every_scenario():
    assert {"wordcount", "stableford-phase2", "kill-host"} <= set(BUILT_IN)
    found = {entry["name"]: entry["sort"] for entry in library.catalogue()}
    assert found == dict.fromkeys(BUILT_IN, "scenario") | dict.fromkeys(library.sweeps(), "sweep")
    assert all(entry["description"] for entry in library.catalogue())


def test_copies_can_be_changed(tmp_path):
    path = library.copy("wordcount", tmp_path)
    assert path == tmp_path / "wordcount.yaml"
    assert load(path) == load("wordcount")
    with pytest.raises(FileExistsError):
        library.copy("wordcount", tmp_path)
    assert library.copy("wordcount", tmp_path / "other.yaml").read_text() == library.text("wordcount")


def test_a_built_in_name_wins_over_a_file_without_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wordcount").write_text("broken: true")
    assert load("wordcount").name == "word count"
    with pytest.raises(ScenarioError, match="has none of the keys"):
        load("./wordcount")


# Parts from elsewhere


class Slow(Distribution):
    """Twice as long as you think."""

    expected: Annotated[Duration, Field(description="what you think")]

    def sample(self, bits: np.ndarray) -> np.ndarray:
        return np.full(len(bits), 2 * self.expected)

    @property
    def mean_ns(self) -> float:
        return 2.0 * self.expected


class Tee(Bolt):
    """Hands on, and counts in a nested part."""

    emits: ClassVar[tuple[str, ...]] = ("left", "right")
    pauses: Annotated[dict[str, Distribution], Field(description="by name")]
    delays: Annotated[tuple[Distribution, ...], Field(description="in order")] = ()


@pytest.fixture
def third_party(monkeypatch):
    class Plugin(EntryPoint):
        def load(self) -> None:
            if self.name == "broken":
                raise ImportError("no such thing")
            DISTRIBUTIONS.register("slow")(Slow)
            BOLTS.register("tee")(Tee)

    offered = [Plugin("mine", "somewhere", plugins.GROUP), Plugin("broken", "nowhere", plugins.GROUP)]
    monkeypatch.setattr(plugins, "entry_points", lambda group: offered if group == plugins.GROUP else [])
    plugins.load_installed.cache_clear()
    yield
    DISTRIBUTIONS.discard("slow")
    BOLTS.discard("tee")


TEE = """\
topology:
  a: {spout: keys, rate: 1/s}
  t: {bolt: tee, from: {a: shuffle}, service: {kind: slow, expected: 1 s}, pauses: {x: 1 s, y: {kind: slow, expected: 2 s}}, delays: [1 ms]}
  b: {bolt: forward, from: {t: {fields: [left]}}, service: 1 ms}
strategy: none
run: {duration: 10 s}
"""


@pytest.mark.usefixtures("third_party")
def test_parts_of_other_packages_are_known_everywhere():
    with pytest.warns(RuntimeWarning, match="plugin 'broken' could not be loaded: no such thing"):
        tee = load_text(TEE).topology["t"]
    assert tee.service == Slow(expected=S)
    assert tee.bolt.pauses == {"x": Constant(value=S), "y": Slow(expected=2 * S)}
    assert tee.bolt.delays == (Constant(value=MS),)
    assert load(to_data(load_text(TEE))) == load_text(TEE, "scenario")
    broken = TEE.replace("expected: 2 s", "expected: 2").replace("expected: 1 s", "x: 1")
    shown = refused(load_text, broken.replace("[left]", "[lft]"))
    told(shown, "scenario:3: topology.t.pauses.y.expected: ", "2 has no unit")
    told(shown, "scenario:3: topology.t.service.expected: ", "is missing; what you think")
    told(refused(load_text, TEE.replace("kind: slow", "kind: slwo")), "", "did you mean 'slow'")
    shown = refused(load_text, TEE.replace("[left]", "[lft]"))
    told(
        shown, "scenario:4: topology.b.from.t.fields: ", "t does not emit a field 'lft'; did you mean 'left'"
    )
    validator = jsonschema.Draft202012Validator(json_schema())
    assert validator.is_valid(yaml_source.parse(TEE, "tee").plain())


# The JSON Schema


@cache
def schema_of_scenarios() -> jsonschema.Draft202012Validator:
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.check_schema(json_schema())
    return validator


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_scenarios_match_the_json_schema(name):
    validator = schema_of_scenarios()
    assert list(validator.iter_errors(yaml_source.parse(library.text(name), name).plain())) == []
    assert list(validator.iter_errors(to_data(load(name)))) == []


def test_the_json_schema_accepts_every_form_and_refuses_broken_ones():
    validator = schema_of_scenarios()
    assert list(validator.iter_errors(yaml_source.parse(RICH, "rich").plain())) == []
    changes = {"0.53 ms": "0.53", "keep: 0.3": "kep: 0.3", "crash_host": "crash_hst", "hosts: 2": "hosts: 0"}
    for old, new in changes.items():
        broken = yaml_source.parse(RICH.replace(old, new), "rich").plain()
        assert not validator.is_valid(broken), new


def test_the_json_schema_says_what_every_key_means():
    silent = []

    def walk(schema: object, path: str) -> None:
        if isinstance(schema, dict):
            for key, value in schema.get("properties", {}).items():
                if not value.get("description"):
                    silent.append(f"{path}/{key}")
            for key, value in schema.items():
                walk(value, f"{path}/{key}")
        elif isinstance(schema, list):
            for i, value in enumerate(schema):
                walk(value, f"{path}/{i}")

    walk(json_schema(), "")
    assert silent == []


def test_defaults_in_the_json_schema_are_written_as_in_a_file():
    schema = json_schema()
    assert schema["properties"]["store"]["properties"]["latency"]["default"] == "1 ms"
    assert schema["properties"]["run"]["properties"]["seed"]["default"] == 1
    json.dumps(schema)


def test_loading_needs_no_scipy_and_no_spark():
    code = (
        "import sys; from tideover.scenarios.loader import load; load('wordcount');"
        "sys.exit(any(m in sys.modules for m in ('scipy', 'pyspark', 'matplotlib', 'pandas')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_files_that_a_scenario_names_are_looked_for_beside_it(tmp_path):
    (tmp_path / "rates.csv").write_text("time_s,rate_per_s\n0,5\n3,10\n")
    path = library.copy("wordcount", tmp_path)
    path.write_text(path.read_text().replace("rate: 10/s", "arrivals: {kind: trace, file: rates.csv}"))
    assert load(path).topology["sentences"].arrivals.file == str(tmp_path / "rates.csv")
    missing = refused(load, path, ["topology.sentences.arrivals.file=none.csv"])
    told(missing, f"{path}:8: topology.sentences.arrivals: ", "cannot read 'none.csv'")


CHAIN = {
    "name": "chain",
    "topology": {
        "s": {"spout": "sentences", "rate": "5/s"},
        "split": {"bolt": "split_words", "from": {"s": "shuffle"}, "service": "1 ms"},
        "count": {
            "bolt": "windowed_count",
            "from": {"split": {"fields": ["word"]}},
            "service": "1 ms",
            "window": "2 s",
        },
    },
    "strategy": {"kind": "source_replay", "message_timeout": "3 s"},
    "failures": [{"at": "5 s", "kind": "lose_state", "component": "count"}],
    "run": {"duration": "20 s", "warmup": "1 s", "seed": 1, "replications": 1},
}


def built_in() -> list[str]:
    return [name for name, cls in STRATEGIES.items() if cls.__module__.startswith("tideover.")]


@pytest.mark.parametrize("source", ["wordcount", CHAIN], ids=["wordcount", "chain"])
def test_every_strategy_takes_part(source):
    """Law: whatever the scenario says of strategies, each that comes with Tideover can be compared: keys
    without a default have a usual value, which is one that the strategy takes.
    """
    every = every_strategy(source)
    assert set(built_in()) <= set(every.kinds)
    found = load_for_strategies(source, every.kinds, every.settings)
    assert list(found) == list(every.kinds)


def test_those_that_the_scenario_names_come_first_and_need_nothing():
    every = every_strategy("wordcount")
    named = list(load_for_strategies("wordcount"))
    assert list(every.kinds) == [*named, *sorted(set(every.kinds) - set(named))]
    assert not any("checkpoint_interval" in note for note in every.notes)


def test_what_is_needed_is_told_unless_somebody_gave_it():
    told = "rsm: checkpoint_interval 5 s, since nothing else is said"
    assert told in every_strategy(CHAIN).notes
    given = ["strategies.rsm.checkpoint_interval=2s"]
    every = every_strategy(CHAIN, given)
    assert told not in every.notes
    assert "strategies.rsm.checkpoint_interval" not in {one.key for one in every.settings}
    found = api.compared(CHAIN, "all", given)
    assert found["rsm"].strategy.checkpoint_interval == 2_000_000_000
    assert found["aligned_snapshots"].strategy.checkpoint_interval == 5_000_000_000


def test_a_strategy_that_does_not_go_with_the_scenario_is_left_out_and_it_is_told_why():
    """Spouts that read a queue do not go with strategies that read a log of their own."""
    source = {"kind": "kafka", "partitions": 1}
    topology = CHAIN["topology"] | {"s": {"spout": "sentences", "rate": "5/s", "source": source}}
    every = every_strategy(CHAIN | {"topology": topology})
    assert "micro_batch" not in every.kinds
    assert "source_replay" in every.kinds
    (note,) = (note for note in every.notes if note.startswith("micro_batch is left out: "))
    assert "source" in note


def test_a_scenario_that_is_wrong_is_told_as_ever():
    """Law: nothing is left out where the scenario itself is the reason."""
    with pytest.raises(ScenarioError) as caught:
        every_strategy(CHAIN | {"run": {"duration": "20"}})
    assert caught.value.problems[0].key == "run.duration"


def test_compare_all():
    found = tideover.compare(CHAIN, "all")
    assert set(built_in()) <= set(found.results)
    failures = {one.scenario.failures for one in found.results.values()}
    assert failures == {found.results["none"].scenario.failures}
    assert tideover.compare(CHAIN, ["all"], ["run.duration=12s"]).results.keys() == found.results.keys()


SOURCE = Path(__file__).parents[2] / "examples" / "approximate_backup.py"
SHORT = [
    *("--set", "strategy.kind=approximate_backup", "--set", "strategy.interval=1s"),
    *("--set", "run.duration=100s"),
]
SWEEP = "scenario: wordcount\ngrid: {strategy.kind: [approximate_backup], strategy.interval: [1 s, 2 s]}\n"


@pytest.fixture
def plugin(tmp_path):
    """A copy of the example under another name, which no process can import."""
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.read_text())
    yield path
    STRATEGIES.discard("approximate_backup")
    plugins._files.clear()


def leaves(command: Any) -> Iterator[Any]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield command
    else:
        for one in inner.values():
            yield from leaves(one)


def test_every_command_takes_plugins():
    every = list(leaves(typer.main.get_command(app)))
    assert len(every) > 10
    assert [c.name for c in every if "--plugin" not in [o for p in c.params for o in p.opts]] == []


def test_a_strategy_of_a_file_runs(tideover, plugin):
    """Without the option its name is unknown; with it, given twice even, it is there."""
    code, _, err = tideover("run", "wordcount", "--json", *SHORT)
    assert (code, "unknown strategy 'approximate_backup'" in err) == (2, True)
    code, out, _ = tideover("run", "wordcount", "--json", *SHORT, "--plugin", plugin, "--plugin", plugin)
    assert (code, '"strategy": "approximate_backup"' in out) == (0, True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "{}: --plugin: is no Python file; its name has to end with .py"),
        ("a.py", "x = 1\n", "{}: --plugin: registers nothing; it may register any "),
        ("a.py", "def f(:\n", "{}:1: --plugin: does not run: SyntaxError: "),
        ("a.py", "\nimport no_such_thing\n", "{}:2: --plugin: does not run: ModuleNotFoundError: "),
        (".", None, "{}: --plugin: is no file; give a Python file that registers a strategy or another part"),
    ],
)
def test_what_is_no_plugin_is_refused(tideover, tmp_path, name, text, message):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    code, out, err = tideover("scenarios", "list", "--plugin", path)
    assert (code, out) == (2, "")
    assert err.startswith(message.format(path))


def test_other_processes_need_no_file(plugin, tmp_path):
    """A recipe that was pickled as Spark pickles it builds its points in a process that has never seen the
    plugin, whose file is gone.
    """
    from pyspark import cloudpickle

    from tideover.scenarios.spark.session import _send_plugins

    plugins.load_file(plugin)
    _send_plugins()
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(SWEEP)
    (tmp_path / "sent").write_bytes(cloudpickle.dumps(read_sweep(sweep)))
    plugin.unlink()
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).point(1).scenario.strategy)"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "sent"], capture_output=True, text=True)
    assert "interval=2000000000" in done.stdout, done.stderr
