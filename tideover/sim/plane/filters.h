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
    if (each->uid <= *greatest) return 0;
    *greatest = each->uid;
    return 1;
}

/* A message is known at a task, and gone. */
void turn_back(plane *p, task *t, int32_t m, int64_t now);

/* Let in what is in a list, each as if it arrived now, as far as it is not known. */
void sift(plane *p, task *t, list *l, int64_t now);
#endif
