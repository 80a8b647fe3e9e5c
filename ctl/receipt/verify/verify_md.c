/*
 * VERIFY.md is the first file that a reader opens: question, verdict, root and kind of records,
 * followed by the guide, which is the same for all receipts.
 */
#include "ctl/receipt/parts.h"

/* Amendments and a superseded program are mentioned only where there are any. */
void verify_md(struct strbuf *out, const struct receipt *r)
{
    const struct table_verdict *v = r->verdict;
    strbuf_addf(out, "# Receipt of %s\n\n> %s\n\n", r->program->name, r->program->question);
    if (v->kind == VERDICT_BOUND) {
        const struct plan_outcome *o = &r->program->outcomes[v->outcome];
        strbuf_addf(out, "Verdict: **%s**, %s\n\n", o->name, o->title);
    } else {
        strbuf_addf(out, "Verdict: **%s**: %s\n\n", verdict_word(v, r->program), v->why);
    }
    strbuf_addf(out, "Root `%s`", r->lock->root);
    if (r->lock->n_amendments > 0) {
        strbuf_addf(out, ", head `%s` after ", r->lock->head);
        strbuf_add_count(out, (int64_t)r->lock->n_amendments, "amendment", "amendments");
    }
    if (r->program->supersedes != NULL) {
        strbuf_addf(out, ", superseding the program of root `%s`", r->program->supersedes);
    }
    if (r->history == NULL) {
        strbuf_addf(out, ". Records: **%s**; nothing was run by preregd.\n",
                    r->evidence->label == NULL ? "imported" : r->evidence->label);
    } else {
        strbuf_adds(out, ". Records: executed, ");
        strbuf_add_count(out, (int64_t)r->history->n_attempts, "attempt of ", "attempts of ");
        strbuf_add_count(out, (int64_t)r->history->n_tasks, "task.\n", "tasks.\n");
    }
    strbuf_adds(out, verify_md_guide);
}
