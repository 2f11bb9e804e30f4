/* Draws of whole arrays: for Python, of requests, and ahead for the data plane. */

#include "draws.h"
#include "spouts.h"
#include "wires.h"

/* Draws of whole arrays, for Python; and of requests, which are more than a line. */

/* Elements of a block. Compilers turn loops of known length into vector instructions, at -O2 too. */
#define BLOCK 64

/* The longest mean for which no duration reaches 2**51: 2**46 * 22.9. */
#define SHORT_MEAN (INT64_C(1) << 46)

/* The same instructions for more numbers at a time, where the machine has them: the same bytes. */
#if defined(__x86_64__)
#define WIDE __attribute__((target("avx512f,avx512dq")))
#define IS_WIDE (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
#else
#define WIDE
#define IS_WIDE 0
#endif

WIDE static void draw_bits_wide(uint64_t key, const int64_t *index, const int64_t *attempt, uint64_t *out) {
    uint64_t block[BLOCK];
    for (int i = 0; i < BLOCK; i++) block[i] = draw_bits(key, index[i], attempt[i]);
    memcpy(out, block, sizeof block);
}

void draw_bits_array(uint64_t key, const int64_t *index, const int64_t *attempt, int64_t n, uint64_t *out) {
    int64_t done = 0;
    if (attempt && IS_WIDE)
        for (; done + BLOCK <= n; done += BLOCK) draw_bits_wide(key, index + done, attempt + done, out + done);
    for (; done < n; done++) out[done] = draw_bits(key, index[done], attempt ? attempt[done] : 0);
}

void draw_identity_array(uint64_t key, const int64_t *index, const int64_t *attempt, int64_t n, uint64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = draw_identity(key, index[i], attempt ? attempt[i] : 0);
    }
}

void mix64_array(const uint64_t *bits, int64_t n, uint64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = mix64(bits[i]);
    }
}

void uniform01_array(const uint64_t *bits, int64_t n, double *out) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = uniform01(bits[i]);
    }
}

void below_array(const uint64_t *bits, int64_t limit, int64_t n, int64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = below(bits[i], limit);
    }
}

void draw_index_array(const alias_table *table, const uint64_t *bits, int64_t n, int64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = draw_index(table, bits[i]);
    }
}

void natural_log_array(const double *x, int64_t n, double *out) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = natural_log(x[i]);
    }
}

int64_t draw_request(const distribution *law, uint64_t bits, int64_t answered) {
    const uint64_t next = UINT64_C(0xA0761D6478BD642F); /* odd, and no other draw's */
    int64_t total = 0;
    for (int32_t attempt = 0;; attempt++) {
        int64_t took = answered < law->timeout ? answered : law->timeout;
        total += took > law->at_least ? took : law->at_least;
        total = total < LONGEST_DURATION ? total : LONGEST_DURATION;
        if (answered <= law->timeout || attempt == law->retries) {
            return total;
        }
        total += law->backoff;
        answered = draw_duration(law->answer, mix64(bits + (uint64_t)(attempt + 1) * next));
    }
}

/* Blocks of exponential durations below 2**51, which a sum with 1.5 * 2**52 rounds and leaves in the lower bits. */
static inline __attribute__((always_inline)) int64_t exponential_blocks(double scale, const uint64_t *bits, int64_t n,
                                                                        int64_t *out) {
    int64_t done = 0;
    for (; done + BLOCK <= n; done += BLOCK) {
        uint64_t block[BLOCK];
        memcpy(block, bits + done, sizeof block);
        for (int i = 0; i < BLOCK; i++) {
            block[i] = bits_of(exponential(scale, block[i]) + 0x1.8p52) - bits_of(0x1.8p52);
        }
        memcpy(out + done, block, sizeof block);
    }
    return done;
}

static int64_t exponential_blocks_narrow(double scale, const uint64_t *bits, int64_t n, int64_t *out) {
    return exponential_blocks(scale, bits, n, out);
}

WIDE static int64_t exponential_blocks_wide(double scale, const uint64_t *bits, int64_t n, int64_t *out) {
    return exponential_blocks(scale, bits, n, out);
}

/* The first attempts of a block's requests are drawn together. */
static void draw_request_array(const distribution *law, const uint64_t *bits, int64_t n, int64_t *out) {
    int64_t answered[BLOCK];
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t size = n - done < BLOCK ? n - done : BLOCK;
        draw_duration_array(law->answer, bits + done, size, answered);
        for (int64_t i = 0; i < size; i++) {
            out[done + i] = draw_request(law, bits[done + i], answered[i]);
        }
    }
}

void draw_duration_array(const distribution *law, const uint64_t *bits, int64_t n, int64_t *out) {
    int64_t done = 0;
    if (law->kind == DRAW_REQUEST) {
        draw_request_array(law, bits, n, out);
        return;
    }
    if (law->kind == DRAW_EXPONENTIAL && law->mean < SHORT_MEAN && n >= BLOCK) {
        int64_t (*blocks)(double, const uint64_t *, int64_t, int64_t *) =
            IS_WIDE ? exponential_blocks_wide : exponential_blocks_narrow;
        done = blocks(-(double)law->mean, bits, n, out);
    }
    for (; done < n; done++) {
        out[done] = draw_duration(law, bits[done]);
    }
}

/* Draws that are worked out ahead, many at once: several times as fast as one by one. */

/* The gaps before the next calls. */
void draw_gaps(task *t) {
    int64_t calls[GAPS];
    uint64_t bits[GAPS];
    for (int i = 0; i < GAPS; i++) calls[i] = t->calls + i;
    draw_bits_array(t->gap_key, calls, 0, GAPS, bits);
    draw_duration_array(&t->gap, bits, GAPS, t->gaps);
    for (int i = 0; i < GAPS; i++)
        if (t->gaps[i] < 1) t->gaps[i] = 1;
    t->first_gap = t->calls;
}

/* Draw the services that are due. */
void draw_services(plane *p, const component *c) {
    draws_due *due = c->due;
    uint64_t bits[TOGETHER];
    int64_t takes[TOGETHER];
    draw_bits_array(c->service_key, due->uid, due->attempt, due->n, bits);
    draw_duration_array(&c->service, bits, due->n, takes);
    for (int32_t i = 0; i < due->n; i++) p->work[due->which[i]] = takes[i];
    due->n = 0;
}
