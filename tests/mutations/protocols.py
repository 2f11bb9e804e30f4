"""Bugs planted in protocols and their mechanisms."""

from __future__ import annotations

from tests.mutations.base import MODELS, Mutation, exactness

RESCALED = (f"{MODELS}/test_rescaling.py", "-k")

HYBRIDS = (f"{MODELS}/test_hybrid.py", "-k")

ACKING = (
    Mutation(
        "a root emitted on a bucket's border lives a timeout longer",
        "(live > 0) & (emitted <= before)",
        "(live > 0) & (emitted < before)",
        exactness("source_replay"),
    ),
    Mutation(
        "the spout's map has a bucket more",
        "first + (r - self._buckets + 1) * period",
        "first + (r - self._buckets) * period",
        exactness("source_replay"),
    ),
    Mutation(
        "a burst of acks takes no time besides that of each",
        "return self.ack_time + self.ack_cost * acks if acks else 0",
        "return self.ack_cost * acks",
        (f"{MODELS}/test_acking.py", "-k", "burst_of_acks_begins"),
    ),
    Mutation(
        "acks of earlier attempts count",
        "map->live[i] != attempt + 1 ||",
        "(attempt >= 0 && !map->live[i]) ||",
        exactness("source_replay"),
    ),
)
BUFFERS = (
    Mutation(
        "a checkpoint says that it holds one tuple more than it does",
        "return {at: int(buffer.c.processed) for",
        "return {at: int(buffer.c.processed) + 1 for",
        exactness("rsm"),
    ),
    Mutation(
        "a replay drops its last tuple",
        "for (int64_t n = kept->n; n > 0; n--) {\n        row r = next_row",
        "for (int64_t n = kept->n; n > 1; n--) {\n        row r = next_row",
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
        'if task in self._of and task.component.trigger == "tick":',
        "if False:",
        (f"{MODELS}/test_rsm.py", "-k", "keeps_what_was_put_out_from_the_next"),
    ),
)
REPLICAS = (
    Mutation(
        "a replica lets arrivals in before it has copied its peer",
        "        task.gate.closed = True\n        # no tick",
        "        task.gate.closed = False\n        # no tick",
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
        "for position in self._come:",
        "for position in list(self._come)[1:]:",
        exactness("aligned_snapshots"),
    ),
    Mutation(
        "a tuple that a snapshot covers is read again",
        "0 if self.log is None else self.log.position",
        "0 if self.log is None else max(0, self.log.position - 1)",
        exactness("aligned_snapshots"),
    ),
    Mutation(
        "a tuple behind a snapshot is not read again",
        "self.log.trim(part.position)",
        "self.log.trim(min(part.position + 1, self.log.position))",
        exactness("aligned_snapshots"),
    ),
    Mutation(
        "a job takes in what its log holds before it is restored",
        "        task.gate.closed = True\n        if task is self._last:",
        "        task.gate.closed = False\n        if task is self._last:",
        exactness("aligned_snapshots"),
    ),
)
PLANNED = (
    Mutation(
        "tasks read on behind a savepoint",
        "                member.stand_still()\n",
        "                pass\n",
        (f"{MODELS}/test_planned_restart.py", "-k", "nothing_is_read_again"),
    ),
    Mutation(
        "a savepoint is taken, and the job does not go down",
        "self._plans.after(0, Rank.BATCH, self.stop_all)",
        "self._run_from(self._job.kernel.now)",
        (f"{MODELS}/test_planned_restart.py",),
    ),
    Mutation(
        "of two stops at one instant the shorter brings all back",
        "sorted(stops, key=lambda stop: stop.down)",
        "sorted(stops, key=lambda stop: -stop.down)",
        (f"{MODELS}/test_planned_restart.py", "-k", "same_instant"),
    ),
    Mutation(
        "a job takes free slots though some of it has none",
        "any(map(self._has_to_wait, working))",
        "False",
        (f"{MODELS}/test_free_slots.py", "-k", "are_enough"),
    ),
    Mutation(
        "who loses its slot is launched on a host that is down",
        "for victim in lost:\n",
        "for victim in ():\n",
        (f"{MODELS}/test_free_slots.py", "-k", "it_waits_for_its_host"),
    ),
    Mutation(
        "who does not work takes a slot",
        "isinstance(victim, Machine) or not victim.idle]",
        "True]",
        (f"{MODELS}/test_free_slots.py", "-k", "needs_no_slot"),
    ),
    Mutation(
        "who stands still hears of a rebalance",
        "        same &= not member.pause[0] < self._kernel.now < member.pause[1]\n",
        "",
        (f"{MODELS}/test_consumer_group.py", "-k", "stands_still_is_waited_for"),
    ),
    Mutation(
        "the next host is stopped while the one before is down",
        "following._later(stop.down + fault.pause,",
        "following._later(fault.pause,",
        (f"{MODELS}/test_planned_restart.py", "-k", "one_after_the_other"),
    ),
    Mutation(
        "a stop on purpose counts as a failure",
        "if last is not None and last.noticed is not None:",
        "if last is not None:",
        (f"{MODELS}/test_planned_restart.py", "-k", "counts_restarts_anew"),
    ),
    Mutation(
        "who gets some keys of a task has the sums of all of them",
        "+ content * mine\n",
        "+ content\n",
        (*RESCALED, "its_own"),
    ),
    Mutation(
        "senders go on with as many tasks as before",
        "outlet.c.working = working",
        "pass",
        (*RESCALED, "its_own"),
    ),
    Mutation(
        "a query is stopped in the middle of a batch",
        "        if self._batch is None:\n            self.stop_all()",
        "        if self._batch is not None:\n            self.stop_all()",
        (f"{MODELS}/test_planned_restart.py", "-k", "between_two_batches"),
    ),
    Mutation(
        "a cap lets those starve before whom little waits",
        "records.split(max(1, most * records.tuples // total))",
        "records.split(most * records.tuples // total)",
        (f"{MODELS}/test_micro_batch.py", "-k", "gets_a_share"),
    ),
    Mutation(
        "a log deletes what it is to keep just still",
        'records.rows["time"] < oldest',
        'records.rows["time"] <= oldest',
        (f"{MODELS}/test_micro_batch.py", "-k", "has_deleted"),
    ),
    Mutation(
        "who was down with all others is taken back by them",
        "set(outage.tasks).issuperset(self._tasks)",
        "False",
        (f"{MODELS}/test_planned_restart.py", "-k", "all_at_once and storm_checkpoint"),
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
        '["epoch"] >= epoch, mark > epoch)]',
        '["epoch"] > epoch, mark > epoch)]',
        exactness("micro_batch"),
    ),
)
TABLE = (f"{MODELS}/test_trident.py", "-k", "table_of_nine")
TRIDENT = (
    Mutation(
        "an opaque state does not go back to what was before",
        "                go_back(job, task, self.before)\n",
        "",
        TABLE,
    ),
    Mutation(
        "a transactional state adds a transaction that it has",
        'if again and self._kind == "transactional":',
        "if False:",
        TABLE,
    ),
    Mutation(
        "a transactional spout reads something else again",
        "if (known := self._contents.get(txid)) is None:",
        "if (known := self._contents.get(txid)) is None or True:",
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
        "self.waiting.setdefault(place, []).insert(0, read)",
        "self.waiting.setdefault(place, []).append(read)",
        exactness("trident"),
    ),
    Mutation(
        "a batch is committed before all stores have it",
        "if attempt.logged and len(attempt.passed) == len(self._executors):",
        "if attempt.logged:",
        (f"{MODELS}/test_trident.py",),
    ),
    Mutation(
        "a lost state is computed from what was saved alone",
        "p.saved_rows * s.reload_cost + p.since_saved",
        "p.saved_rows * s.reload_cost",
        (f"{MODELS}/test_batch_recovery.py", "-k", "parallel_recovery or catching_up"),
    ),
    Mutation(
        "a job that fails goes on with what it has",
        "            self._runs_again(again)\n",
        "            return self._runs_again(again)\n",
        (f"{MODELS}/test_batch_recovery.py", "-k", "job_again"),
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
        'return int(np.count_nonzero(self.rows["arrival"] > number))',
        'return int(np.count_nonzero(self.rows["arrival"] > number + 1))',
        (f"{MODELS}/test_secondaries.py", "-k", "costs_only_its_bytes"),
    ),
    Mutation(
        "the secondary has no output queues",
        "        buffers.put_back(bolt, standby.outputs)\n",
        "",
        (f"{MODELS}/test_secondaries.py", "-k", "has_the_output_queue"),
    ),
    Mutation(
        "what is open is said to be done",
        "positions[channel] = min(positions[channel], number - 1)",
        "positions[channel] = min(positions[channel], number)",
        exactness("upstream_backup"),
    ),
    Mutation(
        "a task says that all is done that it has sent, and not what its receivers are done with",
        "all(safe[c] >= n for c, n in mark.sent.items())",
        "True",
        (f"{MODELS}/test_secondaries.py", "-k", "kept_for_who_fails_next or hop_to_hop"),
    ),
    Mutation(
        "an end marker is done before it is handed on",
        "for (channel, _), number in (*own.data.items(), *own.markers.items()):",
        "for (channel, _), number in own.data.items():",
        exactness("upstream_backup"),
    ),
    Mutation(
        "a secondary begins without the windows that are over",
        "Reached(own.told.positions, own.seen), epoch",
        "Reached(own.told.positions), epoch",
        (f"{MODELS}/test_secondaries.py", "-k", "is_over_is_not_rebuilt"),
    ),
    Mutation(
        "a tuple is done with the first window that has it, though it stays for others",
        "    return before - extent.panes * extent.stays",
        "    return before",
        (f"{MODELS}/test_windows.py", "-k", "upstream_backup"),
    ),
    Mutation(
        "who takes over sends nothing of what it has kept",
        "asked = [(self._of[channel], 0) for",
        "asked = [(self._of[channel], 1 << 62) for",
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
        "r.uid <= seen[",
        "r.uid - 1 <= seen[",
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
        "        self._seen[task][:] = known\n        self._done",
        "        self._done",
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
        "any(sender not in finished for sender, _ in ends)",
        "any(unfinished for _, unfinished in ends)",
        (*HYBRIDS, "both_fail"),
    ),
    Mutation(
        "the end of one replica's replay lets in what another one sends",
        "        b->waits = 0;\n        return 1;",
        "        for (int32_t i = 0; i < t->inputs; i++) {\n"
        "            if ((b = p->channels[t->first_input + i].buffer)) b->waits = 0;\n"
        "        }\n        return 1;",
        (*HYBRIDS, "is_ahead"),
    ),
    Mutation(
        "what only ever comes second is never trimmed",
        "if seen is not None:  # of replicas",
        "if seen is not None and safe:  # of replicas",
        (*HYBRIDS, "always_second"),
    ),
)
PROTOCOLS = (*ACKING, *BUFFERS, *REPLICAS, *BARRIERS, *PLANNED, *BATCHES, *TRIDENT, *STANDBYS, *HYBRID)
