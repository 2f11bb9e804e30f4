/* The messages that there are, and lists of them. */
#ifndef TIDEOVER_MESSAGES_H
#define TIDEOVER_MESSAGES_H
#include "plane.h"

#define HOT static inline __attribute__((always_inline))
#define NEVER INT64_MAX

/* Why a step that sends messages may not be made now; DONE: it may. */
HOT int32_t scarce(const plane *p) {
    if (p->room - p->in_use < p->most_made) return NEED_MESSAGES;
    if (p->unknown) return NEED_LATENCY;
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

/* All messages of a list can be used again; nobody looks at them. */
HOT void free_all(plane *p, list *l) {
    if (!l->n) return;
    p->messages[l->tail].next = p->freed;
    p->freed = l->head;
    p->in_use -= l->n;
    l->n = 0;
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
