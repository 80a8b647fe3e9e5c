#include "ctl/receipt/verify_md.h"

void verify_md(struct strbuf *out, const struct receipt *r)
{
    const struct verdict *v = r->verdict;
    strbuf_addf(out, "# Receipt of %s\n\n> %s\n\n", r->program->name, r->program->question);
    if (v->kind == VERDICT_BOUND) {
        const struct outcome *o = &r->program->outcomes[v->outcome];
        strbuf_addf(out, "Verdict: **%s**, %s\n\n", o->name, o->title);
    } else {
        strbuf_addf(out, "Verdict: **%s**: %s\n\n",
                    v->kind == VERDICT_VOID ? "VOID" : "INDETERMINATE", v->why);
    }
    strbuf_addf(out, "Root `%s`", r->lock->root);
    if (r->lock->n_amendments > 0) {
        strbuf_addf(out, ", head `%s` after %zu amendments", r->lock->head, r->lock->n_amendments);
    }
    if (r->program->supersedes != NULL) {
        strbuf_addf(out, ", superseding the program of root `%s`", r->program->supersedes);
    }
    if (r->history == NULL) {
        strbuf_addf(out, ". Records: **%s**; nothing was run by preregd.\n",
                    r->evidence->label == NULL ? "imported" : r->evidence->label);
    } else {
        strbuf_addf(out, ". Records: executed, %zu attempts of %zu tasks.\n",
                    r->history->n_attempts, r->history->n_tasks);
    }
    strbuf_adds(out, verify_md_guide);
}
