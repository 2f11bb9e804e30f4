"""Bounded queues in scenario files: what is read, what is written, and what is refused, with the key."""

from __future__ import annotations

import pytest

from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load_text
from tideover.scenarios.part_builder import to_data

GOOD = """\
topology:
  s: {spout: keys, arrivals: {kind: saturating, emit_cost: 5 us}, queue: {send: 3}}
  b: {bolt: forward, from: {s: shuffle}, service: 1 ms, queue: 10}
  c: {bolt: forward, from: {b: shuffle}, service: 1 ms, queue: {length: 7, when_full: drop}}
strategy: {kind: none}
run: {duration: 1 s}
queues: {length: 1000, send: 2}
"""


def test_bounds_are_read_and_written() -> None:
    found = load_text(GOOD, "good.yaml")
    assert found.queues is not None
    assert (found.queues.length, found.queues.when_full, found.queues.send) == (1000, None, 2)
    data = to_data(found)
    assert data["topology"]["b"]["queue"] == {"length": 10}
    assert data["topology"]["c"]["queue"] == {"length": 7, "when_full": "drop"}


@pytest.mark.parametrize("strategy", ["active_replication", "active_standby", "upstream_backup"])
def test_queues_have_bounds_under(strategy: str) -> None:
    text = GOOD.replace("kind: none", f"kind: {strategy}").replace("queue: 10}", "queue: 10, parallelism: 1}")
    found = load_text(text.replace("when_full: drop", "when_full: credits"), "good.yaml")
    assert found.strategy.kind == strategy


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("queue: 10}", "queue: 0}", "topology.b.queue", "at least 1"),
        (
            "queue: 10}",
            "queue: {length: 10, when_full: wait}}",
            "topology.b.queue.when_full",
            "'block', 'drop' or 'credits'",
        ),
        ("{send: 3}", "{send: -1}", "topology.s.queue.send", "at least 0"),
        ("{send: 3}", "{length: 3}", "topology.s.queue.length", "only send can be given"),
        ("{kind: none}", "{kind: micro_batch}", "topology.b.queue", "run in batches"),
        ("{kind: none}", "{kind: trident}", "topology.b.queue", "run in batches"),
        (
            "{kind: none}",
            "{kind: changelog, commit_interval: 1 s}",
            "topology.b.queue",
            "all that its tasks read waits",
        ),
        ("queue: 10}", "queue: {when_full: drop}}", "topology.s.arrivals", "nothing holds back"),
        (
            "{kind: none}",
            "{kind: aligned_snapshots, checkpoint_interval: 1 s}",
            "topology.s.arrivals",
            "wait in a log",
        ),
        (
            "{kind: none}",
            "{kind: aligned_snapshots, checkpoint_interval: 1 s}",
            "topology.c.queue.when_full",
            "only block and credits go with it",
        ),
    ],
)
def test_what_is_refused(old: str, new: str, key: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioError) as caught:
        load_text(GOOD.replace(old, new), "bad.yaml")
    assert f": {key}" in str(caught.value)
    assert words in str(caught.value)
