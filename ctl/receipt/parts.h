/*
 * The parts of a receipt that follow from others: made by export, rebuilt by verify, and compared
 * byte for byte.
 */
#ifndef CTL_RECEIPT_PARTS_H
#define CTL_RECEIPT_PARTS_H

#include <cjson/cJSON.h>

#include "base/strbuf.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/history.h"
#include "truthtable/evaluate/verdict_file.h"
#include "truthtable/evidence/evidence.h"

/* The contents of a receipt, parsed; owns nothing but what its parts own. */
struct receipt {
    const struct plan_program *program;
    const struct lock *lock;
    const struct history *history; /* NULL: imported */
    const struct evidence *evidence;
    const struct table_verdict *verdict;
};

/* Appends a task's line of records.jsonl, with its newline:
 *   {"cell","stage","end","cause","attempt","attempts","resumes","sha256","result":TEXT,"items"}
 * and behind "cause", where it was lost so, "narrower" (state/journal/run_record.h).
 * text and result (parsed) are those of its result.json, NULL when it is not done. "items" is the
 * artifact that the result names as such. */
void parts_record(struct strbuf *out, const struct history *h, size_t task, const char *text,
                  const cJSON *result);

/* Appends the lines of environment.jsonl: one for each attempt in provenance.json. */
void parts_environment(struct strbuf *out, const cJSON *task);

/* coverage.json: planned = done + blocked + never_run, in tasks, records and counted tasks; causes;
 * attempts and resumes, in all and for each cell; how far the journal goes. */
int parts_coverage(const struct receipt *r, struct strbuf *out, struct err *err) MUST_CHECK;

/* statement.json, an in-toto Statement v1; the files' digests have been taken. `tool` is the
 * version that made the receipt. */
int parts_statement(const struct receipt *r, const struct receipt_files *files, const char *tool,
                    struct strbuf *out, struct err *err) MUST_CHECK;

/* verdict.json as the daemon and import write it, or as an earlier version did. */
int parts_verdict(const struct receipt *r, struct verdict_form form, struct strbuf *out,
                  struct err *err) MUST_CHECK;

/* VERIFY.md: how a reader can check a receipt, by hand or with preregctl. */
extern const char verify_md_guide[]; /* guide.md */

/* Appends the whole file: a summary of this receipt, then the guide. */
void verify_md(struct strbuf *out, const struct receipt *r);

/* How an apparatus check ended, by its entry in history's `checks`; pending where there is none. */
enum task_end parts_end_of(const cJSON *check);
/* Sets in the evidence how each apparatus check ended, by the journal. */
void parts_check_ends(struct evidence *e, const struct history *h);

#endif
