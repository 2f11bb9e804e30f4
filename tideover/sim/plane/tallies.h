/* Histograms of latencies. */
#ifndef TIDEOVER_TALLIES_H
#define TIDEOVER_TALLIES_H
#include <string.h>

#include "plane.h"

__extension__ typedef unsigned __int128 wide;

#define SECOND 1000000000
#define FIRST_BIN ((1022 << 7) + 1)

/* The bin of a value: exponent and upper 7 bits of the fraction of its double. */
static inline int32_t bin_of(int64_t value) {
    double x = (double)value;
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t code = bits >> 45;
    return code < FIRST_BIN ? 0 : (int32_t)(code - FIRST_BIN);
}

static inline void tally_up(tally *t, int64_t value) {
    wide square = (wide)(uint64_t)value * (uint64_t)value;
    wide sum = ((wide)t->squares_high << 64 | t->squares_low) + square;
    t->squares_high = (uint64_t)(sum >> 64);
    t->squares_low = (uint64_t)sum;
    t->count++;
    t->sum += value;
    if (value > t->greatest) t->greatest = value;
    t->bins[bin_of(value)]++;
}
#endif
