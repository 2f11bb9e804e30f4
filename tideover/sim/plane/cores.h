/* Cores that the tasks of a host share, and state that is looked up in a store. */
#ifndef TIDEOVER_CORES_H
#define TIDEOVER_CORES_H

#include "messages.h"

#include <math.h>

/* Cores that the tasks of a host share. Whenever one of them begins or ends to work, all others change their speed. */

void has_come(plane *p, int32_t t);

/* Two numbers at once. */
typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

/* What has been done since it was looked at last. Nobody overtakes: those who have more to do still have more after. */
HOT void look_at_work(cores *h, int64_t now) {
    int64_t span = now - h->since;
    if (!span) return;
    double done = (double)span * h->speed;
    pair each = {done, done};
    for (int32_t i = 0; i < h->jobs; i += 2) *(pair *)(h->left + i) -= each;
    h->shared += (double)span * h->share;
    h->busy += span * (h->jobs < h->number ? h->jobs : (int64_t)h->number);
    h->since = now;
}

/* When so much is done. A millionth of a nanosecond is what a sum may be off. */
HOT int64_t end_of(const cores *h, double left, int64_t now) {
    double takes = ceil(left / h->speed - 1e-6);
    return takes > 0 ? now + (int64_t)takes : now;
}

/* A task that works is done at ``time``, unless somebody changes its speed before; NEVER: somebody will. */
HOT void is_done(plane *p, int32_t t, int64_t time, int32_t except) {
    if (p->tasks[t].ends == time) return;
    p->tasks[t].ends = time;
    if (p->moving && t != except) has_come(p, t);
}

/* All are as fast as their number lets them be. The one with the least work is done first, and then things change for
 * the others: who they are matters only of those that are done at the same instant (the lowest number goes first).
 * ``except``: who will look by itself when its next event is. */
HOT void plan(plane *p, cores *h, int64_t now, int32_t except) {
    h->share = h->jobs > h->number ? h->number / h->jobs : 1.0;
    h->speed = h->factor * h->share;
    int32_t before = h->first, last = h->jobs - 1;
    h->first = -1;
    int64_t end = NEVER;
    if (last >= 0) {
        h->first = h->who[last];
        end = end_of(h, h->left[last], now);
        double near = h->left[last] + 2 * h->speed;
        while (--last >= 0 && h->left[last] <= near)
            if (h->who[last] < h->first && end_of(h, h->left[last], now) == end) h->first = h->who[last];
    }
    if (before >= 0 && before != h->first) is_done(p, before, NEVER, except);
    if (h->first >= 0) is_done(p, h->first, end, except);
}

/* A task begins to work; plan afterwards. */
HOT void join(plane *p, task *t, double work, int64_t now) {
    cores *h = &p->cores[t->cores];
    look_at_work(h, now);
    int32_t place = h->jobs++;
    for (; place > 0 && h->left[place - 1] < work; place--) {
        h->left[place] = h->left[place - 1];
        h->who[place] = h->who[place - 1];
    }
    h->left[place] = work;
    h->who[place] = t->number;
    t->works = 1;
    t->had -= h->shared;
    t->ends = NEVER;
}

/* It does so no more; plan afterwards. Returns what is left of its work. */
HOT double quit(plane *p, task *t, int64_t now) {
    cores *h = &p->cores[t->cores];
    look_at_work(h, now);
    int32_t place = h->jobs - 1;
    while (h->who[place] != t->number) place--;
    double left = h->left[place];
    for (h->jobs--; place < h->jobs; place++) {
        h->left[place] = h->left[place + 1];
        h->who[place] = h->who[place + 1];
    }
    if (h->first == t->number) h->first = -1;
    t->works = 0;
    t->had += h->shared;
    return left;
}

HOT void join_and_plan(plane *p, task *t, double work, int64_t now) {
    join(p, t, work, now);
    plan(p, &p->cores[t->cores], now, t->number);
}

HOT double quit_and_plan(plane *p, task *t, int64_t now) {
    double left = quit(p, t, now);
    plan(p, &p->cores[t->cores], now, t->number);
    return left;
}

/* An action keeps a task that does nothing else occupied, as soon as it is not stopped any more. */
HOT void occupy(plane *p, task *t, double work, int64_t now) {
    t->state = OCCUPIED;
    t->left = work;
    t->ends = t->stopped_until;
    if (t->stopped_until <= now) join_and_plan(p, t, work, now);
}

/* State that lies in a store: the rules of tests/oracle/storm.py. */

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
