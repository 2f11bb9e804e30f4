/* Messages between hosts go out through the card of the one, over the wire, and in through the card of the other. */
#include "wires.h"
#include "accounts.h"
#include "children.h"

/* The first message of a channel is known at a card. */
static void announce_to_card(plane *p, int32_t number, const list *l, int32_t place) {
    card *k = &p->cards[number];
    arrival a = {p->messages[l->head].time, 0, place};
    sift_up(k->coming, k->coming_n++, a);
    if (p->moving) has_come_to_card(p, number);
}

/* A message is on the wire from ``leaves`` on. */
static void leaves_host(plane *p, channel *c, int32_t m, int64_t leaves) {
    passage *w = c->passage;
    int64_t time = fly(c, leaves, c->sent - c->stuck - w->leaving.n - 1);
    if (w->into < 0) {
        arrives(p, c, m, time);
        return;
    }
    p->messages[m].time = time;
    append(p, &w->flying, m);
    if (w->flying.n == 1) announce_to_card(p, w->into, &w->flying, w->place_in);
}

int send_by_cards(plane *p, channel *c, int32_t m, int64_t now) {
    passage *w = c->passage;
    message *each = &p->messages[m];
    if (w->out < 0 && c->losing && each->mark == 0) {
        lose_message(p, c, m, now);
        return 0;
    }
    c->sent++;
    look_ahead(p, c);
    if (w->out < 0) {
        leaves_host(p, c, m, now);
        return 1;
    }
    each->time = now;
    append(p, &w->leaving, m);
    if (w->leaving.n == 1) announce_to_card(p, w->out, &w->leaving, w->place_out);
    return 1;
}

/* Take the message that is next at a card. */
static int32_t take_next(plane *p, card *k, list *l) {
    int32_t m = take_first(p, l);
    if (l->n) {
        arrival a = {p->messages[l->head].time, 0, k->coming[0].position};
        sift_down(k->coming, k->coming_n, a);
    } else if (--k->coming_n) {
        sift_down(k->coming, k->coming_n, k->coming[k->coming_n]);
    }
    if (k->coming_n) {
        int32_t next = k->channels[k->coming[0].position];
        __builtin_prefetch(&p->passages[next]);
        __builtin_prefetch(&p->channels[next].wire);
        __builtin_prefetch(&p->channels[next].last);
    }
    return m;
}

/* A message has its turn at a card; returns when it is through. */
static int64_t through(card *k, int64_t now, int64_t takes) {
    k->free_at = (k->free_at < now ? now : k->free_at) + takes;
    k->busy += takes;
    return k->free_at;
}

/* What happens at a card next, happens. Control messages take no time. */
int32_t card_step(plane *p, card *k) {
    int32_t why = scarce(p);
    if (why) return why;
    int32_t number = k->channels[k->coming[0].position];
    channel *c = &p->channels[number];
    passage *w = &p->passages[number];
    int32_t m = take_next(p, k, k->into ? &w->flying : &w->leaving);
    int64_t now = p->messages[m].time;
    int mark = p->messages[m].mark != 0;
    if (k->into) {
        int64_t here = through(k, now, mark ? 0 : w->in_takes);
        if (w->through < here) w->through = here;
        arrives(p, c, m, w->through);
        return DONE;
    }
    int64_t gone = through(k, now, mark ? 0 : w->out_takes);
    if (c->losing && !mark) {
        c->sent--;
        forget_draws(p, c);
        lose_message(p, c, m, now);
    } else {
        leaves_host(p, c, m, gone);
    }
    return DONE;
}

/* What comes to a card is in order again, after it has changed. */
void plane_lay_card(plane *p, int32_t number) {
    card *k = &p->cards[number];
    k->coming_n = 0;
    for (int32_t place = 0; place < k->n; place++) {
        const passage *w = p->channels[k->channels[place]].passage;
        const list *l = k->into ? &w->flying : &w->leaving;
        if (l->n) announce_to_card(p, number, l, place);
    }
}

/* An end of a channel has moved. What was to come to the card of the receiver's host arrives then, and is not
 * overtaken. */
void plane_lead(plane *p, int32_t number, int64_t now, int32_t unpacks) {
    channel *c = &p->channels[number];
    plane_take_in(p, c->down, now);
    passage *w = c->passage;
    if (w) {
        while (w->flying.n) {
            int32_t m = take_first(p, &w->flying);
            if (w->through < p->messages[m].time) w->through = p->messages[m].time;
            arrives(p, c, m, w->through);
        }
        if (c->last < w->through) c->last = w->through;
    }
    c->unpacks = unpacks;
    for (int32_t m = c->wire.head, n = c->wire.n; n > 0; n--, m = p->messages[m].next)
        p->messages[m].flags = (p->messages[m].flags & ~FROM_AFAR) | (unpacks ? FROM_AFAR : 0);
}
