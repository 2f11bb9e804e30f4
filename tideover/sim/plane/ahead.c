/* Draws that are worked out ahead, many at once: several times as fast as one by one. */
#include "spouts.h"
#include "wires.h"

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

/* Draw the services that are due. */
void draw_services(plane *p, const component *c) {
    draws_due *due = c->due;
    uint64_t bits[TOGETHER];
    int64_t takes[TOGETHER];
    draw_bits_array(c->service_key, due->uid, due->attempt, due->n, bits);
    draw_duration_array(&c->service, bits, due->n, takes);
    for (int32_t i = 0; i < due->n; i++) p->work[due->which[i]] = takes[i];
    due->n = 0;
}
