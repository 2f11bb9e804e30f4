/* Barriers: inputs that are blocked until the others have theirs. */
#ifndef TIDEOVER_BARRIERS_H
#define TIDEOVER_BARRIERS_H
#include "messages.h"

#include <stddef.h>

HOT int aligns(const task *t) { return t->bounded & ALIGNS; }

/* The channel by which a message has come to a task. */
HOT const channel *way_of(const plane *p, const task *t, int32_t m) {
    return &p->channels[t->first_input + p->messages[m].source];
}

/* Whether somebody looks at all that comes, since barriers may overtake it. */
HOT int overtakes(const task *t) { return t->bounded & OVERTAKES; }

/* Whether what is first in the queue of such a task has to wait, for a control action or for room. */
HOT int is_held_up(const plane *p, const task *t) {
    const message *m = t->queue.n ? &p->messages[t->queue.head] : NULL;
    if (!t->hurries || !m || !is_control(m)) return t->line.full;
    return m->flags & IS_AHEAD ? 0 : t->line.full || m->mark == BARRIER;
}

/* Note what comes. */
void note_arrival(plane *p, task *t, int32_t m, int64_t now);

/* Whether a message is to be set aside. Barriers never are. */
HOT int is_blocked(const plane *p, const task *t, int32_t m) {
    return aligns(t) && !is_control(&p->messages[m]) && way_of(p, t, m)->blocked;
}
#endif
