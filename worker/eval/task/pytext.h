/*
 * Text as Python and lm-evaluation-harness treat it, over UTF-8: white space, capitalize, length in
 * code points, and HellaSwag's cleaning. Input must be valid UTF-8 (JSON and CSV reading see to
 * that).
 */
#ifndef WORKER_EVAL_TASK_PYTEXT_H
#define WORKER_EVAL_TASK_PYTEXT_H

#include <stddef.h>

#include "base/strbuf.h"

/* str.lstrip and str.rstrip over s[0..len), with Python's notion of white space. */
size_t pytext_lstrip(const char *s, size_t len); /* how many leading bytes go */
size_t pytext_rstrip(const char *s, size_t len); /* how many bytes stay */

/* len() of a Python string. */
size_t pytext_length(const char *s, size_t len);

/* str.capitalize: the first character in title case, the others in lower case. */
void pytext_capitalize(const char *s, struct strbuf *out);

/* str.lower */
void pytext_lower(const char *s, struct strbuf *out);

/* s[0].lower() + s[1:] */
void pytext_lower_first(const char *s, struct strbuf *out);

/* str.replace: every `from`, which is not empty, left to right without overlap. Appends to out. */
void pytext_replace(const char *s, size_t len, const char *from, const char *to,
                    struct strbuf *out);

/* HellaSwag's cleaning: strip; " [title]" becomes ". "; each shortest [...] on one line is removed;
 * one pass that makes two spaces one. Spaces that this leaves at the ends stay. Appends to out. */
void pytext_clean_hellaswag(const char *s, struct strbuf *out);

#endif
