/* Rows that are kept: buffers, logs, replays. They lie in chunks of a stock that all share, so that nothing is moved when
 * there are more, and those that nobody needs any more go chunk by chunk. */
#ifndef TIDEOVER_STORES_H
#define TIDEOVER_STORES_H
#include "messages.h"

#define ROWS_OF_CHUNK 32

/* What differs from row to row mostly, in half the room. */
typedef struct {
    int64_t uid;
    int64_t created;
    int32_t key;
    int32_t epoch;
    int32_t task;
    uint32_t arrival; /* less that of the first of its chunk */
} slim_row;

struct chunk {
    chunk *next;
    int64_t arrival; /* of the first row */
    int32_t is_slim;
    int32_t room;    /* for so many rows; of a chunk that another one follows, so many are there */
    union {
        row wide[ROWS_OF_CHUNK];
        slim_row slim[ROWS_OF_CHUNK * sizeof(row) / sizeof(slim_row)];
    } rows;
};
_Static_assert(sizeof(chunk) == CHUNK_SIZE, "Python makes chunks of this size");

HOT row row_at(const chunk *c, int32_t place) {
    if (!c->is_slim) return c->rows.wide[place];
    const slim_row *r = &c->rows.slim[place];
    return (row){.uid = r->uid, .created = r->created, .value = 1, .key = r->key, .epoch = r->epoch, .task = r->task,
                 .arrival = c->arrival + r->arrival};
}

/* The oldest row, if there is one. */
HOT row oldest(const store *s) { return row_at(s->first, s->from); }

/* Before which row somebody stands who goes through a store. */
typedef struct {
    const chunk *at;
    int32_t place;
} cursor;

HOT cursor first_row(const store *s) { return (cursor){s->first, s->from}; }

/* There has to be one. */
HOT row next_row(cursor *c) {
    if (c->place == c->at->room) *c = (cursor){c->at->next, 0};
    return row_at(c->at, c->place++);
}

/* A store gets another chunk of the stock, for rows from this one on. */
chunk *take_chunk(plane *p, store *s, const row *r, int is_slim);

/* A row is kept, behind all others. */
HOT void put_row(plane *p, store *s, const row *r) {
    int slim = r->value == 1 && !(r->time | r->attempt | r->source | r->mark);
    chunk *c = s->last;
    if (s->n && c->is_slim) slim &= (uint64_t)(r->arrival - c->arrival) <= UINT32_MAX;
    if (!s->n || s->to == c->room || (c->is_slim && !slim)) c = take_chunk(p, s, r, slim);
    s->n++;
    if (c->is_slim) {
        c->rows.slim[s->to++] =
            (slim_row){r->uid, r->created, r->key, r->epoch, r->task, (uint32_t)(r->arrival - c->arrival)};
    } else {
        c->rows.wide[s->to++] = *r;
    }
}

/* Drop the first ``n`` rows. */
void drop_rows(plane *p, store *s, int64_t n);
#endif
