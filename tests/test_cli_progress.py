"""What shows that something goes on where nobody looks at a terminal."""

import os
import re
import signal
import sys
import threading

import pytest

from tideover.cli import output
from tideover.cli.output import Bar
from tideover.scenarios.planning.search import Session


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
