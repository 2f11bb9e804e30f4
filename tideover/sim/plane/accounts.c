/* What the data plane counts: histograms, outages, effects of roots; and what the library says of itself. */

#include "accounts.h"
#include "acks.h"
#include "children.h"
#include "plane.h"

#include <string.h>

/* What this library says of itself. */

/* build.py finds the digest in the file by the words before it, without opening the library. */
#define WORDS "tideover-plane-sources:"

static const char sources[] = WORDS PLANE_SOURCES;

const char *plane_made_by(void) {
    return PLANE_COMPILER;
}

const char *plane_sources(void) {
    return sources + sizeof WORDS - 1;
}

/* Latencies, sorted into the histograms of seconds. */

/* The latencies of ``seconds`` seconds from ``second`` on, since creation or since the root's first emission. */
void plane_tally(const latency *l, int64_t n, int32_t since_first, int64_t second, int64_t seconds, tally *out) {
    for (int64_t i = 0; i < n; i++) {
        int64_t place = l[i].time / SECOND - second;
        if (place < 0 || place >= seconds) continue;
        tally_up(&out[place], since_first ? l[i].since_first : l[i].since_created);
    }
}

/* What comes of outages: which tuples were sent again because of them, and the latencies until the last of these. */

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

/* Effects that roots have in the end, found anew from what their tuples contain: what the books are held against. */

typedef struct {
    int64_t *uid;
    int32_t *component;
    int64_t n;
    int64_t room;
} missing;

static int applied(const plane *p, const component *c, int64_t uid) {
    const uint8_t *times = c->book + (uid - (p->roots.base << c->bits)) * c->replicas;
    for (int32_t r = 0; r < c->replicas; r++)
        if (times[r]) return 1;
    return 0;
}

static void walk(const plane *p, int32_t number, int64_t uid, int32_t key, missing *out);

/* A tuple leaves a component: uid at the sender. */
static void pass(const plane *p, const component *c, int64_t uid, int32_t key, int32_t position, missing *out) {
    for (int32_t i = 0; i < c->outlets; i++) {
        const outlet *o = &p->outlets[c->first_outlet + i];
        int64_t there = child_uid(o, uid, position);
        for (int32_t to = 0; to < (o->grouping == EVERY ? o->tasks : 1); to++) walk(p, o->component, there | to, key, out);
    }
}

/* A tuple is at a component. */
static void walk(const plane *p, int32_t number, int64_t uid, int32_t key, missing *out) {
    const component *c = &p->components[number];
    if (c->book && !applied(p, c, uid)) {
        if (out->n < out->room) {
            out->uid[out->n] = uid;
            out->component[out->n] = number;
        }
        out->n++;
    }
    if (c->operator == TAKES_IN) return;
    if (c->operator == TABLE) {
        int64_t row = key < c->sentences ? key : c->sentences - 1;
        for (int32_t i = 0; i < c->lengths[row]; i++)
            pass(p, c, uid, (int32_t)c->words[c->starts[row] + i], i, out);
        return;
    }
    message m = {0};
    m.uid = uid;
    for (int32_t i = 0, n = copies_of(c, &m); i < n; i++) pass(p, c, uid, key, i, out);
}

/* Effects of these roots, with these keys, that are applied nowhere. Returns how many there are; those for which there
 * is no room are only counted. */
int64_t plane_missing(plane *p, int32_t spout, int64_t n, const int64_t *roots, const int64_t *keys, int64_t *uid,
                      int32_t *at, int64_t room) {
    missing out = {uid, at, 0, room};
    for (int64_t i = 0; i < n; i++) pass(p, &p->components[spout], roots[i], (int32_t)keys[i], 0, &out);
    return out.n;
}
