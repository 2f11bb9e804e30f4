/* Effects that roots have in the end, found anew from what their tuples contain: what the books are held against. */
#include <string.h>

#include "children.h"

typedef struct {
    int64_t *uid;
    int32_t *component;
    int64_t n;
    int64_t room;
    int32_t all; /* be they applied or not */
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
    if (c->book && (out->all || !applied(p, c, uid))) {
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

/* How many effects of a root at the component ``end`` are applied somewhere, if it has no replicas. */
static int32_t applied_of(const plane *p, const component *end, int64_t root) {
    const uint8_t *times = end->book + ((root - p->roots.base) << end->bits);
    int32_t found = 0;
    for (int64_t i = 0; i < (int64_t)1 << end->bits; i += 8) {
        uint64_t eight;
        memcpy(&eight, times + i, 8);
        eight = ((eight & UINT64_C(0x7F7F7F7F7F7F7F7F)) + UINT64_C(0x7F7F7F7F7F7F7F7F)) | eight;
        found += (int32_t)(((eight >> 7 & UINT64_C(0x0101010101010101)) * UINT64_C(0x0101010101010101)) >> 56);
    }
    return found;
}

/* How many effects a root with this key has, if none of them is drawn. */
int64_t plane_expected(plane *p, int32_t spout, int64_t key) {
    missing out = {NULL, NULL, 0, 0, 1};
    pass(p, &p->components[spout], 0, (int32_t)key, 0, &out);
    return out.n;
}

/* Effects of these roots, with these keys, that are applied nowhere. Returns how many there are; those for which there
 * is no room are only counted. */
int64_t plane_missing(plane *p, int32_t spout, int64_t n, const int64_t *roots, const int64_t *keys, int64_t *uid,
                      int32_t *at, int64_t room) {
    missing out = {uid, at, 0, room, 0};
    const component *spout_of = &p->components[spout];
    const component *end = spout_of->end < 0 ? NULL : &p->components[spout_of->end];
    for (int64_t i = 0; i < n; i++) {
        if (end && applied_of(p, end, roots[i]) == spout_of->expected[keys[i]]) continue;
        pass(p, spout_of, roots[i], (int32_t)keys[i], 0, &out);
    }
    return out.n;
}
