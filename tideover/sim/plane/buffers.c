/* Upstream buffers (the rules of tests/oracle/buffers.py), and what is turned away of what replicas send. */

#include "accounts.h"
#include "children.h"
#include "lines.h"
#include "messages.h"
#include "protocols.h"

/* Upstream buffers: the rules of tests/oracle/buffers.py. */

int keep(plane *p, const channel *c, int32_t m) {
    buffer *b = c->buffer;
    p->numbers[m].number = ++b->sent;
    row r;
    fill_row(&r, &p->messages[m], p->paths ? p->paths[m] : 0, 0);
    r.arrival = b->sent;
    r.source = 0;
    put_row(p, &b->kept, &r);
    if (c->withheld) free_message(p, m);
    return c->withheld;
}

/* Drop the copies up to this number. */
void plane_trim(plane *p, int32_t number_of, int64_t number) {
    store *kept = &p->channels[number_of].buffer->kept;
    while (kept->n) {
        const chunk *c = kept->first;
        int32_t end = c == kept->last ? kept->to : c->room, n = kept->from;
        if (row_at(c, end - 1).arrival <= number) n = end;
        else while (row_at(c, n).arrival <= number) n++;
        if (n == kept->from) return;
        drop_rows(p, kept, n - kept->from);
    }
}

/* Drop the copies of what was ``seen``, as the receiver notes it, and of marks up to this one. */
void plane_trim_known(plane *p, int32_t number, const int64_t *seen, int32_t newest_mark) {
    store *kept = &p->channels[number].buffer->kept;
    for (int64_t n = kept->n; n > 0; n--) {
        row r = oldest(kept);
        drop_rows(p, kept, 1);
        int is_known = r.mark ? r.mark <= newest_mark : r.uid <= seen[r.task];
        if (!is_known) put_row(p, kept, &r);
    }
}

/* They go down with their sender. */
void plane_lose_copies(plane *p, int32_t number) {
    buffer *b = p->channels[number].buffer;
    drop_rows(p, &b->kept, b->kept.n);
    b->gone_to = b->sent;
}

/* They are kept again, behind those that are. */
void plane_keep(plane *p, int32_t number, const row *rows, int64_t n) {
    for (const row *r = rows; r < rows + n; r++) put_row(p, &p->channels[number].buffer->kept, r);
}

/* A message that was numbered before, or has no number, leaves. */
static void leave_again(plane *p, task *t, int32_t route, int32_t m, int64_t now) {
    if (t->bounded & HAS_LINE) line_up(p, t, route, m, now);
    else send_message(p, &p->channels[route], m, now);
}

/* What is due of that which a task sends again leaves. */
static void send_again(plane *p, task *t, int64_t now) {
    replay *r = &t->replay;
    while (r->rows.n) {
        row next = oldest(&r->rows);
        int32_t route = next.source;
        const channel *c = &p->channels[route];
        if (next.mark != END_OF_REPLAY) {
            if (r->time > now) return;
            r->time += r->step;
        }
        int32_t m = take_message(p);
        p->messages[m] = message_of(&next);
        p->numbers[m] = (numbered){next.arrival, (int32_t)next.time};
        if (p->paths) p->paths[m] = next.task;
        drop_rows(p, &r->rows, 1);
        if (p->messages[m].mark == END_OF_REPLAY) p->messages[m].created = now;
        if (!p->messages[m].mark) log_row(&p->resent, &p->messages[m], c->down, now)->source = c->position;
        leave_again(p, t, route, m, now);
    }
    t->bounded &= ~REPLAYS;
}

int32_t replay_step(plane *p, task *t, int64_t now) {
    int32_t why = scarce(p);
    if (why) return why;
    if (full(&p->resent)) return HAS_LOST;
    send_again(p, t, now);
    return DONE;
}

/* What is kept of a channel above number ``after`` is to leave again, and an end marker of this recovery behind it (0:
 * none). Returns how many messages that are kept. */
int64_t plane_line_up_kept(plane *p, int32_t number, int64_t after, int32_t recovery) {
    const channel *c = &p->channels[number];
    const store *kept = &c->buffer->kept;
    store *again = &p->tasks[c->up].replay.rows;
    cursor each = first_row(kept);
    int64_t found = 0;
    for (int64_t n = kept->n; n > 0; n--) {
        row r = next_row(&each);
        if (r.arrival <= after) continue;
        r.source = number;
        r.time = recovery;
        put_row(p, again, &r);
        found++;
    }
    if (recovery) {
        row end = {.time = recovery, .source = number, .mark = END_OF_REPLAY};
        put_row(p, again, &end);
    }
    return found;
}

/* A task begins to send again what is lined up for that. */
void plane_replay(plane *p, int32_t number, int64_t now, int64_t step) {
    task *t = &p->tasks[number];
    t->replay.step = step;
    t->replay.time = now + step;
    t->bounded |= REPLAYS;
    send_again(p, t, now);
}

/* Nothing more of a replay leaves. */
void plane_give_up(plane *p, int32_t number) {
    task *t = &p->tasks[number];
    drop_rows(p, &t->replay.rows, t->replay.rows.n);
    t->bounded &= ~REPLAYS;
}

static int has_end(const plane *p, const list *l, int32_t recovery, int32_t route) {
    for (int32_t m = l->head, n = l->n; n > 0; n--, m = p->messages[m].next) {
        if (route >= 0 && p->messages[m].source != route) continue;
        if (p->messages[m].mark == END_OF_REPLAY && p->numbers[m].recovery == recovery) return 1;
    }
    return 0;
}

/* Whether the end of this recovery's replay is on its way, or waits in its sender's line. */
int32_t plane_end_comes(plane *p, int32_t number, int32_t recovery) {
    const channel *c = &p->channels[number];
    if (has_end(p, &c->wire, recovery, -1) || has_end(p, &p->tasks[c->up].line.messages, recovery, number)) return 1;
    if (!c->passage) return 0;
    return has_end(p, &c->passage->flying, recovery, -1) || has_end(p, &c->passage->leaving, recovery, -1);
}

/* Whether a message is let in that arrives. */
static int admits(plane *p, task *t, int32_t m) {
    buffer *b = p->channels[t->first_input + p->messages[m].source].buffer;
    if (!b) return 1;
    const numbered *each = &p->numbers[m];
    if (!each->recovery) return !b->waits;
    if (each->recovery != b->recovery) return 0;
    if (p->messages[m].mark == END_OF_REPLAY) {
        b->waits = 0;
        return 1;
    }
    if (each->number <= b->brought) return 0;
    b->brought = each->number;
    return 1;
}

/* A message that has come is not let in: it will come again, or has been there. */
static void discard(plane *p, task *t, int32_t m, int64_t now) {
    const message *each = &p->messages[m];
    const buffer *b = p->channels[t->first_input + each->source].buffer;
    const numbered *of = &p->numbers[m];
    int gone = !each->mark && !of->recovery && of->number > b->processed && of->number <= b->gone_to;
    log_row(&p->discarded, each, t->number, now)->arrival = gone ? COPY_GONE : COMES_AGAIN;
    drop_message(p, t, m, now);
}

int32_t screen(plane *p, task *t, int64_t now) {
    if (p->room - p->in_use < p->most_made) return NEED_MESSAGES;
    if (full(&p->discarded) || full(&p->overflowed)) return HAS_LOST;
    int32_t m = take_arrival(p, t);
    if (!admits(p, t, m)) discard(p, t, m, now);
    else if (t->closed) append(p, &t->held, m);
    else if (t->seen && !is_new(p, t, m)) turn_back(p, t, m, now);
    else enter(p, t, m, now);
    return DONE;
}

void replay_is_over(plane *p, task *t, buffer *b) {
    b->unfinished = 0;
    for (int32_t i = 0; i < t->inputs; i++) {
        const buffer *other = p->channels[t->first_input + i].buffer;
        if (other && other->unfinished) return;
    }
    t->bounded &= ~SCREENS;
}

/* A task is up, and will be restored: of what waits at it, what comes again is thrown away. */
void plane_empty(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    const component *c = &p->components[t->component];
    if (c->due && c->due->n) draw_services(p, c);
    plane_set_aside(p, number);
    list *lists[] = {&t->aside, &t->held};
    for (int i = 0; i < 2; i++) {
        for (int32_t n = lists[i]->n; n > 0; n--) {
            int32_t m = take_first(p, lists[i]);
            int again = (p->numbers && p->numbers[m].number) || p->messages[m].mark == END_OF_REPLAY;
            if (again) discard(p, t, m, now);
            else append(p, lists[i], m);
        }
    }
}

/* What is turned away of what replicas send, and how one of them copies another's queue. */

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
