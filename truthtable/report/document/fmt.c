/*
 * Formats numbers for readers: a real minus sign, grouped thousands, no locale. A value that is not
 * finite is an em dash in every function, so an unknown can never be read as a number. Rounding is
 * printf's; a zero left by rounding has no sign.
 */
#include "truthtable/report/document/fmt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/math/elementary.h"
#include "base/text.h"
#include "base/xalloc.h"

#define ELLIPSIS   "\xe2\x80\xa6"
#define PLUS_MINUS "\xc2\xb1"
#define PLACES_MAX 8

/* Zero that only rounding made negative prints without a sign. */
static bool is_zero_text(const char *digits)
{
    return strspn(digits, "0.") == strlen(digits);
}

/* Puts the sign before digits of an absolute value. */
static const char *with_sign(struct arena *a, double v, const char *digits, bool always)
{
    if (is_zero_text(digits)) {
        return digits;
    }
    if (v < 0) {
        return arena_printf(a, FMT_MINUS "%s", digits);
    }
    return always ? arena_printf(a, "+%s", digits) : digits;
}

/* A value of more than 15 digits before the point has an exponent. */
static const char *fixed_digits(struct arena *a, double v, int decimals)
{
    return fabs(v) < 1e15 ? arena_printf(a, "%.*f", decimals, fabs(v))
                          : arena_printf(a, "%.4e", fabs(v));
}

/* As many decimals as given, whatever the value. */
const char *fmt_fixed(struct arena *a, double v, int decimals)
{
    if (!isfinite(v)) {
        return FMT_NONE;
    }
    return with_sign(a, v, fixed_digits(a, v, decimals), false);
}

/* For differences, which are read by their sign. */
const char *fmt_signed(struct arena *a, double v, int decimals)
{
    if (!isfinite(v)) {
        return FMT_NONE;
    }
    return with_sign(a, v, fixed_digits(a, v, decimals), true);
}

/* "1.500" is "1.5", "2.000" is "2"; exponents are left alone. */
static void drop_trailing_zeros(char *digits)
{
    if (strchr(digits, '.') == NULL || strchr(digits, 'e') != NULL) {
        return;
    }
    size_t len = strlen(digits);
    while (digits[len - 1] == '0') {
        digits[--len] = '\0';
    }
    if (digits[len - 1] == '.') {
        digits[len - 1] = '\0';
    }
}

/* Groups the digits before the point by three. */
static const char *grouped(struct arena *a, const char *digits)
{
    size_t whole = strspn(digits, "0123456789");
    if (whole < 4 || digits[whole] == 'e') {
        return digits;
    }
    char *out = arena_alloc(a, strlen(digits) + whole / 3 + 1);
    size_t n = 0;
    for (size_t i = 0; digits[i] != '\0'; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0) {
            out[n++] = ',';
        }
        out[n++] = digits[i];
    }
    return out;
}

/* The number of places follows from the magnitude, so that `digits` are significant. */
const char *fmt_short(struct arena *a, double v, int digits)
{
    if (!isfinite(v)) {
        return FMT_NONE;
    }
    double size = fabs(v);
    if (size == 0) {
        return "0";
    }
    char *text;
    if (size < 1e-5 || size >= 1e15) {
        text = arena_printf(a, "%.*e", digits - 1, size);
    } else {
        /* Significant digits translate into places by the magnitude. */
        int places = digits - 1 - (int)floor(elementary_log10(size));
        text = arena_printf(a, "%.*f", places > 0 ? places : 0, size);
        drop_trailing_zeros(text);
    }
    return with_sign(a, v, grouped(a, text), false);
}

/* Places follow from the error: two of its digits. */
const char *fmt_with_error(struct arena *a, double v, double se)
{
    if (!isfinite(v) || !(se > 0) || !isfinite(se)) {
        return fmt_short(a, v, 5);
    }
    int places = 1 - (int)floor(elementary_log10(se));
    places = places < 0 ? 0 : places > PLACES_MAX ? PLACES_MAX : places;
    return arena_printf(a, "%s " PLUS_MINUS " %s", fmt_fixed(a, v, places),
                        fmt_fixed(a, se, places));
}

/* An unknown multiple has no sigma either. */
const char *fmt_sigma(struct arena *a, double v, int decimals)
{
    return isfinite(v) ? arena_printf(a, "%s\xcf\x83", fmt_signed(a, v, decimals)) : FMT_NONE;
}

/* The magnitude as unsigned, so that the least integer works, too. */
const char *fmt_count(struct arena *a, int64_t v)
{
    uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    const char *text = grouped(a, arena_printf(a, "%llu", (unsigned long long)size));
    return v < 0 ? arena_printf(a, FMT_MINUS "%s", text) : text;
}

/* Counts in JSON are doubles. */
const char *fmt_whole(struct arena *a, double v)
{
    return fabs(v) < 1e15 ? fmt_count(a, (int64_t)v) : fmt_short(a, v, 5);
}

/* "1 task", "1,000 tasks". */
const char *fmt_plural(struct arena *a, int64_t n, const char *one, const char *many)
{
    return arena_printf(a, "%s %s", fmt_count(a, n), n == 1 ? one : many);
}

/* Binary units with three digits. */
const char *fmt_bytes(struct arena *a, double bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (!isfinite(bytes)) {
        return FMT_NONE;
    }
    size_t i = 0;
    while (fabs(bytes) >= 1024 && i + 1 < ARRAY_LEN(names)) {
        bytes /= 1024;
        i++;
    }
    return arena_printf(a, "%s %s", fmt_short(a, bytes, 3), names[i]);
}

/* Milliseconds beyond 2^53 have no meaning as a time. */
const char *fmt_span(struct arena *a, double ms)
{
    if (!isfinite(ms) || fabs(ms) > 9e15) {
        return FMT_NONE;
    }
    char text[64];
    return arena_strdup(a, clock_span_text((int64_t)ms, text, sizeof(text)));
}

/* Cuts between characters, never inside one. */
const char *fmt_cut(struct arena *a, const char *text, size_t max_chars)
{
    size_t len = strlen(text);
    size_t kept = 0;
    size_t at = 0;
    for (size_t n_chars = 0; at < len; n_chars++) {
        if (n_chars == max_chars) {
            return arena_printf(a, "%.*s" ELLIPSIS, (int)kept, text);
        }
        kept = at;
        size_t n = text_utf8_next(text + at, len - at, NULL);
        at += n == 0 ? 1 : n;
    }
    return text;
}
