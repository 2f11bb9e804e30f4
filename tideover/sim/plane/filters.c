/* What is turned away of what replicas send, and how one of them copies another's queue. */
#include "filters.h"

#include "accounts.h"
#include "lines.h"

void turn_back(plane *p, task *t, int32_t m, int64_t now) {
    const component *c = &p->components[t->component];
    const message *each = &p->messages[m];
    if (t->bounded & TELLS) {
        log_row(&p->discarded, each, t->number, now)->arrival = COMES_AGAIN;
    } else {
        if (t->bounded & SHOWS) log_row(&p->discarded, each, t->number, now)->arrival = REPEATED;
        if (now <= t->repeats_until) t->repeated++;
        if (c->anchored && p->accounts) root_changes(p, each->uid >> c->bits, now, -1);
    }
    drop_message(p, t, m, now);
}

void sift(plane *p, task *t, list *l, int64_t now) {
    for (int32_t n = l->n; n > 0; n--) {
        int32_t m = take_first(p, l);
        p->messages[m].time = now;
        p->messages[m].turn = 0;
        if (is_new(p, t, m)) append(p, l, m);
        else turn_back(p, t, m, now);
    }
}

/* A task knows more than when it let in what is set aside. */
void plane_sift(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    sift(p, t, &t->aside, now);
}

/* A copy of a message, that has come to another task now. */
static void copy_message(plane *p, task *to, int32_t of, int64_t now) {
    int32_t m = take_message(p);
    message *each = &p->messages[m];
    *each = p->messages[of];
    each->time = now;
    each->turn = 0;
    each->flags &= FROM_AFAR;
    p->paths[m] = p->paths[of];
    if (to->length) count(p, to, m);
    append(p, &to->queue, m);
}

/* Copy what is in service at a task and in its queue, from this place on, to the end of another's queue: up to the next
 * control marker, which is in ``marked`` then. Returns its place; -1: there is none. */
int32_t plane_copy(plane *p, int32_t from, int32_t to, int32_t place, int64_t now) {
    const task *t = &p->tasks[from];
    int32_t at = 0;
    if (t->state == SERVING && at++ >= place) copy_message(p, &p->tasks[to], t->serving, now);
    for (int32_t m = t->queue.head, n = t->queue.n; n > 0; n--, m = p->messages[m].next, at++) {
        if (at < place) continue;
        if (p->messages[m].mark == CONTROL) {
            p->marked = p->messages[m];
            return at;
        }
        copy_message(p, &p->tasks[to], m, now);
    }
    return -1;
}

/* What one channel carries from now on comes to the receiver's host behind all that another has on its way. */
void plane_follow(plane *p, int32_t mine, int32_t other) {
    const channel *ahead = &p->channels[other];
    const passage *w = ahead->passage;
    int32_t coming = ahead->wire.n + (w ? w->leaving.n + w->flying.n : 0);
    channel *c = &p->channels[mine];
    if (coming && c->last <= ahead->last) c->last = ahead->last + 1;
}
