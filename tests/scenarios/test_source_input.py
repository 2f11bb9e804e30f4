"""Queues before spouts in scenario files: what is read and written, and what is refused, with the key."""

from __future__ import annotations

import pytest

from tideover.models.job.components import SpoutConfig
from tideover.models.job.sources import Kafka
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load_text
from tideover.scenarios.part_builder import to_data

GOOD = """\
topology:
  s: {spout: keys, rate: 100/s, parallelism: 2, source: {kind: kafka, partitions: 4, poll_cost: 2 ms}}
  b: {bolt: forward, from: {s: shuffle}, service: 1 ms}
strategy: {kind: none}
run: {duration: 1 s}
"""


def test_a_queue_is_read_and_written() -> None:
    found = load_text(GOOD, "good.yaml")
    config = found.topology["s"]
    assert isinstance(config, SpoutConfig)
    assert config.source == Kafka(partitions=4, poll_cost=2_000_000)
    assert load_text(GOOD, "good.yaml") == found
    assert to_data(found)["topology"]["s"]["source"]["kind"] == "kafka"


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("kind: kafka", "kind: kafk", "topology.s.source", "did you mean 'kafka'"),
        ("kind: kafka, ", "", "topology.s.source", "is missing"),
        ("partitions: 4", "partitions: 0", "topology.s.source.partitions", "at least 1"),
        ("partitions: 4", "partitions: 1", "topology.s.source.partitions", "at least parallelism (2)"),
        ("poll_cost: 2 ms", "poll_cost: 0 s", "topology.s.source.poll_cost", "more than 0"),
        ("poll_cost: 2 ms", "retention: 0 s", "topology.s.source.retention", "more than 0"),
        ("poll_cost: 2 ms", "commit_interval: 0 s", "topology.s.source.commit_interval", "more than 0"),
        ("kind: kafka", "kind: kestrel, timeout: 0 s", "topology.s.source.timeout", "more than 0"),
        ("kind: kafka", "kind: kestrel, commit_interval: 1 s", "topology.s.source", "unknown key"),
        ("poll_cost", "pol_cost", "topology.s.source.pol_cost", "did you mean 'poll_cost'"),
        (
            "{kind: none}",
            "{kind: aligned_snapshots, checkpoint_interval: 1 s}",
            "topology.s.source",
            "its spouts stand for a log",
        ),
        (
            "poll_cost: 2 ms}}\n  b: {",
            "retention: 1 s}}\n  b: {queue: 10, ",
            "topology.s.source.retention",
            "bounded queues",
        ),
        (
            "rate: 100/s",
            "arrivals: {kind: saturating, emit_cost: 5 us}",
            "topology.s",
            "saturat",
        ),
        ("service: 1 ms", "service: 1 ms, source: {kind: kafka}", "topology.b.source", "unknown key"),
    ],
)
def test_what_is_refused(old: str, new: str, key: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioError) as caught:
        load_text(GOOD.replace(old, new), "bad.yaml")
    found = [problem for problem in caught.value.problems if problem.key.startswith(key)]
    assert any(words in str(problem) for problem in found), str(caught.value)
