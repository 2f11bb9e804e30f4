/* Tasks that align barriers: the rules of tests/oracle/snapshots.py. */
#include "barriers.h"

#include "lines.h"

/* Some inputs of a task are ``blocked`` from now on: what has come over them is set aside. */
void plane_block(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    plane_take_in(p, number, now);
    t->bounded |= ALIGNS;
    for (int32_t n = t->queue.n; n > 0; n--) {
        int32_t m = take_first(p, &t->queue);
        int aside = is_blocked(p, t, m);
        if (aside) discount(p, t, m);
        append(p, aside ? &t->aside : &t->queue, m);
    }
}

/* None is any more; what was set aside arrives now, if the task takes anything in. */
void plane_unblock(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    t->bounded &= ~ALIGNS;
    for (int32_t i = 0; i < t->inputs; i++) p->channels[t->first_input + i].blocked = 0;
    if (!t->up || t->closed) return;
    for (int32_t n = t->aside.n; n > 0; n--) {
        int32_t m = take_first(p, &t->aside);
        p->messages[m].time = now;
        p->messages[m].turn = 0;
        if (t->length) count(p, t, m);
        append(p, &t->queue, m);
    }
    look_at_first(p, t, now);
}

/* How many messages of logs have come to tasks up to now. */
int64_t plane_come(plane *p, int64_t now) {
    int64_t come = 0;
    for (int32_t i = 0; i < p->n_tasks; i++)
        if (reads_log(&p->tasks[i])) plane_take_in(p, i, now);
    for (int32_t i = 0; i < p->n_channels; i++) {
        const channel *c = &p->channels[i];
        if (!c->logged) continue;
        come += c->sent - c->gone - c->wire.n;
        if (c->passage) come -= c->passage->flying.n + c->passage->leaving.n;
    }
    return come;
}
