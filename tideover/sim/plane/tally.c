/* Latencies, sorted into the histograms of seconds. */
#include <string.h>

#include "plane.h"

__extension__ typedef unsigned __int128 wide;

#define SECOND 1000000000
#define FIRST_BIN ((1022 << 7) + 1)

/* The bin of a value: exponent and upper 7 bits of the fraction of its double. */
static int32_t bin_of(int64_t value) {
    double x = (double)value;
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t code = bits >> 45;
    return code < FIRST_BIN ? 0 : (int32_t)(code - FIRST_BIN);
}

/* The latencies of ``seconds`` seconds from ``second`` on, since creation or since the root's first emission. */
void plane_tally(const latency *l, int64_t n, int32_t since_first, int64_t second, int64_t seconds, tally *out) {
    for (int64_t i = 0; i < n; i++) {
        int64_t place = l[i].time / SECOND - second;
        if (place < 0 || place >= seconds) continue;
        tally *t = &out[place];
        int64_t value = since_first ? l[i].since_first : l[i].since_created;
        wide square = (wide)(uint64_t)value * (uint64_t)value;
        wide sum = ((wide)t->squares_high << 64 | t->squares_low) + square;
        t->squares_high = (uint64_t)(sum >> 64);
        t->squares_low = (uint64_t)sum;
        t->count++;
        t->sum += value;
        if (value > t->greatest) t->greatest = value;
        t->bins[bin_of(value)]++;
    }
}
