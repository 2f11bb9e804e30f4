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

HOT void play_cards(group *g, int32_t i) {
    int32_t w = 2 * i;
    if (g->card_next[w + 1] < g->card_next[w]) w++;
    else if (g->card_next[w + 1] == g->card_next[w] && g->card_rank[w + 1] < g->card_rank[w]) w++;
    g->card_next[i] = g->card_next[w];
    g->card_rank[i] = g->card_rank[w];
    g->card_winner[i] = g->card_winner[w];
}

/* The next event of the card at this place is another one now. */
HOT void card_comes_next(group *g, int32_t place, int64_t time, int64_t rank) {
    int32_t i = g->card_leaves + place;
    if (g->card_next[i] == time && g->card_rank[i] == rank) return;
    g->card_next[i] = time;
    g->card_rank[i] = rank;
    while ((i /= 2)) play_cards(g, i);
}
#endif
