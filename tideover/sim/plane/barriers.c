/* Tasks that align barriers, and barriers that overtake what waits: the rules of tests/oracle/snapshots.py. */

#include "accounts.h"
#include "lines.h"
#include "protocols.h"

/* Tasks that align barriers: the rules of tests/oracle/snapshots.py. */

/* Some inputs of a task are ``blocked`` from now on: what has come over them is set aside. */
void plane_block(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    plane_take_in(p, number, now);
    t->bounded |= ALIGNS;
    for (int32_t n = t->queue.n; n > 0; n--) {
        int32_t m = take_first(p, &t->queue);
        int aside = is_blocked(p, t, m);
        if (aside) discount(p, t, m);
        append(p, aside ? &t->aside : &t->queue, m);
    }
}

/* None is any more; what was set aside arrives now, if the task takes anything in. */
void plane_unblock(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    t->bounded &= ~ALIGNS;
    for (int32_t i = 0; i < t->inputs; i++) p->channels[t->first_input + i].blocked = 0;
    if (!t->up || t->closed) return;
    for (int32_t n = t->aside.n; n > 0; n--) {
        int32_t m = take_first(p, &t->aside);
        p->messages[m].time = now;
        p->messages[m].turn = 0;
        if (t->length) count(p, t, m);
        append(p, &t->queue, m);
    }
    look_at_first(p, t, now);
}

/* How many messages of logs have come to tasks up to now. */
int64_t plane_come(plane *p, int64_t now) {
    int64_t come = 0;
    for (int32_t i = 0; i < p->n_tasks; i++)
        if (reads_log(&p->tasks[i])) plane_take_in(p, i, now);
    for (int32_t i = 0; i < p->n_channels; i++) {
        const channel *c = &p->channels[i];
        if (!c->logged) continue;
        come += c->sent - c->gone - c->wire.n;
        if (c->passage) come -= c->passage->flying.n + c->passage->leaving.n;
    }
    return come;
}

/* Barriers that overtake what waits: the rules of tests/oracle/snapshots.py. */

/* A barrier of this number is there: it may be the first of its snapshot. */
void plane_notice(plane *p, int32_t t, int32_t number) {
    if (number <= p->tasks[t].newest) return;
    plane_forget_barriers(p, t);
    p->tasks[t].newest = number;
}

/* Those that have come mean nothing any more. */
void plane_forget_barriers(plane *p, int32_t number) {
    task *t = &p->tasks[number];
    t->records = 0;
    t->recorded.n = 0;
    for (int32_t i = 0; i < t->inputs; i++) p->channels[t->first_input + i].passed = 0;
}

void note_arrival(plane *p, task *t, int32_t m, int64_t now) {
    const message *each = &p->messages[m];
    channel *c = &p->channels[t->first_input + each->source];
    if (each->mark == BARRIER) {
        plane_notice(p, t->number, each->key);
        if (each->key != t->newest) return;
        c->passed = each->key;
        c->behind = 0;
    } else if (c->passed) {
        c->behind++;
    } else if (t->records && c->placing != OF_LOG) {
        log_row(&t->recorded, each, each->flags & FROM_AFAR, now);
    }
}

/* All control markers are ahead of what waits, from now on. */
void plane_markers_first(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    if (t->free_at < now) t->free_at = now;
    list others = {0};
    for (int32_t n = t->queue.n; n > 0; n--) {
        int32_t m = take_first(p, &t->queue);
        int is_marker = is_control(&p->messages[m]);
        if (is_marker) p->messages[m].flags |= IS_AHEAD;
        append(p, is_marker ? &t->queue : &others, m);
    }
    move_all(p, &others, &t->queue);
}

/* What waits in the queue and has come ahead of the newest barrier on its channel, but not from a log. */
int64_t plane_ahead(plane *p, int32_t number, row *out, int64_t room) {
    const task *t = &p->tasks[number];
    row_log log = {out, 0, room};
    channel *inputs = &p->channels[t->first_input];
    for (int32_t i = 0; i < t->inputs; i++) inputs[i].waits = 0;
    for (int32_t m = t->queue.head, n = t->queue.n; n > 0; n--, m = p->messages[m].next)
        if (!is_control(&p->messages[m])) inputs[p->messages[m].source].waits++;
    for (int32_t m = t->queue.head, n = t->queue.n; n > 0; n--, m = p->messages[m].next) {
        const message *each = &p->messages[m];
        if (is_control(each)) continue;
        channel *c = &inputs[each->source];
        int64_t left = c->waits--;
        if (c->placing != OF_LOG && !(c->passed && left <= c->behind))
            log_row(&log, each, each->flags & FROM_AFAR, each->time);
    }
    return log.n;
}

/* A barrier leaves by every channel ahead of what waits in the line, where older ones are forgotten. */
void plane_send_ahead(plane *p, int32_t number, int64_t now, int32_t key) {
    task *t = &p->tasks[number];
    for (int32_t n = t->line.messages.n; n > 0; n--) {
        int32_t m = take_first(p, &t->line.messages);
        if (is_control(&p->messages[m])) drop_message(p, t, m, now);
        else append(p, &t->line.messages, m);
    }
    plane_broadcast(p, number, now, BARRIER, key, 1);
}

/* These messages wait again, in the queue of a task that is not open yet, or ``in_line``: nothing has a place. */
void plane_put_back(plane *p, int32_t number, int64_t now, int32_t in_line, int64_t n, const row *rows) {
    task *t = &p->tasks[number];
    for (const row *r = rows; r < rows + n; r++) {
        int32_t m = take_message(p);
        message each = message_of(r);
        each.time = now;
        each.flags = in_line ? 0 : r->task;
        p->messages[m] = each;
        append(p, in_line ? &t->line.messages : &t->aside, m);
        if (in_line) t->line.tuples += each.mark == 0;
    }
    if (in_line) wake_line(p, t, now);
}
