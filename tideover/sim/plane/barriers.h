/* Barriers: inputs that are blocked until the others have theirs. */
#ifndef TIDEOVER_BARRIERS_H
#define TIDEOVER_BARRIERS_H
#include "messages.h"

HOT int aligns(const task *t) { return t->bounded & ALIGNS; }

/* The channel by which a message has come to a task. */
HOT const channel *way_of(const plane *p, const task *t, int32_t m) {
    return &p->channels[t->first_input + p->messages[m].source];
}

/* Whether a message is to be set aside. Barriers never are. */
HOT int is_blocked(const plane *p, const task *t, int32_t m) {
    return aligns(t) && !is_control(&p->messages[m]) && way_of(p, t, m)->blocked;
}
#endif
