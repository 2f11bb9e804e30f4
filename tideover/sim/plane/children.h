/* What a task makes of a tuple, and over which channels it goes. */
#ifndef TIDEOVER_CHILDREN_H
#define TIDEOVER_CHILDREN_H
#include "lines.h"

/* Something made by task ``t`` leaves, as soon as there is room for it; returns whether it is on its way. */
HOT int leave(plane *p, task *t, int32_t route, int32_t m, int64_t now) {
    if (t->bounded & HAS_LINE) return line_up(p, t, route, m, now);
    return send_message(p, &p->channels[route], m, now);
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
    case SHUFFLE: return o->tasks == 1 ? 0 : (int32_t)below(draw_bits(o->key, uid, 0), o->tasks);
    case BY_KEY: return (int32_t)((uint32_t)key % (uint32_t)o->tasks);
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

/* One copy of a tuple for each replica of one receiving task. */
HOT int32_t to_task(plane *p, task *t, const outlet *o, const message *what, int64_t uid, int32_t to, int64_t now) {
    const int32_t *routes = p->routes + o->routes + to * o->replicas;
    for (int32_t r = 0; r < o->replicas; r++) {
        int32_t m = take_message(p);
        message *copy = &p->messages[m];
        *copy = *what;
        copy->uid = uid;
        copy->flags = 0;
        if (p->pending) p->created ^= draw_identity(o->identity, uid, copy->attempt);
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
#endif
