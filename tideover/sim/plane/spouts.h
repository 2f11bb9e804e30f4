/* A spout's task: its calls, and the roots that it emits. */
#ifndef TIDEOVER_SPOUTS_H
#define TIDEOVER_SPOUTS_H
#include "accounts.h"
#include "acks.h"
#include "children.h"

void draw_gaps(task *t);

/* The gap before the next call. */
HOT int64_t drawn_gap(task *t) {
    if (t->calls - t->first_gap >= GAPS) draw_gaps(t);
    return t->gaps[t->calls - t->first_gap];
}

HOT int retries_wait(const task *t) { return t->retried < t->n_retries; }

/* The first record that a spout which goes on at ``now`` can read, of those that are known; behind them: none is. */
HOT int64_t oldest_record(const task *t, int64_t now) {
    int64_t low = t->next_root > t->first_record ? t->next_root : t->first_record;
    int64_t end = t->first_record + t->n_times;
    if (t->retention < 0 || low >= end || now - t->times[low - t->first_record] <= t->retention) return low;
    int64_t high = end;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (now - t->times[middle - t->first_record] > t->retention) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* When it has read something: a new record, or one again; -1: it does not know. */
static inline int64_t next_read(const task *t) {
    int64_t begin = NEVER, place = oldest_record(t, t->since) - t->first_record;
    if (place < t->n_times) begin = t->since < t->times[place] ? t->times[place] : t->since;
    else if (!t->ended) return -1;
    if (retries_wait(t)) {
        int64_t again = t->since < t->retries_since ? t->retries_since : t->since;
        if (again < begin) begin = again;
    }
    return begin == NEVER ? NEVER : begin + t->poll_cost + t->charge;
}

HOT int64_t next_call(task *t) {
    if (!t->up || (t->most_in_flight >= 0 && t->in_flight >= t->most_in_flight)) return NEVER;
    if (t->calls_by == BY_TABLE) {
        if (t->used < t->n_times) return t->times[t->used];
        return t->ended ? NEVER : -1;
    }
    if (t->calls_by == BY_GAP) return t->since + (t->gaps ? drawn_gap(t) : t->gap.low) + t->charge;
    return t->calls_by == BY_RECORD ? next_read(t) : NEVER;
}

/* It could not be called until now: calls of a schedule that came meanwhile are left out. */
static inline void skip_calls(task *t, int64_t now) {
    if (t->since < now) t->since = now;
    while (t->calls_by == BY_TABLE && t->used < t->n_times && t->times[t->used] <= now) t->used++;
}

/* When a spout is called, or a control marker has its turn; NEVER: not as things are. ``-1``: it does not know. */
HOT int64_t turn_or_call(const plane *p, task *t) {
    if (t->state == AT_TURN || (t->line.full && !t->uids)) return NEVER; /* what is given is emitted all the same */
    int64_t call = next_call(t);
    if (t->queue.n && !t->line.full) {
        int64_t turn = p->messages[t->queue.head].time;
        if (turn < t->free_at) turn = t->free_at;
        if (turn < call) return turn;
    }
    return call;
}

/* When something happens at a spout's task next. */
HOT int64_t spout_next(const plane *p, task *t) {
    int64_t next = turn_or_call(p, t);
    return t->bounded ? bounded_next(p, t, next) : next;
}

/* The new root of the next call; -1: there is none. */
HOT int64_t next_root(const plane *p, const task *t) {
    if (t->uids) return t->uids[t->used];
    if (t->limit >= 0 && t->next_root >= t->limit) return -1;
    return t->next_root << p->spout_bits | t->spout;
}

/* Why a root cannot be emitted now; DONE: it can. */
HOT int32_t hinders(const plane *p, int64_t root) {
    int32_t why = scarce(p);
    if (why) return why;
    if (p->pending && !has_place(p, root)) return NEED_PENDING;
    if (p->accounts && root - p->roots.base >= p->roots.room) return NEED_ROOTS;
    if (p->logs_emitted && full(&p->emitted)) return NEED_ROWS;
    return DONE;
}

/* A root leaves. */
HOT void emit(plane *p, task *t, message *m, int64_t row, int64_t now) {
    m->epoch = (int32_t)t->epoch;
    m->next = -1;
    p->created = 0;
    p->path = 0;
    int32_t made = send_tuple(p, t, m, 0, row, now);
    t->in_flight++;
    p->again |= m->attempt > 0;
    if (p->pending) tree_begins(p, m, now);
    if (p->accounts) {
        if (m->attempt) root_changes(p, m->uid, now, made - 1); /* it waits no more */
        else root_enters(p, m->uid, now, m->created, made);
    }
    if (p->logs_emitted == ALL_LOGGED || (p->logs_emitted && m->attempt)) log_row(&p->emitted, m, t->number, now);
}

HOT int32_t emit_new(plane *p, task *t, int64_t root, int64_t now) {
    if (t->calls_by == BY_RECORD && (t->oldest = oldest_record(t, t->since)) > t->next_root) return EXPIRED;
    int64_t place = t->uids ? t->used : t->next_root - t->first_content;
    if (!t->uids && place >= t->n_content) return NEED_CONTENT;
    int32_t why = hinders(p, root);
    if (why) return why;
    message m = {0};
    m.uid = root;
    m.created = t->stamps ? t->stamps[t->used] : now;
    if (t->calls_by == BY_RECORD) m.created = t->times[t->next_root - t->first_record];
    m.key = (int32_t)t->keys[place];
    m.value = t->values ? t->values[place] : 1;
    emit(p, t, &m, place, now);
    t->next_root = t->uids ? (root >> p->spout_bits) + 1 : t->next_root + 1;
    return DONE;
}

static inline int32_t emit_again(plane *p, task *t, int64_t now) {
    const retry *r = &t->retries[t->retried];
    int32_t why = hinders(p, r->root);
    if (why) return why;
    message m = {0};
    m.uid = r->root;
    m.created = r->created < 0 ? now : r->created;
    m.key = r->key;
    m.value = r->value;
    m.attempt = r->attempt;
    p->again = 1;
    emit(p, t, &m, ~t->retried, now);
    t->retried++;
    return DONE;
}

/* A spout is called, or a control marker has its turn. */
HOT int32_t spout_step(plane *p, task *t, int64_t now) {
    int32_t why = DONE;
    if (now < 0) return NEED_CALLS;
    if (t->bounded && bounded_step(p, t, now, &why)) return why;
    if (t->queue.n && !t->line.full && p->messages[t->queue.head].time <= now && t->free_at <= now) {
        t->state = AT_TURN;
        p->when = now;
        return TURN;
    }
    why = DONE;
    int64_t root;
    if (retries_wait(t)) why = emit_again(p, t, now);
    else if ((root = next_root(p, t)) >= 0) why = emit_new(p, t, root, now);
    if (why) return why;
    t->calls++;
    t->since = now;
    t->used += t->calls_by == BY_TABLE;
    return DONE;
}
#endif
