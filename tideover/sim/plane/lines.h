/* Queues with bounds: where senders wait for room, and what is lost where there is none. */
#ifndef TIDEOVER_LINES_H
#define TIDEOVER_LINES_H
#include "protocols.h"
#include "wires.h"

/* Something made leaves by this channel, or waits in its task's line; returns whether it is on its way. */
int line_up(plane *p, task *t, int32_t route, int32_t m, int64_t now);

/* Something may leave a task's line. */
void move_line(plane *p, task *t, int64_t now);

/* What is in a task's line was put there: it may be too long, and may move. */
void wake_line(plane *p, task *t, int64_t now);

/* A message leaves its receiver's queue for good, whatever becomes of it. */
void leaves_queue(plane *p, task *t, int32_t m, int64_t now);

/* A message that had come, or was coming, to task ``t`` is gone. */
void drop_message(plane *p, task *t, int32_t m, int64_t now);

/* Whether a message has a place in a queue that drops; else it is lost. */
int finds_room(plane *p, task *t, int32_t m, int64_t now);

/* A message that has come over its wire joins a queue, if there is room. */
void enter(plane *p, task *t, int32_t m, int64_t now);

/* If a task serves at once, what is first in its queue does not wait there. */
void look_at_first(plane *p, task *t, int64_t now);

/* Take what arrives at a queue that drops, or looks at it; returns why not. */
int32_t drop_or_enter(plane *p, task *t, int64_t now);

/* Whether a message is one that waits in the queue of its task, and not in a log. */
HOT int takes_place(const plane *p, const task *t, int32_t m) {
    return !p->messages[m].mark && way_of(p, t, m)->placing != OF_LOG;
}

/* A message is among those that wait in a queue that drops. */
HOT void count(plane *p, task *t, int32_t m) {
    if (!takes_place(p, t, m) || (p->messages[m].flags & HAS_BEGUN)) return;
    p->messages[m].flags |= IS_COUNTED;
    t->waiting++;
}

/* One of those that wait does not count any more. */
HOT void discount(plane *p, task *t, int32_t m) {
    t->waiting -= (p->messages[m].flags & IS_COUNTED) != 0;
    p->messages[m].flags &= ~IS_COUNTED;
}

HOT int counts_arrivals(const task *t) {
    return isolates(t) || (t->up && (screens(t) || aligns(t) || ((t->length || t->bounded & (FILTERS | OVERTAKES | ASKS)) && !t->closed)));
}

/* Whether a server begins at once with what waits. One that an action has kept until now is free behind arrivals. */
HOT int is_free(const plane *p, const task *t, int64_t now) {
    int kept = t->free_at == now && t->ends != now && p->instant != now;
    return t->state == IDLE && t->free_at <= now && !kept && !t->line.full;
}

/* When something happens at a task that is concerned by bounds or replays, if its server or its calls do something ``next``. */
HOT int64_t bounded_next(const plane *p, const task *t, int64_t next) {
    if (t->line.moves < next) next = t->line.moves;
    if (t->replay.rows.n && t->replay.time < next) next = t->replay.time;
    if (counts_arrivals(t) || t->bounded & ASKS) {
        int64_t comes = next_arrival(p, t);
        if (comes < next) next = comes;
    }
    return next;
}

/* What Python says of the next arrival; 0: let it in. */
int hear_verdict(plane *p, task *t, int64_t now, int32_t *why);

/* What happens there because of them, ahead of all else; 0: nothing does. */
HOT int bounded_step(plane *p, task *t, int64_t now, int32_t *why) {
    if (t->bounded & ASKS && next_arrival(p, t) <= now && hear_verdict(p, t, now, why)) return 1;
    if (counts_arrivals(t) && next_arrival(p, t) <= now) {
        *why = screens(t) ? screen(p, t, now) : isolates(t) ? take_committed(p, t, now) : drop_or_enter(p, t, now);
        return 1;
    }
    if (t->replay.rows.n && t->replay.time <= now) {
        *why = replay_step(p, t, now);
        return 1;
    }
    if (t->line.moves > now) return 0;
    move_line(p, t, now);
    return 1;
}
#endif
