/* Which task of a group is next: a tournament by time, ties to the one with the lower number. */
#ifndef TIDEOVER_ORDER_H
#define TIDEOVER_ORDER_H
#include "messages.h"

HOT void play(group *g, int32_t i) {
    int32_t w = 2 * i + (g->next[2 * i + 1] < g->next[2 * i]);
    g->next[i] = g->next[w];
    g->winner[i] = g->winner[w];
}

/* The next event of the member at this place is at ``time`` now. */
HOT void comes_next(group *g, int32_t place, int64_t time) {
    int32_t i = g->leaves + place;
    if (g->next[i] == time) return;
    g->next[i] = time;
    while ((i /= 2)) play(g, i);
}
#endif
