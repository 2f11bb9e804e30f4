/* Moving the data: one task after the other, or all in one order of events. */
#include "bolts.h"
#include "order.h"
#include "spouts.h"

static int64_t next_at(const plane *p, const task *t) {
    return t->spout >= 0 ? spout_next(p, t) : bolt_next(p, t);
}

static int32_t step_at(plane *p, task *t, int64_t now) {
    return t->spout >= 0 ? spout_step(p, t, now) : bolt_step(p, t, now);
}

void has_come(plane *p, int32_t t) { comes_next(p, t, next_at(p, &p->tasks[t])); }

/* All that happens at a task up to ``until``. */
static int32_t run_spout(plane *p, task *t, int64_t until) {
    int64_t now;
    while ((now = spout_next(p, t)) <= until) {
        int32_t why = spout_step(p, t, now);
        if (why) return why;
        p->events++;
    }
    return DONE;
}

static int32_t run_bolt(plane *p, task *t, int64_t until) {
    int64_t now;
    while ((now = bolt_next(p, t)) <= until) {
        int32_t why = bolt_step(p, t, now);
        if (why) return why;
        p->events++;
    }
    return DONE;
}

/* Tasks move one after the other, in topological order: what one sends is there before its reader moves. */
static int32_t in_turns(plane *p, int64_t until) {
    for (int32_t i = 0; i < p->n_tasks; i++) {
        task *t = &p->tasks[i];
        int32_t why = t->spout >= 0 ? run_spout(p, t, until) : run_bolt(p, t, until);
        if (why) {
            p->who = i;
            return why;
        }
    }
    return DONE;
}

/* Whatever happens first happens first, wherever it is. */
static int32_t all_together(plane *p, int64_t until) {
    for (int32_t i = 0; i < p->leaves; i++) {
        p->next[p->leaves + i] = i < p->n_tasks ? next_at(p, &p->tasks[i]) : NEVER;
        p->winner[p->leaves + i] = i;
    }
    for (int32_t i = p->leaves - 1; i > 0; i--) play(p, i);
    p->together = 1;
    int32_t why = DONE;
    while (p->next[1] <= until) {
        int32_t i = p->winner[1];
        task *t = &p->tasks[i];
        if ((why = step_at(p, t, p->next[1]))) p->who = i;
        if (why && why != TURN) break;
        comes_next(p, i, next_at(p, t));
        if (why || ++p->events > p->budget) break;
    }
    p->together = 0;
    return why || p->events <= p->budget ? why : LONG;
}

int32_t plane_advance(plane *p, int64_t until) {
    for (;;) {
        int64_t to = p->step && until - p->now > p->step ? p->now + p->step : until;
        int32_t why = p->waiting ? all_together(p, to) : in_turns(p, to);
        if (why) return why;
        if (to > p->now) p->now = to;
        if (to >= until) return DONE;
        if (p->events > p->budget) return LONG;
    }
}

int64_t plane_next_event(plane *p, int32_t t) { return next_at(p, &p->tasks[t]); }
