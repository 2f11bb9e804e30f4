/* Effects that roots have in the end, found anew from what their tuples contain: what the books are held against. */
#include "children.h"

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
                      int32_t *component, int64_t room) {
    missing out = {uid, component, 0, room};
    for (int64_t i = 0; i < n; i++) pass(p, &p->components[spout], roots[i], (int32_t)keys[i], 0, &out);
    return out.n;
}
