/*
 * The verdict: gates, counters, contrasts, inputs, fired rows, outcome, read off the table
 * mechanically (docs/truth-table.md). Pure: same program, locked root and evidence give the same
 * bytes of verdict.json.
 *
 * Order of evaluation: gates -> counters -> contrasts -> inputs -> table. Nothing looks back.
 */
#ifndef TRUTHTABLE_EVALUATE_VERDICT_H
#define TRUTHTABLE_EVALUATE_VERDICT_H

#include "base/err.h"
#include "base/strbuf.h"
#include "truthtable/evidence/evidence.h"

enum verdict_kind {
    VERDICT_BOUND,         /* one outcome binds (exit 0) */
    VERDICT_INDETERMINATE, /* fired rows disagree (exit 4) */
    VERDICT_VOID, /* over the exclusion budget, or a voiding validity failed or is unknown (exit 7)
                   */
};

struct verdict {
    struct arena arena;
    enum verdict_kind kind;
    size_t outcome;              /* VERDICT_BOUND only; else INDEX_NONE */
    const char *why;             /* VOID and INDETERMINATE: one sentence */
    struct verdict_parts *parts; /* private; NULL: nothing was computed */
    cJSON *provenance;           /* array: validity that rests on timings, its part of
                                    provenance.json */
};

/* root and head are digests in hex (head == root without amendments). Conditions of p must compile
 * and its table be total (check proves both); ERR_INVALID otherwise. The program outlives the
 * verdict; the evidence need not. */
int verdict_compute(const struct evidence *e, const char *root, const char *head,
                    struct verdict *out, struct err *err) MUST_CHECK;
void verdict_release(struct verdict *v);

/* Appends the text of verdict.json (docs/truth-table.md describes it) without its last newline. Its
 * two lists that may have a million elements, "gates" and "undetermined", are not held for it. */
int verdict_pretty(const struct verdict *v, struct strbuf *out, struct err *err) MUST_CHECK;
/* The same text as versions before VERDICT_ADDED wrote it: their files are compared by the members
 * they have. */
#define VERDICT_ADDED "effects and first_error"
int verdict_pretty_early(const struct verdict *v, struct strbuf *out, struct err *err) MUST_CHECK;
/* Whether a text of verdict.json, possibly hostile, has none of those members. */
bool verdict_text_is_early(const struct strbuf *text);
/* Appends the answer as json_pretty() does, with verdict.json as its member "verdict", which is put
 * into it. */
int verdict_pretty_in(const struct verdict *v, cJSON *answer, struct strbuf *out,
                      struct err *err) MUST_CHECK;
/* The whole of it as a tree, made when it is first asked for; the verdict's own. */
const cJSON *verdict_json(const struct verdict *v);
/* The same but for the elements of the two lists; the verdict's own. */
const cJSON *verdict_summary(const struct verdict *v);
/* The elements of "gates" one by one; `arena` holds them (base/json_arena.h). */
size_t verdict_n_gates(const struct verdict *v);
const cJSON *verdict_gate(const struct verdict *v, size_t i, struct arena *arena);

enum exit_code verdict_exit_code(const struct verdict *v);

#endif
