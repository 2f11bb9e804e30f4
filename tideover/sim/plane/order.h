/* Which task is next: a tournament by time, ties to the one with the lower number. */
#ifndef TIDEOVER_ORDER_H
#define TIDEOVER_ORDER_H
#include "messages.h"

HOT void play(plane *p, int32_t i) {
    int32_t w = 2 * i + (p->next[2 * i + 1] < p->next[2 * i]);
    p->next[i] = p->next[w];
    p->winner[i] = p->winner[w];
}

/* The next event of task ``t`` is at ``time`` now. */
HOT void comes_next(plane *p, int32_t t, int64_t time) {
    int32_t i = p->leaves + t;
    if (p->next[i] == time) return;
    p->next[i] = time;
    while ((i /= 2)) play(p, i);
}
#endif
