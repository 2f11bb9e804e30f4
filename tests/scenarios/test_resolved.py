"""A resolved scenario is the same scenario, and names for each value the place that has it."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tideover.cli.app import app
from tideover.cli.output import BadInput
from tideover.scenarios import library, precedence, yaml_source
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import Resolved, build, load, load_text, resolve
from tideover.scenarios.precedence import read_settings
from tideover.scenarios.resolved import resolve as resolve_any
from tideover.scenarios.resolved import to_yaml
from tideover.sim.units import S

SETTINGS = {
    "strategy.kind": st.sampled_from(["rsm", "source_replay", "none", "active_replication"]),
    "run.seed": st.integers(0, 2**63 - 1).map(str),
    "run.duration": st.sampled_from(["300 s", "5m10s", "1 h"]),
    "run.warmup": st.sampled_from(["null", "0 s", "61 s"]),
    "failures.0.at": st.sampled_from(["80s", "1m21s"]),
    "failures": st.sampled_from(["[]", "[{kind: crash_task, at: 10 s, component: split, task: 0}]"]),
    "topology.count.window": st.sampled_from(["20 s", "{tuples: 5}", "{length: 7 s, trigger: marker}"]),
    "topology.count.service": st.sampled_from(["1 ms", "{kind: empirical, values: [1 ms, 2 ms]}"]),
    "topology.split.from.sentences": st.sampled_from(["shuffle", "{fields: [sentence]}", "all"]),
    "topology.split.hosts": st.sampled_from(["[0]", "[1]"]),
    "name": st.sampled_from(["'yes'", "'3'", "'a: b # c'", "'~'", '"a\\nb"', "'.1e0'", "'0x1F'", "é"]),
    "links.pairs.0-1": st.sampled_from(["5 ms", "{kind: exponential, mean: 2 ms}"]),
}  # fmt: skip


def written(text: str) -> dict[str, tuple[str, str]]:
    """Value and source by dotted key of a resolved scenario, from its lines; an entry of a list that has a
    line of its own goes by its value.
    """
    found: dict[str, tuple[str, str]] = {}
    steps: list[tuple[int, str]] = []
    number = -1
    for line in text.splitlines():
        if item := re.fullmatch(r" *- (\S+)\s*# (.*)", line):
            found[".".join(step for _, step in steps) + f".{item[1]}"] = (item[1], item[2])
            continue
        match = re.fullmatch(r"( *)(- )?([^ :]+):(?: (.*?)\s*# (.*))?", line)
        assert match, line
        indent = len(match[1]) + (2 if match[2] else 0)
        if match[2]:
            number += 1
        steps = [step for step in steps if step[0] < indent]
        steps.append((indent, match[3]))
        keys = [step for _, step in steps]
        if keys[0] == "failures" and len(keys) > 1:
            keys.insert(1, str(number))
        if match[5] is not None:
            found[".".join(keys)] = (match[4], match[5])
    return found


@pytest.mark.parametrize("name", [*library.names(), *library.sweeps()])
def test_what_is_built_in_is_read_back_equal(name):
    found = resolve_any(name)
    assert load_text(to_yaml(found), "resolved.yaml") == found.scenario


@settings(max_examples=40)
@given(st.fixed_dictionaries({}, optional=SETTINGS))
def test_any_resolved_scenario_is_read_back_equal(chosen):
    settings = [f"{key}={value}" for key, value in chosen.items()]
    try:
        found = resolve("wordcount", settings)
    except ScenarioError:
        return  # such as a failure that the chosen component cannot have
    assert load_text(to_yaml(found), "resolved.yaml") == found.scenario


def test_each_line_named_of_a_file_has_the_value():
    lines = library.text("wordcount").splitlines()
    named = 0
    for key, (value, source) in written(to_yaml(resolve("wordcount"))).items():
        if match := re.fullmatch(r"wordcount\.yaml:(\d+)", source):
            named += 1
            kept = (key.endswith(".kind") and "arrivals" in key) or key.endswith("split.kind")
            assert kept or value.strip("[]\"'") in lines[int(match[1]) - 1], key
        else:
            assert source == "default", key
    assert named > 20


KEYS = {
    "run.seed": "7",
    "run.replications": "2",
    "run.warmup": "1 s",
    "failures.0.at": "80 s",
    "failures.0.restart": "1 s",
    "topology.split.parallelism": "2",
    "topology.sentences.tuple_size": "1 KiB",
    "strategy.ack_cost": "1 ms",
    "store.latency": "3 ms",
    "links.latency": "2 ms",
}


@settings(max_examples=40)
@given(st.sets(st.sampled_from(sorted(KEYS))))
def test_exactly_the_keys_that_were_set_are_named_so(keys):
    """And everything else has value and source as without the settings."""
    before = written(to_yaml(resolve("wordcount")))
    after = written(to_yaml(resolve("wordcount", [f"{key}={KEYS[key]}" for key in keys])))
    assert {key for key, (_, source) in after.items() if source == "--set"} == keys
    assert all(after[key][0] == KEYS[key] for key in keys)
    before, after = ({k: v for k, v in each.items() if k not in keys} for each in (before, after))
    assert after == before


def test_what_null_takes_away_is_a_default():
    assert written(to_yaml(resolve("wordcount", ["run.warmup=null"])))["run.warmup"] == ("0 s", "default")


@pytest.mark.parametrize("name", ["yes", "3", ".1e0", "~", "0x1F", "a\nb", "x: # y"])
def test_texts_stay_texts(name):
    found = resolve("wordcount", {"name": name})
    assert load_text(to_yaml(found)).name == name


def test_short_forms_keep_their_places():
    text = (
        "topology:\n"
        "  log:\n    spout: keys\n    keys: 3\n    rate: 1/s\n"
        "  job:\n    bolt: windowed_count\n    from: {log: {fields: [key]}}\n"
        "    service: {kind: constant,\n      value: 1 ms}\n    window: 30 s\n    hosts:\n    - 0\n"
        "strategy:\n  none\nrun: {duration: 9 s}\n"
    )
    found = written(to_yaml(resolve_text(text, ["topology.job.hosts.0=1"])))
    assert found["topology.log.arrivals.rate"] == ("1/s", "x.yaml:5")
    assert found["topology.job.from.log.fields"] == ("[key]", "x.yaml:8")
    assert found["topology.job.service"] == ("1 ms", "x.yaml:10")
    assert found["topology.job.window.length"] == ("30 s", "x.yaml:11")
    assert found["topology.job.window.trigger"] == ("tick", "default")
    assert found["topology.job.hosts.1"] == ("1", "--set")
    assert found["strategy.kind"] == ("none", "x.yaml:14")


def resolve_text(text: str, settings: list[str]) -> Resolved:
    root = precedence.settle(yaml_source.parse(text, "x.yaml"), read_settings(settings))
    return build(root, Path())


def test_a_point_of_a_sweep_by_its_number(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "scenario: wordcount\nset: {run.warmup: 3 s}\ngrid:\n  run.seed: [4, 5]\n  failures.0.at: [65 s]\n"
    )
    found = written(to_yaml(resolve_any(str(path), ["hosts=3"], 1)))
    assert found["run.seed"] == ("5", f"{path}:4: grid.run.seed")
    assert found["failures.0.at"] == ("65 s", f"{path}:5: grid.failures.0.at")
    assert found["run.warmup"] == ("3 s", f"{path}:2: set.run.warmup")
    assert found["hosts"] == ("3", "--set")
    with pytest.raises(ScenarioError, match="there is no point 2; points are 0 to 1"):
        resolve_any(str(path), (), 2)


def test_a_profile_is_read_back_with_what_it_gave():
    found = resolve("micro-batch")
    again = load_text(to_yaml(found), "resolved.yaml")
    assert again.profile == found.scenario.profile == load("micro-batch").profile
    assert again.profile is not None
    lines = written(to_yaml(found))
    named = {key for key, (_, source) in lines.items() if source.startswith("profile ")}
    assert named == set(again.profile.taken)
    assert again.run.duration == 45 * S


def shown(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["scenarios", "show", *arguments])


def test_the_command_prints_what_can_be_loaded(tmp_path):
    path = library.copy("wordcount", tmp_path / "mine.yaml")
    printed = shown(str(path), "--resolved", "--set", "run.seed=3").stdout
    assert load_text(printed) == load(path, ["run.seed=3"])
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if text.startswith("run:"))
    assert written(printed)["run.duration"][1] == f"{path}:{line}"
    point = shown("wordcount-sweep", "--resolved", "--point", "1").stdout
    assert written(point)["run.duration"][0] == "240 s"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["wordcount", "--set", "run.seed=3"], "--set: goes with --resolved"),
        (["wordcount-sweep", "--point", "1"], "--point: goes with --resolved"),
        (["wordcont", "--resolved"], "did you mean 'wordcount'?"),
        (["wordcount", "--resolved", "--point", "1"], "--point: wordcount is no sweep"),
        (["wordcount", "--resolved", "--set", "run.seed=x"], "--set: run.seed: must be a whole number"),
    ],
)
def test_what_the_command_refuses(arguments, says):
    """Errors that ``main`` tells, with exit code 2."""
    found = shown(*arguments).exception
    assert isinstance(found, BadInput | ScenarioError)
    assert says in str(found)
