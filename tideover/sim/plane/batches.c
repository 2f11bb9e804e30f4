/* What tasks read from a log, batch by batch: it is taken away where it was held, and worked off later, as rows. */
#include "accounts.h"

/* What was held before a task is there no more, and in `out`, which has room for it. */
void plane_take_away(plane *p, int32_t number, row *out) {
    list *held = &p->tasks[number].held;
    row_log log = {out, 0, held->n};
    while (held->n) {
        int32_t m = take_first(p, held);
        log_row(&log, &p->messages[m], number, p->messages[m].time);
        free_message(p, m);
    }
}

/* These rows arrive in the queue of a task that is open. */
void plane_work_off(plane *p, int32_t number, int64_t now, int64_t n, const row *rows) {
    task *t = &p->tasks[number];
    for (const row *r = rows; r < rows + n; r++) {
        int32_t m = take_message(p);
        message each = message_of(r);
        each.time = now;
        p->messages[m] = each;
        append(p, &t->queue, m);
    }
}
