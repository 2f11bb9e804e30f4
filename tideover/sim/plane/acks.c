/* Trees that are done, and acks that Python sends. */
#include "acks.h"

#include "spouts.h"
#include "wires.h"

/* The spout forgets the root. */
void tree_is_done(plane *p, pending *map, int64_t i, int64_t root, int64_t now) {
    map->live[i] = 0;
    if (p->logs_completed) {
        row *r = &p->completed.rows[p->completed.n++];
        r->uid = root;
        r->attempt = map->attempt[i];
        r->created = map->emitted[i];
        r->time = map->last_ack[i];
    }
    int32_t number = p->spouts[map - p->pending];
    task *spout = &p->tasks[number];
    if (spout->in_flight-- != spout->most_in_flight) return;
    skip_calls(spout, now); /* it has waited for this */
    if (p->moving) has_come(p, number);
}

/* These tuples of a task are acked, each at its time. */
void plane_ack(plane *p, int32_t number, int64_t n, const int64_t *uid, const int64_t *attempt, const int64_t *times) {
    const task *t = &p->tasks[number];
    const component *c = &p->components[t->component];
    for (int64_t i = 0; i < n; i++) {
        int64_t again = attempt ? attempt[i] : 0;
        ack(p, uid[i] >> c->bits, again, id_at(t, c, uid[i], again), times[i]);
    }
}
