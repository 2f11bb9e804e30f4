/* Network cards: what waits there, and what happens when it has its turn. */
#ifndef TIDEOVER_CARDS_H
#define TIDEOVER_CARDS_H
#include "wires.h"

/* When something happens at a card next. */
HOT int64_t card_next(const card *k) { return k->coming_n ? k->coming[0].time : NEVER; }

/* Where what happens there next stands among all that happens at cards at one instant. */
HOT int64_t card_rank(const plane *p, const card *k) {
    if (!k->coming_n) return NEVER;
    const channel *c = &p->channels[k->channels[k->coming[0].position]];
    return (int64_t)c->up << 32 | c->down;
}

int32_t card_step(plane *p, card *k);

/* A message is on its way to a card: what happens there next may have changed. */
void has_come_to_card(plane *p, int32_t k);
#endif
