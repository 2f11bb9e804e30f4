/* A spout's task: its calls, and the roots that it emits. */
#ifndef TIDEOVER_SPOUTS_H
#define TIDEOVER_SPOUTS_H
#include "accounts.h"
#include "children.h"

void draw_gaps(task *t);

/* The gap before the next call. */
HOT int64_t drawn_gap(task *t) {
    if (t->calls - t->first_gap >= GAPS) draw_gaps(t);
    return t->gaps[t->calls - t->first_gap];
}

/* When a spout is called next; NEVER: not as things are. ``-1``: it does not know. */
HOT int64_t spout_next(const plane *p, task *t) {
    (void)p;
    if (t->state == AT_TURN) return NEVER;
    int64_t call = NEVER;
    if (t->up && t->calls_by != NEVER_CALLED) {
        if (t->calls_by == BY_TABLE) {
            if (t->used < t->n_times) call = t->times[t->used];
            else if (!t->ended) return -1;
        } else {
            call = t->since + (t->gaps ? drawn_gap(t) : t->gap.low) + t->charge;
        }
    }
    if (t->queue.n) {
        int64_t turn = p->messages[t->queue.head].time;
        if (turn < t->free_at) turn = t->free_at;
        if (turn < call) return turn;
    }
    return call;
}

/* The root of the next call; -1: there is none. */
HOT int64_t next_root(const plane *p, const task *t) {
    if (t->uids) return t->uids[t->used];
    if (t->limit >= 0 && t->next_root >= t->limit) return -1;
    return t->next_root << p->spout_bits | t->spout;
}

HOT void emit(plane *p, task *t, int64_t root, int64_t now) {
    int64_t place = t->uids ? t->used : t->next_root - t->first_content;
    message m = {0};
    m.uid = root;
    m.created = t->stamps ? t->stamps[t->used] : now;
    m.key = (int32_t)t->keys[place];
    m.value = t->values ? t->values[place] : 1;
    m.epoch = (int32_t)t->epoch;
    m.next = -1;
    int32_t made = send_tuple(p, t, &m, 0, now);
    if (t->uids) t->next_root = (root >> p->spout_bits) + 1;
    else t->next_root++;
    if (p->accounts) root_enters(p, root, now, m.created, made);
    if (p->logs_emitted) log_row(&p->emitted, &m, t->number, now);
}

/* A spout is called, or a control marker has its turn. */
HOT int32_t spout_step(plane *p, task *t, int64_t now) {
    if (now < 0) return NEED_CALLS;
    if (t->queue.n && p->messages[t->queue.head].time <= now && t->free_at <= now) {
        t->state = AT_TURN;
        p->when = now;
        return TURN;
    }
    int64_t root = next_root(p, t);
    if (root >= 0) {
        if (!t->uids && t->next_root - t->first_content >= t->n_content) return NEED_CONTENT;
        if (scarce(p)) return NEED_MESSAGES;
        if (p->accounts && root - p->roots.base >= p->roots.room) return NEED_ROOTS;
        if (p->logs_emitted && full(&p->emitted)) return NEED_ROWS;
        emit(p, t, root, now);
    }
    t->calls++;
    t->since = now;
    t->used += t->calls_by == BY_TABLE;
    return DONE;
}
#endif
