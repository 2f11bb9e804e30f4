"""The tests tested: each of these small changes to a protocol's code must make the tests beside it fail.

Each change is made to a copy of the package. A text that is not in the package, or more than once, is an
error: whoever changes the code brings the list up to date. Where the text stands does not matter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
MODELS = "tests/models"
CONFORMANCE = f"{MODELS}/test_conformance.py"


class Mutation(NamedTuple):
    """``old`` is replaced by ``new``; ``caught_by``: arguments of pytest that choose the tests."""

    what: str
    old: str
    new: str
    caught_by: tuple[str, ...]


def exactness(strategy: str) -> tuple[str, ...]:
    """The per-tuple reference, in random worlds."""
    return (f"{MODELS}/test_exactness.py", "-k", f"equals_the_reference and {strategy} and not many")


ACKING = (
    Mutation(
        "a window's tuples are acked a step early",
        "times += self.ack_cost * np.arange(1, len(uid) + 1, dtype=np.int64)",
        "times += self.ack_cost * np.arange(0, len(uid), dtype=np.int64)",
        (f"{MODELS}/test_acking.py", "-k", "leave_one_after_the_other"),
    ),
    Mutation(
        "a root emitted on a bucket's border lives a timeout longer",
        "& (self._emitted[: self._size] <= before)",
        "& (self._emitted[: self._size] < before)",
        exactness("source_replay"),
    ),
    Mutation(
        "the spout's map has a bucket more",
        "first + (r - self._buckets + 1) * period",
        "first + (r - self._buckets) * period",
        exactness("source_replay"),
    ),
    Mutation(
        "the acker's map has rotated before the acks of the same instant",
        "return (-(-times // self._period) - self._buckets) * self._period",
        "return (times // self._period + 1 - self._buckets) * self._period",
        exactness("source_replay"),
    ),
    Mutation(
        "acks of earlier attempts count",
        "known = self._live.take(there) == (1 if attempt is None else attempt + 1)",
        "known = self._live.take(there) > 0",
        exactness("source_replay"),
    ),
)
BUFFERS = (
    Mutation(
        "an upstream buffer is trimmed one too far",
        "begin = max(0, int(safe - number[0] + 1))",
        "begin = max(0, int(safe - number[0] + 2))",
        (f"{MODELS}/test_rsm.py", "-k", "trimmed_by_number"),
    ),
    Mutation(
        "a checkpoint says that it holds one tuple more than it does",
        "        return self._receivers[task].positions\n",
        "        return {c: n + 1 for c, n in self._receivers[task].positions.items()}\n",
        exactness("rsm"),
    ),
    Mutation(
        "a replay drops its last tuple",
        "np.flatnonzero(train.column(NUMBER) > number)",
        "np.flatnonzero((train.column(NUMBER) > number) & (train.column(NUMBER) < self.sent))",
        exactness("rsm"),
    ),
    Mutation(
        "a replay begins one too early",
        "np.flatnonzero(train.column(NUMBER) > number)",
        "np.flatnonzero(train.column(NUMBER) >= number)",
        (f"{MODELS}/test_rsm_senders.py", "-k", "could_not_be_told_to_trim"),
    ),
    Mutation(
        "direct messages are let in before the end of the replay",
        "if self.task.up and position in self._waiting:",
        "if False:",
        exactness("rsm"),
    ),
    Mutation(
        "arrivals are let in before the restore",
        "            self.do.close(task)\n            self.buffers.empty_queue(task)\n",
        "            self.do.open(task)\n            self.buffers.empty_queue(task)\n",
        exactness("rsm"),
    ),
    Mutation(
        "no checkpoint at the end of a window by tick",
        'if task.component.trigger == "tick":\n            self._checkpoint',
        "if False:\n            self._checkpoint",
        (CONFORMANCE, "-k", "rsm and between_ticks"),
    ),
)
REPLICAS = (
    Mutation(
        "a replica takes in what it has",
        "uid > before[:-1]",
        "uid >= before[:-1]",
        exactness("active_replication"),
    ),
    Mutation(
        "a replica lets arrivals in before it has copied its peer",
        "        gate.closed = True\n        # no tick",
        "        gate.closed = False\n        # no tick",
        exactness("active_replication"),
    ),
)
BARRIERS = (
    Mutation(
        "a snapshot does not wait for the last channel's barrier",
        "if len(self._come) == len(self.task.inputs):",
        "if len(self._come) >= len(self.task.inputs) - 1:",
        exactness("aligned_snapshots"),
    ),
    Mutation(
        "alignment lets one channel through",
        "list(self._come))",
        "list(self._come)[1:])",
        exactness("aligned_snapshots"),
    ),
    Mutation(
        "a tuple that a snapshot covers is read again",
        "position = self._log.read - sum(self._from_log(train).n for train in waiting)",
        "position = max(0, self._log.read - 1 - sum(self._from_log(train).n for train in waiting))",
        exactness("aligned_snapshots"),
    ),
    Mutation(
        "a tuple behind a snapshot is not read again",
        "Part(SavedState.of(self.task), position)",
        "Part(SavedState.of(self.task), min(position + 1, self._log.read))",
        exactness("aligned_snapshots"),
    ),
    Mutation(
        "a job takes in what its log holds before it is restored",
        "self._bolt(task).gate.closed = True",
        "self._bolt(task).gate.closed = False",
        exactness("aligned_snapshots"),
    ),
)
BATCHES = (
    Mutation(
        "a batch is done with before it is in the sink",
        "    def _ended(self, batch: Batch) -> None:\n",
        "    def _ended(self, batch: Batch) -> None:\n        self.batch = None\n",
        (f"{MODELS}/test_micro_batch.py", "-k", "no_driver_failure_disturbs_a_window"),
    ),
    Mutation(
        "a batch whose range is logged goes back to the log",
        "if self.batch is not None and not self.batch.logged:",
        "if self.batch is not None:",
        exactness("micro_batch"),
    ),
    Mutation(
        "what is in the sink is not taken back when the driver dies before the commit",
        "elif self.batch is not None and self.batch.visible:",
        "elif False:",
        (f"{MODELS}/test_micro_batch.py", "-k", "no_driver_failure_disturbs_a_window"),
    ),
    Mutation(
        "the log forgets the first window that is not finished",
        'train.column("epoch") >= epoch, mark > epoch)',
        'train.column("epoch") > epoch, mark > epoch)',
        exactness("micro_batch"),
    ),
)
WINDOWS = (
    Mutation(
        "a marker ends the epoch that it begins, too",
        "if before is None or epoch < before",
        "if before is None or epoch <= before",
        exactness("none"),
    ),
)
CLUSTER = (
    Mutation(
        "tasks go round a host's workers the other way",
        "places[number :: self.workers_per_host]",
        "places[self.workers_per_host - 1 - number :: self.workers_per_host]",
        (f"{MODELS}/test_cluster_exactness.py", "-k", "who_runs_where"),
    ),
    Mutation(
        "the acker lives in the second worker",
        "            return thing.worker",
        "            return thing.worker + 1",
        (f"{MODELS}/test_cluster_faults.py", "-k", "acker"),
    ),
    Mutation(
        "racks are filled one after the other",
        "rack=number % self.racks",
        "rack=number * self.racks // self.count",
        (f"{MODELS}/test_cluster_exactness.py", "-k", "who_runs_where"),
    ),
    Mutation(
        "a host takes one task more than it has slots",
        "self._taken[host.number] < host.slots",
        "self._taken[host.number] <= host.slots",
        (f"{MODELS}/test_placement.py", "-k", "no_host_more_than_its_slots"),
    ),
    Mutation(
        "k_safe does not look at racks",
        "h.number not in fleet and h.rack not in taken",
        "h.number not in fleet",
        (f"{MODELS}/test_placement.py", "-k", "keeps_replicas_apart"),
    ),
    Mutation(
        "E-Storm's placement makes tuples local, not bytes",
        "edge.up.config.tuple_size / edge.up.tasks",
        "1 / edge.up.tasks",
        (f"{MODELS}/test_placement.py", "-k", "estorm"),
    ),
)
MUTATIONS = (*ACKING, *BUFFERS, *REPLICAS, *BARRIERS, *BATCHES, *WINDOWS, *CLUSTER)


def mutated(mutation: Mutation, copy: Path) -> None:
    """Make a copy of the package and its tests, and the change in it."""
    for name in ("tideover", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    files = [path for path in (copy / "tideover").rglob("*.py") if mutation.old in path.read_text()]
    assert len(files) == 1, f"{mutation.old!r} stands in {[str(path) for path in files]}, not in one file"
    text = files[0].read_text()
    assert text.count(mutation.old) == 1, (
        f"{mutation.old!r} stands {text.count(mutation.old)} times in {files[0]}"
    )
    files[0].write_text(text.replace(mutation.old, mutation.new))


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_a_mutation_is_caught(mutation: Mutation, tmp_path: Path) -> None:
    mutated(mutation, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", *mutation.caught_by],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, f"nobody has noticed that {mutation.what}:\n{done.stdout[-2000:]}"
