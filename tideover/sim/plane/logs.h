/* Logs that tasks read, and go back in; and what of a channel its reader may see: what is committed. */
#ifndef TIDEOVER_LOGS_H
#define TIDEOVER_LOGS_H
#include "stores.h"

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
