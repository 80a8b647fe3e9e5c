/*
 * Upper and lower case as Python's str has it (Unicode 14, Python 3.11), independent of the
 * system's locale: title case at the start of a text, where some characters become several; lower
 * case, where the dotted capital I becomes two and a capital sigma at the end of a word the final
 * one.
 */
#ifndef WORKER_EVAL_TASK_PYCASE_H
#define WORKER_EVAL_TASK_PYCASE_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Append to out; `at` is the byte where the character begins in s[0..len), which is valid UTF-8.
 * Return its bytes there, 0 at the end. */
size_t pycase_add_title(const char *s, size_t len, size_t at, struct strbuf *out);
size_t pycase_add_lower(const char *s, size_t len, size_t at, struct strbuf *out);

#endif
