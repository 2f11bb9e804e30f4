/* State that lies in a store: the rules of tests/oracle/storm.py. */
#ifndef TIDEOVER_LOOK_UPS_H
#define TIDEOVER_LOOK_UPS_H
#include "cores.h"

/* A tuple's next accesses; returns how long they take until all are done, or the task is at the store. */
int64_t look_up(look_ups *l, int64_t uid);

/* A message's service begins: with the tuple's first accesses. */
HOT int64_t begin_to_look_up(look_ups *l, const message *m) {
    l->next = m->mark ? l->accesses : 0;
    return look_up(l, m->uid);
}

/* Whether a task is at the store when what it does now ends. */
HOT int asks(const task *t) {
    return t->look_ups && t->look_ups->asks && t->state == SERVING && (t->works || t->cores < 0);
}

/* It is there, and will go on when it has its answer. */
void ask(plane *p, task *t, int64_t now);
#endif
