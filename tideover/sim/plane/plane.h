/* The data plane's public side. C includes this file, and Python reads it through cffi, which knows no preprocessor:
 * only plain structs, enums and prototypes, and `#define NAME integer`. Lines that begin with #ifndef, #include,
 * #endif or an attribute of their own are for C alone. */
#ifndef TIDEOVER_PLANE_H
#define TIDEOVER_PLANE_H

#include <stdint.h>

#pragma GCC visibility push(default)

/* The compiler that made this library, with its version. */
const char *plane_made_by(void);

/* SHA-256 of the sources that it was made of (build.py says of what exactly), as 64 hexadecimal digits. */
const char *plane_sources(void);

/* How a duration is drawn. */
enum {
    DRAW_CONSTANT,    /* always `low` */
    DRAW_UNIFORM,     /* from `low` to `low` + `spread` */
    DRAW_EXPONENTIAL, /* with this `mean` */
    DRAW_EMPIRICAL,   /* one of `values` */
    DRAW_REQUEST,     /* attempts, each as long as `answer` says, or until `timeout` */
    DRAW_ELSEWHERE    /* by Python, which hands in what it drew */
};

/* Walker's alias table of 2**log2_cells cells. The upper bits of a draw choose a cell; it gives its own index if a coin
 * of 32 bits is below own[cell], else alias[cell]. */
typedef struct {
    const uint32_t *own;
    const int64_t *alias;
    int32_t log2_cells;
} alias_table;

/* A distribution of durations in ns. Fields that its kind does not use are 0. */
typedef struct distribution distribution;
struct distribution {
    int32_t kind;
    int32_t retries; /* attempts of a request after the first */
    int64_t low;
    int64_t spread;
    int64_t mean;
    const int64_t *values;
    alias_table table;          /* of the indexes of `values` */
    const distribution *answer; /* time until a request is answered */
    int64_t timeout;            /* an attempt is given up then; the largest integer: it is waited for */
    int64_t backoff;            /* pause before each attempt after the first */
    int64_t at_least;           /* what each attempt takes, where requests per second are limited */
};

/* The functions below fill `out` with n results, one for each element of their arrays. `out` may be one of these. */

/* 64 random bits of the family `key` for each index and attempt. `attempt` may be NULL: 0 throughout. */
void draw_bits_array(uint64_t key, const int64_t *index, const int64_t *attempt, int64_t n, uint64_t *out);

/* An id of 64 bits for each index and attempt. `attempt` may be NULL: 0 throughout. */
void draw_identity_array(uint64_t key, const int64_t *index, const int64_t *attempt, int64_t n, uint64_t *out);

/* The finaliser of splitmix64. */
void mix64_array(const uint64_t *bits, int64_t n, uint64_t *out);

/* Numbers in the open interval (0, 1). */
void uniform01_array(const uint64_t *bits, int64_t n, double *out);

/* Integers in [0, limit); 0 < limit < 2**31. */
void below_array(const uint64_t *bits, int64_t limit, int64_t n, int64_t *out);

/* Indexes from an alias table. */
void draw_index_array(const alias_table *table, const uint64_t *bits, int64_t n, int64_t *out);

/* Durations in ns; the distribution is not DRAW_ELSEWHERE. */
void draw_duration_array(const distribution *law, const uint64_t *bits, int64_t n, int64_t *out);

/* Natural logarithms of positive normal numbers. */
void natural_log_array(const double *x, int64_t n, double *out);

#pragma GCC visibility pop

#endif
