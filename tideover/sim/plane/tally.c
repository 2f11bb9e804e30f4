/* Latencies, sorted into the histograms of seconds. */
#include "tallies.h"

/* The latencies of ``seconds`` seconds from ``second`` on, since creation or since the root's first emission. */
void plane_tally(const latency *l, int64_t n, int32_t since_first, int64_t second, int64_t seconds, tally *out) {
    for (int64_t i = 0; i < n; i++) {
        int64_t place = l[i].time / SECOND - second;
        if (place < 0 || place >= seconds) continue;
        tally_up(&out[place], since_first ? l[i].since_first : l[i].since_created);
    }
}
