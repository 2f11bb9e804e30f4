/* Channels, network cards, and which task of a group is next. */
#ifndef TIDEOVER_WIRES_H
#define TIDEOVER_WIRES_H

#include "draws.h"
#include "messages.h"

/* Which task of a group is next: a tournament by time, ties to the one with the lower number. */

HOT void play(group *g, int32_t i) {
    int32_t w = 2 * i + (g->next[2 * i + 1] < g->next[2 * i]);
    g->next[i] = g->next[w];
    g->winner[i] = g->winner[w];
}

/* The next event of the member at this place is at ``time`` now. */
HOT void comes_next(group *g, int32_t place, int64_t time) {
    int32_t i = g->leaves + place;
    if (g->next[i] == time) return;
    g->next[i] = time;
    while ((i /= 2)) play(g, i);
}

HOT void play_cards(group *g, int32_t i) {
    int32_t w = 2 * i;
    if (g->card_next[w + 1] < g->card_next[w]) w++;
    else if (g->card_next[w + 1] == g->card_next[w] && g->card_rank[w + 1] < g->card_rank[w]) w++;
    g->card_next[i] = g->card_next[w];
    g->card_rank[i] = g->card_rank[w];
    g->card_winner[i] = g->card_winner[w];
}

/* The next event of the card at this place is another one now. */
HOT void card_comes_next(group *g, int32_t place, int64_t time, int64_t rank) {
    int32_t i = g->card_leaves + place;
    if (g->card_next[i] == time && g->card_rank[i] == rank) return;
    g->card_next[i] = time;
    g->card_rank[i] = rank;
    while ((i /= 2)) play_cards(g, i);
}

/* Channels: what is on the wire, and in which order it arrives at a task. */

HOT int earlier(const arrival *a, const arrival *b) {
    if (a->time != b->time) return a->time < b->time;
    if (a->turn != b->turn) return a->turn < b->turn;
    return a->position < b->position;
}

HOT void sift_up(arrival *heap, int32_t i, arrival a) {
    while (i > 0 && earlier(&a, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = a;
}

HOT void sift_down(arrival *heap, int32_t n, arrival a) {
    int32_t i = 0;
    for (int32_t c = 1; c < n; c = 2 * i + 1) {
        if (c + 1 < n && earlier(&heap[c + 1], &heap[c])) c++;
        if (!earlier(&heap[c], &a)) break;
        heap[i] = heap[c];
        i = c;
    }
    heap[i] = a;
}

/* The channel's first message is known: it stands among those of its receiver. */
HOT void announce(plane *p, const channel *c) {
    task *t = &p->tasks[c->down];
    const message *m = &p->messages[c->wire.head];
    arrival a = {m->time, m->turn, c->position};
    sift_up(p->arriving + t->first_input, t->arriving++, a);
}

/* When the next message arrives at a task. */
HOT int64_t next_arrival(const plane *p, const task *t) {
    return t->arriving ? p->arriving[t->first_input].time : NEVER;
}

/* The channel over which it does. */
HOT channel *next_input(const plane *p, const task *t) {
    return &p->channels[t->first_input + p->arriving[t->first_input].position];
}

/* Take the message that arrives next off its wire. */
HOT int32_t take_arrival(plane *p, task *t) {
    arrival *heap = p->arriving + t->first_input;
    channel *c = next_input(p, t);
    int32_t m = take_first(p, &c->wire);
    if (c->wire.n) {
        const message *next = &p->messages[c->wire.head];
        __builtin_prefetch(&p->messages[next->next]);
        arrival a = {next->time, next->turn, c->position};
        sift_down(heap, t->arriving, a);
    } else if (--t->arriving) {
        sift_down(heap, t->arriving, heap[t->arriving]);
    }
    return m;
}

/* How long the message of this number is on the wire. */
HOT int64_t time_on_wire(const channel *c, int64_t number) {
    int64_t takes;
    if (c->latency.kind == DRAW_CONSTANT) takes = c->latency.low;
    else if (c->latency.kind == DRAW_ELSEWHERE) takes = c->drawn[number - c->first_drawn];
    else takes = draw_duration(&c->latency, draw_bits(c->key, number, 0));
    return c->stretch == 1.0 ? takes : stretched(takes, c->stretch);
}

void lose_message(plane *p, channel *c, int32_t m, int64_t now);

/* A message is on its way to a task: what happens there next may have changed. */
void has_come(plane *p, int32_t t);

/* A message arrives at ``time``, unless something befalls it. */
HOT void arrives(plane *p, channel *c, int32_t m, int64_t time) {
    message *each = &p->messages[m];
    each->time = time;
    each->turn = time == p->instant ? p->turn : 0;
    append(p, &c->wire, m);
    if (c->wire.n == 1) {
        announce(p, c);
        if (p->moving) has_come(p, c->down);
    }
}

/* The message of this number is on the wire from ``leaves`` on; returns until when. */
HOT int64_t fly(channel *c, int64_t leaves, int64_t number) {
    int64_t time = leaves + time_on_wire(c, number);
    if (time < c->last) time = c->last;
    c->last = time;
    return time;
}

int send_by_cards(plane *p, channel *c, int32_t m, int64_t now);

/* The next latencies of a channel have to be drawn before anything else is sent. */
HOT void look_ahead(plane *p, const channel *c) {
    if (c->latency.kind == DRAW_ELSEWHERE && c->sent + p->most_made > c->first_drawn + c->n_drawn)
        p->unknown = (int32_t)(c - p->channels) + 1;
}

/* A message leaves by a channel; returns whether it is on its way. */
HOT int send_message(plane *p, channel *c, int32_t m, int64_t now) {
    message *each = &p->messages[m];
    each->source = c->position;
    if (c->plain) {
        int64_t time = now + c->takes;
        if (time < c->last) time = c->last;
        c->last = time;
        c->sent++;
        arrives(p, c, m, time);
        return 1;
    }
    if (c->unpacks) each->flags |= FROM_AFAR;
    if (c->passage) {
        return send_by_cards(p, c, m, now);
    }
    if (c->losing && each->mark == 0) {
        lose_message(p, c, m, now);
        return 0;
    }
    int64_t time = fly(c, now, c->sent - c->stuck);
    c->sent++;
    look_ahead(p, c);
    arrives(p, c, m, time);
    return 1;
}

/* Network cards: what waits there, and what happens when it has its turn. */

/* When something happens at a card next. */
HOT int64_t card_next(const card *k) { return k->coming_n ? k->coming[0].time : NEVER; }

/* Where what happens there next stands among all that happens at cards at one instant. */
HOT int64_t card_rank(const plane *p, const card *k) {
    if (!k->coming_n) return NEVER;
    const channel *c = &p->channels[k->channels[k->coming[0].position]];
    return (int64_t)c->up << 32 | c->down;
}

int32_t card_step(plane *p, card *k);

/* A message is on its way to a card: what happens there next may have changed. */
void has_come_to_card(plane *p, int32_t k);

#endif
