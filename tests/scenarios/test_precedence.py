"""Who wins: laws for every choice of sources, and for the order in which they are given."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.scenarios import loader
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import Resolved
from tideover.scenarios.precedence import Setting, put
from tideover.scenarios.resolved import said
from tideover.scenarios.sweeps import sweep_file
from tideover.scenarios.yaml_source import Giver, Node, Origin, parse
from tideover.sim.units import S

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
GIVEN_ELSE = {
    "strategy.checkpoint_interval": "50 s",
    "topology.job.service": "50 s",
    "failures.0.restart": "50 s",
}
"""What the other keys are, so that the scenario is complete."""


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
    settings = {other: value for other, value in GIVEN_ELSE.items() if other != key.key}
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
def test_the_strongest_source_wins_and_is_named(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whichever sources give a key, and whether by its short name or in full."""
    key = data.draw(st.sampled_from(KEYS))
    sources = data.draw(st.sets(st.sampled_from(key.sources), min_size=1))
    short = frozenset(data.draw(st.sets(st.sampled_from(["sweep", "--set", "grid"]))))
    check(tmp_path_factory.mktemp("w"), key, sources, short)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.short)
def test_of_every_pair_of_sources_the_stronger_wins(tmp_path: Path, key: Key) -> None:
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


def test_a_set_of_a_swept_key_takes_the_place_of_the_grids_values() -> None:
    spec = {"scenario": "wordcount", "grid": {"run.seed": [1, 2]}}
    assert [p.scenario.run.seed for p in sweep_file.read(spec, ["run.seed=[5, 6, 7]"]).checked()] == [5, 6, 7]
    assert (
        said(sweep_file.read(spec, ["run.seed=5"]).resolved(0).root.get("run", "seed").origin)
        == "--set: grid.run.seed"
    )


LAYERS = [Giver.SWEEP, Giver.SETTING, Giver.POINT, Giver.PROFILE, Giver.DEFAULT]


@given(st.permutations(LAYERS), st.booleans())
def test_the_order_in_which_sources_come_does_not_matter(order: list[Giver], in_file: bool) -> None:
    root = parse("run: {seed: file}\n" if in_file else "run: {}\n", "x")
    for giver in order:
        root = put(root, Setting("run.seed", Node(giver.name, Origin("x", None, giver))))
    assert root.plain() == {"run": {"seed": "POINT"}}


@given(st.lists(st.sampled_from([Giver.PROFILE, Giver.DEFAULT]), max_size=4))
def test_what_is_weaker_than_the_file_never_changes_it(givers: list[Giver]) -> None:
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
def test_a_null_from_outside_leads_to_the_parts_own_default(stronger: str) -> None:
    spec: dict = {"scenario": "wordcount", "grid": {"run.seed": [1]}, "set": {}}
    assert sweep_file.read(spec).resolved(0).scenario.run.warmup == 60 * S
    settings = {}
    if stronger == "--set":
        settings["run.warmup"] = None
    else:
        spec["set" if stronger == "sweep" else "grid"]["run.warmup"] = None if stronger == "sweep" else [None]
    assert sweep_file.read(spec, settings).resolved(0).scenario.run.warmup == 0


def test_a_kind_that_was_set_turns_block_and_file_around() -> None:
    """The file's own keys were meant for another kind; what was set itself wins all the same."""
    plain = SCENARIO | {
        "strategy": {"kind": "source_replay", "message_timeout": "11 s"},
        "strategies": {"source_replay": {"message_timeout": "22 s"}},
    }

    def timeout(*settings: str) -> float:
        return float(
            loader.load(plain, ["topology.job.service=1 ms", *settings]).strategy.message_timeout / S
        )

    kind, own, block = (
        "strategy.kind=source_replay",
        "strategy.message_timeout=33 s",
        "strategies.source_replay",
    )
    assert [timeout(), timeout(kind)] == [11, 22]
    assert {
        timeout(*order) for order in itertools.permutations([kind, own, f"{block}.message_timeout=44 s"])
    } == {33}
    assert timeout(f"{block}.message_timeout=44 s") == 44


def test_problems_of_settings_are_told_where_they_were_set(tmp_path: Path) -> None:
    """A short parameter's in a sweep file too: at its line, by the name that it has there."""
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "scenario: flink-recovery\nset: {restart: 5}\nseed: x\n"
        "grid:\n  rate: [10/s, 7 s]\n  run.warmup: [3]\n"
    )
    with pytest.raises(ScenarioError) as caught:
        sweep_file.read(path, {"run.replications": 0}).checked()
    assert [(p.file, p.line, p.key) for p in caught.value.problems] == [
        (str(path), 2, "set.restart"),
        (str(path), 3, "seed"),
        (str(path), 5, "grid.rate"),
        (str(path), 6, "grid.run.warmup"),
        ("--set", None, "run.replications"),
    ]
