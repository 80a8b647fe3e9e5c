/*
 * A log of Inspect as it writes them by default: a zip file with header.json, a file of each
 * sample, and what is made of these (summaries, reductions, a journal). It becomes the same log as
 * one JSON value, as far as it is used: the header, and of each sample its scores.
 */
#ifndef TRUTHTABLE_IMPORTED_EVAL_LOG_H
#define TRUTHTABLE_IMPORTED_EVAL_LOG_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define EVAL_LOG_ENTRY_MAX ((int64_t)256 << 20) /* of the header, or of a sample, unpacked */
#define EVAL_LOG_MAX       ((int64_t)64 << 30)  /* of all that is read */

/* Whether the file begins as a zip file does. */
bool eval_log_is(int fd);

/* Reads the file; one sample is in memory at a time. ERR_SYNTAX: it is damaged, or not such a log;
 * ERR_RANGE: more than the limits; ERR_REFUSED: its run has not ended. The caller frees *log. */
int eval_log_read(int fd, cJSON **log, struct err *err) MUST_CHECK;

#endif
