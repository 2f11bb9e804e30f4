/* Upstream buffers: what senders keep and send again, and what of that receivers let in. */
#ifndef TIDEOVER_BUFFERS_H
#define TIDEOVER_BUFFERS_H
#include "messages.h"

/* What is made for a channel has a number from now on, and its sender keeps it; returns whether it stays there. */
int keep(plane *p, const channel *c, int32_t m);

/* The next message of a replay leaves; returns why not. */
int32_t replay_step(plane *p, task *t, int64_t now);

/* Take what arrives at a task to which something is replayed; returns why not. */
int32_t screen(plane *p, task *t, int64_t now);

/* The end of a replay was processed. */
void replay_is_over(plane *p, task *t, buffer *b);

HOT int screens(const task *t) { return t->bounded & SCREENS; }

/* How far a task is with what is kept for it. */
HOT void note_processed(plane *p, task *t, int32_t m) {
    const message *each = &p->messages[m];
    if (t->done && each->mark == 0) t->done[p->paths[m]] = each->uid;
    buffer *b = p->channels[t->first_input + each->source].buffer;
    if (!b) return;
    if (each->mark == END_OF_REPLAY) replay_is_over(p, t, b);
    else if (p->numbers[m].number > b->processed) b->processed = p->numbers[m].number;
}
#endif
