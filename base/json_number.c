/* Numbers of base/json.h: the shortest text of a double, and a double of its text. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/xalloc.h"

__extension__ typedef unsigned __int128 u128;

#define DIGITS_MAX     24
#define POWER_MAX      22 /* 10^22 is the largest power of ten that is a double */
#define POWER_FIVE_MAX 27 /* 5^27 is the largest power of five below 2^63 */

static const double powers[POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* The digits of v without a NUL; how many. */
static int put_whole(char *to, uint64_t v)
{
    char backwards[DIGITS_MAX];
    int n = 0;
    do {
        backwards[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    for (int i = 0; i < n; i++) {
        to[i] = backwards[n - 1 - i];
    }
    return n;
}

static uint64_t power_of(uint64_t base, int e)
{
    uint64_t r = 1;
    for (; e > 0; e--) {
        r *= base;
    }
    return r;
}

/* v rounded to `n` digits in whole numbers: v is m * 2^-s, so v * 10^k is m * 5^k * 2^(k-s). False
 * where that does not fit, or where rounding carries into one more digit. *exponent is that of the
 * first digit, or one more. */
static bool rounded_digits_whole(double v, int n, uint64_t *digits, int *exponent)
{
    int e = *exponent;
    int binary = 0;
    const uint64_t m = (uint64_t)ldexp(frexp(v, &binary), DBL_MANT_DIG);
    const u128 least = power_of(10, n - 1);
    for (int i = 0; i < 2; i++, e--) {
        const int k = n - 1 - e;
        const int shift = DBL_MANT_DIG - binary - k;
        if (k < 0 || k > POWER_FIVE_MAX || shift < 1 || shift > 126) {
            return false;
        }
        const u128 scaled = (u128)m * power_of(5, k);
        const u128 rest = scaled & (((u128)1 << shift) - 1);
        const u128 half = (u128)1 << (shift - 1);
        const u128 whole = scaled >> shift;
        if (whole >= least) {
            *digits = (uint64_t)(whole + (rest > half || (rest == half && (whole & 1) != 0)));
            *exponent = e;
            return *digits < least * 10;
        }
    }
    return false;
}

/* v rounded to `n` digits as an integer, and the exponent of its first digit: given as it is, or
 * one more. */
static uint64_t rounded_digits(double v, int n, int *exponent)
{
    char text[40];
    uint64_t m;
    if (v >= DBL_MIN && rounded_digits_whole(v, n, &m, exponent)) {
        return m;
    }
    m = 0;
    (void)snprintf(text, sizeof(text), "%.*e", n - 1, v);
    const char *p = text;
    for (; *p != '\0' && *p != 'e'; p++) {
        if (*p != '.') {
            m = m * 10 + (uint64_t)(*p - '0');
        }
    }
    *exponent = (int)strtol(p + 1, NULL, 10);
    return m;
}

/* Whether m * 10^exponent is v once rounded to a double. */
static bool reads_back(uint64_t m, int exponent, double v)
{
    char text[40];
    if (m <= (uint64_t)JSON_INT_MAX && abs(exponent) <= POWER_MAX) {
        /* Both operands are exact, so that one operation rounds as reading does. */
        double whole = (double)m;
        return (exponent < 0 ? whole / powers[-exponent] : whole * powers[exponent]) == v;
    }
    (void)snprintf(text, sizeof(text), "%llue%d", (unsigned long long)m, exponent);
    return strtod(text, NULL) == v;
}

/* The shortest digits of v > 0 that read back as v: digits without a point, and the exponent of the
 * first one. How many there are. Of n digits the nearest decimal comes first; at a power of two
 * doubles lie twice as far apart above as below, so the one above may read back where the nearest,
 * below, does not.
 *
 * Where doubles are normal, at most one decimal of DBL_DIG digits reads back as v, and it is the
 * nearest; a shorter one is the same with zeros at its end. So the search begins there. */
static int shortest_digits(double v, char digits[DIGITS_MAX], int *exponent)
{
    uint64_t m = 0;
    int n = v >= DBL_MIN ? DBL_DIG - 1 : 0;
    bool found = false;
    *exponent = (int)floor(log10(v)); /* one more next to a power of ten, where it rounds */
    while (!found) {
        m = rounded_digits(v, ++n, exponent);
        found = n == DBL_DECIMAL_DIG || reads_back(m, *exponent - n + 1, v);
        if (!found && reads_back(m + 1, *exponent - n + 1, v)) {
            m++;
            found = true;
        }
    }
    *exponent -= n - 1; /* of the last digit now */
    for (; m % 10 == 0; m /= 10) {
        ++*exponent;
    }
    const int len = put_whole(digits, m);
    digits[len] = '\0';
    *exponent += len - 1;
    return len;
}

/* Writes s and its NUL at `to`. */
static void put_text(char *to, const char *s)
{
    memcpy(to, s, strlen(s) + 1);
}

/* ECMAScript's forms, of k digits of which the first has exponent e. */
static void put_number(char *to, const char *digits, int k, int e)
{
    if (e >= 0 && e < 21 && k <= e + 1) {
        memset(to, '0', (size_t)e + 1);
        memcpy(to, digits, (size_t)k);
        to[e + 1] = '\0';
    } else if (e >= 0 && e < 21) {
        memcpy(to, digits, (size_t)e + 1);
        to[e + 1] = '.';
        put_text(to + e + 2, digits + e + 1);
    } else if (e < 0 && e >= -6) {
        memcpy(to, "0.00000", 7);
        put_text(to + 1 - e, digits);
    } else {
        (void)snprintf(to, JSON_NUMBER_MAX - 1, "%.1s%s%se%+d", digits, k > 1 ? "." : "",
                       digits + 1, e);
    }
}

void json_number_text(double v, char text[JSON_NUMBER_MAX])
{
    char digits[DIGITS_MAX];
    int e = 0;
    if (!isfinite(v)) {
        put_text(text, "null");
        return;
    }
    if (v < 0) {
        *text++ = '-';
        v = -v;
    }
    if (floor(v) == v && v < 1e15) {
        text[put_whole(text, (uint64_t)v)] = '\0';
        return;
    }
    const int k = shortest_digits(v, digits, &e);
    put_number(text, digits, k, e);
}

/* A whole number below 2^53 times or over a power of ten that is a double: one operation, rounded
 * as reading rounds. False for all else. */
static bool number_of_digits(const char *text, size_t len, double *out)
{
    uint64_t m = 0;
    int scale = 0;
    bool point = false;
    const bool negative = text[0] == '-';
    for (size_t i = negative ? 1 : 0; i < len; i++) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || m > (uint64_t)JSON_INT_MAX / 10 - 1) {
            return false;
        }
        m = m * 10 + (uint64_t)(text[i] - '0');
        scale += point ? 1 : 0;
    }
    if (scale > POWER_MAX) {
        return false;
    }
    const double v = (double)m / powers[scale];
    *out = negative ? -v : v;
    return true;
}

double json_number_read(const char *text, size_t len)
{
    char copy[JSON_NUMBER_READ_MAX + 1];
    double v = 0;
    assert(len > 0 && len <= JSON_NUMBER_READ_MAX);
    if (number_of_digits(text, len, &v)) {
        return v;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    return strtod(copy, NULL);
}
