/* What Python does to tasks, wires and trees of acks between two moves. */

#include "acks.h"
#include "bolts.h"
#include "protocols.h"
#include "spouts.h"
#include "wires.h"

/* What Python does to tasks and wires between two moves. */

void turn_away(plane *p, task *t, int32_t m) {
    if (t->holds || t->up) {
        append(p, &t->held, m);
        return;
    }
    log_row(&p->lost, &p->messages[m], t->number, p->messages[m].time);
    drop_message(p, t, m, p->messages[m].time);
}

void lose_message(plane *p, channel *c, int32_t m, int64_t now) {
    p->messages[m].time = now;
    log_row(&p->lost, &p->messages[m], c->down, now)->source = -c->losing;
    drop_message(p, &p->tasks[c->down], m, now);
}

void plane_take_in(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    if (t->spout >= 0 || t->closed || !t->up || t->length || t->seen || screens(t) || isolates(t) || aligns(t) || overtakes(t) || t->bounded & ASKS) return;
    while (next_arrival(p, t) <= now) append(p, &t->queue, take_arrival(p, t));
}

/* Put a control marker at the end of the queue, or ``first`` ahead of all that waits, but for one whose turn it is
 * already; returns whether it has its turn at once. */
int32_t plane_place(plane *p, int32_t number, int64_t now, int64_t name, int32_t first) {
    task *t = &p->tasks[number];
    plane_take_in(p, number, now);
    int32_t m = take_message(p);
    message marker = {0};
    marker.time = now;
    marker.uid = name;
    marker.mark = CONTROL;
    if (first) marker.flags = IS_AHEAD;
    p->messages[m] = marker;
    int32_t ahead = first && t->state == AT_TURN ? take_first(p, &t->queue) : -1;
    if (first) put_first(p, &t->queue, m);
    else append(p, &t->queue, m);
    if (ahead >= 0) put_first(p, &t->queue, ahead);
    p->waiting++;
    if (t->queue.head != m || t->state != IDLE || t->free_at > now || t->closed) return 0;
    if (overtakes(t) ? is_held_up(p, t) : t->line.full && !t->uids) return 0; /* who is fed is never held up */
    t->state = AT_TURN;
    return 1;
}

/* The marker whose turn it was is gone. */
void plane_turn_over(plane *p, int32_t number) {
    task *t = &p->tasks[number];
    free_message(p, take_first(p, &t->queue));
    p->waiting--;
    t->state = IDLE;
}

/* Tuples of no root leave a task: those of a window. Returns how many messages they are. */
int64_t plane_send(plane *p, int32_t number, int64_t now, int64_t n, const int64_t *uid, const int64_t *key,
                          const int64_t *value, int64_t epoch) {
    int64_t made = 0;
    p->path = 0;
    for (int64_t i = 0; i < n; i++) {
        message m = {0};
        m.uid = uid[i];
        m.created = now;
        m.key = (int32_t)key[i];
        m.value = value[i];
        m.epoch = (int32_t)epoch;
        made += send_tuple(p, &p->tasks[number], &m, 0, i, now);
    }
    return made;
}

/* A mark leaves by every channel, ``ahead`` of what waits in the task's line or behind it. */
void plane_broadcast(plane *p, int32_t number, int64_t now, int32_t mark, int32_t key, int32_t ahead) {
    task *t = &p->tasks[number];
    for (int32_t i = 0; i < t->outlets; i++) {
        const outlet *o = &p->outlets[t->first_outlet + i];
        for (int32_t r = 0; r < o->tasks * o->replicas; r++) {
            int32_t m = take_message(p);
            message each = {0};
            each.mark = mark;
            each.key = key;
            each.created = now;
            p->messages[m] = each;
            p->waiting += is_control(&each);
            int32_t route = p->routes[o->routes + r];
            if (ahead) send_message(p, &p->channels[route], m, now);
            else leave(p, t, route, m, now);
        }
    }
}

/* What it takes to serialise these tuples. */
int64_t plane_packing(plane *p, int32_t number, int64_t n, const int64_t *uid, const int64_t *key) {
    int64_t takes = 0;
    for (int64_t i = 0; i < n; i++) takes += packing_of(p, &p->tasks[number], uid[i], key[i], 0, i);
    return takes;
}

/* How long it takes to deserialise what waits at a task, or is in service there, and to serialise what becomes of
 * it. */
int64_t plane_serialisation(plane *p, int32_t number) {
    const task *t = &p->tasks[number];
    const component *c = &p->components[t->component];
    if (!t->serialises) return 0;
    int64_t takes = 0;
    if (t->state == SERVING && !p->messages[t->serving].mark) takes += serialisation(p, t, c, t->serving);
    for (int32_t m = t->queue.head, n = t->queue.n; n > 0; n--, m = p->messages[m].next)
        if (!p->messages[m].mark) takes += serialisation(p, t, c, m);
    return takes;
}

/* What was in one of a task's lists is lost, but for what is in its log. */
void plane_lose_list(plane *p, int32_t number, list *l, int64_t now) {
    task *t = &p->tasks[number];
    while (l->n) {
        int32_t m = take_first(p, l);
        if (!is_logged(p, t, m)) {
            drop_message(p, t, m, now);
            continue;
        }
        leaves_queue(p, t, m, now);
        done_with(p, t, m);
    }
}

/* A task gives up what it does: what was in service is at the head of its queue again. */
void plane_suspend(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    plane_take_in(p, number, now);
    int64_t free_at = t->free_at;
    t->owes = 0;
    if (t->works) quit_and_plan(p, t, now);
    if (t->state == SERVING) {
        if (t->cores < 0 && t->ends > free_at) free_at = t->ends;
        p->messages[t->serving].flags |= HAS_BEGUN;
        put_first(p, &t->queue, t->serving);
        t->serving = -1;
    }
    int64_t from = now < t->stopped_until ? t->stopped_until : now;
    if (free_at > from) t->busy -= free_at - from;
    t->free_at = from;
    t->state = IDLE;
}

/* The same, and control markers are gone. Returns how many. */
int32_t plane_interrupt(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    plane_suspend(p, number, now);
    int32_t gone = 0;
    for (int32_t n = t->queue.n; n > 0; n--) {
        int32_t m = take_first(p, &t->queue);
        if (is_control(&p->messages[m])) {
            free_message(p, m);
            gone++;
        } else {
            append(p, &t->queue, m);
        }
    }
    p->waiting -= gone;
    return gone;
}

/* What waits is out of the queue until the task opens. */
void plane_set_aside(plane *p, int32_t number) {
    task *t = &p->tasks[number];
    for (int32_t n = t->queue.n; n > 0; n--) {
        int32_t m = take_first(p, &t->queue);
        append(p, is_control(&p->messages[m]) ? &t->queue : &t->aside, m);
    }
}

/* A task goes down, and keeps what is in its memory: what waits, and what was held if it was up. */
void plane_keep_aside(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    plane_set_aside(p, number);
    if (!t->up || reads_log(t)) return;
    if (t->seen) sift(p, t, &t->held, now);
    for (int32_t m = t->held.head, n = t->held.n; n > 0 && t->length; n--, m = p->messages[m].next) count(p, t, m);
    move_all(p, &t->held, &t->aside);
}

/* What was set aside, and then what was held, arrives now. */
void plane_open(plane *p, int32_t number, int64_t now) {
    task *t = &p->tasks[number];
    t->closed = 0;
    list *from[] = {&t->aside, &t->held};
    int ahead = t->queue.n + t->aside.n > 0;
    if (t->seen) sift(p, t, &t->held, now);
    for (int i = 0; i < 2; i++) {
        while (from[i]->n) {
            int32_t m = take_first(p, from[i]);
            p->messages[m].time = now;
            p->messages[m].turn = 0;
            if (i == 1 && t->length && !finds_room(p, t, m, now)) continue;
            append(p, &t->queue, m);
            if (i == 1 && !ahead) look_at_first(p, t, now);
        }
    }
}

/* A task does nothing until then, and goes on: all that it has to do is later. */
void plane_stop(plane *p, int32_t number, int64_t now, int64_t until) {
    task *t = &p->tasks[number];
    int64_t from = now < t->stopped_until ? t->stopped_until : now;
    if (until <= from) return;
    t->stopped_until = until;
    if (t->works) t->left = quit_and_plan(p, t, now);
    if (t->state >= SERVING) t->ends = t->cores < 0 ? t->ends + until - from : until;
    t->free_at = (t->free_at < now ? now : t->free_at) + until - from;
    if (t->line.moves < until) t->line.moves = until;
    t->replay.time += until - from;
}

/* An action keeps a task, which shares cores, occupied with so much work, behind what it does already. */
void plane_occupy(plane *p, int32_t number, int64_t now, int64_t duration) {
    task *t = &p->tasks[number];
    if (duration <= 0) return;
    if (t->state == SERVING) {
        t->owes += (double)duration;
    } else if (t->state != OCCUPIED) {
        occupy(p, t, (double)duration, now);
    } else if (!t->works) {
        t->left += (double)duration;
    } else {
        double left = quit(p, t, now);
        join_and_plan(p, t, left + (double)duration, now);
    }
}

/* From now on a core works at this part of its speed. */
void plane_slow(plane *p, int32_t number, int64_t now, double factor) {
    cores *h = &p->cores[number];
    look_at_work(h, now);
    h->factor = factor;
    plan(p, h, now, -1);
}

/* What is on the way to a task, in order, after its times have changed. */
static void put_in_order(plane *p, task *t) {
    t->arriving = 0;
    for (int32_t i = 0; i < t->inputs; i++) {
        channel *c = &p->channels[t->first_input + i];
        if (c->wire.n) announce(p, c);
    }
}

/* What is on the wire of a channel: to the card of the receiver's host, if there is one, else to the receiver. */
static list *on_wire(channel *c) { return c->passage && c->passage->into >= 0 ? &c->passage->flying : &c->wire; }

static void wire_has_changed(plane *p, channel *c) {
    put_in_order(p, &p->tasks[c->down]);
    if (c->passage && c->passage->into >= 0) plane_lay_card(p, c->passage->into);
}

/* Nothing gets through before ``until``. */
void plane_hold(plane *p, int32_t number, int64_t now, int64_t until) {
    channel *c = &p->channels[number];
    plane_take_in(p, c->down, now);
    if (c->held < until) c->held = until;
    if (c->last < until) c->last = until;
    const list *l = on_wire(c);
    for (int32_t m = l->head, n = l->n; n > 0; n--, m = p->messages[m].next) {
        if (p->messages[m].time < until) {
            p->messages[m].time = until;
            p->messages[m].turn = 0;
        }
    }
    wire_has_changed(p, c);
}

/* What is on the wire is gone, but for marks. */
void plane_lose(plane *p, int32_t number, int64_t now) {
    channel *c = &p->channels[number];
    plane_take_in(p, c->down, now);
    forget_draws(p, c);
    list *l = on_wire(c);
    for (int32_t n = l->n; n > 0; n--) {
        int32_t m = take_first(p, l);
        if (p->messages[m].mark) append(p, l, m);
        else drop_message(p, &p->tasks[c->down], m, now), c->gone++;
    }
    wire_has_changed(p, c);
}

/* A connection breaks: what is on its way is gone, and the next one has nothing to come behind. */
void plane_cut(plane *p, int32_t number, int64_t now) {
    channel *c = &p->channels[number];
    passage *w = c->passage;
    plane_take_in(p, c->down, now);
    forget_draws(p, c);
    list *lists[] = {&c->wire, w ? &w->flying : NULL, w ? &w->leaving : NULL};
    if (w) c->stuck += w->leaving.n;
    for (int i = 0; i < 3; i++)
        while (lists[i] && lists[i]->n) drop_message(p, &p->tasks[c->down], take_first(p, lists[i]), now);
    c->last = c->held;
    if (w) w->through = 0;
    wire_has_changed(p, c);
    if (w && w->out >= 0) plane_lay_card(p, w->out);
}

/* What was held up arrives now, and nothing is held up any more. */
void plane_let_go(plane *p, int32_t number, int64_t now) {
    channel *c = &p->channels[number];
    int64_t held = c->held, last = 0;
    plane_take_in(p, c->down, now);
    for (int32_t m = c->wire.head, n = c->wire.n; n > 0; n--, m = p->messages[m].next) {
        message *each = &p->messages[m];
        int64_t time = each->time >= held ? now : each->time;
        each->time = last = time < last ? last : time;
    }
    c->held = 0;
    c->last = last;
    put_in_order(p, &p->tasks[c->down]);
}

/* The messages of a list as rows; returns how many there are. */
int64_t plane_listed(plane *p, const list *l, row *out, int64_t room) {
    row_log log = {out, 0, room};
    for (int32_t m = l->head, n = l->n; n > 0 && log.n < room; n--, m = p->messages[m].next)
        log_row(&log, &p->messages[m], -1, p->messages[m].time);
    return l->n;
}

static int64_t listed(const plane *p, const list *l, int32_t number, row_log *log) {
    for (int32_t m = l->head, n = l->n; n > 0 && log->n < log->room; n--, m = p->messages[m].next)
        log_row(log, &p->messages[m], number, p->messages[m].time);
    return l->n;
}

/* What is on the way to a task as rows, input by input; returns how many there are. */
int64_t plane_coming(plane *p, int32_t number, row *out, int64_t room) {
    const task *t = &p->tasks[number];
    row_log log = {out, 0, room};
    int64_t found = 0;
    for (int32_t i = 0; i < t->inputs; i++) {
        const channel *c = &p->channels[t->first_input + i];
        found += listed(p, &c->wire, number, &log);
        if (!c->passage) continue;
        found += listed(p, &c->passage->flying, number, &log);
        found += listed(p, &c->passage->leaving, number, &log);
    }
    return found;
}

/* Tuples in service at a task, that wait there, or come to it; ``which``: the messages. Returns how many there are. */
int64_t plane_waiting(plane *p, int32_t number, row *out, int32_t *which, int64_t room) {
    const task *t = &p->tasks[number];
    row_log log = {out, 0, room};
    list serving = {t->serving, t->serving, t->state == SERVING};
    for (int32_t i = -2; i < t->inputs; i++) {
        const list *l = i == -2 ? &serving : i == -1 ? &t->queue : &p->channels[t->first_input + i].wire;
        for (int32_t m = l->head, n = l->n; n > 0 && log.n < room; n--, m = p->messages[m].next) {
            if (p->messages[m].mark) continue;
            which[log.n] = m;
            log_row(&log, &p->messages[m], number, p->messages[m].time);
        }
    }
    return log.n;
}

/* Trees that are done, and acks that Python sends. */

/* The spout forgets the root. */
void tree_is_done(plane *p, pending *map, int64_t i, int64_t root, int64_t now) {
    map->live[i] = 0;
    if (p->logs_completed) {
        row *r = &p->completed.rows[p->completed.n++];
        r->uid = root;
        r->attempt = map->attempt[i];
        r->created = map->emitted[i];
        r->time = map->last_ack[i];
    }
    int32_t number = p->spouts[map - p->pending];
    task *spout = &p->tasks[number];
    if (spout->in_flight-- != spout->most_in_flight) return;
    skip_calls(spout, now); /* it has waited for this */
    if (p->moving) has_come(p, number);
}

/* These tuples of a task are acked, each at its time. */
void plane_ack(plane *p, int32_t number, int64_t n, const int64_t *uid, const int64_t *attempt, const int64_t *times) {
    const task *t = &p->tasks[number];
    const component *c = &p->components[t->component];
    for (int64_t i = 0; i < n; i++) {
        int64_t again = attempt ? attempt[i] : 0;
        ack(p, uid[i] >> c->bits, again, id_at(t, c, uid[i], again), times[i]);
    }
}
