/* Numbers as a paper prints them: U+2212 for minus, thousands grouped, no locale. Texts live in the
 * arena given. A value that is not finite prints as an em dash: an unknown never looks like a
 * number. */
#ifndef TRUTHTABLE_REPORT_DOCUMENT_FMT_H
#define TRUTHTABLE_REPORT_DOCUMENT_FMT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

#define FMT_NONE  "\xe2\x80\x94"
#define FMT_MINUS "\xe2\x88\x92"

const char *fmt_fixed(struct arena *a, double v, int decimals);
/* As fmt_fixed with a sign always; zero has none. */
const char *fmt_signed(struct arena *a, double v, int decimals);
/* Up to `digits` significant digits, trailing zeros dropped; exponents only beyond 1e-5..1e15. */
const char *fmt_short(struct arena *a, double v, int digits);
/* "1.098 ± 0.018": two digits of the error, which is positive, and the value to the same place. */
const char *fmt_with_error(struct arena *a, double v, double se);
/* "+3.31σ": a multiple of a standard error. */
const char *fmt_sigma(struct arena *a, double v, int decimals);
/* "62,956,032" */
const char *fmt_count(struct arena *a, int64_t v);
/* The same of a count that was read as a double; one that no count can be prints as fmt_short. */
const char *fmt_whole(struct arena *a, double v);
/* "1 task", "3 tasks" */
const char *fmt_plural(struct arena *a, int64_t n, const char *one, const char *many);
/* Bytes as "1.5 GiB", milliseconds as "4 h 12 min". */
const char *fmt_bytes(struct arena *a, double bytes);
const char *fmt_span(struct arena *a, double ms);
/* At most max_chars characters, the last an ellipsis when the text was cut. */
const char *fmt_cut(struct arena *a, const char *text, size_t max_chars);

#endif
