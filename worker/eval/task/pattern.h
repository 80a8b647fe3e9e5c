/*
 * A regular expression of a task description, as Python's re would run it over text: leftmost
 * matches that do not overlap, Unicode classes. PCRE2 does the work, interpreted and within limits,
 * so that whether an expression gives up does not depend on the machine.
 *
 * Known differences from Python: \uXXXX is written \x{XXXX}, and white space does not count the
 * four control characters U+001C to U+001F.
 */
#ifndef WORKER_EVAL_TASK_PATTERN_H
#define WORKER_EVAL_TASK_PATTERN_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"

struct pattern;

/* ERR_SYNTAX names the place in the expression. */
int pattern_compile(const char *text, struct pattern **out, struct err *err) MUST_CHECK;
void pattern_free(struct pattern *p);

/* re.findall(text)[select], counted from the end when negative, of which the first group that is
 * not empty where there are several groups, the group where there is one, and without white space
 * at the ends. *found is false when there are too few matches. ERR_RANGE: the limits were reached.
 */
int pattern_find(const struct pattern *p, const char *text, int select, struct strbuf *out,
                 bool *found, struct err *err) MUST_CHECK;
/* re.sub(pattern, "", text), appended to out. */
int pattern_delete(const struct pattern *p, const char *text, struct strbuf *out,
                   struct err *err) MUST_CHECK;

#endif
