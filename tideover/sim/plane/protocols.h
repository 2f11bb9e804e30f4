/* What protocols keep at tasks and channels: barriers, upstream buffers, filters of replicas, logs. */
#ifndef TIDEOVER_PROTOCOLS_H
#define TIDEOVER_PROTOCOLS_H

#include "messages.h"

#include <stddef.h>

/* Barriers: inputs that are blocked until the others have theirs. */

HOT int aligns(const task *t) { return t->bounded & ALIGNS; }

/* The channel by which a message has come to a task. */
HOT const channel *way_of(const plane *p, const task *t, int32_t m) {
    return &p->channels[t->first_input + p->messages[m].source];
}

/* Whether somebody looks at all that comes, since barriers may overtake it. */
HOT int overtakes(const task *t) { return t->bounded & OVERTAKES; }

/* Whether what is first in the queue of such a task has to wait, for a control action or for room. */
HOT int is_held_up(const plane *p, const task *t) {
    const message *m = t->queue.n ? &p->messages[t->queue.head] : NULL;
    if (!t->hurries || !m || !is_control(m)) return t->line.full;
    return m->flags & IS_AHEAD ? 0 : t->line.full || m->mark == BARRIER;
}

/* Note what comes. */
void note_arrival(plane *p, task *t, int32_t m, int64_t now);

/* Whether a message is to be set aside. Barriers never are. */
HOT int is_blocked(const plane *p, const task *t, int32_t m) {
    return aligns(t) && !is_control(&p->messages[m]) && way_of(p, t, m)->blocked;
}

/* Upstream buffers: what senders keep and send again, and what of that receivers let in. */

/* What is made for a channel has a number from now on, and its sender keeps it; returns whether it stays there. */
int keep(plane *p, const channel *c, int32_t m);

/* The next message of a replay leaves; returns why not. */
int32_t replay_step(plane *p, task *t, int64_t now);

/* Take what arrives at a task to which something is replayed; returns why not. */
int32_t screen(plane *p, task *t, int64_t now);

/* The end of a replay was processed. */
void replay_is_over(plane *p, task *t, buffer *b);

HOT int screens(const task *t) { return t->bounded & SCREENS; }

/* How far a task is with what is kept for it. */
HOT void note_processed(plane *p, task *t, int32_t m) {
    const message *each = &p->messages[m];
    if (t->done && each->mark == 0) t->done[p->paths[m]] = each->uid;
    buffer *b = p->channels[t->first_input + each->source].buffer;
    if (!b) return;
    if (each->mark == END_OF_REPLAY) replay_is_over(p, t, b);
    else if (p->numbers[m].number > b->processed) b->processed = p->numbers[m].number;
}

/* Replicas: what another one has sent is turned away where it arrives. */

/* Whether a message is not known at a task that drops what it has had; it is from now on. Uids rise on each path, and
 * marks are always let in: windows count them once. */
HOT int is_new(const plane *p, task *t, int32_t m) {
    const message *each = &p->messages[m];
    if (each->mark) return 1;
    int64_t *greatest = &t->seen[p->paths[m]];
    if (each->uid <= *greatest || each->epoch < t->over) return 0;
    *greatest = each->uid;
    return 1;
}

/* Whether what arrives comes ahead of something that has come over a wire at its very instant: then the message from the
 * first sender is first, whenever in that instant it was sent. */
HOT int is_ahead(const plane *p, int32_t m, int32_t other) {
    const message *a = &p->messages[m], *b = &p->messages[other];
    return b->mark != CONTROL && a->time == b->time && a->turn == b->turn && a->source < b->source;
}

/* What has arrived takes its place in the queue. */
HOT void join_queue(plane *p, task *t, int32_t m) {
    if (!t->queue.n || !is_ahead(p, m, t->queue.tail)) {
        append(p, &t->queue, m);
        return;
    }
    list behind = t->queue;
    t->queue.n = 0;
    while (!is_ahead(p, m, behind.head)) append(p, &t->queue, take_first(p, &behind));
    append(p, &t->queue, m);
    move_all(p, &behind, &t->queue);
}

/* A message is known at a task, and gone. */
void turn_back(plane *p, task *t, int32_t m, int64_t now);

/* Let in what is in a list, each as if it arrived now, as far as it is not known. */
void sift(plane *p, task *t, list *l, int64_t now);

/* Logs that tasks read, and go back in; and what of a channel its reader may see: what is committed. */

HOT int reads_log(const task *t) { return t->bounded & READS_LOG; }

/* Whether a task may read only what is committed of some channels: somebody looks at all that arrives there. */
HOT int isolates(const task *t) { return t->bounded & ISOLATES; }

/* Whether a message of a task's is in its log, where no crash takes it. */
HOT int is_logged(const plane *p, const task *t, int32_t m) {
    return reads_log(t) && p->channels[t->first_input + p->messages[m].source].logged;
}

/* A task is done with a message: what it has read of its log it may have to read again. */
HOT void done_with(plane *p, task *t, int32_t m) {
    if (is_logged(p, t, m)) {
        const message *each = &p->messages[m];
        row r;
        fill_row(&r, each, each->source, 0);
        r.source = 0;
        r.arrival = each->flags & FROM_AFAR;
        put_row(p, &t->read, &r);
    }
    free_message(p, m);
}

/* Take what arrives at a task that reads what is committed; returns why not. */
int32_t take_committed(plane *p, task *t, int64_t now);

#endif
