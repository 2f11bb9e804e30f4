/* What comes of outages. */
#ifndef TIDEOVER_SPANS_H
#define TIDEOVER_SPANS_H
#include "tallies.h"

void watch_tuple(plane *p, const task *t, const message *m, int64_t root, int64_t now);
void settle_spans(plane *p);
#endif
