/* Storm's acker: one value per root, the XOR of the ids of all tuples created and acked in its tree. */
#ifndef TIDEOVER_ACKS_H
#define TIDEOVER_ACKS_H
#include "draws.h"
#include "messages.h"

HOT pending *map_of(const plane *p, int64_t root) {
    return &p->pending[root & (((int64_t)1 << p->spout_bits) - 1)];
}

/* The tree of a root begins with the tuples that it has been sent as. */
HOT void tree_begins(plane *p, const message *m, int64_t now) {
    pending *map = map_of(p, m->uid);
    int64_t i = (m->uid >> p->spout_bits) - map->base;
    if (i >= map->size) map->size = i + 1;
    map->value[i] = p->created;
    map->emitted[i] = now;
    map->last_ack[i] = 0;
    map->attempt[i] = m->attempt;
    map->live[i] = m->attempt + 1;
    map->cause[i] = m->attempt ? map->outage[i] : -1;
    map->outage[i] = (int32_t)p->acker_outage;
    map->retrying[i] = 0;
}

/* Whether there is room for a root that is to be emitted. */
HOT int has_place(const plane *p, int64_t root) {
    const pending *map = map_of(p, root);
    return (root >> p->spout_bits) - map->base < map->room;
}

/* Roots that were emitted at or before this moment are out of the acker's own map at ``now``. */
HOT int64_t forgotten_at(const plane *p, int64_t now) {
    return ((now + p->rotation - 1) / p->rotation - p->buckets) * p->rotation;
}

/* The id of a tuple at a task. */
HOT uint64_t id_at(const task *t, const component *c, int64_t uid, int64_t attempt) {
    uint64_t key = c->identities[uid >> c->input_shift & c->input_mask];
    return id_of_copy(draw_identity(key, uid, attempt), t->replica);
}

void tree_is_done(plane *p, pending *map, int64_t i, int64_t root, int64_t now);

/* An ack reaches the acker: the XOR of what it acks and creates. Those of earlier attempts, and of roots that are not
 * known, are ignored. */
HOT void ack(plane *p, int64_t root, int64_t attempt, uint64_t value, int64_t now) {
    pending *map = map_of(p, root);
    int64_t i = (root >> p->spout_bits) - map->base;
    p->acked++;
    if (i < 0 || map->live[i] != attempt + 1 || map->emitted[i] <= p->alive_since) return;
    if (map->emitted[i] <= forgotten_at(p, now)) return;
    if (map->last_ack[i] < now) map->last_ack[i] = now;
    if ((map->value[i] ^= value) == 0) tree_is_done(p, map, i, root, now);
}

/* A task is done with a tuple: it is acked with what it has become, or this is added, if its own ack is held. */
HOT void ack_tuple(plane *p, const task *t, const component *c, const message *m, int64_t now) {
    uint64_t own = c->holds_acks ? 0 : id_at(t, c, m->uid, m->attempt);
    p->acked -= c->holds_acks;
    ack(p, m->uid >> c->bits, m->attempt, own ^ p->created, now);
}

/* When a task sends its next ack; NEVER: it has none to send. */
HOT int64_t next_ack(const task *t) {
    const burst *b = &t->acks;
    return b->sent < b->n ? b->since + b->after[b->sent] : NEVER;
}

/* The next ack of a burst is sent. */
HOT void send_ack(plane *p, task *t) {
    burst *b = &t->acks;
    const component *c = &p->components[t->component];
    int64_t now = next_ack(t), i = b->sent++;
    if (p->acks.room) {
        row each = {.time = now, .uid = b->uid[i], .attempt = (int32_t)b->attempt[i], .task = t->number};
        p->acks.rows[p->acks.n++] = each;
    }
    ack(p, b->uid[i] >> c->bits, b->attempt[i], id_at(t, c, b->uid[i], b->attempt[i]), now);
}
#endif
