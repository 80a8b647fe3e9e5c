/*
 * The job that computes a verdict, in this order: every pinned byte is hashed again, the cells'
 * disk is checked, the apparatus checks are verified, the history of [run] is read, then every
 * accepted result becomes evidence and the table is evaluated.
 *
 * It also recomputes a verdict that is out, for its files. Then it uses the plan at the verdict's
 * head, skips the checks that were verified at the time, and must reproduce the journalled bytes.
 */
#include "daemon/shell/verdict_job.h"

#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/program/apparatus.h"
#include "daemon/program/cells.h"
#include "daemon/program/inputs.h"
#include "daemon/program/prepare.h"
#include "daemon/program/result.h"
#include "prereg/amend/amendment.h"
#include "state/store/apparatus.h"
#include "state/store/run_history.h"
#include "truthtable/evaluate/verdict_file.h"

/* Reads the result and compares its digest with the accepted one, before a value of it is used. */
static int add_result(struct verdict_job *j, struct evidence *e, uint32_t task)
{
    cJSON *result = NULL;
    char *folder = hosted_task_folder(j->hosted, task);
    char *path = path_join(folder, LAYOUT_RESULT);
    int rc = accepted_read(path, &j->ends[task].digest, &result, &j->err);
    if (rc != 0) {
        char *name = hosted_task_name(j->hosted, task);
        rc = input_refuse(name, &j->err);
        free(name);
    } else {
        rc = evidence_add_result(e, hosted_cell(j->hosted, task), hosted_stage(j->hosted, task),
                                 result, &j->err);
    }
    cJSON_Delete(result);
    free(path);
    free(folder);
    return rc;
}

static enum task_end end_of(enum task_state state)
{
    return state == TASK_DONE        ? TASK_END_DONE
           : state == TASK_BLOCKED   ? TASK_END_BLOCKED
           : state == TASK_NEVER_RUN ? TASK_END_NEVER_RUN
                                     : TASK_END_PENDING;
}

/* How the task ended, its cause, and for a blocked one whether its limits were narrower than
 * others'. */
static int add_task(struct verdict_job *j, struct evidence *e, uint32_t task)
{
    const struct verdict_end *end = &j->ends[task];
    size_t cell = hosted_cell(j->hosted, task);
    size_t stage = hosted_stage(j->hosted, task);
    if (end->state == TASK_DONE) {
        evidence_set_task(e, cell, stage, TASK_END_DONE, NULL);
        return add_result(j, e, task);
    }
    enum task_end how = end_of(end->state);
    evidence_set_task(e, cell, stage, how, how == TASK_END_PENDING ? NULL : cause_name(end->cause));
    const char *narrower =
        how == TASK_END_BLOCKED ? run_record_narrower(j->record, task, end->cause) : NULL;
    if (narrower != NULL) {
        evidence_set_narrower(e, cell, stage, narrower);
    }
    return 0;
}

/* The bytes that an earlier version may have written of the verdict, if they have the journalled
 * digest; else `text` stays as it is. */
static int try_forms(struct verdict_job *j, const struct table_verdict *v, struct strbuf *text)
{
    static const struct verdict_form forms[] = {{.lacks_added = true},
                                                {.lacks_added = true, .has_why_before = true},
                                                {.has_why_before = true}};
    const struct digest *journalled = &j->hosted->status.verdict_digest;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(forms); i++) {
        struct strbuf before = STRBUF_INIT;
        rc = verdict_pretty_as(v, forms[i], &before, &j->err);
        strbuf_addc(&before, '\n');
        const struct digest digest = digest_bytes(before.buf, before.len);
        if (rc == 0 && digest_equal(&digest, journalled)) {
            j->digest = digest;
            strbuf_clear(text);
            strbuf_add(text, before.buf, before.len);
        }
        strbuf_release(&before);
    }
    return rc;
}

/* verdict.json's bytes. For a verdict that is out they must have the journalled digest; an earlier
 * version may have written them in its own form. */
static int add_text(struct verdict_job *j, const struct table_verdict *v, struct strbuf *text)
{
    int rc = verdict_pretty(v, text, &j->err);
    strbuf_addc(text, '\n');
    j->digest = digest_bytes(text->buf, text->len);
    if (rc == 0 && j->again && !digest_equal(&j->digest, &j->hosted->status.verdict_digest)) {
        rc = try_forms(j, v, text);
    }
    return rc;
}

/* Fills in text, digest, outcome and timing of the job. */
static int keep_verdict(struct verdict_job *j, const struct plan_program *p,
                        const struct table_verdict *v)
{
    struct strbuf text = STRBUF_INIT;
    int rc = add_text(j, v, &text);
    if (rc == 0) {
        j->text = strbuf_detach(&text);
        (void)snprintf(j->outcome, sizeof(j->outcome), "%s", verdict_word(v, p));
        j->timing = verdict_timing(v) == NULL ? NULL : json_copy(verdict_timing(v));
    }
    strbuf_release(&text);
    return rc;
}

/* The plan that the verdict was or will be computed with. Amendments after a verdict change only
 * what the table shows and does not read, but its bytes would differ. */
static int plan_then(const struct verdict_job *j, struct bundle **out, struct err *err)
{
    const struct lock *now = j->bundle->lock;
    const char *head = j->again ? j->hosted->verdict_head : now->head;
    struct lock *then = NULL;
    *out = NULL;
    if (strcmp(head, now->head) == 0) {
        *out = bundle_ref(j->bundle);
        return 0;
    }
    int rc = lock_at_head(now, head, &then, err);
    if (rc != 0) {
        return rc;
    }
    char *folder = path_join(j->hosted->folder, LAYOUT_AMENDMENTS);
    char *path = amendment_file(folder, then->n_amendments, "toml");
    rc = bundle_parse(path, path, out, err);
    if (rc == 0) {
        rc = lock_verify((*out)->program, then, LOCK_PLAN, NULL, NULL, err);
    }
    if (*out != NULL) {
        (*out)->lock = then;
    } else {
        lock_free(then);
    }
    free(path);
    free(folder);
    return rc;
}

/* How the checks ended, which may void the comparison. */
static void add_checks(const struct verdict_job *j, struct evidence *e)
{
    const struct hosted *h = j->hosted;
    for (size_t i = 0; i < h->n_checks; i++) {
        const struct task_row *row = &j->rows[h->n_tasks + i];
        const size_t at = program_find_apparatus(e->program, h->checks[i].name);
        if (at != INDEX_NONE) {
            evidence_set_check(e, at, end_of(row->state),
                               row->cause == CAUSE_NONE ? NULL : cause_name(row->cause));
        }
    }
}

/* Evidence from all tasks in their order, then the table: the same rows always give the same
 * bytes. */
static int compute_by(struct verdict_job *j, const struct bundle *plan)
{
    struct evidence e;
    struct table_verdict v = {0};
    const struct plan_program *p = plan->program;
    int rc = 0;
    evidence_init(&e, p);
    for (uint32_t t = 0; rc == 0 && t < p->n_cells * p->n_stages; t++) {
        rc = add_task(j, &e, t);
    }
    add_checks(j, &e);
    if (rc == 0) {
        rc = verdict_compute(&e, plan->lock->root, plan->lock->head, &v, &j->err);
    }
    if (rc == 0) {
        rc = keep_verdict(j, p, &v);
        verdict_release(&v);
    }
    evidence_release(&e);
    return rc;
}

/* Uses a store connection of its own, so that reading a long journal does not hold up the loop. */
static int read_record(struct verdict_job *j)
{
    struct store *store = NULL;
    int rc = store_open(j->shell->state, STORE_READER, &store, &j->err);
    if (rc == 0) {
        rc = run_record_read(store, j->hosted->no, j->hosted->plan->program, &j->record, &j->err);
    }
    store_close(store);
    return rc == 0 ? 0 : err_wrap(&j->err, "what [run] was");
}

/* The lane is left once the pinned bytes are verified, since the rest needs no hashing of them.
 * Only failures up to there count as refused by the lock, which are retried when it holds. */
static int compute(struct verdict_job *j)
{
    struct bundle *plan = NULL;
    enum core_start_failure why = START_FAILED_HOST;
    int rc = prepare_check_bytes(j->hosted, j->bundle, j->shell->state, &why, &j->err);
    job_leave_lane(&j->job);
    if (rc == 0) {
        rc = cells_check(j->hosted, j->cells_used, &j->err);
    }
    if (rc != 0) {
        j->refused_by_lock = true;
        return rc;
    }
    if (!j->again) {
        rc = apparatus_verify_all(j->hosted, j->bundle, j->rows, j->checks, &j->err);
    }
    if (rc != 0 || (rc = read_record(j)) != 0) {
        return rc;
    }
    rc = plan_then(j, &plan, &j->err);
    if (rc == 0) {
        rc = compute_by(j, plan);
    }
    bundle_unref(plan);
    return rc;
}

static void on_verdict_work(struct job *job)
{
    struct verdict_job *j = (struct verdict_job *)job;
    j->rc = j->rc == 0 ? compute(j) : j->rc;
}

static void on_verdict_done(struct job *job)
{
    struct verdict_job *j = (struct verdict_job *)job;
    if (!j->shell->stopping) {
        j->ready(j);
    }
    bundle_unref(j->bundle);
    cJSON_Delete(j->timing);
    run_record_free(j->record);
    free(j->ends);
    free(j->rows);
    free(j->checks);
    free(j->text);
    free(j);
}

static int take_end(void *ctx, const struct store_task *t, struct err *err)
{
    struct verdict_job *j = ctx;
    (void)err;
    j->ends[t->task] = (struct verdict_end){
        .state = t->row.state, .cause = t->row.cause, .digest = t->result_digest};
    return 0;
}

/* Rows of all tasks and result digests of the checks, for apparatus_verify_all(). */
static int take_checks(struct shell *sh, const struct hosted *h, struct verdict_job *j)
{
    bool found = false;
    int rc = 0;
    j->rows = xcalloc(h->n_tasks + h->n_checks, sizeof(*j->rows));
    memcpy(j->rows, h->tasks, (h->n_tasks + h->n_checks) * sizeof(*j->rows));
    j->checks = xcalloc(h->n_checks + 1, sizeof(*j->checks));
    for (size_t i = 0; rc == 0 && i < h->n_checks; i++) {
        rc = store_result_digest(sh->store, h->no, (uint32_t)(h->n_tasks + i), &j->checks[i],
                                 &found, &j->err);
    }
    return rc;
}

void verdict_job_hand_over(struct verdict_job *j)
{
    struct hosted *h = j->hosted;
    free(h->verdict_text);
    cJSON_Delete(h->verdict_timing);
    run_record_free(h->run_record);
    h->verdict_text = j->text;
    h->verdict_timing = j->timing;
    h->run_record = j->record;
    j->text = NULL;
    j->timing = NULL;
    j->record = NULL;
}

/* On the loop: copies what the job needs from store and mirror. */
void verdict_job_start(struct shell *sh, struct hosted *h, void (*ready)(struct verdict_job *j))
{
    struct verdict_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_verdict_work;
    j->job.done = on_verdict_done;
    j->shell = sh;
    j->hosted = h;
    j->bundle = bundle_ref(h->bundle);
    j->again = h->status.verdict;
    j->cells_used = cells_are_used(h);
    j->ready = ready;
    j->ends = xcalloc(h->n_tasks, sizeof(*j->ends));
    j->rc = store_tasks(sh->store, h->no, take_end, j, &j->err);
    j->rc = j->rc != 0 ? j->rc : take_checks(sh, h, j);
    job_start_hashing(&sh->loop, &j->job, &h->hash_lane);
}
