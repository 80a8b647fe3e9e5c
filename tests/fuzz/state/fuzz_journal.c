/* Any text is either refused or a row of the journal; the row, written and read again, is the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "state/store/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

/* Field by field where padding could differ; what is not journalled in a row of its kind is at rest
 * in both. */
static bool same_row(const struct state_row *a, const struct state_row *b)
{
    const struct task_row *t = &a->after;
    const struct task_row *u = &b->after;
    const struct attempt_row *x = &a->attempt;
    const struct attempt_row *y = &b->attempt;
    return a->kind == b->kind && a->task == b->task && a->from == b->from &&
           a->has_result == b->has_result && a->sealed == b->sealed &&
           digest_equal(&a->result_digest, &b->result_digest) && t->state == u->state &&
           t->cause == u->cause && t->ending == u->ending && t->n_attempts == u->n_attempts &&
           t->crashes == u->crashes && t->best_done == u->best_done &&
           t->not_before.ms == u->not_before.ms && x->no == y->no && strcmp(x->id, y->id) == 0 &&
           x->state == y->state && x->cause == y->cause && x->reason == y->reason &&
           x->code == y->code && x->offset == y->offset && x->section == y->section &&
           a->status.paused == b->status.paused && a->status.verdict == b->status.verdict &&
           strcmp(a->status.outcome, b->status.outcome) == 0 && same_text(a->detail, b->detail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    cJSON *json = NULL;
    struct state_row row;
    struct state_row again;
    struct journal_chain chain = {0};
    struct journal_link link;
    struct strbuf scratch = STRBUF_INIT;
    if (json_parse((const char *)data, size, &json, &err) != 0) {
        return 0;
    }
    struct journal_line line = {(const char *)data, size, json};
    (void)journal_extend(&chain, &line, &link, &scratch, &err);
    strbuf_release(&scratch);
    if (line_to_row(json, 1, &row, &err) == 0 && row.kind != ROW_SUBMITTED) {
        cJSON *written = line_from_row(&row, "cell", "stage");
        if (line_to_row(written, 1, &again, &err) != 0 || !same_row(&row, &again)) {
            abort();
        }
        cJSON_Delete(written);
    }
    cJSON_Delete(json);
    return 0;
}
