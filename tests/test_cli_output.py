"""What commands say besides their results, and where they write."""

import pytest

from tideover.cli import output
from tideover.scenarios.loader import load, load_text


def test_what_takes_long_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    """3e6 tuples a second are taken to be done, so 10 runs of 5 minutes' work take 50; a short run is not
    worth a word.
    """
    text = """
topology:
  log: {spout: keys, keys: 10, rate: 1000000/s}
  job: {bolt: forward, from: {log: shuffle}, service: 1 ns}
strategy: none
run: {duration: 450 s, replications: 10}
"""
    output.announce([load_text(text)])
    said = capsys.readouterr().err
    assert said.startswith("Note: this takes about 50 minutes, give or take a factor of three: 9e+09 tuples")
    assert "run.lump_rate" in said
    rotating = "strategy={kind: rsm, checkpoint_interval: 1 ms}"
    output.announce([load_text(text, settings=[rotating, "topology.log.rate=10/s", "run.duration=600 s"])])
    said = capsys.readouterr().err
    assert "1.2e+05 tuples, and 1.2e+07 snapshots" in said
    assert "run.lump_rate" not in said
    crowded = ["hosts={machines: {m: {count: 1, cores: 1}}}", "topology.job.parallelism=2"]
    text = text.replace(
        "strategy", "  end: {bolt: forward, from: {job: shuffle}, service: 1 ns}\nstrategy", 1
    )
    output.announce([load_text(text, settings=[*crowded, "topology.log.rate=100/s"])])
    said = capsys.readouterr().err
    assert "9e+05 of the tuples where tasks of several components share cores" in said
    assert "run.lump_rate" in said
    assert "at most as many tasks as cores" in said
    output.announce([load("wordcount")])
    assert capsys.readouterr() == ("", "")
