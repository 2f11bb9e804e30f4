"""Broken scenarios: each must end in one clear line with file, line, key, what is wrong and what is allowed."""

import os
import re
import subprocess
import sys
from itertools import pairwise

import pytest

from tests.scenarios.refused import refused, told
from tideover.calibrate.recoveries import measurements
from tideover.scenarios.errors import MOST_SHOWN, ScenarioError
from tideover.scenarios.loader import load, load_text
from tideover.scenarios.planning import spec
from tideover.scenarios.runs import fingerprint
from tideover.scenarios.sweeps import sweep_file
from tideover.scenarios.yaml_source import MAX_BYTES, MAX_DEPTH, MAX_VALUES

GOOD = """\
name: test
topology:
  sentences: {spout: sentences, rate: 10/s}
  split: {bolt: split_words, from: {sentences: shuffle}, service: 0.2 ms}
  count: {bolt: windowed_count, from: {split: {fields: [word]}}, service: 0.1 ms, window: 30 s}
strategy: {kind: source_replay, message_timeout: 30 s}
failures: [{at: 75 s, kind: lose_state, component: count}]
hosts: 4
links: {latency: 0.5 ms, local: 0 s, pairs: {"0-1": 5 ms}}
store: {latency: 1 ms}
run: {duration: 240 s, warmup: 60 s, seed: 1, replications: 5}
"""

FAILURE = "{at: 75 s, kind: lose_state, component: count}"

# ruff: noqa: E501
# fmt: off
# What is replaced in the good file, by what, and then: line, key, part of the message.
BROKEN = [
    # keys
    ("name: test", "nam: test", 1, "nam", "did you mean 'name'"),
    ("hosts: 4", "host: 4", 8, "host", "did you mean 'hosts'"),
    ("rate: 10/s", "rat: 10/s", 3, "topology.sentences.rat", "did you mean 'rate'"),
    ("window: 30 s", "windw: 30 s", 5, "topology.count.windw", "did you mean 'window'"),
    ("window: 30 s", "parallelism: 2", 5, "topology.count.window", "is missing"),
    ("strategy:", "stratgy:", 6, "stratgy", "did you mean 'strategy'"),
    ("window: 30 s", "window: {size: 30 s}", 5, "topology.count.window.size", "known: length, tuples, gap, slide"),
    ("message_timeout", "message_timout", 6, "strategy.message_timout", "did you mean 'message_timeout'"),
    ("at: 75 s", "ta: 75 s", 7, "failures.0.ta", "unknown key"),
    ("warmup", "warm_up", 11, "run.warm_up", "did you mean 'warmup'"),
    ("local", "locale", 9, "links.locale", "did you mean 'local'"),
    ("duration: 240 s, ", "", 11, "run.duration", "is missing"),
    ("kind: source_replay, ", "", 6, "strategy.kind", "is missing; give one of"),
    ("service: 0.2 ms", "parallelism: 1", 4, "topology.split.service", "is missing"),
    ("from: {sentences: shuffle}, ", "", 4, "topology.split.from", "is missing"),
    ("spout: sentences, ", "", 3, "topology.sentences", "neither a spout nor a bolt"),
    ("spout: sentences,", "spout: sentences, bolt: forward,", 3, "topology.sentences.bolt", "does not go with spout"),
    ("hosts: 4", "hosts: 4\nhosts: 5", 9, "hosts", "given twice (first in line 8)"),
    ("service: 0.2 ms", "service: 0.2 ms, service: 1 ms", 4, "topology.split.service", "given twice"),
    ("hosts: 4", "<<: {a: 1}", 8, "<<", "unknown key"),
    ("hosts: 4", "[a]: 1", 8, "(file)", "a key must be a plain text"),
    # kinds
    ("store: {latency: 1 ms}", "strategies: {rsm: {kind: foo, checkpoint_interval: 5 s}}", 10, "strategies.rsm.kind", "must be rsm, as the key says"),
    ("bolt: split_words", "bolt: split_word", 4, "topology.split.bolt", "did you mean 'split_words'"),
    ("spout: sentences", "spout: kafka", 3, "topology.sentences.spout", "unknown spout 'kafka'"),
    ("sentences: shuffle", "sentences: shufle", 4, "topology.split.from.sentences", "did you mean 'shuffle'"),
    ("{fields: [word]}", "{kind: hash}", 5, "topology.count.from.split.kind", "unknown grouping 'hash'"),
    ("{fields: [word]}", "{kind: fields}", 5, "topology.count.from.split.fields", "is missing"),
    ("kind: source_replay", "kind: sr", 6, "strategy.kind", "unknown strategy 'sr'"),
    ("kind: source_replay", "kind: [rsm]", 6, "strategy.kind", "must be the name of a strategy"),
    ("kind: lose_state", "kind: lose_sate", 7, "failures.0.kind", "did you mean 'lose_state'"),
    ("service: 0.2 ms", "service: {kind: normal}", 4, "topology.split.service.kind", "unknown distribution"),
    ("rate: 10/s", "arrivals: {kind: fixed}", 3, "topology.sentences.arrivals.kind", "unknown arrival process"),
    ("window: 30 s", "window: {length: 30 s, trigger: tock}", 5, "topology.count.window.trigger", "'tick' or 'marker'"),
    ("component: count", "component: count, while_down: keep", 7, "failures.0.while_down", "'drop' or 'hold'"),
    # units
    ("rate: 10/s", "rate: 10", 3, "topology.sentences.rate", "10 has no unit; write a rate"),
    ("service: 0.2 ms", "service: 0.2", 4, "topology.split.service", "0.2 has no unit; write a duration"),
    ("service: 0.2 ms", "service: 0", 4, "topology.split.service", "0 has no unit"),
    ("window: 30 s", "window: 30", 5, "topology.count.window", "30 has no unit"),
    ("window: 30 s", "window: '30'", 5, "topology.count.window", "'30' has no unit"),
    ("duration: 240 s", "duration: 240 sec", 11, "run.duration", "not a duration"),
    ("duration: 240 s", "duration: 4:00", 11, "run.duration", "not a duration"),
    ("store: {latency: 1 ms}", "store: {latency: 1/s}", 10, "store.latency", "not a duration"),
    ("rate: 10/s", "rate: 10 s", 3, "topology.sentences.rate", "not a rate"),
    ("rate: 10/s", "rate: 10/s, tuple_size: 256", 3, "topology.sentences.tuple_size", "256 has no unit; write a size"),
    ("rate: 10/s", "rate: 10/s, tuple_size: 1 kb", 3, "topology.sentences.tuple_size", "not a size"),
    ("rate: 10/s", "rate: 10/s, tuple_size: 0.5 B", 3, "topology.sentences.tuple_size", "whole number of bytes"),
    # values
    ("service: 0.2 ms", "service: -0.2 ms", 4, "topology.split.service", "negative"),
    ("rate: 10/s", "rate: -10/s", 3, "topology.sentences.rate", "negative"),
    ("rate: 10/s", "rate: 0/s", 3, "topology.sentences.rate", "positive"),
    ("rate: 10/s", "rate: .nan", 3, "topology.sentences.rate", "nan has no unit"),
    ("rate: 10/s", "rate: nan/s", 3, "topology.sentences.rate", "not a rate"),
    ("duration: 240 s", "duration: .inf", 11, "run.duration", "inf has no unit"),
    ("duration: 240 s", "duration: inf s", 11, "run.duration", "not a duration"),
    ("duration: 240 s", "duration: 1e30 s", 11, "run.duration", "too large"),
    ("duration: 240 s", "duration: 365000 d", 11, "run.duration", "at most 10000 d"),
    ("duration: 240 s", "duration: 40000 d", 11, "run.duration", "at most 10000 d"),
    ("duration: 240 s", "duration: 0.1 ns", 11, "run.duration", "less than 1 ns"),
    ("duration: 240 s", "duration: true", 11, "run.duration", "true is not a duration"),
    ("duration: 240 s", "duration: [240 s]", 11, "run.duration", "a list is not a duration"),
    ("duration: 240 s", "duration: null", 11, "run.duration", "is empty"),
    ("seed: 1", "seed: -1", 11, "run.seed", "at least 0"),
    ("seed: 1", "seed: 1.5", 11, "run.seed", "a whole number"),
    ("seed: 1", "seed: one", 11, "run.seed", "a whole number, not 'one'"),
    ("seed: 1", "seed: 1e400", 11, "run.seed", "a whole number"),
    ("seed: 1", "seed: 99999999999999999999", 11, "run.seed", "less than"),
    ("replications: 5", "replications: true", 11, "run.replications", "a whole number, not true"),
    ("replications: 5", "replications: '5'", 11, "run.replications", "a whole number, not '5'"),
    ("replications: 5", "replications: 0", 11, "run.replications", "at least 1"),
    ("replications: 5", "replications: 1000000000", 11, "run.replications", "at most"),
    ("hosts: 4", "hosts: 0", 8, "hosts", "at least 1"),
    ("hosts: 4", "hosts: 4.0", 8, "hosts", "a whole number"),
    ("rate: 10/s", "rate: 10/s, parallelism: 0", 3, "topology.sentences.parallelism", "at least 1"),
    ("rate: 10/s", "rate: 10/s, parallelism: 100000", 3, "topology.sentences.parallelism", "at most 1024"),
    ("rate: 10/s", "rate: 10/s, pause: 1 ms", 3, "topology.sentences", "either rate or pause"),
    ("rate: 10/s", "parallelism: 1", 3, "topology.sentences", "has no arrivals"),
    ("rate: 10/s", "rate: 10/s, arrivals: {kind: poisson, rate: 1/s}", 3, "topology.sentences.rate", "does not go with"),
    ("rate: 10/s", "arrivals: {kind: poisson}", 3, "topology.sentences.arrivals.rate", "is missing"),
    ("service: 0.2 ms", "service: {kind: uniform, low: 2 ms, high: 1 ms}", 4, "topology.split.service", "low must not be"),
    ("service: 0.2 ms", "service: {kind: gamma, mean: 1 ms, cv: .nan}", 4, "topology.split.service.cv", "not nan"),
    ("service: 0.2 ms", "service: {kind: gamma, mean: 1 ms, cv: .inf}", 4, "topology.split.service.cv", "at most 30"),
    ("service: 0.2 ms", "service: {kind: gamma, mean: 1 ms}", 4, "topology.split.service", "either shape or cv"),
    ("service: 0.2 ms", "service: {kind: empirical, values: [1 ms, 2]}", 4, "topology.split.service.values.1", "no unit"),
    ("service: 0.2 ms", "service: {kind: empirical, values: []}", 4, "topology.split.service.values", "at least 1"),
    ("service: 0.2 ms", "service: {kind: empirical, values: 1 ms}", 4, "topology.split.service.values", "must be a list"),
    ("service: 0.2 ms", "service: {kind: constant, value: 1 ms, cv: 1}", 4, "topology.split.service.cv", "unknown key"),
    ("service: 0.2 ms", "service: [1 ms]", 4, "topology.split.service", "must be a mapping"),
    ("window: 30 s", "window: 0 s", 5, "topology.count.window", "at least 1 ms"),
    ("window: 30 s", "window: {tuples: 0}", 5, "topology.count.window.tuples", "at least 1"),
    ("window: 30 s", "window: {tuples: 5, length: 5 s}", 5, "topology.count.window", "either length"),
    ("window: 30 s", "window: {}", 5, "topology.count.window", "either length"),
    ("{fields: [word]}", "{fields: []}", 5, "topology.count.from.split.fields", "at least 1"),
    ("{fields: [word]}", "{fields: word}", 5, "topology.count.from.split.fields", "must be a list"),
    ("{fields: [word]}", "{fields: [1]}", 5, "topology.count.from.split.fields.0", "a text"),
    ("name: test", "name: [test]", 1, "name", "a text"),
    # streams
    ("sentences: shuffle", "sentence: shuffle", 4, "topology.split.from.sentence", "did you mean 'sentences'"),
    ("sentences: shuffle", "count: shuffle", 4, "topology.split.from", "split -> count -> split"),
    ("sentences: shuffle", "split: shuffle", 4, "topology.split.from", "split -> split"),
    ("{sentences: shuffle}", "{}", 4, "topology.split.from", "is empty"),
    ("from: {sentences: shuffle}", "from: sentences", 4, "topology.split.from", "must be a mapping"),
    ("[word]", "[wrd]", 5, "topology.count.from.split.fields", "did you mean 'word'"),
    ("{split: {fields: [word]}}", "{sentences: {fields: [word]}}", 5, "topology.count.from.sentences.fields", "known: sentence"),
    ("{spout: sentences, rate: 10/s}", "{bolt: forward, from: {split: shuffle}, service: 1 ms}", 2, "topology", "no spout"),
    ("  split:", "  other: {spout: sentences, rate: 1/s}\n  split:", 4, "topology.other", "no bolt reads"),
    ("  split:", "  acker: {bolt: forward, from: {sentences: all}, service: 1 ms}\n  split:", 4, "topology.acker", "choose another"),
    ("  split:", "  a b: {bolt: forward, from: {sentences: all}, service: 1 ms}\n  split:", 4, "topology.a b", "letters"),
    ("  split:", "  extra: 5\n  split:", 4, "topology.extra", "must be a mapping"),
    ("  split:", "  extra:\n  split:", 4, "topology.extra", "must be a mapping of keys, not nothing"),
    # places
    ("component: count", "component: cuont", 7, "failures.0.component", "did you mean 'count'"),
    ("component: count", "component: count, task: 1", 7, "failures.0.task", "tasks are 0 to 0"),
    ("component: count", "component: count, task: -1", 7, "failures.0.task", "at least 0"),
    ("lose_state, component: count", "crash_task, component: count, together: 2", 7, "failures.0.together", "must be at most 1, not 2: count has no more tasks"),
    ("lose_state, component: count", "crash_task, component: acker, together: 2", 7, "failures.0.together", "must be at most 1, not 2: acker has no more tasks"),
    ("lose_state, component: count", "crash_task, component: acker, task: 1", 7, "failures.0.task", "acker has no task 1; there is one of it"),
    ("component: count", "host: 1", 7, "failures.0.component", "is missing"),
    ("lose_state, component: count", "crash_host, host: 4", 7, "failures.0.host", "0 to 3"),
    ("lose_state, component: count", "crash_host", 7, "failures.0.host", "is missing"),
    ("at: 75 s", "at: 240 s", 7, "failures.0.at", "ends at 240 s"),
    ("at: 75 s, ", "", 7, "failures.0", "either at"),
    ("at: 75 s", "at: 75 s, every: 1 h", 7, "failures.0", "either at"),
    ("at: 75 s", "every: 5", 7, "failures.0.every", "5 has no unit"),
    ("failures: [{", "failures: [5, {", 7, "failures.0", "must be a mapping"),
    ("failures: [{at: 75 s, kind: lose_state, component: count}]", "failures: {at: 75 s}", 7, "failures", "must be a list"),
    ("warmup: 60 s", "warmup: 240 s", 11, "run.warmup", "less than run.duration"),
    ("duration: 240 s", "duration: 0 s", 11, "run.duration", "more than 0 s"),
    ("warmup: 60 s", "log_resolution: 0 s", 11, "run.log_resolution", "more than 0 s"),
    ("rate: 10/s", "rate: 10/s, hosts: [4]", 3, "topology.sentences.hosts.0", "0 to 3"),
    ("rate: 10/s", "rate: 10/s, hosts: [0, 1]", 3, "topology.sentences.hosts", "2 hosts for 1 tasks"),
    ("rate: 10/s", "rate: 10/s, hosts: 0", 3, "topology.sentences.hosts", "must be a list"),
    ("rate: 10/s", "rate: 10/s, hosts: [true]", 3, "topology.sentences.hosts.0", "a whole number, not true"),
    ('"0-1"', '"0-9"', 9, "links.pairs.0-9", "no host 9"),
    ('"0-1"', '"a-b"', 9, "links.pairs.a-b", '"0-1"'),
    ('"0-1"', '"1-1"', 9, "links.pairs.1-1", "names one host twice"),
    ('"0-1": 5 ms', '"0-1": 5 ms, "1-0": 5 ms', 9, "links.pairs.1-0", "same pair"),
    ('"0-1": 5 ms', '"0-1": 5', 9, "links.pairs.0-1", "5 has no unit"),
    ("links: {latency: 0.5 ms", "links: {latency: -0.5 ms", 9, "links.latency", "negative"),
    # strategies
    ("message_timeout: 30 s", "message_timeout: 0 s", 6, "strategy.message_timeout", "at least 1 ms"),
    ("message_timeout: 30 s", "timeout_buckets: 1", 6, "strategy.timeout_buckets", "at least 2"),
    ("message_timeout: 30 s", "acker_host: 7", 6, "strategy.acker_host", "0 to 3"),
    ("source_replay, message_timeout: 30 s", "rsm, checkpoint_interval: 5", 6, "strategy.checkpoint_interval", "no unit"),
    ("source_replay, message_timeout: 30 s", "active_replication, k: -1", 6, "strategy.k", "at least 0"),
    ("source_replay, message_timeout: 30 s", "active_replication, components: [x]", 6, "strategy.components.0", "no component"),
    ("hosts: 4", "strategies: {rms: {}}", 8, "strategies.rms", "unknown strategy 'rms'"),
    ("hosts: 4", "strategies: {none: {k: 1}}", 8, "strategies.none.k", "unknown key"),
    ("hosts: 4", "strategies: [none]", 8, "strategies", "must be a mapping"),
    # YAML
    ("hosts: 4", "hosts: !!int 4", 8, "hosts", "tags are not allowed"),
    ("hosts: 4", "hosts: !!python/object/apply:os.system [ls]", 8, "hosts", "tags are not allowed"),
    ("hosts: 4", "hosts: *four", 8, "hosts", "alias *four"),
    ("hosts: 4", "hosts: &a [*a]", 8, "hosts.0", "alias *a"),
    ("hosts: 4", "hosts: 4: 5", 8, "(file)", "not valid YAML"),
    ("hosts: 4", "hosts: [4", 9, "hosts.1", "not valid YAML"),
    ("hosts: 4", "hosts: 'four", 8, "hosts", "not valid YAML"),
    ("hosts: 4", "\thosts: 4", 8, "(file)", "not valid YAML"),
    ("hosts: 4", "---\nhosts: 4", 8, "(file)", "second document"),
    ("hosts: 4", "hosts: \x07", 8, "(file)", "control character"),
]
# fmt: on


def problems(text: str) -> list[str]:
    return refused(load_text, text, "broken.yaml")


def test_the_table_is_long_enough_and_starts_from_a_good_file():
    assert len(BROKEN) >= 70
    assert load_text(GOOD, "good.yaml").hosts == 4


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"), BROKEN, ids=[f"{c[3]}-{c[1]}"[:60] for c in BROKEN]
)
def test_each_problem_names_its_place(old, new, line, key, says):
    assert GOOD.count(old) == 1 or old in ("  split:",)
    shown = problems(GOOD.replace(old, new, 1))
    told(shown, f"broken.yaml:{line}: {key}: ", says)
    assert len(shown) <= 3, "one mistake should not be said many times"


def test_all_problems_are_collected_and_sorted_by_line():
    text = GOOD
    for old, new in (
        ("10/s", "10"),
        ("[word]", "[wrd]"),
        ("60 s", "1"),
        ("0.2 ms", "x"),
        ("hosts: 4", "h: 4"),
    ):
        text = text.replace(old, new)
    lines = [int(shown.split(":")[1]) for shown in problems(text)]
    assert lines == sorted(lines)
    assert set(lines) >= {3, 4, 8, 11}


def test_at_most_twenty_problems_are_shown():
    assert len(problems(GOOD + "".join(f"key{i}: 1\n" for i in range(100)))) == MOST_SHOWN


DEEP = {  # deeper than Python calls itself; the reader of YAML takes longer by the square
    "lists": "name: " + "[" * 1500 + "]" * 1500,
    "unclosed lists": "[" * 1500,
    "mappings": "{a: " * 1500,
    "compact lists": "- " * 1500,
    "blocks": "\n".join(" " * i + "a:" for i in range(1000)),
    "just too deep": "a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_deep_nesting(text):
    (shown,) = problems(text)
    assert re.match(r"broken\.yaml:\d+: ", shown)
    assert f"more than {MAX_DEPTH} levels" in shown
    assert len(shown) < 500


def test_alias_bombs():
    names = "abcdefghi"
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"{n}: &{n} [{', '.join(['*' + m] * 10)}]\n" for m, n in pairwise(names))
    (shown,) = problems(bomb)
    assert f"more than {MAX_VALUES} values" in shown
    tower = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 200))
    (shown,) = problems(tower)
    assert "levels" in shown


def test_aliases_in_moderation_are_fine():
    text = GOOD.replace("service: 0.2 ms", "service: &s {kind: exponential, mean: 0.2 ms}").replace(
        "service: 0.1 ms", "service: *s"
    )
    scenario = load_text(text)
    assert scenario.topology["split"].service == scenario.topology["count"].service


def test_more_tuples_than_can_be_simulated():
    """1e9/s for 240 s; a lump of 1000, a shorter run, or a peak of a millisecond are within reach."""
    hot = GOOD.replace("10/s", "1000000000/s")
    (shown,) = problems(hot)
    assert shown.startswith(
        "broken.yaml:3: topology.sentences: emits about 2.4e+11 tuples within run.duration; "
    )
    assert shown.endswith("let one stand for several, as with run.lump_rate: 1000/s")
    for setting in ("run.lump=1000", "run.lump_rate=1000/s", "topology.sentences.rate=10000000/s"):
        assert load_text(hot, settings=[setting])
    peak = "{kind: burst, rate: 10/s, peak: 1000000000/s, length: 1 ms, every: 100 s}"
    assert load_text(GOOD.replace("rate: 10/s", f"arrivals: {peak}"))


def test_links_of_hosts_that_nothing_runs_on():
    """Three tasks on hosts of their own, 0 to 2; k = 1 doubles them, whichever strategy is simulated."""
    text = GOOD.replace("hosts: 4\n", "").replace('"0-1"', '"0-3"')
    (shown,) = problems(text)
    assert shown == "broken.yaml:8: links.pairs.0-3: there is no host 3; this topology uses 0 to 2"
    assert load_text(text.replace('"0-3"', '"0-2"')).links.pairs
    replicated = text + "strategies: {active_replication: {k: 1}, source_replay: {}}\n"
    assert load_text(replicated).links.pairs
    (shown,) = problems(replicated.replace('"0-3"', '"6-0"'))
    assert "links.pairs.6-0: there is no host 6; this topology uses 0 to 5" in shown


A_SCENARIO = "a scenario is a mapping with topology, strategy and run"
NO_SCENARIO = {
    "is empty": ["", "\n\n", "# only a comment\n", "~", "---\n"],
    "is no mapping of keys": ["- a\n- b", "word", "5", "true", "root:x:0:0:root:/root:/bin/sh\n" * 2],
}


@pytest.mark.parametrize(
    ("says", "text"), [(says, each) for says in NO_SCENARIO for each in NO_SCENARIO[says]]
)
def test_files_that_are_no_mapping(says, text):
    """Nothing of such a file is told: it may hold anything."""
    assert problems(text) == [f"broken.yaml:1: (file): {says}; {A_SCENARIO}"]


@pytest.mark.parametrize("what", ["scenario", "sweep", "plan", "profile", "rates", "events", "measurements"])
def test_a_file_of_another_kind_is_not_told(tmp_path, what):
    """A file that somebody names by mistake, whose lines are keys and values, or cells."""
    secret = tmp_path / "other.yaml"
    secret.write_text("hunter2: swordfish\n")
    name = str(secret)
    read = {
        "scenario": lambda: load(name),
        "sweep": lambda: sweep_file.read(name),
        "plan": lambda: spec.read(name),
        "profile": lambda: load("wordcount", [f"profile={name}"]),
        "rates": lambda: load_text(GOOD.replace("rate: 10/s", f"arrivals: {{kind: trace, file: {name}}}")),
        "events": lambda: load_text(GOOD.replace(FAILURE, f"{{kind: events, file: {name}}}")),
        "measurements": lambda: measurements.read(secret),
    }
    assert not re.search("hunter2|swordfish", "\n".join(refused(read[what])))


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_tables_are_regular_files(tmp_path, kind):
    """A pipe that nobody writes to, and a device without end: neither is read."""
    name = "/dev/zero"
    if kind == "pipe":
        os.mkfifo(name := str(tmp_path / "pipe.csv"))
    for old, new in (
        ("rate: 10/s", "arrivals: {kind: trace, file: %s}"),
        ("rate: 10/s", "arrivals: {kind: day, file: %s}"),
        (FAILURE, "{kind: events, file: %s}"),
    ):
        assert "is not a regular file" in problems(GOOD.replace(old, new % name))[0]
    assert fingerprint(name) is None


@pytest.mark.parametrize("key", ["topology", "strategy", "run"])
@pytest.mark.parametrize("value", [None, "", "5", "[]"])
def test_the_three_parts_that_must_be_there(key, value):
    left_out = (f"{key}:", "  " if key == "topology" else "#")
    text = "\n".join(line for line in GOOD.splitlines() if not line.startswith(left_out))
    shown = problems(text if value is None else f"{text}\n{key}: {value}")
    wanted = re.compile(rf"broken\.yaml:\d+: {key}: (is missing|is empty|must be)")
    assert any(map(wanted.match, shown))


BYTES = {  # what is in a file, and part of the message
    "binary": (bytes(range(256)) * 10, "is not UTF-8 text"),
    "zip": (b"PK\x03\x04\x00\x00", "control character"),
    "latin1": ("name: caf\xe9\n".encode("latin-1"), "is not UTF-8 text"),
    "utf16": (GOOD.encode("utf-16"), "is not UTF-8 text"),
    "nul": (b"name: a\x00b\n", "control character"),
    "huge": (b"# " + b"x" * MAX_BYTES, "larger than 1 MiB"),
    "escape": (b"name: \x1b[31mred\n", "control character"),
}
SOURCES = {  # what is given, where {} is a folder
    "missing": ("{}/missing.yaml", "does not exist"),
    "directory": ("{}", "is a directory"),
    "device": ("/dev/zero", "is not a regular file"),
    "pipe": ("{}/pipe.yaml", "is not a regular file"),
    "long": ("x" * 5000 + ".yaml", "cannot be read"),
    "name": ("wordcout", "did you mean 'wordcount'?"),
    "empty": ("", "neither a file nor a built-in scenario"),
}


@pytest.mark.parametrize("name", [*BYTES, *SOURCES])
def test_sources_that_cannot_be_read(name, tmp_path):
    if name in BYTES:
        (tmp_path / "bytes.yaml").write_bytes(BYTES[name][0])
    os.mkfifo(tmp_path / "pipe.yaml")
    source, says = SOURCES.get(name, ("{}/bytes.yaml", BYTES.get(name, ("", ""))[1]))
    (shown,) = refused(load, source.format(tmp_path))
    assert says in shown
    assert re.search(r":\d+: \(file\): ", shown)
    assert shown.isprintable()


def test_messages_do_not_pass_on_terminal_codes():
    (shown,) = problems('"\\e[31m": 1\n' + GOOD)
    assert shown.isprintable()


def test_a_source_may_be_a_mapping():
    with pytest.raises(ScenarioError, match="scenario: hosts: must be at least 1"):
        load({"topology": {}, "strategy": "none", "run": {"duration": "1 s"}, "hosts": 0})


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        (GOOD.replace("name: test", "nam: test"), "/a.yaml:1: nam: ", "did you mean 'name'"),
        pytest.param(
            GOOD.replace("hosts: 4", "hosts: \x07"),
            "/a.yaml:8: (file): ",
            "control character",
            marks=pytest.mark.long,
        ),
        pytest.param(DEEP["lists"], "/a.yaml:1: ", "levels", marks=pytest.mark.long),
        pytest.param(None, "/a.yaml:1: (file): ", "does not exist", marks=pytest.mark.long),
        pytest.param("", ":1: (file): ", "is a directory", marks=pytest.mark.long),
    ],
    ids=["key", "character", "depth", "missing", "directory"],
)
def test_the_command_line_ends_with_exit_code_2(text, place, says, tmp_path):
    if text:
        (tmp_path / "a.yaml").write_text(text)
    path = tmp_path if text == "" else tmp_path / "a.yaml"
    command = [sys.executable, "-c", "from tideover.cli import main; main()", "run", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert f"{tmp_path}{place}" in done.stderr
    assert says in done.stderr
