/* The messages that there are, lists of them, and rows that are kept in chunks. */
#ifndef TIDEOVER_MESSAGES_H
#define TIDEOVER_MESSAGES_H

#include "plane.h"

/* The messages that there are, and lists of them. */

#define HOT static inline __attribute__((always_inline))
#define NEVER INT64_MAX

/* Why a step that sends messages may not be made now; DONE: it may. */
HOT int32_t scarce(const plane *p) {
    if (p->room - p->in_use < p->most_made) return NEED_MESSAGES;
    if (p->unknown | p->few) return p->few ? NEED_CHUNKS : NEED_LATENCY;
    return p->losing && p->lost.room - p->lost.n < p->most_made ? HAS_LOST : DONE;
}

HOT int32_t take_message(plane *p) {
    int32_t m = p->freed;
    if (m >= 0) p->freed = p->messages[m].next;
    else m = p->used++;
    p->in_use++;
    p->work[m] = -1;
    if (p->made) p->made[m] = -1;
    if (p->numbers) p->numbers[m] = (numbered){0, 0};
    return m;
}

HOT void free_message(plane *p, int32_t m) {
    p->messages[m].next = p->freed;
    p->freed = m;
    p->in_use--;
}

/* Whether a message is a marker that waits for its turn, and acts then. */
HOT int is_control(const message *m) { return m->mark == CONTROL || m->mark == BARRIER; }

/* A row that says how a message is. */
HOT void fill_row(row *r, const message *m, int32_t t, int64_t time) {
    r->time = time;
    r->uid = m->uid;
    r->created = m->created;
    r->arrival = m->time;
    r->value = m->value;
    r->task = t;
    r->key = m->key;
    r->attempt = m->attempt;
    r->epoch = m->epoch;
    r->source = m->source;
    r->mark = m->mark;
}

/* A message as a row says that it was. */
HOT message message_of(const row *r) {
    message each = {0};
    each.uid = r->uid;
    each.created = r->created;
    each.value = r->value;
    each.key = r->key;
    each.attempt = r->attempt;
    each.epoch = r->epoch;
    each.mark = r->mark;
    each.source = r->source;
    return each;
}

HOT void append(plane *p, list *l, int32_t m) {
    p->messages[m].next = -1;
    if (l->n++) p->messages[l->tail].next = m;
    else l->head = m;
    l->tail = m;
}

HOT int32_t take_first(plane *p, list *l) {
    int32_t m = l->head;
    l->head = p->messages[m].next;
    l->n--;
    return m;
}

HOT void put_first(plane *p, list *l, int32_t m) {
    p->messages[m].next = l->head;
    if (!l->n++) l->tail = m;
    l->head = m;
}

/* All of ``from`` behind what is in ``to``. */
HOT void move_all(plane *p, list *from, list *to) {
    while (from->n) append(p, to, take_first(p, from));
}

/* Rows that are kept: buffers, logs, replays. They lie in chunks of a stock that all share, so that nothing is moved when
 * there are more, and those that nobody needs any more go chunk by chunk. */

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
