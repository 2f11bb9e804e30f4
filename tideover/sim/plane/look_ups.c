/* Entries that are looked up in a store, one after the other, and those that are at hand. */
#include "look_ups.h"

#include "draws.h"

/* The slot of an entry, by its number. */
static uint64_t *slot_for(const look_ups *l, uint64_t number) {
    uint64_t place = mix64(number) & l->mask;
    while (l->slots[place] && l->slots[place] >> 32 != number) place = (place + 1) & l->mask;
    return &l->slots[place];
}

/* An entry is accessed; returns whether it was at hand. */
static int is_at_hand(look_ups *l, uint64_t number) {
    uint64_t *slot = slot_for(l, number);
    uint32_t stamp = (uint32_t)*slot;
    l->used += !*slot;
    l->changed += stamp != l->stamp;
    *slot = number << 32 | l->stamp;
    return stamp >= l->at_hand;
}

int64_t look_up(look_ups *l, int64_t uid) {
    int64_t takes = 0;
    l->asks = 0;
    while (l->next < l->accesses && !l->asks) {
        uint64_t bits = draw_bits(l->key, uid * l->accesses + l->next++, 0);
        takes += l->access_cost;
        if (is_at_hand(l, (uint64_t)below(bits, l->entries) + 1)) continue;
        takes += l->there;
        l->asks = l->store != NULL;
    }
    return takes;
}

void ask(plane *p, task *t, int64_t now) {
    look_ups *l = t->look_ups;
    remote_store *s = l->store;
    int64_t begin = s->free_at > now ? s->free_at : now;
    s->free_at = s->asked_until = begin + nearest((double)l->work * s->factor);
    s->busy += s->free_at - begin;
    int64_t more = s->free_at - now + l->back + look_up(l, p->messages[t->serving].uid);
    if (t->cores >= 0) {
        quit(p, t, now);
        join_and_plan(p, t, (double)more, now);
        return;
    }
    t->ends += more;
    t->busy += more;
}

/* Entries that are at hand have another table from now on. */
void plane_move_entries(look_ups *l, uint64_t *slots, uint64_t mask) {
    look_ups old = *l;
    l->slots = slots;
    l->mask = mask;
    l->used = 0;
    for (uint64_t i = 0; i <= old.mask; i++) {
        if ((uint32_t)old.slots[i] < l->at_hand) continue;
        *slot_for(l, old.slots[i] >> 32) = old.slots[i];
        l->used++;
    }
}
