/* What a task makes of a tuple, and over which channels it goes. */
#ifndef TIDEOVER_CHILDREN_H
#define TIDEOVER_CHILDREN_H
#include "lines.h"

/* Something made by task ``t`` leaves, as soon as there is room for it; returns whether it is on its way. */
HOT int leave(plane *p, task *t, int32_t route, int32_t m, int64_t now) {
    channel *c = &p->channels[route];
    if (c->buffer && keep(p, c, m)) return 0;
    if (t->bounded & HAS_LINE) return line_up(p, t, route, m, now);
    return send_message(p, c, m, now);
}

/* Uid at the receiver, from the uid at the sender. */
HOT int64_t child_uid(const outlet *o, int64_t uid, int32_t position) {
    if (o->digits) {
        uid = uid << o->digits | o->digit;
        if (o->has_position) uid |= (int64_t)position << o->position_shift;
    }
    if (o->pad) uid = (uid >> o->width) << (o->width + o->pad) | (uid & (((int64_t)1 << o->width) - 1));
    return uid;
}

/* ``row``: place in the sender's tables, if it has some; ~place: in those of its retries. */
HOT int32_t target(const outlet *o, int64_t uid, int64_t key, int64_t row) {
    switch (o->grouping) {
    case SHUFFLE: return o->working == 1 ? 0 : (int32_t)below(draw_bits(o->key, uid, 0), o->working);
    case BY_KEY:
        if (o->groups) return (int32_t)((uint32_t)key % (uint32_t)o->groups) * o->working / o->groups;
        return (int32_t)((uint32_t)key % (uint32_t)o->working);
    case GIVEN: return row < 0 ? o->given_again[~row] : o->given[row];
    default: return 0;
    }
}

void draw_services(plane *p, const component *c);

/* The service of a message to a component will have to be drawn: where tasks move in turns, which is before any of the
 * receivers moves. */
HOT void draw_later(plane *p, const component *c, int32_t m, const message *each) {
    draws_due *due = c->due;
    if (!due || p->moving) return;
    due->which[due->n] = m;
    due->uid[due->n] = each->uid;
    due->attempt[due->n] = each->attempt;
    if (++due->n == TOGETHER) draw_services(p, c);
}

/* Some of what was sent over a channel will be gone: nothing of it is due any more. */
static inline void forget_draws(plane *p, const channel *c) {
    const component *down = &p->components[p->tasks[c->down].component];
    if (down->due && down->due->n) draw_services(p, down);
}

/* One copy of a tuple for each replica of one receiving task. */
HOT int32_t to_task(plane *p, task *t, const outlet *o, const message *what, int64_t uid, int32_t to, int64_t now) {
    const int32_t *routes = p->routes + o->routes + to * o->replicas;
    uint64_t id = p->pending ? draw_identity(o->identity, uid, what->attempt) : 0;
    for (int32_t r = 0; r < o->replicas; r++) {
        int32_t m = take_message(p);
        message *copy = &p->messages[m];
        *copy = *what;
        copy->uid = uid;
        copy->flags = 0;
        if (p->paths) p->paths[m] = o->first_path + p->path;
        p->created ^= id_of_copy(id, r);
        if (leave(p, t, routes[r], m, now)) draw_later(p, &p->components[o->component], m, copy);
    }
    return o->replicas;
}

/* Send a tuple over all edges; ``what->uid`` is that at the sender, ``row`` its place in tables. Returns how many
 * messages it has become. */
HOT int32_t send_tuple(plane *p, task *t, const message *what, int32_t position, int64_t row, int64_t now) {
    int32_t made = 0;
    for (int32_t i = 0; i < t->outlets; i++) {
        const outlet *o = &p->outlets[t->first_outlet + i];
        int64_t uid = child_uid(o, what->uid, position);
        if (o->grouping == EVERY) {
            for (int32_t to = 0; to < o->tasks; to++) made += to_task(p, t, o, what, uid | to, to, now);
        } else {
            made += to_task(p, t, o, what, uid, target(o, uid, what->key, row), now);
        }
    }
    return made;
}

/* What it takes to serialise a tuple for all that are to get it on other hosts. */
HOT int64_t packing_of(const plane *p, const task *t, int64_t from, int64_t key, int32_t position, int64_t row) {
    int64_t takes = 0;
    for (int32_t i = 0; i < t->outlets; i++) {
        const outlet *o = &p->outlets[t->first_outlet + i];
        int32_t first = 0, n = o->tasks;
        if (o->grouping != EVERY) {
            first = target(o, child_uid(o, from, position), key, row);
            n = 1;
        }
        const int32_t *routes = p->routes + o->routes + first * o->replicas;
        for (int32_t r = 0; r < n * o->replicas; r++) takes += p->channels[routes[r]].packing;
    }
    return takes;
}

/* Children of a tuple. */
HOT int32_t copies_of(const component *c, const message *m) {
    if (c->operator == FORWARDS) return 1;
    if (c->operator == KEEPS) return uniform01(draw_bits(c->select, m->uid, 0)) < c->part;
    int32_t more = c->part > 0 && uniform01(draw_bits(c->select, m->uid, 0)) < c->part;
    return c->whole + more;
}

/* The children that Python has made of the tuple at this place of its block. */
static inline int32_t hand_on_made(plane *p, task *t, message *child, int32_t of, int64_t now) {
    int32_t made = 0;
    for (int32_t row = t->child_starts[of]; row < t->child_starts[of + 1]; row++) {
        child->key = t->child_keys[row];
        made += send_tuple(p, t, child, t->child_positions[row], row, now);
    }
    return made;
}

/* Send the children of a tuple that task ``t`` is done with; returns how many messages they are. */
HOT int32_t hand_on(plane *p, task *t, const component *c, int32_t m, int64_t now) {
    message child = p->messages[m];
    if (c->operator == FORWARDS) return send_tuple(p, t, &child, 0, 0, now);
    if (c->operator == MADE_ELSEWHERE) return hand_on_made(p, t, &child, p->made[m], now);
    int32_t made = 0;
    if (c->operator == TABLE) {
        int64_t row = child.key < c->sentences ? child.key : c->sentences - 1;
        const int64_t *words = c->words + c->starts[row];
        int32_t n = (int32_t)c->lengths[row];
        for (int32_t i = 0; i < n; i++) {
            child.key = (int32_t)words[i];
            made += send_tuple(p, t, &child, i, 0, now);
        }
        return made;
    }
    int32_t n = copies_of(c, &child);
    for (int32_t i = 0; i < n; i++) made += send_tuple(p, t, &child, i, 0, now);
    return made;
}

/* The same for children that Python has made. */
static inline int64_t packing_made(const plane *p, const task *t, int64_t uid, int32_t of) {
    int64_t takes = 0;
    for (int32_t row = t->child_starts[of]; row < t->child_starts[of + 1]; row++)
        takes += packing_of(p, t, uid, t->child_keys[row], t->child_positions[row], row);
    return takes;
}

/* What it takes to serialise the children of a tuple, as far as they are made. */
HOT int64_t packing_children(const plane *p, const task *t, const component *c, int32_t which) {
    const message *m = &p->messages[which];
    if (c->operator == TAKES_IN) return 0;
    if (c->operator == MADE_ELSEWHERE) return p->made[which] < 0 ? 0 : packing_made(p, t, m->uid, p->made[which]);
    int64_t takes = 0;
    if (c->operator == TABLE) {
        int64_t row = m->key < c->sentences ? m->key : c->sentences - 1;
        const int64_t *words = c->words + c->starts[row];
        for (int32_t i = 0; i < c->lengths[row]; i++) takes += packing_of(p, t, m->uid, words[i], i, 0);
        return takes;
    }
    int32_t n = copies_of(c, m);
    for (int32_t i = 0; i < n; i++) takes += packing_of(p, t, m->uid, m->key, i, 0);
    return takes;
}
#endif
