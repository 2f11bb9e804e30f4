/* Moving the data: one task after the other, or all in one order of events. */
#include "bolts.h"
#include "wires.h"
#include "spouts.h"

#include <stddef.h>

static int64_t next_at(const plane *p, task *t) {
    return t->spout >= 0 ? spout_next(p, t) : bolt_next(p, t);
}

static int32_t step_at(plane *p, task *t, int64_t now) {
    return t->spout >= 0 ? spout_step(p, t, now) : bolt_step(p, t, now);
}

/* Whether tasks move in one order of events, wherever they are. */
static int of_all(const plane *p, const group *g) { return g == p->groups + p->n_groups; }

void has_come(plane *p, int32_t number) {
    task *t = &p->tasks[number];
    group *g = p->moving;
    if (of_all(p, g)) comes_next(g, number, next_at(p, t));
    else if (g == p->groups + t->group) comes_next(g, t->place, next_at(p, t));
}

void has_come_to_card(plane *p, int32_t number) {
    const card *k = &p->cards[number];
    group *g = p->moving;
    if (of_all(p, g)) card_comes_next(g, number, card_next(k), card_rank(p, k));
    else if (g == p->groups + k->group) card_comes_next(g, k->place, card_next(k), card_rank(p, k));
}

/* All that happens at a task up to ``until``. */
static int32_t run_spout(plane *p, task *t, int64_t until) {
    int64_t now;
    while ((now = spout_next(p, t)) <= until) {
        int32_t why = spout_step(p, t, now);
        if (why) return why;
        if (++p->events > p->budget) return LONG;
    }
    return DONE;
}

/* Whether nobody wants to know more of what a task does than what its state takes in. */
HOT int is_plain(const plane *p, const task *t) {
    int asked = p->numbers || p->paths || p->made || p->pending || p->n_watches;
    return !asked && !p->moving && !t->bounded && !t->serialises;
}

/* It stays so as long as data moves: the compiler leaves out all that is done for them. */
HOT void need_not_look(const plane *p, const task *t) {
    if (!is_plain(p, t)) __builtin_unreachable();
}

/* The same for a bolt's task that is up, and has nothing but tuples in its queue: one after the other, as they come
 * over their wires. What is left, or is no tuple, is for the caller. */
HOT int32_t run_queue(plane *p, task *t, const component *c, int64_t until, int plain) {
    while (t->arriving) {
        if (plain) need_not_look(p, t);
        int64_t now = next_arrival(p, t);
        if (now < t->free_at) now = t->free_at;
        if (now > until) return DONE;
        int32_t m = next_input(p, t)->wire.head;
        if (p->messages[m].mark || missing_for(p, t, c, m)) return DONE;
        int64_t takes = service_of(p, t, c, m);
        if (now + takes > until || t->fills == 1) return DONE;
        int32_t why = short_of(p, t);
        if (why) return why;
        take_arrival(p, t);
        if (plain) need_not_look(p, t);
        tuple_is_done(p, t, c, m, now + takes);
        t->fills -= t->fills > 0;
        t->busy += takes;
        t->free_at = now + takes;
        done_with(p, t, m);
        if (++p->events > p->budget) return LONG;
    }
    return DONE;
}

static int32_t run_plain(plane *p, task *t, const component *c, int64_t until) { return run_queue(p, t, c, until, 1); }

static int32_t run_any(plane *p, task *t, const component *c, int64_t until) { return run_queue(p, t, c, until, 0); }

static int32_t run_bolt(plane *p, task *t, int64_t until) {
    int64_t now;
    const component *c = &p->components[t->component];
    if (c->due && c->due->n) draw_services(p, c);
    while ((now = bolt_next(p, t)) <= until) {
        int32_t why = bolt_step(p, t, now);
        int plain = t->acks.sent == t->acks.n && t->state == IDLE && !t->queue.n && t->up && !t->closed && t->cores < 0;
        plain &= !(t->bounded & ~READS_LOG);
        if (!why && plain) why = is_plain(p, t) ? run_plain(p, t, c, until) : run_any(p, t, c, until);
        if (why) return why;
        if (++p->events > p->budget) return LONG;
    }
    return DONE;
}

static int32_t run_card(plane *p, card *k, int64_t until) {
    while (card_next(k) <= until) {
        int32_t why = card_step(p, k);
        if (why) return why;
        if (++p->events > p->budget) return LONG;
    }
    return DONE;
}

/* Who is next in a group, as things are. */
static void set_up(plane *p, group *g) {
    for (int32_t i = 0; i < g->leaves; i++) {
        g->next[g->leaves + i] = i < g->n ? next_at(p, &p->tasks[g->members[i]]) : NEVER;
        g->winner[g->leaves + i] = i;
    }
    for (int32_t i = g->leaves - 1; i > 0; i--) play(g, i);
    for (int32_t i = 0; i < p->n_components; i++) {
        const component *c = &p->components[i];
        if (c->due && c->due->n) draw_services(p, c);
    }
    for (int32_t i = 0; i < g->card_leaves; i++) {
        const card *k = i < g->n_cards ? &p->cards[g->cards[i]] : NULL;
        g->card_next[g->card_leaves + i] = k ? card_next(k) : NEVER;
        g->card_rank[g->card_leaves + i] = k ? card_rank(p, k) : NEVER;
        g->card_winner[g->card_leaves + i] = i;
    }
    for (int32_t i = g->card_leaves - 1; i > 0; i--) play_cards(g, i);
}

/* What happens at a card next. */
static int32_t card_turn(plane *p, group *g) {
    int32_t place = g->card_winner[1];
    card *k = &p->cards[g->cards[place]];
    int32_t why = card_step(p, k);
    if (!why) card_comes_next(g, place, card_next(k), card_rank(p, k));
    return why;
}

/* Whatever happens first happens first, wherever in the group it is; at one instant cards are behind all tasks. */
static int32_t together(plane *p, group *g, int64_t until) {
    set_up(p, g);
    p->moving = g;
    int32_t why = DONE;
    for (;;) {
        if (g->n_cards && g->card_next[1] < g->next[1]) {
            if (g->card_next[1] > until) break;
            if ((why = card_turn(p, g)) || ++p->events > p->budget) break;
            continue;
        }
        if (g->next[1] > until) break;
        int32_t place = g->winner[1];
        task *t = &p->tasks[g->members[place]];
        if ((why = step_at(p, t, g->next[1]))) p->who = t->number;
        if (why && why != TURN) break;
        comes_next(g, place, next_at(p, t));
        if (why || ++p->events > p->budget) break;
    }
    p->moving = NULL;
    return why || p->events <= p->budget ? why : LONG;
}

/* Groups move one after the other, in topological order: what one sends is there before its reader moves. */
static int32_t in_turns(plane *p, int64_t until) {
    for (int32_t i = 0; i < p->n_groups; i++) {
        group *g = &p->groups[i];
        int32_t why;
        if (g->n + g->n_cards > 1) {
            why = together(p, g, until);
        } else if (g->n) {
            task *t = &p->tasks[g->members[0]];
            if ((why = t->spout >= 0 ? run_spout(p, t, until) : run_bolt(p, t, until))) p->who = t->number;
        } else {
            why = run_card(p, &p->cards[g->cards[0]], until);
        }
        if (why) return why;
    }
    return DONE;
}

/* Which channels are plain, as things are. */
static void look_at_channels(plane *p) {
    p->changed = 0;
    for (int32_t i = 0; i < p->n_channels; i++) {
        channel *c = &p->channels[i];
        int constant = c->latency.kind == DRAW_CONSTANT && c->stretch == 1.0;
        c->plain = constant && !c->losing && !c->unpacks && !c->passage;
        c->takes = c->latency.low;
    }
}

int32_t plane_advance(plane *p, int64_t until) {
    if (p->changed) look_at_channels(p);
    for (;;) {
        int64_t to = p->step && until - p->now > p->step ? p->now + p->step : until;
        int in_order = p->waiting || p->now < p->in_order_until;
        int32_t why = in_order ? together(p, p->groups + p->n_groups, to) : in_turns(p, to);
        if (why) return why;
        if (p->n_spanned) settle_spans(p);
        if (to > p->now) p->now = to;
        if (to >= until) return DONE;
    }
}

/* When something happens next at a task; or at a card, whose numbers come after those of the tasks. */
int64_t plane_next_event(plane *p, int32_t t) {
    return t < p->n_tasks ? next_at(p, &p->tasks[t]) : card_next(&p->cards[t - p->n_tasks]);
}
