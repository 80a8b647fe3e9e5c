/*
 * The verdict: gates, counters, contrasts, inputs, fired rows, outcome, read off the table
 * mechanically (program.md §2). Pure: same program, locked root and evidence give the same bytes of
 * verdict.json.
 *
 * Order of evaluation: gates -> counters -> contrasts -> inputs -> table. Nothing looks back.
 */
#ifndef TRUTHTABLE_VERDICT_H
#define TRUTHTABLE_VERDICT_H

#include "base/err.h"
#include "truthtable/evidence.h"

enum verdict_kind {
    VERDICT_BOUND,         /* one outcome binds (exit 0) */
    VERDICT_INDETERMINATE, /* fired rows disagree (exit 4) */
    VERDICT_VOID, /* over the exclusion budget, or a voiding validity failed or is unknown (exit 7)
                   */
};

struct verdict {
    struct arena arena;
    enum verdict_kind kind;
    size_t outcome;    /* VERDICT_BOUND only; else INDEX_NONE */
    const char *why;   /* VOID and INDETERMINATE: one sentence */
    cJSON *json;       /* the whole of verdict.json; docs/truth-table.md describes it */
    cJSON *provenance; /* array: validity that rests on timings, its part of provenance.json */
};

/* root and head are digests in hex (head == root without amendments). Conditions of p must compile
 * (check proves it); ERR_INVALID otherwise. */
int verdict_compute(const struct evidence *e, const char *root, const char *head,
                    struct verdict *out, struct err *err) MUST_CHECK;
void verdict_release(struct verdict *v);
enum exit_code verdict_exit_code(const struct verdict *v);

#endif
