/*
 * The first thing in a receipt that does not follow: where it is, what was expected there and what
 * was found. Filled once and handed up; nothing is added on the way.
 *
 * Functions of this room that check return 0 or the fault's code, and take `struct fault *` last in
 * the place of an error. ERR_LOCK: it does not follow. ERR_VERSION: a newer preregd wrote it. Other
 * codes: it could not be checked (no such folder, no room), which says nothing about the receipt.
 */
#ifndef CTL_RECEIPT_FAULT_H
#define CTL_RECEIPT_FAULT_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

/* All texts are owned copies, cut to fit. */
struct fault {
    int code;
    char file[128]; /* in the receipt; "" when it is about all of it */
    size_t line;    /* from 1; 0: no line */
    char what[256];
    char expected[160]; /* "" with found: there is nothing to compare */
    char found[160];
};

/* Copies text for output, which may come from a hostile file: cut at a character, without
 * control characters. */
void fault_show(char *to, size_t size, const char *text);

void fault_clear(struct fault *f);
/* Sets the place of the fault that may follow. */
void fault_at(struct fault *f, const char *file, size_t line);
/* Records a fault in words, and returns ERR_LOCK. */
int fault_says(struct fault *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Records that `what` has another value than follows, and returns ERR_LOCK. NULL is shown as
 * "nothing". */
int fault_differs(struct fault *f, const char *what, const char *expected, const char *found);
int fault_differs_int(struct fault *f, const char *what, long long expected, long long found);
/* An error of another room as a fault: what is malformed does not follow. */
int fault_from(struct fault *f, const struct err *err);
/* "journal.jsonl:12: hash: expected ..., found ..." */
int fault_to_err(const struct fault *f, struct err *err);

/* Compares two trees: 0 when they are equal, else a fault that names the first member that
 * differs; `at` is what the member's path begins with. The order of members does not matter. */
int fault_compare(struct fault *f, const char *at, const cJSON *expected, const cJSON *found);
/* Compares two texts that should be the same bytes, a JSON text and what it should be: the fault
 * names the line and, where possible, the member. */
int fault_compare_text(struct fault *f, const struct strbuf *expected, const struct strbuf *found);

/* The same for figures that went through exp() and log(), whose last digits depend on the
 * processor and the library: numbers may differ by this part of the greater one. *n_near grows
 * by the number of those that are not the same. */
#define FAULT_NEAR 1e-12
int fault_compare_near(struct fault *f, const char *at, const cJSON *expected, const cJSON *found,
                       size_t *n_near);
/* A found text with such numbers is in json_pretty()'s form all the same. */
int fault_compare_text_near(struct fault *f, const struct strbuf *expected,
                            const struct strbuf *found, size_t *n_near);

#endif
