/* Lines of what waits to be sent, and the places that it waits for: the rules of tests/oracle/channels.py. */
#include "lines.h"

#include "accounts.h"
#include "protocols.h"
#include "spouts.h"

/* A line may move, from ``now`` on. */
static void wake(plane *p, task *t, int64_t now) {
    if (!t->up) return;
    t->line.moves = now < t->stopped_until ? t->stopped_until : now;
    if (p->moving) has_come(p, t->number);
}

/* So many who wait first go on as there are places free. */
static void wake_first(plane *p, const places *free, int64_t now) {
    int32_t t = free->first;
    for (int64_t n = free->free; n > 0 && t >= 0; n--, t = p->tasks[t].line.behind) wake(p, &p->tasks[t], now);
}

static int is_among_first(const plane *p, const places *free, int32_t number) {
    int32_t t = free->first;
    for (int64_t n = free->free; n > 0 && t >= 0; n--, t = p->tasks[t].line.behind)
        if (t == number) return 1;
    return 0;
}

/* A task waits for a place behind those who asked before, or at the same instant with a lower number. */
static void ask(plane *p, places *free, task *t, int64_t now) {
    int32_t ahead = free->last, behind = -1;
    while (ahead >= 0 && p->tasks[ahead].line.asked_at == now && ahead > t->number) {
        behind = ahead;
        ahead = p->tasks[ahead].line.ahead;
    }
    t->line.asked_at = now;
    t->line.ahead = ahead;
    t->line.behind = behind;
    *(ahead < 0 ? &free->first : &p->tasks[ahead].line.behind) = t->number;
    *(behind < 0 ? &free->last : &p->tasks[behind].line.ahead) = t->number;
}

/* It does so no more. */
static void forget(plane *p, places *free, const task *t) {
    const line *l = &t->line;
    *(l->ahead < 0 ? &free->first : &p->tasks[l->ahead].line.behind) = l->behind;
    *(l->behind < 0 ? &free->last : &p->tasks[l->behind].line.ahead) = l->ahead;
}

/* Whether there is a place in the receiver's queue; else the task has asked for one. */
static int finds_place(plane *p, task *t, int32_t route, int64_t now) {
    places *free = &p->tasks[p->channels[route].down].places;
    if (t->line.asked < 0) {
        if (free->free > 0 && free->first < 0) {
            free->free--;
            return 1;
        }
        t->line.asked = route;
        ask(p, free, t, now);
    }
    if (!is_among_first(p, free, t->number)) return 0;
    forget(p, free, t);
    free->free--;
    return 1;
}

/* Whether the task knows of a place that the channel has; else it waits until it learns of one. */
static int has_credit(plane *p, task *t, int32_t route, int64_t now) {
    channel *c = &p->channels[route];
    while (c->returning.n && p->messages[c->returning.head].time <= now) {
        free_message(p, take_first(p, &c->returning));
        c->credit++;
    }
    if (c->credit > 0) {
        c->credit--;
        return 1;
    }
    t->line.asked = route;
    t->line.moves = c->returning.n ? p->messages[c->returning.head].time : NEVER;
    return 0;
}

/* Whether a message may leave now: then it has its place. */
static int may_leave(plane *p, task *t, int32_t route, int32_t m, int64_t now) {
    message *each = &p->messages[m];
    int32_t placing = p->channels[route].placing;
    if (placing <= OF_LOG || each->mark) return 1;
    if (!(placing == OF_QUEUE ? finds_place(p, t, route, now) : has_credit(p, t, route, now))) return 0;
    each->flags |= HAS_PLACE;
    t->line.asked = -1;
    return 1;
}

/* A task goes on that had to wait. */
static void go_on(task *t, int64_t now) {
    if (t->state == IDLE && t->free_at < now) t->ends = now;
    if (t->free_at < now) t->free_at = now;
    if (t->spout >= 0 && !t->uids) skip_calls(t, now);
}

/* Whether the line is too long to begin anything else. */
static void look_at_length(task *t, int64_t now) {
    line *l = &t->line;
    int full = l->tuples > l->send;
    if (full == l->full) return;
    l->full = full;
    if (full) {
        l->blocked_since = now;
    } else {
        l->blocked += now - l->blocked_since;
        go_on(t, now);
    }
}

void wake_line(plane *p, task *t, int64_t now) {
    look_at_length(t, now);
    wake(p, t, now);
}

void move_line(plane *p, task *t, int64_t now) {
    line *l = &t->line;
    l->moves = NEVER;
    while (l->messages.n) {
        int32_t m = l->messages.head, route = p->messages[m].source;
        if (!may_leave(p, t, route, m, now)) break;
        take_first(p, &l->messages);
        l->tuples -= p->messages[m].mark == 0;
        send_message(p, &p->channels[route], m, now);
    }
    look_at_length(t, now);
}

int line_up(plane *p, task *t, int32_t route, int32_t m, int64_t now) {
    line *l = &t->line;
    int runs = t->up && t->stopped_until <= now;
    if (!l->messages.n && runs && may_leave(p, t, route, m, now)) return send_message(p, &p->channels[route], m, now);
    p->messages[m].source = route;
    p->messages[m].time = now;
    append(p, &l->messages, m);
    l->tuples += p->messages[m].mark == 0;
    if (!runs) l->moves = t->up ? t->stopped_until : NEVER;
    else if (l->moves <= now) move_line(p, t, now);
    look_at_length(t, now);
    return 0;
}

/* A place of the channel's own is free: its sender knows when that has come to it. */
static void return_credit(plane *p, int32_t route, int64_t now) {
    channel *c = &p->channels[route];
    int32_t m = take_message(p);
    p->messages[m].time = now + c->notice;
    append(p, &c->returning, m);
    task *t = &p->tasks[c->up];
    if (t->line.asked == route && c->returning.n == 1) wake(p, t, now + c->notice);
}

/* A place in a task's queue is free, or one of the channel's own. */
static void free_place(plane *p, task *t, int32_t route, int64_t now) {
    if (p->channels[route].placing == OF_CHANNEL) {
        return_credit(p, route, now);
    } else {
        t->places.free++;
        wake_first(p, &t->places, now);
    }
}

void leaves_queue(plane *p, task *t, int32_t m, int64_t now) {
    message *each = &p->messages[m];
    discount(p, t, m);
    if (!(each->flags & HAS_PLACE)) return;
    each->flags &= ~HAS_PLACE;
    free_place(p, t, t->first_input + each->source, now);
}

void drop_message(plane *p, task *t, int32_t m, int64_t now) {
    int32_t route = p->messages[m].flags & HAS_PLACE ? t->first_input + p->messages[m].source : -1;
    discount(p, t, m);
    p->waiting -= is_control(&p->messages[m]);
    free_message(p, m);
    if (route >= 0) free_place(p, t, route, now);
}

void look_at_first(plane *p, task *t, int64_t now) {
    if (t->queue.n && is_free(p, t, now)) discount(p, t, t->queue.head);
}

int finds_room(plane *p, task *t, int32_t m, int64_t now) {
    if (takes_place(p, t, m) && t->waiting >= t->length) {
        log_row(&p->overflowed, &p->messages[m], t->number, now);
        drop_message(p, t, m, now);
        return 0;
    }
    count(p, t, m);
    return 1;
}

void enter(plane *p, task *t, int32_t m, int64_t now) {
    if (t->length && !finds_room(p, t, m, now)) return;
    join_queue(p, t, m);
    if (t->length) look_at_first(p, t, now);
}

int hear_verdict(plane *p, task *t, int64_t now, int32_t *why) {
    message *next = &p->messages[next_input(p, t)->wire.head];
    if (next->mark || next->flags & WAS_JUDGED) return 0;
    if (full(&p->overflowed)) {
        *why = HAS_LOST;
        return 1;
    }
    int32_t verdict = t->verdict;
    t->verdict = 0;
    if (verdict == LET_IN) {
        next->flags |= WAS_JUDGED;
        return 0;
    }
    p->marked = *next;
    p->when = now;
    *why = NEED_VERDICT;
    if (verdict != TURNED_AWAY) return 1;
    int32_t m = take_arrival(p, t);
    log_row(&p->overflowed, &p->messages[m], t->number, now);
    drop_message(p, t, m, now);
    *why = DONE;
    return 1;
}

int32_t drop_or_enter(plane *p, task *t, int64_t now) {
    if (full(&p->overflowed) || full(&p->discarded)) return HAS_LOST;
    if (overtakes(t) && full(&t->recorded)) return NEED_ROWS;
    int32_t m = take_arrival(p, t);
    int hurries = t->hurries && p->messages[m].mark == BARRIER;
    if (overtakes(t)) note_arrival(p, t, m, now);
    if (is_blocked(p, t, m)) append(p, &t->aside, m);
    else if (t->seen && !is_new(p, t, m)) turn_back(p, t, m, now);
    else enter(p, t, m, now);
    if (!hurries) return DONE;
    p->when = now;
    return HURRY;
}

/* A task has crashed: what was in its line is gone. */
void plane_lose_line(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    line *l = &t->line;
    int32_t asked = l->asked;
    while (l->messages.n) drop_message(p, t, take_first(p, &l->messages), now);
    if (l->full) l->blocked += now - l->blocked_since;
    l->full = 0;
    l->tuples = 0;
    l->asked = -1;
    l->moves = NEVER;
    if (asked < 0 || p->channels[asked].placing != OF_QUEUE) return;
    places *free = &p->tasks[p->channels[asked].down].places;
    forget(p, free, t);
    wake_first(p, free, now);
}
