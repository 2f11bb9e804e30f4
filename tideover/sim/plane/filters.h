/* Replicas: what another one has sent is turned away where it arrives. */
#ifndef TIDEOVER_FILTERS_H
#define TIDEOVER_FILTERS_H
#include "messages.h"

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
#endif
