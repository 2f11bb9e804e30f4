/* What is counted of every tuple: accounts, histograms of latencies, what comes of outages. */
#ifndef TIDEOVER_ACCOUNTS_H
#define TIDEOVER_ACCOUNTS_H

#include "messages.h"
#include "plane.h"

#include <string.h>

/* Histograms of latencies. */

__extension__ typedef unsigned __int128 wide;

#define SECOND 1000000000
#define FIRST_BIN ((1022 << 7) + 1)

/* The bin of a value: exponent and upper 7 bits of the fraction of its double. */
static inline int32_t bin_of(int64_t value) {
    double x = (double)value;
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t code = bits >> 45;
    return code < FIRST_BIN ? 0 : (int32_t)(code - FIRST_BIN);
}

static inline void tally_up(tally *t, int64_t value) {
    wide square = (wide)(uint64_t)value * (uint64_t)value;
    wide sum = ((wide)t->squares_high << 64 | t->squares_low) + square;
    t->squares_high = (uint64_t)(sum >> 64);
    t->squares_low = (uint64_t)sum;
    t->count++;
    t->sum += value;
    if (value > t->greatest) t->greatest = value;
    t->bins[bin_of(value)]++;
}

/* What comes of outages. */

void watch_tuple(plane *p, const task *t, const message *m, int64_t root, int64_t now);
void settle_spans(plane *p);

/* What is counted of every tuple. */

#define SLOT 10000000
#define ROOM_FOR_A_STEP 64

/* The place of the slot in which a moment shows: the first boundary at or after it. */
HOT int64_t slot_of(const plane *p, int64_t time) { return (time + SLOT - 1) / SLOT - p->counts.first; }

/* A spout emits a root with so many tuples. */
HOT void root_enters(plane *p, int64_t root, int64_t now, int64_t created, int32_t tuples) {
    roots *r = &p->roots;
    int64_t i = root - r->base;
    if (i >= r->used) r->used = i + 1;
    r->open[i] += tuples;
    r->first[i] = created;
    if (r->last[i] < now) r->last[i] = now;
    p->counts.entered[slot_of(p, now)]++;
    if (tuples) r->inside[i] = 1;
    else p->counts.left[slot_of(p, now)]++;
}

/* So many more tuples of a root are open since ``now`` (mostly one less). */
HOT void root_changes(plane *p, int64_t root, int64_t now, int32_t more) {
    roots *r = &p->roots;
    int64_t i = root - r->base;
    int64_t last = r->last[i] < now ? now : r->last[i];
    r->last[i] = last;
    if ((r->open[i] += more) == 0) {
        r->inside[i] = 0;
        p->counts.left[slot_of(p, last)]++;
    }
}

/* A tuple takes effect where its root's tuples end. */
HOT void take_effect(plane *p, const component *c, const task *t, int64_t uid) {
    uint8_t *times = c->book + (uid - (p->roots.base << c->bits)) * c->replicas + t->replica;
    if (c->applies == 2) *times = 1;
    else if (++*times > 1) p->counts.twice++;
}

/* A tuple of the measured component is done. */
HOT void measure(plane *p, const message *m, int64_t root, int64_t now) {
    p->counts.done[slot_of(p, now)]++;
    if (!p->latencies) return;
    latency *l = &p->latencies[p->n_latencies++];
    l->time = now;
    l->since_created = now - m->created;
    l->since_first = now - (m->attempt ? p->roots.first[root - p->roots.base] : m->created);
}

HOT int full(const row_log *log) { return log->n >= log->room; }

HOT row *log_row(row_log *log, const message *m, int32_t t, int64_t time) {
    row *r = &log->rows[log->n++];
    fill_row(r, m, t, time);
    return r;
}

/* Why a task may not finish a tuple now; DONE: it may. */
HOT int32_t short_of(const plane *p, const task *t) {
    int32_t why = scarce(p);
    if (why) return why;
    if (t->logs && full(&t->log)) return NEED_ROWS;
    if (p->logs_completed && full(&p->completed)) return HAS_COMPLETED;
    if (t->sums && t->n_taken >= t->taken_room) return NEED_ROWS;
    if (t->measures && p->latencies) {
        if (p->n_latencies >= p->latencies_room) return NEED_LATENCIES;
        if (p->n_watches && p->n_spanned >= p->spanned_room) return NEED_SPANNED;
    }
    return DONE;
}

/* A state that sums by key takes a tuple in. */
HOT void take_up(task *t, const message *m) {
    t->sums[m->key] += m->value;
    t->taken[t->n_taken] = m->uid;
    t->attempts[t->n_taken++] = m->attempt;
}

/* All that is counted of a tuple when a bolt's task is done with it; ``made``: its children. */
HOT void count_tuple(plane *p, task *t, const component *c, const message *m, int64_t now, int32_t made) {
    t->worked++;
    if (t->logs) {
        row *r = log_row(&t->log, m, t->number, now);
        r->mark = p->numbers ? p->numbers[m - p->messages].recovery : m->flags & WAS_READ;
        if (t->numbers) t->numbers[t->log.n - 1] = p->numbers[m - p->messages].number;
    }
    if (t->sums) take_up(t, m);
    if (!c->anchored || !p->accounts) return;
    int64_t root = m->uid >> c->bits;
    if (t->outputs) p->counts.output[slot_of(p, now)]++;
    if (t->measures) measure(p, m, root, now);
    if (p->n_watches) watch_tuple(p, t, m, root, now);
    if (c->applies) take_effect(p, c, t, m->uid);
    if (made != 1) root_changes(p, root, now, made - 1);
}

#endif
