/*
 * Decimals and counts as 128-bit integers. A floor is kept as the plan wrote it, not as the nearest
 * double, because "0.35 of 20 items" must be reached by exactly 7 right answers. Every product here
 * stays below 2^53 * 10^18 < 2^114, so nothing overflows an unsigned __int128.
 */
#include "truthtable/condition/exact.h"

#include <math.h>
#include <stddef.h>

#define COUNT_MAX  ((int64_t)1 << 53)
#define DIGITS_MAX 18U

__extension__ typedef unsigned __int128 u128;

/* Reads digits with at most one point; *scale counts those behind it. */
static bool read_digits(const char **text, uint64_t *digits, int *scale)
{
    unsigned n = 0;
    bool point = false;
    bool any = false;
    for (; (**text >= '0' && **text <= '9') || (**text == '.' && !point); (*text)++) {
        if (**text == '.') {
            point = true;
            continue;
        }
        any = true;
        n += *digits > 0 || **text != '0' ? 1 : 0;
        if (n > DIGITS_MAX) {
            return false;
        }
        *digits = *digits * 10 + (uint64_t)(**text - '0');
        *scale += point ? 1 : 0;
    }
    return any;
}

/* Consumes "e", a sign and at most four digits; more digits remain in the text and fail the
 * parse. */
static bool read_exponent(const char **text, int *exponent)
{
    (*text)++;
    bool negative = **text == '-';
    if (**text == '-' || **text == '+') {
        (*text)++;
    }
    int e = 0;
    int n = 0;
    for (; **text >= '0' && **text <= '9' && n < 4; (*text)++, n++) {
        e = e * 10 + (**text - '0');
    }
    *exponent = negative ? -e : e;
    return n > 0;
}

/* Reduces to 0 <= scale <= 18. Trailing zeros are divided out, and a negative scale is multiplied
 * into the digits as long as they fit. */
bool decimal_parse(const char *text, struct decimal *out)
{
    uint64_t digits = 0;
    int scale = 0;
    int exponent = 0;
    if (*text == '+') {
        text++;
    }
    if (!read_digits(&text, &digits, &scale)) {
        return false;
    }
    if ((*text == 'e' || *text == 'E') && !read_exponent(&text, &exponent)) {
        return false;
    }
    scale -= exponent;
    while (scale > 0 && digits % 10 == 0) {
        digits /= 10;
        scale--;
        if (digits == 0) {
            scale = 0;
        }
    }
    for (; scale < 0 && digits < 100000000000000000ULL; scale++) {
        digits *= 10;
    }
    *out = (struct decimal){.digits = digits, .scale = (unsigned)scale};
    return *text == '\0' && scale >= 0 && scale <= (int)DIGITS_MAX;
}

/* A worker reports k / n as a double. The nearest count is the only candidate, and it is accepted
 * only if dividing gives back the same bits. */
bool score_count(double score, int64_t n, int64_t *k)
{
    if (!(score >= 0) || n <= 0 || n >= COUNT_MAX) {
        return false;
    }
    double guess = round(score * (double)n);
    /* Also refuses infinity, which cannot be converted to an integer. */
    if (!(guess < (double)COUNT_MAX)) {
        return false;
    }
    *k = (int64_t)guess;
    return guess / (double)n == score;
}

static u128 power_of_ten(unsigned e)
{
    u128 r = 1;
    for (; e > 0; e--) {
        r *= 10;
    }
    return r;
}

/* k / n >= digits / 10^scale, cross-multiplied: no division, no rounding. */
bool count_reaches(int64_t k, int64_t n, const struct decimal *d)
{
    return (u128)k * power_of_ten(d->scale) >= (u128)n * d->digits;
}

uint64_t decimal_floor_of(const struct decimal *d, uint64_t n)
{
    return (uint64_t)((u128)n * d->digits / power_of_ten(d->scale));
}
