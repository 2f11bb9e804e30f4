"""The audit tested: it finds bugs that are planted in protocols, and its smallest example names the step.

Each change is made to a copy of the package, in which ``tideover audit`` is run as a user would: it must say
that the strategy does not keep its word, and the first of its examples (or, where the change makes the run
impossible, the first run that could not be made) must have the words of the step at which the bug sits.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.mutations.base import Mutation
from tests.test_mutations import MUTATIONS, ROOT, mutated, place_of

MORE = (
    Mutation(
        "an ack is sent early: when a word is counted, and not when its window is over",
        "c.acks = component.window is None",
        "c.acks = True",
        (),
    ),
    Mutation(
        "a transaction's acks are sent when it is prepared",
        "            self._preparing[task] = self._acks.mark(task)",
        "            self._acks.release(task, self._acks.mark(task))\n            self._preparing[task] = []",
        (),
    ),
    Mutation(
        "a rotation with one bucket",
        "first + (r - self._buckets + 1) * period",
        "first + (r - self._buckets + 2) * period",
        (),
    ),
    Mutation(
        "a source skips ten records after a restore",
        "            again = self.log.done()\n",
        "            self.log.trim(min(self.log.start + 10, self.log.position))\n"
        "            again = self.log.done()\n",
        (),
    ),
    Mutation(
        "offsets are committed before the changes are written",
        "        position, windows, worked = own.log.position, SavedState.of(task), task.worked\n"
        "        sent",
        "        position, windows, worked = own.log.position, SavedState.of(task), task.worked\n"
        "        own.committed = windows\n        own.log.trim(position)\n        sent",
        (),
    ),
)
"""Bugs that only audits look for."""
BY_NAME = {mutation.what: mutation for mutation in (*MUTATIONS, *MORE)}


class Audited(NamedTuple):
    """How an audit finds a mutation.

    what         its name
    strategy     that is audited; begin, end: where it is struck
    step         words that the smallest example has
    settings     of the scenario; quick: whether it is done in every test run
    """

    what: str
    strategy: str
    begin: str
    end: str
    step: str
    settings: tuple[str, ...] = ()
    quick: bool = False


USUAL = ("run.duration=42s", "topology.words.parallelism=1", "topology.words.rate=10/s")
FAR = ("links.latency.mean=50 ms", "topology.words.rate=20/s")
RSM = ("rsm", "23.95 s", "24.1 s")
SNAPSHOTS = ("aligned_snapshots", "23.95 s", "24.1 s")
BATCHES = ("micro_batch", "23.95 s", "24.3 s")
TRIDENT = ("trident", "23.95 s", "24.3 s")
SOURCE = ("source_replay", "23.95 s", "24.1 s")
REPLICAS = ("active_replication", "23.95 s", "24.1 s")
PAIRS = ("active_standby", "23.95 s", "24.1 s")

FOUND = (
    Audited("a buffer is trimmed one too far", "rsm", "24.02 s", "24.03 s", "buffer trimmed", quick=True),
    Audited("a checkpoint says that it holds one tuple more than it does", *RSM, "checkpoint saved"),
    Audited("a replay drops its last tuple", *RSM, "buffer replayed"),
    Audited("what is sent directly is let in before the end of the replay", *RSM, "replay asked for"),
    Audited(
        "no checkpoint at the end of a window by tick",
        "rsm",
        "19.95 s",
        "20.2 s",
        "put out at 20 s, and in the state",
        ("topology.count.window.trigger=tick",),
    ),
    Audited("what a replica has had last is let in again", *REPLICAS, "it came again"),
    Audited("a replica lets arrivals in before it has copied its peer", *REPLICAS, "copy asked for"),
    Audited(
        "a snapshot does not wait for the last channel's barrier",
        "aligned_snapshots",
        "24.4 s",
        "24.45 s",
        "part taken",
        FAR,
    ),
    Audited(
        "alignment lets one channel through", "aligned_snapshots", "24.4 s", "24.45 s", "part taken", FAR
    ),
    Audited("a tuple that a snapshot covers is read again", *SNAPSHOTS, "part taken"),
    Audited("a tuple behind a snapshot is not read again", *SNAPSHOTS, "part taken"),
    Audited("a source skips ten records after a restore", *SNAPSHOTS, "runs again"),
    Audited("a batch is done with before it is in the sink", *BATCHES, "stages ended"),
    Audited("a batch whose range is logged goes back to the log", *BATCHES, "output written"),
    Audited(
        "what is in the sink is not taken back when the driver dies before the commit",
        "micro_batch",
        "24.15 s",
        "24.2 s",
        "output written",
    ),
    Audited("an opaque state does not go back to what was before", *TRIDENT, "state updated"),
    Audited("a batch is committed before all stores have it", *TRIDENT, "part worked off"),
    Audited("what is open is said to be done", "upstream_backup", "23.95 s", "24.1 s", "acks sent"),
    Audited(
        "who goes on has had what the task had let in, and not what its state has",
        "passive_standby",
        "24.05 s",
        "24.1 s",
        "checkpoint",
        ("topology.count.service=5 ms", "topology.words.rate=50/s"),
    ),
    Audited("who takes over sends nothing of what it has kept", *PAIRS, "is to speak"),
    Audited(
        "an ack is sent early: when a word is counted, and not when its window is over", *SOURCE, "acked at"
    ),
    Audited("a rotation with one bucket", *SOURCE, "roots timed out"),
    Audited(
        "a transaction's acks are sent when it is prepared",
        "storm_checkpoint",
        "23.95 s",
        "24.1 s",
        "prepare reached",
    ),
    Audited(
        "offsets are committed before the changes are written",
        "changelog",
        "23.95 s",
        "24.2 s",
        "commit begins",
    ),
)


def audited(mutation: Mutation, how: Audited, copy: Path, out: Path) -> dict[str, Any]:
    """What an audit says of a strategy with a bug."""
    options = ["--no-spark", "--json", "--no-second", "--each", "1", "--kinds", "crash_task"]
    options += ["--from", how.begin, "--until", how.end]
    for setting in (*USUAL, *how.settings):
        options += ["--set", setting]
    with mutated(mutation, copy, out) as environment:
        done = subprocess.run(
            [sys.executable, "-m", "tideover", "audit", how.strategy, *options],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
        )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def smallest(found: dict[str, Any]) -> str:
    """What is told of the smallest example, or of the first run that could not be made."""
    if found["errors"] and not any(example["broken"] for example in found["examples"]):
        return found["errors"][0]["what"]
    first = found["examples"][0]
    return "\n".join([first["what"], *first["tuples"]])


@pytest.mark.parametrize(
    "how", [pytest.param(how, marks=() if how.quick else pytest.mark.long, id=how.what) for how in FOUND]
)
def test_an_audit_finds_a_mutation_and_names_its_step(how: Audited, package: Path, tmp_path: Path) -> None:
    found = audited(BY_NAME[how.what], how, package, tmp_path)
    assert not found["holds"] or found["without_failures"] != "exactly once"
    assert how.step in smallest(found)


def test_each_has_its_place() -> None:
    assert all(place_of(mutation, ROOT) for mutation in MORE)
    assert {how.what for how in FOUND} <= set(BY_NAME)
