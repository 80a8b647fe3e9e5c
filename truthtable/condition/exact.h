/*
 * Exact comparisons of counts with decimals as written: k of n correct against a floor of "0.27",
 * without rounding (docs/truth-table.md: counts compare as exact rationals where n is known).
 */
#ifndef TRUTHTABLE_CONDITION_EXACT_H
#define TRUTHTABLE_CONDITION_EXACT_H

#include <stdbool.h>
#include <stdint.h>

/* digits * 10^-scale, non-negative. */
struct decimal {
    uint64_t digits; /* < 10^18 */
    unsigned scale;  /* 0..18 */
};

/* "0.27", "5e-2", "1". False for a negative number, for what is not a decimal and for one of more
 * digits than fit. */
bool decimal_parse(const char *text, struct decimal *out);

/* The count k behind a score of n items: true when k/n rounds to exactly this double. n > 0. */
bool score_count(double score, int64_t n, int64_t *k);

/* k/n >= d, exactly. k >= 0, 0 < n, both below 2^53. */
bool count_reaches(int64_t k, int64_t n, const struct decimal *d);

/* floor(d * n), exactly; n < 2^53. */
uint64_t decimal_floor_of(const struct decimal *d, uint64_t n);

#endif
