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
HYBRIDS = (f"{MODELS}/test_hybrid.py", "-k")


class Mutation(NamedTuple):
    """``old`` is replaced by ``new``; ``caught_by``: arguments of pytest that choose the tests."""

    what: str
    old: str
    new: str
    caught_by: tuple[str, ...]


def exactness(strategy: str) -> tuple[str, ...]:
    """The per-tuple reference, in random worlds: first in few, then in many."""
    return (f"{MODELS}/test_exactness.py", "-m", "", "-k", f"equals_the_reference and {strategy}")


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
        "        kept = []\n        for train in self._trains:\n            number",
        "        kept, safe = [], safe + 1\n        for train in self._trains:\n            number",
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
        "if position in self._waiting:",
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
        "return self._log.read - sum(self._from_log(train).n for train in waiting)",
        "return max(0, self._log.read - 1 - sum(self._from_log(train).n for train in waiting))",
        exactness("aligned_snapshots"),
    ),
    Mutation(
        "a tuple behind a snapshot is not read again",
        "Part(SavedState.of(self.task), self._position(), waits",
        "Part(SavedState.of(self.task), min(self._position() + 1, self._log.read), waits",
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
        "    def _ended(self, batch: Batch) -> None:\n        self._batch = None\n",
        (f"{MODELS}/test_micro_batch.py", "-k", "no_driver_failure_disturbs_a_window"),
    ),
    Mutation(
        "a batch whose range is logged goes back to the log",
        "if self._batch is not None and not self._batch.logged:",
        "if self._batch is not None:",
        exactness("micro_batch"),
    ),
    Mutation(
        "what is in the sink is not taken back when the driver dies before the commit",
        "elif self._batch is not None and self._batch.visible:",
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
TABLE = (f"{MODELS}/test_trident.py", "-k", "table_of_nine")
TRIDENT = (
    Mutation(
        "an opaque state does not go back to what was before",
        "            go_back(job, task, self._before)\n",
        "",
        TABLE,
    ),
    Mutation(
        "a transactional state adds a transaction that it has",
        "        if txid == self.txid:\n            return False",
        "        if txid == -1:\n            return False",
        TABLE,
    ),
    Mutation(
        "a transactional spout reads something else again",
        "        if txid not in self._contents:\n            return super().read(txid)",
        "        if txid in self._contents:\n            return super().read(txid)",
        TABLE,
    ),
    Mutation(
        "a batch that fails leaves those behind it under way",
        "for other in sorted(self._under_way) if other >= txid]",
        "for other in sorted(self._under_way) if other == txid]",
        exactness("trident"),
    ),
    Mutation(
        "what a failed batch had read comes behind what has come since",
        "self._waiting.setdefault(place, []).insert(0, train)",
        "self._waiting.setdefault(place, []).append(train)",
        exactness("trident"),
    ),
    Mutation(
        "a batch is committed before all stores have it",
        "if attempt.logged and len(attempt.passed) == len(self._stations):",
        "if attempt.logged:",
        (f"{MODELS}/test_trident.py",),
    ),
    Mutation(
        "a lost state is computed from what was saved alone",
        "partition.saved_rows * s.reload_cost + partition.since_saved",
        "partition.saved_rows * s.reload_cost",
        (f"{MODELS}/test_lineage.py", "-k", "law"),
    ),
    Mutation(
        "a job that fails goes on with what it has",
        "                p.again = outage.number\n        self.halt()",
        "                p.again = outage.number",
        (f"{MODELS}/test_batch_rerun.py", "-k", "job_again"),
    ),
)
WINDOWS = (
    Mutation(
        "what counts for a session by arrival is when a tuple was served",
        "self._state.add_events(train, arrival, NEVER)",
        "self._state.add_events(train, train.time, NEVER)",
        (f"{MODELS}/test_arrival_sessions.py", "-k", "queue_nor_a_pause"),
    ),
    Mutation(
        "a batch knows the events of one task only",
        "newest = np.max([clock._newest for clock in clocks], axis=0)",
        "newest = clocks[0]._newest",
        (f"{MODELS}/test_window_exactness.py", "-k", "micro_batch and not many"),
    ),
    Mutation(
        "a query that starts anew reads windows that slide from their last pane on",
        "begins = [epoch // panes.slide * panes.slide - panes.panes for panes in self._panes]",
        "begins = [epoch // panes.slide * panes.slide for panes in self._panes]",
        (f"{MODELS}/test_windows_after_failures.py", "-k", "micro_batch"),
    ),
    Mutation(
        "a marker ends the epoch that it begins, too",
        "if before is None or epoch < before",
        "if before is None or epoch <= before",
        exactness("none"),
    ),
)
BY_EVENT = f"{MODELS}/test_event_windows.py"
EVENTS = (
    Mutation(
        "the watermark follows the input that is furthest",
        "int(newest.min()) - self._lag",
        "int(newest.max()) - self._lag",
        (BY_EVENT, "-k", "least_input"),
    ),
    Mutation(
        "an idle input still counts",
        "if self._idle_after is not None:",
        "if False:",
        (BY_EVENT, "-k", "least_input"),
    ),
    Mutation(
        "an event at the watermark is not late",
        "return events <= self.watermark",
        "return events < self.watermark",
        (BY_EVENT, "-k", "what_is_late"),
    ),
    Mutation(
        "a late tuple is not dropped",
        "self._state.add(train.pick(~late).replace(epoch=panes[~late]))",
        "self._state.add(train.replace(epoch=panes))",
        (BY_EVENT, "-k", "what_is_late"),
    ),
    Mutation(
        "an event at a window's end is in the next one",
        "panes = -(-events // pane)",
        "panes = events // pane + 1",
        (BY_EVENT, "-k", "at_the_watermark"),
    ),
    Mutation(
        "a window that ends at the watermark is not over",
        "(pane * slide) + 1, watermark // (pane * slide)",
        "(pane * slide) + 1, (watermark - 1) // (pane * slide)",
        (BY_EVENT, "-k", "at_the_watermark"),
    ),
    Mutation(
        "a session that ends at the watermark is not over",
        "if number * MS <= watermark)",
        "if number * MS < watermark)",
        (BY_EVENT, "-k", "at_the_watermark"),
    ),
    Mutation(
        "a tuple between two sessions is put into one of them",
        "event <= other.last + self._gap\n            ]",
        "event <= other.last + self._gap\n            ][:1]",
        (BY_EVENT, "-k", "end_with_a_gap_and_merge"),
    ),
    Mutation(
        "a session does not have what comes a whole gap after its newest event",
        "and event <= other.last + self._gap",
        "and event < other.last + self._gap",
        (BY_EVENT, "-k", "at_the_watermark"),
    ),
    Mutation(
        "a tuple before the watermark is late though its session is open",
        "late[row] = self._number(new) * MS <= watermark",
        "late[row] = event <= watermark",
        (BY_EVENT, "-k", "joins_a_session"),
    ),
    Mutation(
        "a join has of one side only what came since the last end",
        "left, right = np.sum(contents, axis=0) if contents else self._nothing()",
        "left, right = (np.sum(contents, axis=0)[0], contents[-1][1]) if contents else self._nothing()",
        (f"{MODELS}/test_windowed_join.py", "-k", "all_pairs"),
    ),
    Mutation(
        "a join puts out what one side has at a window's end",
        "pairs = left * right",
        "pairs = left * (right > 0)",
        (f"{MODELS}/test_windowed_join.py", "-k", "all_pairs"),
    ),
)
STOPPED = (
    Mutation(
        "a task that is stopped hands a marker on",
        "if task.put_off > put_off:",
        "if False:",
        (f"{MODELS}/test_storm_checkpoint.py", "-k", "stopped_as_it_writes"),
    ),
    Mutation(
        "what a marker sets free stays where it is as others act",
        "if marker.reads is not None and self._lets_in:",
        "if False:",
        (f"{MODELS}/test_upstream_backup.py", "-k", "before_others_act"),
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
        (f"{MODELS}/test_placement.py",),
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
CARDS = (
    Mutation(
        "messages come out of a card in the order of their channels' numbers, but the other way round",
        "ready.sort(key=_BY_NUMBER)",
        "ready.sort(key=_BY_NUMBER, reverse=True)",
        (f"{MODELS}/test_cards.py", "-k", "equal_the_reference and not many"),
    ),
    Mutation(
        "a message between hosts has no header",
        "        size += self._links.header\n",
        "",
        (f"{MODELS}/test_cards.py", "-k", "equal_the_reference and not many"),
    ),
    Mutation(
        "markers have bytes",
        "service[ends[place] - train.n : ends[place]][train.mark != 0] = 0",
        "service[ends[place] - train.n : ends[place]][train.mark != 0] += 0",
        (f"{MODELS}/test_cards.py", "-k", "equal_the_reference and not many"),
    ),
    Mutation(
        "tasks that share cores do not wait for the cards of one another",
        "found.setdefault(one, set()).update(first.get(each, each) for each in behind)",
        "found.setdefault(node, set()).update(behind)",
        (f"{MODELS}/test_cores_and_cards.py", "-k", "waits_for_the_card"),
    ),
)
QUEUES = (
    Mutation(
        "the first in the physical order gets the next place, not who asked first",
        "heappush(self._asking, (since, number, asker))",
        "heappush(self._asking, (number, since, asker))",
        (f"{MODELS}/test_bounded_queues.py", "-k", "who_waits"),
    ),
    Mutation(
        "a queue has a place more",
        "        if self.free <= 0:\n",
        "        if self.free < 0:\n",
        (f"{MODELS}/test_bounded_queues.py", "-k", "who_waits"),
    ),
    Mutation(
        "a queue has a place more as long as it is moved in trains",
        "self._most = self._bound.length - waits",
        "self._most = self._bound.length - waits + 1",
        (f"{MODELS}/test_bounded_queues.py", "-k", "who_waits or no_room"),
    ),
    Mutation(
        "a send queue holds a message more",
        "return self.tuples <= self.send",
        "return self.tuples <= self.send + 1",
        (f"{MODELS}/test_bounded_queues.py", "-k", "who_waits"),
    ),
    Mutation(
        "what was in service before takes a place when it waits again",
        'return (train.column("mark") == 0) & (train.column(PLACELESS) == 0)',
        'return train.column("mark") == 0',
        (f"{MODELS}/test_bounded_queues.py", "-k", "without_a_place"),
    ),
    Mutation(
        "a place that is free at an instant is there for what came before, in trains",
        "wrong = begins[:n] >= late[:n]",
        "wrong = begins[:n] > late[:n]",
        (f"{MODELS}/test_dropping_queues.py", "-k", "no_place_is_lost"),
    ),
    Mutation(
        "guesses in blocks are never wrong",
        "        if way.roomy > way.free + freed + right:\n",
        "        if False:\n",
        (f"{MODELS}/test_bounded_queues.py", "-k", "comes_too_late"),
    ),
    Mutation(
        "the first in the physical order gets the next place, and not who asked first, of many senders",
        "heappush(self.asking, (since, asker.number, asker))",
        "heappush(self.asking, (asker.number, since, asker))",
        (f"{MODELS}/test_bounded_queues.py", "-k", "who_waits or many_senders"),
    ),
    Mutation(
        "what overtakes others on its way to a queue of many senders is served behind them",
        "while at > least and self._keys[at - 1] > key:",
        "while False:",
        (f"{MODELS}/test_bounded_queues.py", "-k", "many_senders or who_waits"),
    ),
)
CORES = (
    Mutation(
        "each level of a host has all of its cores",
        "            self._left = _minus(self._left, found.spent)\n",
        "            pass\n",
        (f"{MODELS}/test_cores.py", "-k", "two_levels or more_than_they_can"),
    ),
    Mutation(
        "upper levels do not know of the backlogs of lower ones",
        "enumerate([*members, *below])",
        "enumerate(members)",
        (f"{MODELS}/test_cores.py", "-k", "two_levels"),
    ),
    Mutation(
        "a slow core works as a fast one where several share it",
        "cores = math.inf if self.cores is None else self.cores * self.factor",
        "cores = math.inf if self.cores is None else self.cores",
        (f"{MODELS}/test_cores.py", "-k", "slow"),
    ),
)
HEARTBEATS = (
    Mutation(
        "the timeout begins with the failure",
        "return max(self._kernel.now, self._last_sign(victim) + self._detector.timeout)",
        "return self._kernel.now + self._detector.timeout",
        (f"{MODELS}/test_detectors.py", "-k", "begins_with_the_last_heartbeat"),
    ),
    Mutation(
        "a process sends no heartbeat before a whole interval is over",
        "first + (moment - first) // interval * interval",
        "max(first, first + ((moment - first) // interval - 1) * interval)",
        (f"{MODELS}/test_detector_exactness.py", "-k", "heartbeats and none and not many"),
    ),
    Mutation(
        "a host in reserve takes the place of many",
        "            if self._reserve[0] < repaired:\n",
        "            if False:\n",
        (f"{MODELS}/test_detectors.py", "-k", "reserve"),
    ),
    Mutation(
        "what dies while it is launched is launched all the same",
        "if known is not None and (now <= known.ordered or",
        "if known is not None and (now <= known.launched or",
        (f"{MODELS}/test_detectors.py", "-k", "during_the_launch"),
    ),
    Mutation(
        "who pauses for longer than the timeout is never missed",
        "        if missed < pause[1]:\n",
        "        if False:\n",
        (f"{MODELS}/test_detectors.py", "-k", "taken_for_death"),
    ),
)
STANDBYS = (
    Mutation(
        "who goes on has had what the task had let in, and not what its state has",
        "return self._done[task].copy()",
        "return self._seen[task].copy()",
        exactness("passive_standby"),
    ),
    Mutation(
        "a delta leaves out what came to the output queue at the end",
        "return sum(int(np.count_nonzero(train.column(NUMBER) > number)) for train in self.trains)",
        "return sum(int(np.count_nonzero(train.column(NUMBER) > number + 1)) for train in self.trains)",
        (f"{MODELS}/test_passive_standby.py", "-k", "costs_only_its_bytes"),
    ),
    Mutation(
        "the secondary has no output queues",
        "        buffers.put_back(bolt, standby.outputs)\n",
        "",
        (f"{MODELS}/test_passive_standby.py", "-k", "has_the_output_queue"),
    ),
    Mutation(
        "what is open is said to be done",
        "positions[channel] = min(positions[channel], number - 1)",
        "positions[channel] = min(positions[channel], number)",
        exactness("upstream_backup"),
    ),
    Mutation(
        "a task says that all is done that it has sent, and not what its receivers are done with",
        "all(safe[c] >= number for c, number in mark.sent.items())",
        "True",
        (f"{MODELS}/test_upstream_backup.py", "-k", "kept_for_who_fails_next or hop_to_hop"),
    ),
    Mutation(
        "an end marker is done before it is handed on",
        "for (channel, _), number in (own.data | own.markers).items():",
        "for (channel, _), number in own.data.items():",
        exactness("upstream_backup"),
    ),
    Mutation(
        "a secondary begins without the windows that are over",
        "return Standby(state, own.told.positions, own.seen, {}, max(0, over))",
        "return Standby(state, own.told.positions, Seen(task.component.paths), {}, max(0, over))",
        (f"{MODELS}/test_upstream_backup.py", "-k", "is_over_is_not_rebuilt"),
    ),
    Mutation(
        "a tuple is done with the first window that has it, though it stays for others",
        "    return before - extent.panes * extent.stays",
        "    return before",
        (f"{MODELS}/test_windows_after_failures.py", "-k", "upstream_backup"),
    ),
    Mutation(
        "who takes over sends nothing of what it has kept",
        "            if kept is not None:\n                times = end",
        "            if False:\n                times = end",
        (f"{MODELS}/test_active_standby.py", "-k", "what_is_in_its_queue"),
    ),
    Mutation(
        "who takes over puts out the windows that its primary has put out",
        "            if number > after:\n                self._say",
        "            if True:\n                self._say",
        (f"{MODELS}/test_active_standby.py", "-k", "not_put_out_again"),
    ),
    Mutation(
        "an ack takes a tuple that was not had",
        "known: npt.NDArray[np.bool_] = train.uid <=",
        "known: npt.NDArray[np.bool_] = train.uid - 1 <=",
        (f"{MODELS}/test_active_standby.py", "-k", "was_not_had"),
    ),
)
HYBRID = (
    Mutation(
        "a checkpoint says that it holds what was let in and waits in the queue",
        "        return self._done[task].copy()",
        "        return self._seen[task].copy()",
        exactness("hybrid"),
    ),
    Mutation(
        "who goes back to a checkpoint still knows what came after it",
        "self._seen[task], self._done[task] = done.copy(), done.copy()",
        "self._done[task] = done.copy()",
        (*HYBRIDS, "state_that_is_lost"),
    ),
    Mutation(
        "a replica that comes back keeps nothing of what its peer keeps",
        "if self._buffers is not None and peer is not None:",
        "if self._buffers is not None and peer is None:",
        (*HYBRIDS, "who_comes_back"),
    ),
    Mutation(
        "a recovery waits for replicas that are down",
        "any(channels <= self._unfinished for channels",
        "any(channels & self._unfinished for channels",
        (*HYBRIDS, "both_fail"),
    ),
    Mutation(
        "the end of one replica's replay lets in what another one sends",
        "self._waiting.discard(position)",
        "self._waiting.difference_update(*(c for c in self._senders if position in c))",
        (*HYBRIDS, "is_ahead"),
    ),
    Mutation(
        "what only ever comes second is never trimmed",
        "if seen is not None:  # of replicas",
        "if seen is not None and safe:  # of replicas",
        (*HYBRIDS, "always_second"),
    ),
)
MUTATIONS = (*ACKING, *BUFFERS, *REPLICAS, *BARRIERS, *BATCHES, *TRIDENT, *WINDOWS, *EVENTS, *STOPPED)
MUTATIONS += (*CLUSTER, *CARDS, *QUEUES, *CORES, *HEARTBEATS, *STANDBYS, *HYBRID)


def place_of(mutation: Mutation, root: Path) -> Path:
    """The one file of the package in which the mutation's text stands, once."""
    files = (root / "tideover").rglob("*.py")
    times = {path: n for path in files if (n := path.read_text().count(mutation.old))}
    assert list(times.values()) == [1], f"{mutation.old!r} stands in {times}, not once in one file"
    return next(iter(times))


def test_each_mutation_has_its_place() -> None:
    assert all(place_of(mutation, ROOT) for mutation in MUTATIONS)


def mutated(mutation: Mutation, copy: Path) -> None:
    """Make a copy of the package and its tests, and the change in it."""
    for name in ("tideover", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    file = place_of(mutation, copy)
    file.write_text(file.read_text().replace(mutation.old, mutation.new))


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
