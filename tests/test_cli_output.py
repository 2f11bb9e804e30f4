"""What commands say besides their results, and where they write."""

from collections import Counter

import pytest

from tideover.cli import output
from tideover.models import effort
from tideover.models.operators.kinds import SENTENCES, WORDS
from tideover.scenarios.loader import load, load_text

LONG = """
topology:
  log: {spout: keys, keys: 10, rate: 1000000/s}
  job: {bolt: forward, from: {log: shuffle}, service: 1 ns}
strategy: none
run: {duration: 450 s, replications: 10}
"""


def test_what_takes_long_is_announced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """9e9 tuples of 1/3 us on a machine that is as quick as that of the costs take 50 minutes; twice as long
    on one that is half as quick; a short run is not worth a word.
    """
    monkeypatch.setattr(effort, "COSTS", dict(effort.COSTS) | {"flows": 1 / 3e6})
    monkeypatch.setattr(effort, "slowness", lambda: 1.0)
    output.announce([load_text(LONG)])
    said = capsys.readouterr().err
    assert said.startswith(
        "Note: this takes about 50 minutes on one core, give or take a factor of two: 9e+09 tuples"
    )
    assert "run.lump_rate" in said
    monkeypatch.setattr(effort, "slowness", lambda: 2.0)
    output.announce([load_text(LONG)])
    assert "about 1.7 hours" in capsys.readouterr().err
    rotating = "strategy={kind: rsm, checkpoint_interval: 1 ms}"
    output.announce([load_text(LONG, settings=[rotating, "topology.log.rate=10/s", "run.duration=600 s"])])
    said = capsys.readouterr().err
    assert "1.2e+05 tuples, and 1.8e+07 snapshots" in said
    assert "run.lump_rate" not in said
    output.announce([load("wordcount")])
    assert capsys.readouterr() == ("", "")


OVER = """
topology:
  words: {spout: sentences, rate: 500/s}
  split: {bolt: split_words, from: {words: shuffle}, service: 1 us}
  count: {bolt: windowed_count, from: {split: {fields: [word]}}, service: 2.2 ms, parallelism: 8, window: 1 s}
strategy: none
run: {duration: 1 s}
"""


def test_a_hot_key_is_said_before_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Every fifth word or so is `the`: the sentences are known, and so is what its task gets."""
    said = output.announce([load_text(OVER)])
    (line,) = capsys.readouterr().err.splitlines()
    of_words = Counter(word for sentence in SENTENCES for word in sentence.split())
    hot, many = of_words.most_common(1)[0]
    tasks = Counter(dict.fromkeys(range(8), 0))
    for word, times in of_words.items():
        tasks[WORDS.index(word) % 8] += times
    task, gets = tasks.most_common(1)[0]
    each = 500 / len(SENTENCES)
    assert line.startswith(f"Note: count.{task}: load {2.2e-3 * each * gets:.2f}: ")
    assert f"{each * gets:.4g}/s, {100 * many / gets:.0f} % of them with the key {hot} (" in line
    assert said == {line.removeprefix("Note: ")}


def test_cores_that_are_too_few_are_said_before_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Eight tasks have 500/s x 2 ms each of two bolts, 2 s of work a second, for one core; none has too much
    by itself. Three cores are enough.
    """
    text = """
topology:
  s: {spout: keys, keys: 10, rate: 500/s}
  a: {bolt: forward, from: {s: shuffle}, service: 2 ms, parallelism: 4}
  b: {bolt: forward, from: {a: shuffle}, service: 2 ms, parallelism: 4}
strategy: none
hosts: {machines: {m: {count: 1, cores: 1}}}
run: {duration: 1 s}
"""
    output.announce([load_text(text)])
    said = "host 0: load 2.00: its tasks have 2 s of work a second for a core, and cannot keep up"
    assert capsys.readouterr().err == f"Note: {said}\n"
    output.announce([load_text(text, settings=["hosts.machines.m.cores=3"])])
    assert capsys.readouterr().err == ""
