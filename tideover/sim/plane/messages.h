/* The messages that there are, and lists of them. */
#ifndef TIDEOVER_MESSAGES_H
#define TIDEOVER_MESSAGES_H
#include "plane.h"

#define HOT static inline __attribute__((always_inline))
#define NEVER INT64_MAX

/* Why a step that sends messages may not be made now; DONE: it may. */
HOT int32_t scarce(const plane *p) {
    if (p->room - p->in_use < p->most_made) return NEED_MESSAGES;
    if (p->unknown | p->few) return p->few ? NEED_CHUNKS : NEED_LATENCY;
    return p->losing && p->lost.room - p->lost.n < p->most_made ? HAS_LOST : DONE;
}

HOT int32_t take_message(plane *p) {
    int32_t m = p->freed;
    if (m >= 0) p->freed = p->messages[m].next;
    else m = p->used++;
    p->in_use++;
    p->work[m] = -1;
    if (p->made) p->made[m] = -1;
    if (p->numbers) p->numbers[m] = (numbered){0, 0};
    return m;
}

HOT void free_message(plane *p, int32_t m) {
    p->messages[m].next = p->freed;
    p->freed = m;
    p->in_use--;
}

/* Whether a message is a marker that waits for its turn, and acts then. */
HOT int is_control(const message *m) { return m->mark == CONTROL || m->mark == BARRIER; }

/* A row that says how a message is. */
HOT void fill_row(row *r, const message *m, int32_t t, int64_t time) {
    r->time = time;
    r->uid = m->uid;
    r->created = m->created;
    r->arrival = m->time;
    r->value = m->value;
    r->task = t;
    r->key = m->key;
    r->attempt = m->attempt;
    r->epoch = m->epoch;
    r->source = m->source;
    r->mark = m->mark;
}

/* A message as a row says that it was. */
HOT message message_of(const row *r) {
    message each = {0};
    each.uid = r->uid;
    each.created = r->created;
    each.value = r->value;
    each.key = r->key;
    each.attempt = r->attempt;
    each.epoch = r->epoch;
    each.mark = r->mark;
    each.source = r->source;
    return each;
}

HOT void append(plane *p, list *l, int32_t m) {
    p->messages[m].next = -1;
    if (l->n++) p->messages[l->tail].next = m;
    else l->head = m;
    l->tail = m;
}

HOT int32_t take_first(plane *p, list *l) {
    int32_t m = l->head;
    l->head = p->messages[m].next;
    l->n--;
    return m;
}

HOT void put_first(plane *p, list *l, int32_t m) {
    p->messages[m].next = l->head;
    if (!l->n++) l->tail = m;
    l->head = m;
}

/* All of ``from`` behind what is in ``to``. */
HOT void move_all(plane *p, list *from, list *to) {
    while (from->n) append(p, to, take_first(p, from));
}
#endif
