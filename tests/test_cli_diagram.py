"""``tideover run --diagram``."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

SMALL = """
name: small
topology:
  sentences: {spout: sentences, rate: 5/s}
  split:     {bolt: split_words,    from: {sentences: shuffle},      service: 10 ms}
  count:     {bolt: windowed_count, from: {split: {fields: [word]}}, service: 5 ms, window: 1 s}
strategy: {kind: source_replay, message_timeout: 2 s}
failures: [{at: 1300 ms, kind: crash_task, component: count, detection: 100 ms, restart: 100 ms}]
run: {duration: 6 s, warmup: 0 s, seed: 1, replications: 2}
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def ticks(path):
    """What stands at the axis, s."""
    texts = (element.text or "" for element in ET.parse(path).iter() if element.tag.endswith("text"))
    return [float(text.removesuffix(" s")) for text in texts if text.endswith(" s") and text[0].isdigit()]


def test_a_small_run_is_drawn_as_a_whole(tideover, small, tmp_path):
    code, out, _ = tideover("run", small, "--diagram", tmp_path / "d.svg")
    assert (code, out.splitlines()[-1]) == (0, f"Diagram: {tmp_path / 'd.svg'}")
    assert (min(ticks(tmp_path / "d.svg")), max(ticks(tmp_path / "d.svg"))) == (0, 6)
    assert "small: source replay, seed 1, replication 0" in (tmp_path / "d.svg").read_text()


def test_a_large_one_from_its_first_failure_to_the_end_of_the_recovery(tideover, tmp_path):
    """The failure strikes between 65 s and 95 s; no recovery ends within 100 s."""
    settings = ["--set", "run.duration=100s", "--set", "run.warmup=30s", "--set", "run.replications=1"]
    code, _, _ = tideover("run", "wordcount", "--diagram", tmp_path / "d.svg", *settings)
    assert code == 0
    found = ticks(tmp_path / "d.svg")
    assert 60 < min(found) < 95
    assert max(found) > 96
    assert "count: fault lose_state" in (tmp_path / "d.svg").read_text()


def test_a_stretch_and_components(tideover, small, tmp_path):
    stretch = ["--from", "1200ms", "--to", "1.6s", "--components", "split, count"]
    code, out, err = tideover("run", small, "--json", "--diagram", tmp_path / "d.svg", *stretch)
    assert (code, err.splitlines()[-1]) == (0, f"Diagram: {tmp_path / 'd.svg'}")
    assert out.startswith("{")
    assert (min(ticks(tmp_path / "d.svg")), max(ticks(tmp_path / "d.svg"))) == (1.2, 1.6)
    assert "sentences.0</text>" not in (tmp_path / "d.svg").read_text()


def test_the_report_has_it(tideover, small, tmp_path):
    code, _, _ = tideover("run", small, "--out", tmp_path / "out")
    assert code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Who sends what to whom" in page
    assert "root 0 of sentences.0" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--diagram", "d.svg", "--from", "2s", "--to", "1s"], "--from: 2 s is not before --to, 1 s"),
        (["--diagram", "d.svg", "--from", "1s", "--to", "1s"], "--from: 1 s is not before --to, 1 s"),
        (["--diagram", "d.svg", "--to", "7s"], "--to: 7 s is after the run's end, 6 s"),
        (["--diagram", "d.svg", "--from", "6001ms"], "--from: 6.001 s is after the run's end, 6 s"),
        (["--diagram", "d.svg", "--from", "soon"], "--from: 'soon' is not a duration"),
        (["--diagram", "d.svg", "--to", "20"], "--to: '20'"),
        (["--diagram", "d.svg", "--components", "counts"], "--components: 'counts' is no component"),
        (["--diagram", "d.pdf"], "--diagram: d.pdf: the picture is SVG"),
        (["--diagram", "mine.svg"], "--diagram: mine.svg: is there, and is not a diagram that tideover drew"),
        (["--diagram", "nowhere/d.svg"], "--diagram: nowhere/d.svg: there is no directory nowhere"),
        (["--from", "1s"], "--from: goes with --diagram"),
        (["--components", "split"], "--components: goes with --diagram"),
        (["--diagram", "d.svg", "--saturate"], "--diagram: goes with a run"),
    ],
)
def test_what_cannot_be_drawn_is_told_in_a_line(tideover, small, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.svg").write_text("<svg/>")
    code, out, err = tideover("run", small, *options)
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1
    assert not (tmp_path / "d.svg").exists()
