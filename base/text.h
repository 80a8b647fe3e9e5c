/* Text helpers: UTF-8, nearest name, tables for terminals, strict numbers from strings. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

bool text_is_utf8(const char *s, size_t len);
/* Puts '?' for every byte that is not of a character. */
void text_make_utf8(char *s);
/* One line that is text_is_plain(): the same, '?' for every byte of what is not plain, a blank for
 * ends of lines and tabs. */
void text_make_line(char *s);
/* Copies text as such a line, cut to fit at a character. */
void text_copy_line(char *to, size_t size, const char *text);
/* How much of s[0..len) is left without a last character that was cut in half. */
size_t text_whole_chars(const char *s, size_t len);
/* Bytes of the well-formed character at s (1..4), 0 when malformed or len is 0; *cp may be NULL. */
size_t text_utf8_next(const char *s, size_t len, uint32_t *cp);
/* Well-formed, without control characters (line ends are such, too) and marks that turn the
 * direction of what follows: safe to print, on one line. */
bool text_is_plain(const char *s);
/* Terminal columns of a UTF-8 string (combining marks 0, wide East Asian 2). */
size_t text_columns(const char *s);

/* [a-z][a-z0-9_]*, at most 64 bytes */
bool text_is_name(const char *s);

/* The known name nearest to s by edit distance, if near enough to suggest (<= 1/3 of its length +
 * 1); else NULL. */
const char *text_nearest(const char *s, const char *const *known, size_t n_known);

/* "%lld %s", n, text_plural(n, "task", "tasks"): `one` where n is 1. */
const char *text_plural(int64_t n, const char *one, const char *many);

/* The whole string must be a number; ERR_SYNTAX or ERR_RANGE otherwise. */
int text_to_int(const char *s, int64_t min, int64_t max, int64_t *out, struct err *err) MUST_CHECK;
int text_to_double(const char *s, double *out, struct err *err) MUST_CHECK; /* finite only */
/* "8GiB", "512MiB", "1024": bytes; "300s", "5min", "2h", "1500ms": milliseconds. Positive only. */
int text_to_bytes(const char *s, int64_t *out, struct err *err) MUST_CHECK;
int text_to_ms(const char *s, int64_t *out, struct err *err) MUST_CHECK;

/* The last line of the text behind `from` of an open file, without what is blank at its end; ""
 * when there is none. Cut to size, valid UTF-8. */
void text_last_line(int fd, off_t from, char *text, size_t size);

#endif
