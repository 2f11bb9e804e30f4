"""What commands say besides their results, and while they work."""

import os
import re
import signal
import sys
import threading
from collections import Counter

import pytest

from tideover.cli import output
from tideover.cli.output import Bar
from tideover.models import effort
from tideover.models.operators.kinds import SENTENCES, WORDS
from tideover.scenarios.loader import load, load_text
from tideover.scenarios.planning.search import Session

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


# While it goes on, where nobody looks at a terminal.


class Stream:
    """Standard error of a job or a pipe: what is written, and an event for whoever waits for a line."""

    def __init__(self):
        self.lines, self.written = [], threading.Event()

    def isatty(self):
        return False

    def write(self, text):
        self.lines.append(text)
        self.written.set()

    def flush(self):
        pass

    def next(self):
        """The next line that begins to be written from now on."""
        self.written.clear()
        assert self.written.wait(60)
        return self.lines[-1]


def test_lines_say_what_is_done_and_of_how_much(monkeypatch):
    """Each state is in the second line that is written after it was said; none is written after the end."""
    monkeypatch.setattr(output, "LINE_EVERY_S", 0.001)
    monkeypatch.setattr(sys, "stderr", Stream())
    stream = sys.stderr
    with Bar() as bar:
        assert re.fullmatch(r"simulating, \d+ s\n", stream.next())
        bar("simulating", 1234.5, 2000)
        stream.next()
        assert re.fullmatch(r"simulating: 1,234 of 2,000, \d+ s\n", stream.next())
        bar("trying 10 tuples/s", 3, 0)
        stream.next()
        assert re.fullmatch(r"trying 10 tuples/s: 3, \d+ s\n", stream.next())
    stream.written.clear()
    assert not stream.written.wait(0.05)


PLAN = """\
scenario: wordcount
set: {run.duration: 40 s, run.warmup: 10 s, failures.0.at: 20 s, failures.0.within: 1 s}
machines:
  small: {per_hour: 0.1, cores: 2, slots: 4}
objectives: [lost = 0]
choices: {strategy.kind: [none, rsm], hosts.type: [small], hosts.count: [2, 3]}
search: {replications: {least: 2, most: 4}}
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_plan_that_is_ended_early_says_what_it_has_found(tideover, tmp_path, monkeypatch, sign):
    """The signal comes when a first batch of candidates has been run."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    evaluate = Session.evaluate

    def ended(self, asks):
        if self.candidates:
            os.kill(os.getpid(), sign)
        return evaluate(self, asks)

    monkeypatch.setattr(Session, "evaluate", ended)
    before = signal.getsignal(signal.SIGTERM)
    code, out, err = tideover("plan", tmp_path / "plan.yaml", "--no-spark", "--out", tmp_path / "out")
    assert code == 130
    assert "Ended early: " in out
    assert err.endswith("Interrupted. The same command goes on where it was.\n")
    assert "Ended early" in (tmp_path / "out" / "report.html").read_text()
    assert signal.getsignal(signal.SIGTERM) is before
