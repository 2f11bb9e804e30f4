/* Logs, transactions on channels, and batches: the rules of tests/oracle/changelogs.py. */

#include "accounts.h"
#include "children.h"
#include "protocols.h"

/* Logs, and transactions on channels: the rules of tests/oracle/changelogs.py. */

/* The task will not go back to the first ``n`` messages that it has read. */
void plane_trim_log(plane *p, int32_t number, int64_t n) {
    drop_rows(p, &p->tasks[number].read, n);
}

/* A task that does nothing goes back: what it has read since its log was trimmed, and what it had let in, it will read
 * again, ahead of what has come since. */
void plane_go_back(plane *p, int32_t number) {
    task *t = &p->tasks[number];
    list later = t->held, *again[] = {&t->queue, &t->aside};
    t->held.n = 0;
    cursor each = first_row(&t->read);
    for (int64_t n = t->read.n; n > 0; n--) {
        row r = next_row(&each);
        int32_t m = take_message(p);
        p->messages[m] = message_of(&r);
        p->messages[m].source = r.task;
        p->messages[m].flags = (int32_t)r.arrival | HAS_BEGUN | WAS_READ;
        append(p, &t->held, m);
    }
    drop_rows(p, &t->read, t->read.n);
    for (int i = 0; i < 2; i++) {
        while (again[i]->n) {
            int32_t m = take_first(p, again[i]);
            p->messages[m].flags |= WAS_READ;
            if (p->made) p->made[m] = -1;
            append(p, &t->held, m);
        }
    }
    move_all(p, &later, &t->held);
}

static int64_t control_markers(const plane *p, const list *l) {
    int64_t found = 0;
    for (int32_t m = l->head, n = l->n; n > 0; n--, m = p->messages[m].next) found += is_control(&p->messages[m]);
    return found;
}

/* Messages in logs that were not read, or may be read again. */
int64_t plane_logged(plane *p, int64_t now) {
    int64_t found = -p->waiting; /* queues have control markers, too */
    for (int32_t i = 0; i < p->n_tasks; i++) {
        task *t = &p->tasks[i];
        if (!reads_log(t)) {
            found += control_markers(p, &t->queue);
            continue;
        }
        plane_take_in(p, i, now);
        found += t->read.n + (t->state == SERVING) + t->queue.n + t->aside.n + t->held.n;
        for (int32_t c = 0; isolates(t) && c < t->inputs; c++) {
            const transactions *of = p->channels[t->first_input + c].transactions;
            if (of) found += of->withheld.n;
        }
    }
    return found;
}

/* Something that has come may be read. */
static void let_in(plane *p, task *t, int32_t m) {
    if (!t->up || t->closed) append(p, &t->held, m);
    else join_queue(p, t, m);
}

/* What had come is gone: its sender has aborted it. */
static void destroy(plane *p, task *t, int32_t m, int32_t outage, int64_t now) {
    if (p->messages[m].mark == 0) log_row(&p->lost, &p->messages[m], t->number, now)->source = -(outage + 1);
    drop_message(p, t, m, now);
}

int32_t take_committed(plane *p, task *t, int64_t now) {
    if (full(&p->lost) || full(&p->discarded)) return HAS_LOST;
    transactions *of = next_input(p, t)->transactions;
    int32_t m = take_arrival(p, t);
    const message *each = &p->messages[m];
    if (!of) {
        let_in(p, t, m);
    } else if (each->mark == COMMIT) {
        for (int32_t n = each->key; n > 0; n--) {
            int32_t committed = take_first(p, &of->withheld);
            p->messages[committed].time = now;
            p->messages[committed].turn = each->turn;
            let_in(p, t, committed);
        }
        if (t->bounded & SHOWS) log_row(&p->discarded, each, t->number, now)->arrival = COMES_AGAIN;
        free_message(p, m);
    } else if (each->flags & IS_VOID) {
        destroy(p, t, m, each->flags >> VOID_SHIFT, now);
    } else {
        append(p, &of->withheld, m);
    }
    return DONE;
}

typedef void (*what_of)(plane *p, channel *c, int64_t now, int32_t outage);

static void for_each_channel(plane *p, const task *t, what_of act, int64_t now, int32_t outage) {
    for (int32_t i = 0; i < t->outlets; i++) {
        const outlet *o = &p->outlets[t->first_outlet + i];
        for (int32_t r = 0; r < o->tasks * o->replicas; r++)
            act(p, &p->channels[p->routes[o->routes + r]], now, outage);
    }
}

static void prepare(plane *p, channel *c, int64_t now, int32_t outage) {
    (void)p, (void)now, (void)outage;
    c->transactions->ready = c->sent - c->transactions->commits;
}

static void commit(plane *p, channel *c, int64_t now, int32_t outage) {
    (void)p, (void)now, (void)outage;
    transactions *of = c->transactions;
    of->untold += of->ready - of->settled;
    of->settled = of->ready;
}

static void tell(plane *p, channel *c, int64_t now, int32_t outage) {
    (void)outage;
    transactions *of = c->transactions;
    int32_t m = take_message(p);
    message says = {0};
    says.mark = COMMIT;
    says.created = now;
    says.key = (int32_t)of->untold;
    p->messages[m] = says;
    of->untold = 0;
    of->commits++;
    send_message(p, c, m, now);
}

/* Some messages, of which the first ``keep`` that are no commits hold, are void: when they come they are gone. */
static int64_t void_behind(plane *p, const list *l, int64_t keep, int32_t outage) {
    for (int32_t m = l->head, n = l->n; n > 0; n--, m = p->messages[m].next)
        if (p->messages[m].mark != COMMIT && --keep < 0) p->messages[m].flags |= IS_VOID | outage << VOID_SHIFT;
    return keep < 0 ? 0 : keep;
}

static int64_t under_way(const plane *p, const list *l) {
    int64_t found = 0;
    for (int32_t m = l->head, n = l->n; n > 0; n--, m = p->messages[m].next) found += p->messages[m].mark != COMMIT;
    return found;
}

static void abort_open(plane *p, channel *c, int64_t now, int32_t outage) {
    transactions *of = c->transactions;
    task *down = &p->tasks[c->down];
    int64_t open = c->sent - of->commits - of->settled, keep = of->withheld.n - open;
    const list *lists[] = {&c->wire, c->passage ? &c->passage->flying : NULL, c->passage ? &c->passage->leaving : NULL};
    of->settled += open;
    forget_draws(p, c);
    for (int i = 0; i < 3 && lists[i]; i++) keep += under_way(p, lists[i]);
    list come = of->withheld;
    of->withheld.n = 0;
    for (; come.n && keep > 0; keep--) append(p, &of->withheld, take_first(p, &come));
    while (come.n) destroy(p, down, take_first(p, &come), outage, now);
    for (int i = 0; i < 3 && lists[i]; i++) keep = void_behind(p, lists[i], keep, outage);
}

/* What a task has sent up to now will hold with its next commit. */
void plane_prepare(plane *p, int32_t number) { for_each_channel(p, &p->tasks[number], prepare, 0, 0); }

/* It holds. */
void plane_commit(plane *p, int32_t number) { for_each_channel(p, &p->tasks[number], commit, 0, 0); }

/* Its readers will know of all that holds. */
void plane_tell(plane *p, int32_t number, int64_t now) { for_each_channel(p, &p->tasks[number], tell, now, 0); }

/* What is not committed never will be: what has come is destroyed, what is on its way when it comes. */
void plane_abort(plane *p, int32_t number, int64_t now, int32_t outage) {
    for_each_channel(p, &p->tasks[number], abort_open, now, outage);
}

/* What tasks read from a log, batch by batch: it is taken away where it was held, and worked off later, as rows. */

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
