/* Chunks of rows: how stores get them, and give them back. */
#include "stores.h"

#include <stddef.h>

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
