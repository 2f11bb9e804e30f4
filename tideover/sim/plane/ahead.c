/* Draws that are worked out ahead, many at once: several times as fast as one by one. */
#include "spouts.h"
#include "wires.h"

#define BLOCK 64

/* The gaps before the next calls. */
void draw_gaps(task *t) {
    int64_t calls[GAPS];
    uint64_t bits[GAPS];
    for (int i = 0; i < GAPS; i++) calls[i] = t->calls + i;
    draw_bits_array(t->gap_key, calls, 0, GAPS, bits);
    draw_duration_array(&t->gap, bits, GAPS, t->gaps);
    for (int i = 0; i < GAPS; i++)
        if (t->gaps[i] < 1) t->gaps[i] = 1;
    t->first_gap = t->calls;
}

typedef struct {
    int64_t uid[BLOCK];
    int64_t attempt[BLOCK];
    int32_t which[BLOCK];
    int32_t n;
} block;

static void draw_block(plane *p, const component *c, block *b) {
    uint64_t bits[BLOCK];
    int64_t takes[BLOCK];
    draw_bits_array(c->service_key, b->uid, b->attempt, b->n, bits);
    draw_duration_array(&c->service, bits, b->n, takes);
    for (int32_t i = 0; i < b->n; i++) p->work[b->which[i]] = takes[i];
    b->n = 0;
}

/* The services of all that is on its way to a task. */
void draw_services(plane *p, task *t, const component *c) {
    block b;
    b.n = 0;
    for (int32_t i = 0; i < t->inputs; i++) {
        channel *from = &p->channels[t->first_input + i];
        for (int32_t m = from->undrawn; m >= 0; m = p->messages[m].next) {
            const message *each = &p->messages[m];
            if (each->mark || p->work[m] >= 0) continue;
            b.uid[b.n] = each->uid;
            b.attempt[b.n] = each->attempt;
            b.which[b.n] = m;
            if (++b.n == BLOCK) draw_block(p, c, &b);
        }
        from->undrawn = -1;
    }
    if (b.n) draw_block(p, c, &b);
}
