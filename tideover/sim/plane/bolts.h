/* A bolt's task: when something happens there next, and what. */
#ifndef TIDEOVER_BOLTS_H
#define TIDEOVER_BOLTS_H
#include "accounts.h"
#include "children.h"

/* What is next in the queue, and when it is there; -1: nothing. It may be on its wire still. */
HOT int64_t next_in_line(const plane *p, const task *t) {
    if (t->queue.n) return p->messages[t->queue.head].time;
    return next_arrival(p, t);
}

/* When something happens at a bolt's task next. */
HOT int64_t bolt_next(const plane *p, const task *t) {
    if (t->state == SERVING) return t->ends;
    if (t->closed || !t->up) return next_arrival(p, t);
    if (t->state == AT_TURN) return NEVER;
    int64_t there = next_in_line(p, t);
    return there < t->free_at ? t->free_at : there;
}

HOT int64_t service_of(const plane *p, const component *c, int32_t m) {
    const message *each = &p->messages[m];
    if (each->mark) return 0;
    int64_t takes = c->charge;
    if (c->service.kind == DRAW_CONSTANT) return takes + c->service.low;
    if (p->work[m] >= 0) return takes + p->work[m];
    return takes + draw_duration(&c->service, draw_bits(c->service_key, each->uid, each->attempt));
}

/* A message that finds the task down, or not open yet. */
void turn_away(plane *p, task *t, int32_t m);

/* A message's service begins at ``now``. */
HOT void begin(plane *p, task *t, const component *c, int32_t m, int64_t now) {
    int64_t takes = service_of(p, c, m);
    t->serving = m;
    t->state = SERVING;
    t->began = now;
    t->ends = now + takes;
    t->busy += takes;
}

/* The message in service is done with. */
HOT int32_t finish(plane *p, task *t, const component *c) {
    int32_t m = t->serving;
    int64_t now = t->ends;
    const message *each = &p->messages[m];
    int32_t why = DONE;
    if (each->mark == 0) {
        if ((why = short_of(p, t, now))) return why;
        int32_t made = 0;
        if (c->operator != TAKES_IN) made = hand_on(p, t, c, m, now);
        count_tuple(p, t, c, &p->messages[m], now, made);
        if (t->fills > 0 && --t->fills == 0) why = WINDOW_FULL;
    } else {
        p->marked = *each;
        why = MARK;
    }
    t->state = IDLE;
    t->serving = -1;
    if (t->free_at < now) t->free_at = now;
    free_message(p, m);
    if (why) p->when = now;
    return why;
}

/* What Python has to say before a message can be served; DONE: nothing. */
HOT int32_t missing_for(const plane *p, const component *c, int32_t m) {
    if (c->service.kind == DRAW_ELSEWHERE && p->work[m] < 0 && p->messages[m].mark == 0) return NEED_DRAWS;
    if (c->operator == MADE_ELSEWHERE && p->made[m] < 0 && p->messages[m].mark == 0) return NEED_CHILDREN;
    return DONE;
}

/* What happens at a bolt's task next, happens. */
HOT int32_t bolt_step(plane *p, task *t, int64_t now) {
    const component *c = &p->components[t->component];
    if (t->state == SERVING) return finish(p, t, c);
    if (t->closed || !t->up) {
        if (full(&p->lost)) return HAS_LOST;
        turn_away(p, t, take_arrival(p, t));
        return DONE;
    }
    int32_t m = t->queue.n ? t->queue.head : next_input(p, t)->wire.head;
    if (p->messages[m].mark == CONTROL) {
        t->state = AT_TURN;
        p->when = now;
        return TURN;
    }
    int32_t why = missing_for(p, c, m);
    if (why) return why;
    if (t->queue.n) take_first(p, &t->queue);
    else take_arrival(p, t);
    begin(p, t, c, m, now);
    return DONE;
}
#endif
