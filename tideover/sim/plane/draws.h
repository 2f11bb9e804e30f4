/* Randomness as a function, tuple by tuple: what tideover/sim/draws.py says, for the rest of the data plane.
 *
 * All of it is integers and IEEE 754 doubles with +, -, *, / and comparisons, compiled without contraction and without
 * libm, so that the same seed gives the same bytes on every machine. */
#ifndef TIDEOVER_DRAWS_H
#define TIDEOVER_DRAWS_H

#include <stdint.h>
#include <string.h>

#include "plane.h"

#define LONGEST_DURATION (INT64_C(10000) * 86400 * 1000000000) /* MAX_DURATION of tideover/sim/units.py */

/* Finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). */
static inline uint64_t mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The place of a draw in its family, before it is mixed. */
static inline uint64_t draw_place(uint64_t key, int64_t index, int64_t attempt) {
    return (uint64_t)index * UINT64_C(0x9E3779B97F4A7C15) + key + (uint64_t)attempt * UINT64_C(0xD6E8FEB86659FD93);
}

/* 64 random bits for this index (a tuple's uid, a call's number). */
static inline uint64_t draw_bits(uint64_t key, int64_t index, int64_t attempt) {
    return mix64(draw_place(key, index, attempt));
}

/* A tuple's id: half of the mixing, as nothing is drawn from it. */
static inline uint64_t draw_identity(uint64_t key, int64_t index, int64_t attempt) {
    uint64_t z = draw_place(key, index, attempt);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    return z ^ (z >> 27);
}

/* The id of the copy that this replica of a task gets of a tuple. */
static inline uint64_t id_of_copy(uint64_t identity, int32_t replica) { return identity * (2 * (uint64_t)replica + 1); }

/* In the open interval (0, 1): 53 bits, centred in their cells; the centre of the last cell is no double. */
static inline double uniform01(uint64_t bits) {
    double u = ((double)(int64_t)(bits >> 11) + 0.5) * 0x1p-53;
    return u < 1 - 0x1p-53 ? u : 1 - 0x1p-53;
}

/* In [0, limit), limit < 2**31, from the upper 32 bits (bias below limit / 2**32). */
static inline int64_t below(uint64_t bits, int64_t limit) {
    return (int64_t)(((bits >> 32) * (uint64_t)limit) >> 32);
}

static inline double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Natural logarithm of a positive normal number, with an error below 1 unit in the last place.
 *
 * x = 2**k * m with m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f); then log(m) = 2 atanh(s)
 * = 2 s + s**3 g(s**2), where g(z) = 2/3 + 2/5 z + 2/7 z**2 + ..., here the polynomial of degree 6 for which the
 * relative error of log(m) is least (Remez' algorithm; 2**-59). As 2 s = f - s f = f - (f**2 / 2 - s f**2 / 2), the
 * leading term is f, which is exact, as are k times the upper 42 bits of log(2), and what rounding their sum leaves. */
static inline double natural_log(double x) {
    const uint64_t half_root = UINT64_C(0x3FE6A09E667F3BCD); /* sqrt(1/2) */
    const uint64_t one = UINT64_C(0x3FF0000000000000), fraction = (UINT64_C(1) << 52) - 1;
    uint64_t scaled = bits_of(x) + (one - half_root);
    /* The exponent, with its bias of 1023, is written into the last bits of 2**52: faster than to convert. */
    double k = double_of(UINT64_C(0x4330000000000000) | (scaled >> 52)) - (0x1p52 + 1023);
    double f = double_of((scaled & fraction) + half_root) - 1;
    double s = f / (2 + f), z = s * s, w = z * z;
    double even = 0x1.5555555555592p-1 +
                  w * (0x1.24924941f151bp-2 + w * (0x1.74663eedf6e1dp-3 + w * 0x1.2f0568a84ffb1p-3));
    double odd = 0x1.999999997fdb3p-2 + w * (0x1.c71c52093ed37p-3 + w * 0x1.39a1ba314aa2fp-3);
    double half_square = 0.5 * f * f;
    double high = k * 0x1.62e42fefa3800p-1, low = k * 0x1.ef35793c76730p-45; /* log(2) in two parts */
    double sum = high + f, left = (high - sum) + f;
    return sum + ((s * (half_square + z * (even + z * odd)) - half_square) + (left + low));
}

/* Rounded to the nearest integer, ties to even; 0 <= x < 2**63. */
static inline int64_t nearest(double x) {
    return (int64_t)(x < 0x1p52 ? (x + 0x1p52) - 0x1p52 : x);
}

/* What takes so many times as long as usual: at most the longest duration. */
static inline int64_t stretched(int64_t takes, double factor) {
    double x = (double)takes * factor;
    return nearest(x < (double)LONGEST_DURATION ? x : (double)LONGEST_DURATION);
}

/* Exponential by inversion of the upper 32 bits: -mean * log(u), u at the centre of 2**32 cells, so at most 22.9
 * means, and at most the longest duration. `scale` is -mean. */
static inline double exponential(double scale, uint64_t bits) {
    /* Read as the fraction of a number in [1, 2), which is faster than to convert; u is exact. */
    double u = double_of((bits >> 12) | UINT64_C(0x3FF00000000FFFFF)) - (1 + 0x1p-33 - 0x1p-52);
    return scale * natural_log(u);
}

/* Without a branch on the coin, as nothing can guess it. */
static inline int64_t draw_index(const alias_table *table, uint64_t bits) {
    int64_t cell = (int64_t)(bits >> (64 - table->log2_cells)), alias = table->alias[cell];
    int64_t own = (uint32_t)bits < table->own[cell];
    return alias ^ ((alias ^ cell) & -own);
}

/* Time that a request takes, with all its attempts (tideover/sim/distributions.py), if the first one would be
 * answered after `answered`. */
int64_t draw_request(const distribution *law, uint64_t bits, int64_t answered);

/* A duration in ns; the distribution is none that is drawn elsewhere. */
static inline int64_t draw_duration(const distribution *law, uint64_t bits) {
    switch (law->kind) {
    case DRAW_EXPONENTIAL: {
        double x = exponential(-(double)law->mean, bits);
        return nearest(x < (double)LONGEST_DURATION ? x : (double)LONGEST_DURATION);
    }
    case DRAW_UNIFORM:
        return nearest(uniform01(bits) * (double)law->spread) + law->low;
    case DRAW_EMPIRICAL:
        return law->values[draw_index(&law->table, bits)];
    case DRAW_REQUEST:
        return draw_request(law, bits, draw_duration(law->answer, bits));
    default:
        return law->low;
    }
}

#endif
