/*
 * What does not follow in a receipt, and comparing what it has with what follows.
 *
 * Functions of this room that check return 0 or a code, and take `struct err *` last, with the
 * place in the receipt that err_at() set. ERR_LOCK: it does not follow. ERR_VERSION: a newer
 * preregd wrote it. Other codes: it could not be checked (no such folder, no room), which says
 * nothing about the receipt. An err is filled once and handed up; nothing is added on the way.
 */
#ifndef CTL_RECEIPT_MISMATCH_H
#define CTL_RECEIPT_MISMATCH_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

/* Turns the code of another room's error into one of this room: what is malformed does not
 * follow. Returns it. */
int mismatch_code(struct err *err);

/* Compares two trees: 0 when they are equal, else ERR_LOCK names the first member that differs;
 * `at` is what the member's path begins with. The order of members does not matter. */
int mismatch_trees(struct err *err, const char *at, const cJSON *expected, const cJSON *found);
/* Compares two texts that should be the same bytes, a JSON text and what it should be: the error
 * names the line and, where possible, the member. */
int mismatch_texts(struct err *err, const struct strbuf *expected, const struct strbuf *found);

/* The same for figures that went through exp() and log(), which earlier versions took from the C
 * library, with last digits of its own: numbers may differ by this part of the greater one.
 * *n_near grows by the number of those that are not the same. */
#define MISMATCH_NEAR 1e-12
int mismatch_trees_near(struct err *err, const char *at, const cJSON *expected, const cJSON *found,
                        size_t *n_near);
/* A found text with such numbers is in json_pretty()'s form all the same. */
int mismatch_texts_near(struct err *err, const struct strbuf *expected, const struct strbuf *found,
                        size_t *n_near);

#endif
