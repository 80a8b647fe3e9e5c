/*
 * Columns, names, distances and numbers with units: everything that reads or measures a short text
 * of a user.
 */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define NEAREST_MAX 64

static size_t char_columns(uint32_t cp)
{
    if ((cp >= 0x300 && cp <= 0x36F) || (cp >= 0x200B && cp <= 0x200F) ||
        (cp >= 0xFE00 && cp <= 0xFE0F)) {
        return 0;
    }
    bool wide = (cp >= 0x1100 && cp <= 0x115F) || (cp >= 0x2E80 && cp <= 0xA4CF) ||
                (cp >= 0xAC00 && cp <= 0xD7A3) || (cp >= 0xF900 && cp <= 0xFAFF) ||
                (cp >= 0xFF00 && cp <= 0xFF60) || (cp >= 0x1F300 && cp <= 0x1FAFF) ||
                (cp >= 0x20000 && cp <= 0x3FFFD);
    return wide ? 2 : 1;
}

size_t text_columns(const char *s)
{
    size_t len = strlen(s);
    size_t columns = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        size_t n = text_utf8_next(s + i, len - i, &cp);
        columns += n == 0 ? 1 : char_columns(cp);
        i += n == 0 ? 1 : n;
    }
    return columns;
}

bool text_is_name(const char *s)
{
    if (s[0] < 'a' || s[0] > 'z') {
        return false;
    }
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return s[n] == '\0' && n <= 64;
}

/* Levenshtein distance of two strings of at most NEAREST_MAX bytes. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NEAREST_MAX + 1];
    size_t lb = strlen(b);
    for (size_t j = 0; j <= lb; j++) {
        row[j] = j;
    }
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 1; j <= lb; j++) {
            size_t change = diagonal + (a[i] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            size_t best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < best ? change : best;
        }
    }
    return row[lb];
}

const char *text_nearest(const char *s, const char *const *known, size_t n_known)
{
    const char *best = NULL;
    size_t len = strlen(s);
    size_t limit = len / 3 + 1;
    if (len > NEAREST_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < n_known; i++) {
        if (strlen(known[i]) > NEAREST_MAX) {
            continue;
        }
        size_t d = distance(s, known[i]);
        if (d <= limit && (best == NULL || d < limit)) {
            best = known[i];
            limit = d;
        }
    }
    return best;
}

const char *text_plural(int64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

int text_to_int(const char *s, int64_t min, int64_t max, int64_t *out, struct err *err)
{
    const char *first = s[0] == '-' ? s + 1 : s;
    if (first[0] < '0' || first[0] > '9') {
        return err_set(err, ERR_SYNTAX, "\"%.40s\" is not a whole number", s);
    }
    char *end = NULL;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (*end != '\0') {
        return err_set(err, ERR_SYNTAX, "\"%.40s\" is not a whole number", s);
    }
    if (errno != 0 || v < min || v > max) {
        return err_set(err, ERR_RANGE, "%.40s is outside %lld..%lld", s, (long long)min,
                       (long long)max);
    }
    *out = v;
    return 0;
}

int text_to_double(const char *s, double *out, struct err *err)
{
    /* strtod also takes hexadecimal, "inf" and "nan": only decimal digits are valid here. */
    char *end = NULL;
    if (s[0] == '\0' || s[strspn(s, "+-.0123456789eE")] != '\0') {
        return err_set(err, ERR_SYNTAX, "\"%.40s\" is not a number", s);
    }
    double v = strtod(s, &end);
    if (*end != '\0' || end == s) {
        return err_set(err, ERR_SYNTAX, "\"%.40s\" is not a number", s);
    }
    if (!isfinite(v)) {
        return err_set(err, ERR_RANGE, "\"%.40s\" is outside the range of a double", s);
    }
    *out = v;
    return 0;
}

struct unit {
    const char *name;
    double factor;
};

static int with_unit(const char *s, const struct unit *units, size_t n_units, int64_t *out,
                     struct err *err)
{
    char number[32];
    size_t n = strspn(s, "0123456789.");
    if (n == 0 || n >= sizeof(number)) {
        return err_set(err, ERR_SYNTAX, "\"%.40s\" does not start with a number", s);
    }
    memcpy(number, s, n);
    number[n] = '\0';
    double v = 0;
    int rc = text_to_double(number, &v, err);
    if (rc != 0) {
        return rc;
    }
    const char *unit = s + n + strspn(s + n, " ");
    for (size_t i = 0; i < n_units; i++) {
        if (strcmp(unit, units[i].name) != 0) {
            continue;
        }
        v *= units[i].factor;
        if (v < 1 || v > 9007199254740991.0) {
            return err_set(err, ERR_RANGE, "\"%.40s\" is out of range", s);
        }
        *out = (int64_t)v;
        return 0;
    }
    char known[64] = "";
    for (size_t i = 0; i < n_units && units[i].name[0] != '\0'; i++) {
        size_t len = strlen(known);
        (void)snprintf(known + len, sizeof(known) - len, "%s%s", i == 0 ? "" : " ", units[i].name);
    }
    return err_set(err, ERR_SYNTAX, "\"%.40s\" has an unknown unit; known: %s", s, known);
}

int text_to_bytes(const char *s, int64_t *out, struct err *err)
{
    static const struct unit units[] = {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10},
                                        {"TiB", 0x1p40}, {"GB", 1e9},     {"MB", 1e6},
                                        {"kB", 1e3},     {"B", 1},        {"", 1}};
    return with_unit(s, units, sizeof(units) / sizeof(units[0]), out, err);
}

int text_to_ms(const char *s, int64_t *out, struct err *err)
{
    static const struct unit units[] = {
        {"s", 1e3}, {"ms", 1}, {"min", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}};
    return with_unit(s, units, sizeof(units) / sizeof(units[0]), out, err);
}

void text_last_line(int fd, off_t from, char *text, size_t size)
{
    char tail[2048];
    off_t end = lseek(fd, 0, SEEK_END);
    from = end - from > (off_t)sizeof(tail) ? end - (off_t)sizeof(tail) : from;
    ssize_t n = end > from ? pread(fd, tail, sizeof(tail), from) : 0;
    size_t to = n > 0 ? (size_t)n : 0;
    while (to > 0 && isspace((unsigned char)tail[to - 1])) {
        to--;
    }
    size_t begin = to;
    while (begin > 0 && tail[begin - 1] != '\n') {
        begin--;
    }
    (void)snprintf(text, size, "%.*s", (int)(to - begin), tail + begin);
    text_make_line(text);
}
