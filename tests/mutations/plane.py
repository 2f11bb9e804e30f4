"""Bugs planted in the compiled data plane, which is made anew in each copy."""

from __future__ import annotations

from tests.mutations.base import MODELS, Mutation, exactness, mechanism

EXACT = exactness("none")
REPLAYS = exactness("source_replay")
OVERTAKEN = (f"{MODELS}/test_exactness.py", "-m", "", "-k", "unaligned")
LATER = (f"{MODELS}/test_exactness.py", "-m", "", "-k", "aligned_timeout")
BY_HAND = f"{MODELS}/test_plane_by_hand.py"
WORLDS = f"{MODELS}/test_plane_worlds.py"
QUEUES = (BY_HAND, WORLDS, "-k", "test_plane_by_hand or none and queues")
CORES = (f"{MODELS}/test_plane_cores.py", WORLDS, "-k", "test_plane_cores or none and cores")
CARDS = (WORLDS, "-k", "none and cards")
LOGS = (f"{MODELS}/test_sources.py", WORLDS, "-k", "test_sources or logs")

ORDER = (
    Mutation(
        "a tie goes to the task with the higher number",
        "2 * i + (g->next[2 * i + 1] < g->next[2 * i])",
        "2 * i + (g->next[2 * i + 1] <= g->next[2 * i])",
        QUEUES,
    ),
    Mutation(
        "of messages that arrive together, the last input's comes first",
        "return a->position < b->position;",
        "return a->position > b->position;",
        EXACT,
    ),
    Mutation(
        "what is sent behind a control action comes ahead of what was there before",
        "if (a->turn != b->turn) return a->turn < b->turn;",
        "",
        (BY_HAND, "-k", "at_its_instant"),
    ),
    Mutation(
        "the last place of a heap is not looked at",
        "if (c + 1 < n && earlier(&heap[c + 1], &heap[c])) c++;",
        "if (c + 2 < n && earlier(&heap[c + 1], &heap[c])) c++;",
        EXACT,
    ),
    Mutation(
        "a message overtakes another one on its wire",
        "        if (time < c->last) time = c->last;",
        "",
        (WORLDS, "-k", "slow"),
    ),
    Mutation(
        "a marker overtakes what waits in the queue",
        "    if (first) put_first(p, &t->queue, m);",
        "    if (first || ahead < 0) put_first(p, &t->queue, m);",
        (BY_HAND, "-k", "behind_what_waits"),
    ),
    Mutation(
        "what was held comes ahead of what was set aside",
        "list *from[] = {&t->aside, &t->held};",
        "list *from[] = {&t->held, &t->aside};",
        REPLAYS,
    ),
)
BOUNDS = (
    Mutation(
        "a spout of the twin sends no end marker before there is room",
        "? is_held_up(p, t) : t->line.full && !t->uids",
        "? is_held_up(p, t) : t->line.full",
        (f"{MODELS}/test_twin.py", "-k", "ends_its_windows_in_time"),
    ),
    Mutation(
        "a place is not given back when what had it is dropped",
        "if (route >= 0) free_place(p, t, route, now);",
        "(void)route, (void)now;",
        QUEUES,
    ),
    Mutation(
        "a place is given back again when a service is begun again",
        "each->flags &= ~HAS_PLACE;",
        "",
        QUEUES,
    ),
    Mutation(
        "a sender knows of a free place at once",
        "p->messages[m].time = now + c->notice;",
        "p->messages[m].time = now;",
        QUEUES,
    ),
    Mutation(
        "who asks for a place at the same instant is served by the highest number",
        "p->tasks[ahead].line.asked_at == now && ahead > t->number",
        "p->tasks[ahead].line.asked_at == now && ahead < t->number",
        QUEUES,
    ),
    Mutation(
        "who waits behind a sender that crashes is not told",
        "forget(p, free, t);\n    wake_first(p, free, now);",
        "forget(p, free, t);\n    (void)now;",
        (BY_HAND, "-k", "behind_a_sender_that_crashes"),
    ),
    Mutation(
        "a queue that drops has one place more",
        "&& t->waiting >= t->length) {",
        "&& t->waiting > t->length) {",
        QUEUES,
    ),
    Mutation(
        "a spout makes calls that came while it was blocked",
        "if (t->spout >= 0 && !t->uids) skip_calls(t, now);",
        "",
        QUEUES,
    ),
)
HOSTS = (
    Mutation(
        "work of shared cores is rounded to the next nanosecond as it is",
        "ceil(left / h->speed - 1e-6)",
        "ceil(left / h->speed)",
        CORES,
    ),
    Mutation(
        "a task goes on at once when its process is stopped",
        "t->line.moves = now < t->stopped_until ? t->stopped_until : now;",
        "t->line.moves = now;",
        QUEUES,
    ),
    Mutation(
        "a card serves what comes to it by the place of its last channel",
        "arrival a = {p->messages[l->head].time, 0, k->coming[0].position};",
        "arrival a = {p->messages[l->head].time, 1, k->coming[0].position};",
        CARDS,
    ),
    Mutation(
        "a card takes its time for control messages",
        "int64_t gone = through(k, now, mark ? 0 : w->out_takes);",
        "int64_t gone = through(k, now, w->out_takes);",
        CARDS,
    ),
    Mutation(
        "a partition that loses messages loses marks, too",
        "if (p->messages[m].mark) append(p, l, m);\n        else drop_message(p,",
        "drop_message(p,",
        (BY_HAND, "-k", "loses_no_marks"),
    ),
)
ACKS = (
    Mutation(
        "a retry loses its attempt",
        "m.attempt = r->attempt;",
        "m.attempt = 0;",
        REPLAYS,
    ),
    Mutation(
        "a service is drawn ahead as if it were that of the first attempt",
        "due->attempt[due->n] = each->attempt;",
        "due->attempt[due->n] = 0;",
        REPLAYS,
    ),
    Mutation(
        "an ack is XORed with the id of the first attempt",
        "0 : id_at(t, c, m->uid, m->attempt);",
        "0 : id_at(t, c, m->uid, 0);",
        REPLAYS,
    ),
    Mutation(
        "a burst of acks is sent one too late",
        "? b->since + b->after[b->sent] : NEVER",
        "? b->since + b->after[b->sent] + b->after[0] : NEVER",
        REPLAYS,
    ),
    Mutation(
        "the acker's map rotates when a period has begun",
        "(now + p->rotation - 1) / p->rotation",
        "now / p->rotation",
        REPLAYS,
    ),
    Mutation(
        "a spout emits one root more than its cap",
        "t->in_flight >= t->most_in_flight",
        "t->in_flight > t->most_in_flight",
        REPLAYS,
    ),
    Mutation(
        "a spout at its cap makes the calls that it has missed",
        "skip_calls(spout, now);",
        "(void)now;",
        REPLAYS,
    ),
    Mutation(
        "a retry is served before it could be",
        "int64_t again = t->since < t->retries_since ? t->retries_since : t->since;",
        "int64_t again = t->since;",
        LOGS,
    ),
    Mutation(
        "a record that is as old as what is kept is deleted",
        "if (now - t->times[middle - t->first_record] > t->retention) low = middle + 1;",
        "if (now - t->times[middle - t->first_record] >= t->retention) low = middle + 1;",
        LOGS,
    ),
    Mutation(
        "what a log has deleted is kept until an offset behind it is committed",
        "parts.append(self._root(spout, numbers[~gone]))",
        "parts.append(self._root(spout, numbers))",
        LOGS,
    ),
)
COUNTS = (
    Mutation(
        "what a crash loses is not told",
        "log_row(&p->lost, &p->messages[m], t->number, p->messages[m].time);\n    drop_message",
        "drop_message",
        EXACT,
    ),
    Mutation(
        "a window is full one tuple late",
        "if (t->fills > 0 && --t->fills == 0) why = WINDOW_FULL;",
        "if (t->fills >= 0 && t->fills-- == 0) why = WINDOW_FULL;",
        EXACT,
    ),
    Mutation(
        "a root leaves the backlog twice",
        "r->inside[i] = 0;\n        p->counts.left[slot_of(p, last)]++;",
        "r->inside[i] = 0;\n        p->counts.left[slot_of(p, last)] += 2;",
        EXACT,
    ),
    Mutation(
        "what happens at the boundary of a slot shows at the next one",
        "return (time + SLOT - 1) / SLOT - p->counts.first;",
        "return time / SLOT + 1 - p->counts.first;",
        EXACT,
    ),
    Mutation(
        "a task is busy with a service that was interrupted",
        "if (free_at > from) t->busy -= free_at - from;",
        "(void)free_at;",
        EXACT,
    ),
)
REPLICAS = (
    Mutation(
        "a task that waits for a copy lets nothing out of its line",
        "    int32_t gone = 0;",
        "    t->line.moves = NEVER;\n    int32_t gone = 0;",
        (BY_HAND, "-k", "waits_for_its_copy"),
    ),
    Mutation(
        "who reads of a group with full queues is no part of it if it has one itself",
        "        of.difference_update(group_of[task.number])\n        if of:",
        "        if of and task.number not in waiting:",
        (BY_HAND, "-k", "in_another_group"),
    ),
    Mutation(
        "what a replica has had last is let in again",
        "if (each->uid <= *greatest ||",
        "if (each->uid < *greatest ||",
        exactness("active_replication"),
    ),
    Mutation(
        "a copied queue leaves out what is in service",
        "if (t->state == SERVING && at++ >= place) copy_message(p, &p->tasks[to], t->serving, now);",
        "if (t->state == SERVING) at++;",
        exactness("active_replication"),
    ),
)
PAIRS = (
    Mutation(
        "buffers that a replica copies have the other's numbers",
        'rows["arrival"] = np.arange(self.sent + 1, self.sent + len(rows) + 1)',
        "",
        (f"{MODELS}/test_hybrid.py", "-k", "has_new_numbers"),
    ),
    Mutation(
        "what a silent task makes is on its way",
        "if (t->silent) made = 0;",
        "",
        exactness("active_standby"),
    ),
    Mutation(
        "an ack takes a mark that has not come",
        "r.mark ? r.mark <= newest_mark :",
        "r.mark ? r.mark <= newest_mark + 1 :",
        exactness("active_standby"),
    ),
)
FLEETS = (
    Mutation(
        "a copy takes a spout no time where it reads records",
        "begin + t->poll_cost + t->charge;",
        "begin + t->poll_cost;",
        (f"{MODELS}/test_estorm.py", "-k", "takes_the_spout"),
    ),
    Mutation(
        "all copies of a tuple that a fleet gets have one id",
        "return identity * (2 * (uint64_t)replica + 1);",
        "(void)replica;\n    return identity;",
        exactness("estorm"),
    ),
    Mutation(
        "a shadow sends what it makes",
        "c->operator == TAKES_IN || t->mute ? 0",
        "c->operator == TAKES_IN ? 0",
        mechanism("fleets_with_a_state"),
    ),
    Mutation(
        "acks that come twice are counted task after task",
        "p->waiting || p->now < p->in_order_until;",
        "p->waiting != 0;",
        exactness("estorm"),
    ),
)
BUFFERS = (
    Mutation(
        "a buffer is trimmed one too far",
        "row_at(c, end - 1).arrival <= number) n = end;",
        "row_at(c, end - 1).arrival <= number + 1) n = end;",
        (f"{MODELS}/test_rsm.py", "-k", "trimmed_by_number"),
    ),
    Mutation(
        "what is sent directly is let in before the end of the replay",
        "if (!each->recovery) return !b->waits;",
        "if (!each->recovery) return 1;",
        exactness("rsm"),
    ),
    Mutation(
        "the end of a replay leaves a step late",
        "if (next.mark != END_OF_REPLAY) {\n            if (r->time",
        "if (next.mark <= 0) {\n            if (r->time",
        exactness("rsm"),
    ),
    Mutation(
        "a replay begins with what has been processed",
        "if (r.arrival <= after) continue;",
        "if (r.arrival < after) continue;",
        (f"{MODELS}/test_rsm_senders.py",),
    ),
    Mutation(
        "what was in service when it is lost is served last",
        "put_first(p, &t->queue, t->serving);",
        "append(p, &t->queue, t->serving);",
        (f"{MODELS}/test_plane_by_hand.py", "-k", "in_service_when_it_is_lost"),
    ),
)
STANDBYS = (
    Mutation(
        "a replay brings what was had by another number",
        "append(p, &t->held, m);\n    else if (t->seen && !is_new(p, t, m)) turn_back(p, t, m, now);",
        "append(p, &t->held, m);",
        exactness("passive_standby"),
    ),
    Mutation(
        "copies do not know their paths",
        "p->paths ? p->paths[m] : 0, 0);",
        "0, 0);",
        exactness("passive_standby"),
    ),
    Mutation(
        "tuples of windows that are over are let in",
        " || each->epoch < t->over) return 0;",
        ") return 0;",
        (f"{MODELS}/test_secondaries.py", "-k", "window_that_is_over_is_not_counted"),
    ),
    Mutation(
        "a tuple in a log has the number of the one before it",
        "t->numbers[t->log.n - 1] = p->numbers[m - p->messages].number;",
        "t->numbers[t->log.n - 1] = p->numbers[m - p->messages].number - 1;",
        exactness("upstream_backup"),
    ),
    Mutation(
        "what is kept again has numbers of its own",
        "put_row(p, &p->channels[number].buffer->kept, r);",
        "{ row own = *r; own.arrival = ++p->channels[number].buffer->sent; "
        "put_row(p, &p->channels[number].buffer->kept, &own); }",
        exactness("passive_standby"),
    ),
)
READ_AGAIN = (
    Mutation(
        "what a task reads again comes behind what has come since",
        "    list later = t->held, *again[] =",
        "    list later = {0}, *again[] =",
        exactness("changelog"),
    ),
    Mutation(
        "what a crash finds in the queue is not read again",
        "        if (!is_logged(p, t, m)) {\n            drop_message",
        "        {\n            drop_message",
        exactness("changelog"),
    ),
    Mutation(
        "a commit waits for what is in the queue",
        "    if (first) put_first(p, &t->queue, m);\n    else append",
        "    append",
        exactness("changelog"),
    ),
    Mutation(
        "a commit covers what was sent since its turn",
        "for (int32_t n = each->key; n > 0; n--) {",
        "for (int32_t n = of->withheld.n; n > 0; n--) {",
        exactness("changelog"),
    ),
    Mutation(
        "what was on its way when it was aborted arrives",
        "if (p->messages[m].mark != COMMIT && --keep < 0) p->messages[m].flags",
        "if (p->messages[m].mark != COMMIT && --keep < -1000000) p->messages[m].flags",
        exactness("changelog"),
    ),
)
PARTS = (
    Mutation(
        "a batch is worked off from behind",
        "        p->messages[m] = each;\n        append(p, &t->queue, m);",
        "        p->messages[m] = each;\n        put_first(p, &t->queue, m);",
        exactness("trident"),
    ),
    Mutation(
        "what is worked off does not know over which input it has come",
        "    each.source = r->source;\n",
        "",
        exactness("trident"),
    ),
)
SNAPSHOTS = (
    Mutation(
        "what comes behind a barrier is let in",
        "if (is_blocked(p, t, m)) append(p, &t->aside, m);\n    else if",
        "if",
        exactness("aligned_snapshots"),
    ),
    Mutation(
        "what waits behind a barrier is served",
        "append(p, aside ? &t->aside : &t->queue, m);",
        "append(p, &t->queue, m);",
        exactness("aligned_snapshots"),
    ),
    Mutation(
        "a new connection comes behind what was on the one before",
        "    c->last = c->held;\n",
        "",
        exactness("aligned_snapshots"),
    ),
)
OVERTAKING = (
    Mutation(
        "what comes behind a barrier belongs to its snapshot",
        "if (c->placing != OF_LOG && !(c->passed && left <= c->behind))",
        "if (c->placing != OF_LOG && left)",
        OVERTAKEN,
    ),
    Mutation(
        "what comes ahead of a barrier does not belong to its snapshot, once its task has taken part",
        "} else if (t->records && c->placing != OF_LOG) {",
        "} else if (0) {",
        OVERTAKEN,
    ),
    Mutation(
        "a barrier that is sent ahead is in the line still",
        "if (is_control(&p->messages[m])) drop_message(p, t, m, now);\n        else append(p, &t->line",
        "append(p, &t->line",
        LATER,
    ),
    Mutation(
        "a barrier that overtakes waits for room",
        "return m->flags & IS_AHEAD ? 0 : t->line.full",
        "return t->line.full",
        OVERTAKEN,
    ),
)
MOVES = (
    Mutation(
        "a task that has moved works on the cores where it was",
        "network.draw(0)\n        seat(self.context.cores, self.bolt_tasks)",
        "network.draw(0)",
        (f"{MODELS}/test_nimbus.py",),
    ),
)
BATCHES = (
    Mutation(
        "what a batch reads is there before the batch is out",
        "        each.time = now;\n        p->messages[m] = each;\n        append(p, &t->queue, m);",
        "        each.time = now - 1;\n        p->messages[m] = each;\n        append(p, &t->queue, m);",
        exactness("micro_batch"),
    ),
    Mutation(
        "nobody watches what a task does again",
        "int again = t->again == w->outage + 1;",
        "int again = 0;",
        exactness("micro_batch"),
    ),
    Mutation(
        "a state is remembered behind the batch that it is to be before",
        "self._remembers = int(self.c.log.n), remember",
        "self._remembers = 1 << 40, remember",
        exactness("micro_batch"),
    ),
)
POOL = (
    Mutation(
        "a chunk that is given back is not counted",
        "p->few = ++p->n_spare <=",
        "p->few = p->n_spare <=",
        (f"{MODELS}/test_plane_laws.py", "-k", "no_message"),
    ),
)
LOOKS = (
    Mutation(
        "what is turned away is let in",
        "    if (verdict == LET_IN) {",
        "    if (verdict) {",
        (f"{MODELS}/test_admitted.py",),
    ),
    Mutation(
        "acks that wait for their turn are not told",
        "        p->acks.rows[p->acks.n++] = each;",
        "        (void)each;",
        (f"{MODELS}/test_plane_diagram.py", "-k", "histories"),
    ),
    Mutation(
        "nobody notes that a commit has come",
        "if (t->bounded & SHOWS) log_row(&p->discarded, each, t->number, now)->arrival = COMES_AGAIN;",
        "",
        (f"{MODELS}/test_diagram.py", "-k", "waits_for_its_commit"),
    ),
    Mutation(
        "a barrier is shown where no other has come yet",
        "int(mark.created[0]), int(mark.key[0])",
        "0, 0",
        (f"{MODELS}/test_plane_diagram.py", "-k", "control_messages"),
    ),
)
TRANSACTIONS = (
    Mutation(
        "an ack that is held is sent at once, too",
        "uint64_t own = c->holds_acks ? 0 : id_at",
        "uint64_t own = id_at",
        (f"{MODELS}/test_look_ups.py", *mechanism("look_ups")),
    ),
    Mutation(
        "a task that goes back goes on with what it is at",
        "        self._plane.lib.plane_suspend(self._plane.p, self.number, self._kernel.now)\n",
        "",
        exactness("storm_checkpoint"),
    ),
    Mutation(
        "acks that are sent later overtake none",
        'order = columns[-1].argsort(kind="stable")',
        "order = np.arange(len(columns[-1]))",
        (f"{MODELS}/test_storm_checkpoint.py", "-k", "while_it_acks_another"),
    ),
    Mutation(
        "what a task has changed before a prepare is not at hand after it",
        "c.at_hand, c.stamp = c.stamp, c.stamp + 1",
        "c.stamp += 1; c.at_hand = c.stamp",
        (f"{MODELS}/test_look_ups.py", *mechanism("look_ups")),
    ),
    Mutation(
        "look-ups wait for nobody",
        "int64_t begin = s->free_at > now ? s->free_at : now;",
        "int64_t begin = now;",
        (f"{MODELS}/test_look_ups.py", *mechanism("look_ups")),
    ),
    Mutation(
        "an entry that is written twice is counted twice",
        "l->changed += stamp != l->stamp;",
        "l->changed++;",
        (f"{MODELS}/test_look_ups.py", *mechanism("look_ups")),
    ),
)
PLANE = (
    *ORDER,
    *BOUNDS,
    *HOSTS,
    *ACKS,
    *COUNTS,
    *REPLICAS,
    *PAIRS,
    *FLEETS,
    *BUFFERS,
    *STANDBYS,
    *READ_AGAIN,
    *PARTS,
    *SNAPSHOTS,
    *OVERTAKING,
    *MOVES,
    *BATCHES,
    *POOL,
    *LOOKS,
    *TRANSACTIONS,
)
