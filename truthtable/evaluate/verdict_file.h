/*
 * verdict.json (docs/truth-table.md describes it): written from a verdict when it is computed, as
 * text, as a tree or element by element. The same verdict gives the same bytes.
 */
#ifndef TRUTHTABLE_EVALUATE_VERDICT_FILE_H
#define TRUTHTABLE_EVALUATE_VERDICT_FILE_H

#include "base/strbuf.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/evaluate/verdict.h"

/* For verdict_compute() alone: keeps what has to be written, in the evaluation's arena where it is
 * not JSON. digests: root and head. */
struct verdict_file *verdict_file_create(const struct table_verdict *v,
                                         const struct table_evaluation *ev,
                                         const struct coverage *c, const struct evidence *e,
                                         const char *const digests[2]);
void verdict_file_free(struct verdict_file *f);

/* Appends the text of verdict.json without its last newline. Its two lists that may have a million
 * elements, "gates" and "undetermined", are not held for it. */
int verdict_pretty(const struct table_verdict *v, struct strbuf *out, struct err *err) MUST_CHECK;

/* What an earlier version wrote otherwise of the same verdict. All else is the same bytes. */
#define VERDICT_ADDED "effects and first_error"
struct verdict_form {
    bool lacks_added;    /* has none of VERDICT_ADDED */
    bool has_why_before; /* "1 counted tasks are lost, ...": struct table_verdict's `why_before` */
};
/* The form of a text of verdict.json, possibly hostile. It says how to compare it, not that it
 * holds. */
struct verdict_form verdict_form_of(const struct strbuf *text);
/* The same text in another form. */
int verdict_pretty_as(const struct table_verdict *v, struct verdict_form form, struct strbuf *out,
                      struct err *err) MUST_CHECK;

/* Appends the answer as json_pretty() does, with verdict.json as its member "verdict", which is put
 * into it. */
int verdict_pretty_in(const struct table_verdict *v, cJSON *answer, struct strbuf *out,
                      struct err *err) MUST_CHECK;
/* The whole of it as a tree, made when it is first asked for; the verdict's own. */
const cJSON *verdict_json(const struct table_verdict *v);
/* The same but for the elements of the two lists; the verdict's own. */
const cJSON *verdict_summary(const struct table_verdict *v);
/* The elements of "gates" one by one; `arena` holds them (base/json/json_arena.h). */
size_t verdict_n_gates(const struct table_verdict *v);
const cJSON *verdict_gate(const struct table_verdict *v, size_t i, struct arena *arena);
/* Validity that rests on timings, an array: its part of provenance.json. NULL: nothing was
 * computed. The verdict's own. */
const cJSON *verdict_timing(const struct table_verdict *v);

#endif
