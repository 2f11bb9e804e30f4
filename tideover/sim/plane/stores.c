/* Rows in chunks, and entries that are looked up in a store. */

#include "cores.h"
#include "draws.h"
#include "messages.h"

#include <stddef.h>

/* Chunks of rows: how stores get them, and give them back. */

chunk *take_chunk(plane *p, store *s, const row *r, int is_slim) {
    chunk *c = p->spare;
    if (c) p->spare = c->next;
    else c = p->fresh++, p->n_fresh--;
    p->few = --p->n_spare <= p->most_made;
    c->next = NULL;
    c->arrival = r->arrival;
    c->is_slim = is_slim;
    c->room = is_slim ? sizeof c->rows / sizeof *c->rows.slim : ROWS_OF_CHUNK;
    if (s->n) {
        s->last->room = s->to;
        s->last->next = c;
    } else {
        s->first = c;
        s->from = 0;
    }
    s->last = c;
    s->to = 0;
    return c;
}

static void give_back(plane *p, chunk *c) {
    c->next = p->spare;
    p->spare = c;
    p->few = ++p->n_spare <= p->most_made;
}

/* There are so many more chunks for all stores. They are not touched before they are used. */
void plane_add_chunks(plane *p, void *chunks, int64_t n) {
    for (p->n_spare -= p->n_fresh; p->n_fresh > 0; p->n_fresh--) give_back(p, p->fresh++);
    p->fresh = chunks;
    p->n_fresh = n;
    p->n_spare += n;
    p->few = p->n_spare <= p->most_made;
}

void drop_rows(plane *p, store *s, int64_t n) {
    s->n -= n;
    for (n += s->from; s->first && (!s->n || n >= s->first->room);) {
        chunk *c = s->first;
        n -= c->room;
        s->first = c->next;
        give_back(p, c);
    }
    s->from = (int32_t)n;
}

/* The rows of a store, in order. */
void plane_stored(const store *s, row *out) {
    cursor c = first_row(s);
    for (int64_t i = 0; i < s->n; i++) out[i] = next_row(&c);
}

/* What of them accounts look at: the tuples. Returns how many there are. */
int64_t plane_tuples(const store *s, int64_t *uid, int64_t *key) {
    cursor c = first_row(s);
    int64_t found = 0;
    for (int64_t n = s->n; n > 0; n--) {
        row r = next_row(&c);
        uid[found] = r.uid;
        key[found] = r.key;
        found += r.mark == 0;
    }
    return found;
}

/* Entries that are looked up in a store, one after the other, and those that are at hand. */

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
    s->free_at = s->asked_until = begin + stretched(l->work, s->factor);
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
