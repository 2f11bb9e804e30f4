/* A bolt's task: when something happens there next, and what. */
#ifndef TIDEOVER_BOLTS_H
#define TIDEOVER_BOLTS_H
#include "accounts.h"
#include "acks.h"
#include "protocols.h"
#include "children.h"
#include "cores.h"

/* What is next in the queue, and when it is there; -1: nothing. It may be on its wire still. */
HOT int64_t next_in_line(const plane *p, const task *t) {
    if (t->queue.n) return p->messages[t->queue.head].time;
    return next_arrival(p, t);
}

/* When its server does something next. */
HOT int64_t server_next(const plane *p, const task *t) {
    if (t->state >= SERVING) return t->ends;
    if (t->closed || !t->up) return next_arrival(p, t);
    if (t->state == AT_TURN || (overtakes(t) ? is_held_up(p, t) : t->line.full)) return NEVER;
    int64_t there = next_in_line(p, t);
    return there < t->free_at ? t->free_at : there;
}

/* When something happens at a bolt's task next. */
HOT int64_t bolt_next(const plane *p, const task *t) {
    int64_t next = server_next(p, t);
    if (t->bounded) next = bounded_next(p, t, next);
    if (t->acks.sent == t->acks.n) return next;
    int64_t acks = next_ack(t);
    return acks < next ? acks : next;
}

/* How long it takes to deserialise a tuple, and to serialise what becomes of it. */
HOT int64_t serialisation(const plane *p, const task *t, const component *c, int32_t which) {
    const message *m = &p->messages[which];
    int64_t takes = packing_children(p, t, c, which);
    if (m->flags & FROM_AFAR) takes += p->channels[t->first_input + m->source].unpacking;
    return takes;
}

HOT int64_t service_of(const plane *p, const task *t, const component *c, int32_t m) {
    const message *each = &p->messages[m];
    if (each->mark) return 0;
    int64_t takes = c->charge;
    if (t->serialises) takes += serialisation(p, t, c, m);
    if (c->service.kind == DRAW_CONSTANT) return takes + c->service.low;
    if (p->work[m] >= 0) return takes + p->work[m];
    return takes + draw_duration(&c->service, draw_bits(c->service_key, each->uid, each->attempt));
}

/* A message that finds the task down, or not open yet. */
void turn_away(plane *p, task *t, int32_t m);

/* A message's service begins at ``now``. */
HOT void begin(plane *p, task *t, const component *c, int32_t m, int64_t now) {
    int64_t takes = service_of(p, t, c, m);
    if (t->look_ups) takes += begin_to_look_up(t->look_ups, &p->messages[m]);
    if (p->messages[m].flags) leaves_queue(p, t, m, now);
    t->serving = m;
    t->state = SERVING;
    t->began = now;
    if (t->cores >= 0) {
        join_and_plan(p, t, (double)takes, now);
        return;
    }
    t->ends = now + takes;
    t->busy += takes;
}

/* A task is done with a tuple. */
HOT void tuple_is_done(plane *p, task *t, const component *c, int32_t m, int64_t now) {
    const message *each = &p->messages[m];
    p->created = 0;
    if (p->numbers) note_processed(p, t, m);
    if (p->paths) p->path = p->paths[m];
    int32_t made = c->operator == TAKES_IN || t->mute ? 0 : hand_on(p, t, c, m, now);
    if (t->silent) made = 0;
    if (c->acks) ack_tuple(p, t, c, each, now);
    count_tuple(p, t, c, each, now, made);
}

/* The message in service is done with. */
HOT int32_t finish(plane *p, task *t, const component *c) {
    int32_t m = t->serving;
    int64_t now = t->ends;
    const message *each = &p->messages[m];
    int32_t why = DONE;
    if (each->mark && p->few) return NEED_CHUNKS;
    if (each->mark == 0) {
        if ((why = short_of(p, t))) return why;
        tuple_is_done(p, t, c, m, now);
        if (t->fills > 0 && --t->fills == 0) why = WINDOW_FULL;
    } else {
        if (p->numbers) note_processed(p, t, m);
        p->marked = *each;
        p->marked_number = p->numbers ? p->numbers[m].number : 0;
        why = MARK;
    }
    t->state = IDLE;
    t->serving = -1;
    if (t->free_at < now) t->free_at = now;
    done_with(p, t, m);
    if (why) p->when = now;
    return why;
}

/* What is first in line; -1: nothing is there at ``now``. */
HOT int32_t first_in_line(const plane *p, const task *t, int64_t now) {
    if (t->queue.n) return t->queue.head;
    if (next_arrival(p, t) > now || t->bounded & (FILTERS | ISOLATES | ASKS)) return -1;
    return next_input(p, t)->wire.head;
}

HOT void take_and_begin(plane *p, task *t, const component *c, int32_t m, int64_t now) {
    if (t->queue.n) take_first(p, &t->queue);
    else take_arrival(p, t);
    begin(p, t, c, m, now);
}

/* What Python has to say before a message can be served; DONE: nothing. */
HOT int32_t missing_for(const plane *p, const task *t, const component *c, int32_t m) {
    if (c->service.kind == DRAW_ELSEWHERE && p->work[m] < 0 && p->messages[m].mark == 0) return NEED_DRAWS;
    if (c->operator == MADE_ELSEWHERE && p->made[m] < 0 && p->messages[m].mark == 0) return NEED_CHILDREN;
    if (t->look_ups && t->look_ups->used > t->look_ups->most) return NEED_ENTRIES;
    if ((p->messages[m].flags & HAS_PLACE) && scarce(p)) return NEED_MESSAGES; /* its credit is one */
    return DONE;
}

/* A task that shares cores is done with what it was at, and begins with the next in the same breath: nobody sees the
 * speed that others have in between. Or it was stopped, and goes on. */
HOT int32_t shared_step(plane *p, task *t, const component *c, int64_t now) {
    if (!t->works) {
        join_and_plan(p, t, t->left, now);
        return DONE;
    }
    int32_t m = t->closed ? -1 : first_in_line(p, t, now);
    int32_t why = m < 0 ? DONE : missing_for(p, t, c, m);
    if (why) return why;
    if (t->state == SERVING) {
        why = finish(p, t, c);
        if (t->state == SERVING) return why;
    }
    t->state = IDLE;
    t->free_at = now;
    quit(p, t, now);
    if (t->line.full) m = -1;
    if (t->owes > 0) {
        double work = t->owes;
        t->owes = 0;
        occupy(p, t, work, now);
    } else if (why == DONE && m >= 0 && !is_control(&p->messages[m])) {
        take_and_begin(p, t, c, m, now);
    } else {
        plan(p, &p->cores[t->cores], now, t->number);
    }
    return why;
}

/* A task that is done with something begins with the next tuple at once, if nobody has to be asked. */
HOT void go_straight_on(plane *p, task *t, const component *c, int64_t now) {
    if (!is_free(p, t, now) || t->closed || !t->up) return;
    int32_t m = first_in_line(p, t, now);
    if (m >= 0 && !is_control(&p->messages[m]) && missing_for(p, t, c, m) == DONE) take_and_begin(p, t, c, m, now);
}

/* What happens at a bolt's task next, happens. */
HOT int32_t bolt_step(plane *p, task *t, int64_t now) {
    const component *c = &p->components[t->component];
    int32_t why = DONE;
    if (next_ack(t) <= now) {
        if (p->logs_completed && full(&p->completed)) return HAS_COMPLETED;
        if (p->acks.room && full(&p->acks)) return HAS_COMPLETED;
        send_ack(p, t);
        return DONE;
    }
    if (t->bounded && bounded_step(p, t, now, &why)) {
        if (why == DONE && p->moving && t->bounded & (FILTERS | ISOLATES | ASKS)) go_straight_on(p, t, c, now);
        return why;
    }
    if (asks(t)) {
        ask(p, t, now);
        return DONE;
    }
    if (t->state >= SERVING) {
        if (t->cores >= 0) return shared_step(p, t, c, now);
        why = finish(p, t, c);
        if (why == DONE && p->moving) go_straight_on(p, t, c, now);
        return why;
    }
    if (t->closed || !t->up) {
        if (full(&p->lost)) return HAS_LOST;
        turn_away(p, t, take_arrival(p, t));
        return DONE;
    }
    int32_t m = first_in_line(p, t, now);
    if (is_control(&p->messages[m])) {
        if (!t->queue.n) append(p, &t->queue, take_arrival(p, t));
        t->state = AT_TURN;
        p->when = now;
        return TURN;
    }
    why = missing_for(p, t, c, m);
    if (why) return why;
    take_and_begin(p, t, c, m, now);
    return DONE;
}
#endif
