/* What comes of outages: which tuples were sent again because of them, and the latencies until the last of these. */
#include "spans.h"

#include "acks.h"

/* Whether an attempt of a root was made because of an outage. */
static int made_for(const plane *p, int64_t root, int64_t attempt, int32_t outage) {
    const pending *map = map_of(p, root);
    int64_t i = (root >> p->spout_bits) - map->base;
    if (i >= 0 && i < map->size && map->attempt[i] == attempt) return map->cause[i] == outage;
    for (int64_t j = 0; j < p->n_causes; j++) {
        const cause *c = &p->causes[j];
        if (c->root == root && c->attempt == attempt) return c->outage == outage;
    }
    return 0;
}

void watch_tuple(plane *p, const task *t, const message *m, int64_t root, int64_t now) {
    for (int32_t i = 0; i < p->n_watches && (m->attempt || t->again); i++) {
        watch *w = p->watches[i];
        int again = t->again == w->outage + 1;
        if (!again && !(m->attempt && made_for(p, root, m->attempt, w->outage))) continue;
        if (w->hit[t->number]) {
            w->replayed++;
            if (w->last_replay < m->time) w->last_replay = m->time;
        }
        if (!t->measures) continue;
        int64_t end = w->resolution ? (now / w->resolution + 1) * w->resolution - 1 : now;
        if (w->end < end) w->end = end;
        w->goes_on = 1;
    }
    if (!t->measures) return;
    latency *l = &p->spanned[p->n_spanned++];
    l->time = now;
    l->since_created = now - m->created;
    l->since_first = now - (m->attempt ? p->roots.first[root - p->roots.base] : m->created);
}

/* All of one tally goes to another. */
static void pour(tally *from, tally *to) {
    if (!from->count) return;
    to->count += from->count;
    to->sum += from->sum;
    if (from->greatest > to->greatest) to->greatest = from->greatest;
    wide sum = ((wide)to->squares_high << 64 | to->squares_low) + ((wide)from->squares_high << 64 | from->squares_low);
    to->squares_high = (uint64_t)(sum >> 64);
    to->squares_low = (uint64_t)sum;
    for (int32_t i = 0, n = bin_of(from->greatest) + 1; i < n; i++) to->bins[i] += from->bins[i];
    memset(from, 0, sizeof *from);
}

/* All tasks have moved up to the same moment: what is inside is known up to there. */
void settle_spans(plane *p) {
    for (int32_t i = 0; i < p->n_watches; i++) {
        watch *w = p->watches[i];
        if (w->goes_on) {
            for (int32_t j = 0; j < 2; j++) pour(&w->behind[j], &w->inside[j]);
            w->goes_on = 0;
        }
        for (int64_t j = 0; j < p->n_spanned; j++) {
            const latency *l = &p->spanned[j];
            tally *to = l->time <= w->end ? w->inside : w->behind;
            tally_up(&to[0], l->since_created);
            tally_up(&to[1], l->since_first);
        }
    }
    p->n_spanned = 0;
}
