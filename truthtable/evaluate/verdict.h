/*
 * The verdict: gates, counters, contrasts, inputs, fired rows, outcome, read off the table
 * mechanically (docs/truth-table.md). Pure: same program, locked root and evidence give the same
 * verdict. verdict_file.h writes it down.
 */
#ifndef TRUTHTABLE_EVALUATE_VERDICT_H
#define TRUTHTABLE_EVALUATE_VERDICT_H

#include "base/err.h"
#include "prereg/program/program.h"
#include "prereg/program/verdict_kind.h"
#include "truthtable/evidence/evidence.h"

struct table_verdict {
    struct arena arena;
    enum verdict_kind kind;
    size_t outcome;            /* VERDICT_BOUND only; else INDEX_NONE */
    const char *why;           /* VOID and INDETERMINATE: one sentence */
    const char *why_before;    /* the sentence of earlier versions; NULL: alike */
    struct verdict_file *file; /* what is written of it; NULL: nothing was computed */
};

/* root and head are digests in hex (head == root without amendments). Conditions of p must compile
 * and its table be total (check proves both); ERR_INVALID otherwise. The program outlives the
 * verdict; the evidence need not. */
int verdict_compute(const struct evidence *e, const char *root, const char *head,
                    struct table_verdict *out, struct err *err) MUST_CHECK;
void verdict_release(struct table_verdict *v);

/* Returns the name of the outcome that binds, or "VOID" or "INDETERMINATE": what verdict.json and
 * the journal keep as the outcome. */
const char *verdict_word(const struct table_verdict *v, const struct plan_program *p);

/*
 * A replay: the verdict that a program's table gives for records from elsewhere. It executes
 * nothing and makes no program executed: the verdict says where the records come from ("records").
 */

/* root: the digest of the program's lock in hex; NULL when it has none, then the digest of its
 * covered values alone. */
int replay_run(const struct plan_program *p, const char *root, const char *records_path,
               struct table_verdict *out, struct err *err) MUST_CHECK;

#endif
