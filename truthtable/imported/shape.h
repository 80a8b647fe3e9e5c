/*
 * Files of other tools, brought into the shape of a results file of lm-evaluation-harness, so that
 * everything that is asked of such a file is asked of them: counts, limits, settings, models.
 *
 *   Inspect           a log (version 2) as JSON, with or without its samples
 *   Every Eval Ever   a file of its schema 0.3
 */
#ifndef TRUTHTABLE_IMPORTED_SHAPE_H
#define TRUTHTABLE_IMPORTED_SHAPE_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"

/* What became of a file; the text is owned. */
struct file_shape {
    const char
        *format;     /* "Inspect log"; NULL: it is of lm-evaluation-harness, or of nothing known */
    bool recomputed; /* some of its figures */
    struct strbuf checked; /* which, or why none: for the receipt */
};

/* Replaces *json where it is one of the two. ERR_SYNTAX names the key; ERR_REFUSED: a log of a run
 * that did not end well, or another version; ERR_CORRUPT: the samples of a log do not give its
 * metrics. *json is valid whatever happened. */
int shape_results(cJSON **json, struct file_shape *out, struct err *err) MUST_CHECK;
void shape_release(struct file_shape *s);

#endif
