/*
 * amend: prepared off the loop (the new text is read, data of another path hashed, results read,
 * works under several names held against what the workers say of their tasks) and kept until it is
 * committed (amend_commit.c). Between the two a person may sign; what the amendment was judged by
 * must still be so then.
 */
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/core/core.h"
#include "daemon/program/amended.h"
#include "daemon/program/apparatus.h"
#include "daemon/program/result.h"
#include "prereg/amend/amend_known.h"
#include "prereg/amend/amend_rules.h"
#include "prereg/amend/amendment.h"
#include "prereg/lock/lock.h"
#include "truthtable/condition/decision_rules.h"
#include "truthtable/prove/check.h"

struct amend_job {
    struct job job;
    struct shell *shell;
    uint64_t connection;
    struct hosted *hosted;
    struct bundle *now;
    char *path;
    char *reason;
    cJSON *describe; /* or NULL */
    bool *done;      /* per task: it has a result */
    size_t n_tasks;
    struct amend_prepared *prepared;
    cJSON *changes;
    cJSON *refused;
    cJSON *known; /* every result of an apparatus check */
    int rc;
    struct err err;
};

/* ---- off the loop ---- */

/* Compiles the conditions, so that a faulty one is found now and not at the verdict. With
 * `factors`, every factor must also be used by a task. */
static int check_rules(const struct plan_program *p, bool factors, struct err *err)
{
    struct rules rules = {0};
    struct diag diag;
    diag_init(&diag, p->path);
    int rc = rules_compile(p, &rules, &diag, err);
    if (rc == 0 && factors) {
        check_factors(p, &diag);
        rc = diag_result(&diag, err);
    }
    rules_release(&rules);
    diag_release(&diag);
    return rc;
}

/* A fault that the present program has already, because an older version locked it, does not count
 * against its amendment. */
static int check_amended(const struct plan_program *now, const struct plan_program *then,
                         struct err *err)
{
    struct err before;
    return check_rules(then, check_rules(now, true, &before) == 0, err);
}

static int read_then(struct amend_job *j)
{
    struct amend_prepared *p = j->prepared;
    /* Parses the bytes that were read: an editor may be changing the file. */
    if (file_read(j->path, LAYOUT_GRID_MAX, &p->text, &j->err) != 0 ||
        bundle_parse_text(&p->text, j->now->origin, &p->bundle, &j->err) != 0 ||
        check_amended(j->now->program, p->bundle->program, &j->err) != 0) {
        return j->err.code;
    }
    if (!program_same_run(p->bundle->program, j->now->program)) {
        return err_set(&j->err, ERR_REFUSED,
                       "its [run] differs, too, and an amendment does not cover [run]: `preregd "
                       "submit` of the present program changes it");
    }
    return 0;
}

/* Whether what is declared as one work still is, under the amended parameters. */
static int check_works(const struct amend_job *j, struct err *err)
{
    const struct plan_program *then = j->prepared->bundle->program;
    struct diag diag;
    diag_init(&diag, then->path);
    if (then->workers != NULL) {
        check_same_work(then, j->describe != NULL ? j->describe : j->now->lock->describe, &diag);
    }
    int rc = diag_result(&diag, err);
    diag_release(&diag);
    return rc;
}

/* condition -> stage -> solved params, from the workers' descriptions; or NULL. */
static cJSON *solved_of(const cJSON *describe)
{
    return describe == NULL ? NULL : lock_solved(describe);
}

/* Collects the stages whose params change, for the core's check at the commit. */
static void note_params(struct amend_job *j)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, j->changes)
    {
        const cJSON *path = json_member(c, "path");
        const cJSON *part = cJSON_GetArrayItem(path, 0);
        bool solved = cJSON_IsString(part) && strcmp(part->valuestring, "solved") == 0;
        const cJSON *section = cJSON_GetArrayItem(path, 1);
        const cJSON *stage = cJSON_GetArrayItem(path, 2);
        if (cJSON_IsString(stage) && (solved || strcmp(section->valuestring, "stage") == 0)) {
            size_t s = program_find_stage(j->now->program, stage->valuestring);
            stage_set_add(&j->prepared->core.params_of, s);
        }
    }
}

/* A done task of the stage must have the metric: its measure would otherwise be undetermined
 * without notice. */
static int check_result(struct amend_job *j, uint32_t task, const struct plan_measure *m)
{
    cJSON *result = NULL;
    char *folder = hosted_task_folder(j->hosted, task);
    char *path = path_join(folder, LAYOUT_RESULT);
    int rc = json_read_file_lax(path, LAYOUT_RESULT_MAX, &result, &j->err);
    if (rc == 0 && json_member(json_member(result, "metrics"), m->metric) == NULL) {
        char *name = hosted_task_name(j->hosted, task);
        rc = err_set(&j->err, ERR_REFUSED,
                     "measure.%.60s.metric: the result of %.100s has no \"%.40s\", and is not made "
                     "again",
                     m->name, name, m->metric);
        free(name);
    }
    cJSON_Delete(result);
    free(path);
    free(folder);
    return rc;
}

/* Only for measures whose metric changes. From here on the amendment depends on which results
 * exist. */
static int check_results(struct amend_job *j)
{
    const struct plan_program *now = j->now->program;
    const struct plan_program *then = j->prepared->bundle->program;
    for (size_t i = 0; i < then->n_measures && i < now->n_measures; i++) {
        const struct plan_measure *m = &then->measures[i];
        if (strcmp(m->metric_text, now->measures[i].metric_text) == 0) {
            continue;
        }
        j->prepared->core.by_results = true;
        for (size_t cell = 0; cell < now->n_cells; cell++) {
            size_t task = cell * now->n_stages + m->stage;
            if (task < j->n_tasks && j->done[task] && check_result(j, (uint32_t)task, m) != 0) {
                return j->err.code;
            }
        }
    }
    return 0;
}

/* The amendment as JSON, without a signature. Its head is the digest of its canonical text. */
static int build_amendment(struct amend_job *j)
{
    struct amend_prepared *p = j->prepared;
    struct strbuf text = STRBUF_INIT;
    char time[WALL_TEXT_SIZE];
    char hex[DIGEST_HEX_SIZE];
    cJSON *a = json_object();
    clock_wall_text(clock_wall(), time);
    json_put_int(a, "schema", AMENDMENT_SCHEMA);
    json_put_int(a, "number", p->core.number);
    json_put_string(a, "program", j->now->program->name);
    json_put_string(a, "root", j->now->lock->root);
    json_put_string(a, "previous", j->now->lock->head);
    json_put_string(a, "time", time);
    json_put_string(a, "level", access_level_name(p->core.access.level));
    json_put_string(a, "reason", j->reason);
    json_put(a, "changes", json_copy(j->changes));
    cJSON *known = amend_known_of(j->known, j->changes);
    if (known != NULL) {
        json_put(a, AMENDMENT_KNOWN, known);
    }
    if (j->describe != NULL) {
        json_put(a, "describe", json_copy(j->describe));
    }
    json_put_null(a, "signature");
    int rc = amendment_text(a, &text, &j->err);
    p->core.head = digest_bytes(text.buf, text.len);
    digest_hex(&p->core.head, hex);
    json_put_string(a, "head", hex);
    p->amendment = a;
    strbuf_release(&text);
    return rc;
}

/* The workers' descriptions count only where params of stages change. */
static int weigh_describe(struct amend_job *j)
{
    cJSON *plan = program_covered(j->prepared->bundle->program);
    cJSON *changes =
        amendment_changes(json_member(j->now->lock->plan, "stage"), json_member(plan, "stage"));
    int rc = 0;
    if (changes->child == NULL) {
        cJSON_Delete(j->describe);
        j->describe = NULL;
    } else if (j->describe == NULL && j->now->lock->solved->child != NULL) {
        rc = err_set(&j->err, ERR_REFUSED,
                     "its workers solve params, and were not asked: amend without --no-run");
    } else if (j->describe == NULL && j->now->program->workers != NULL) {
        rc = err_set(&j->err, ERR_REFUSED,
                     "whether what it declares as one work still is, its workers were not asked: "
                     "amend without --no-run");
    }
    cJSON_Delete(changes);
    cJSON_Delete(plan);
    return rc;
}

/* Reads, compares, classifies every change, then builds. Refused changes are an answer, not an
 * error. */
static int prepare(struct amend_job *j)
{
    cJSON *locked = NULL;
    int rc = lock_check_time(j->now->lock, clock_wall(), &j->err);
    if (rc != 0 || (rc = read_then(j)) != 0 || (rc = weigh_describe(j)) != 0 ||
        (rc = check_works(j, &j->err)) != 0) {
        return rc;
    }
    cJSON *solved = solved_of(j->describe);
    struct amend_state s = {j->now->program, j->prepared->bundle->program,
                            j->prepared->core.access.level, j->prepared->core.access.started,
                            j->known};
    rc = amend_build_locked(j->now->lock, &s, solved, &locked, &j->err);
    if (rc == 0) {
        j->changes = amendment_changes(j->now->lock->locked, locked);
        amend_classify(&s, j->changes, j->refused);
    }
    cJSON_Delete(locked);
    cJSON_Delete(solved);
    if (rc != 0 || j->refused->child != NULL) {
        return rc;
    }
    if (j->changes->child == NULL) {
        return err_set(&j->err, ERR_REFUSED, "nothing differs from the program as it is");
    }
    note_params(j);
    rc = check_results(j);
    return rc == 0 ? build_amendment(j) : rc;
}

static void on_prepare_work(struct job *job)
{
    struct amend_job *j = (struct amend_job *)job;
    j->rc = prepare(j);
}

/* ---- on the loop ---- */

static cJSON *prepared_json(const struct amend_job *j)
{
    cJSON *o = json_object();
    enum access_level level = j->prepared->core.access.level;
    json_put_string(o, "program", j->hosted->id);
    json_put_string(o, "level", access_level_name(level));
    json_put_bool(o, "sign_required", j->now->program->sign_required);
    json_put(o, "changes", json_copy(j->changes));
    json_put(o, "refused", json_copy(j->refused));
    json_put(o, "amendment",
             j->prepared->amendment == NULL ? cJSON_CreateNull()
                                            : json_copy(j->prepared->amendment));
    return o;
}

/* Keeps the prepared amendment with its program; an earlier one that was never committed is
 * dropped. */
static void on_prepared(struct job *job)
{
    struct amend_job *j = (struct amend_job *)job;
    if (!j->shell->stopping && j->rc != 0) {
        log_warn("%s: amend: %s", j->hosted->id, j->err.msg);
        answer_later(j->shell, j->connection, NULL, &j->err);
    } else if (!j->shell->stopping) {
        cJSON *result = prepared_json(j);
        answer_later(j->shell, j->connection, result, NULL);
        cJSON_Delete(result);
        if (j->prepared->amendment != NULL) {
            amend_prepared_free(j->hosted->amend);
            j->hosted->amend = j->prepared;
            j->prepared = NULL;
        }
    }
    amend_prepared_free(j->prepared);
    bundle_unref(j->now);
    cJSON_Delete(j->changes);
    cJSON_Delete(j->refused);
    cJSON_Delete(j->known);
    cJSON_Delete(j->describe);
    free(j->done);
    free(j->reason);
    free(j->path);
    free(j);
}

static int start_prepare(struct answer_context *ctx, struct hosted *h, const cJSON *params,
                         struct err *err)
{
    const char *path = NULL;
    const char *reason = NULL;
    const cJSON *describe = json_member(params, "describe");
    struct core_access access = {0};
    if (json_get_string(params, "path", &path, err) != 0 ||
        json_get_string(params, "reason", &reason, err) != 0 ||
        amendment_check_reason(reason, err) != 0) {
        return err->code;
    }
    if (path[0] != '/' || (describe != NULL && !cJSON_IsObject(describe))) {
        return err_set(err, ERR_USAGE, "\"path\" is not absolute, or \"describe\" no object");
    }
    if (!core_access_get(ctx->shell->core, h->no, &access)) {
        return err_set(err, ERR_NOT_FOUND, "there is no such program");
    }
    struct amend_job *j = xcalloc(1, sizeof(*j));
    *j = (struct amend_job){.job = {.work = on_prepare_work, .done = on_prepared},
                            .shell = ctx->shell,
                            .connection = ctx->call->connection,
                            .hosted = h,
                            .now = bundle_ref(h->bundle),
                            .path = xstrdup(path),
                            .reason = xstrdup(reason),
                            .describe = describe == NULL ? NULL : json_copy(describe),
                            .done = xcalloc(h->n_tasks, sizeof(bool)),
                            .n_tasks = h->n_tasks,
                            .prepared = xcalloc(1, sizeof(struct amend_prepared)),
                            .refused = json_array()};
    for (size_t i = 0; i < h->n_tasks; i++) {
        j->done[i] = h->tasks[i].state == TASK_DONE;
    }
    strbuf_init(&j->prepared->text);
    /* here, on the loop: another amendment may add checks when it takes effect */
    j->known = apparatus_all_results(h, h->bundle->lock);
    j->prepared->n_results = cJSON_GetArraySize(j->known);
    j->prepared->core.access = access;
    j->prepared->core.number = (uint32_t)h->bundle->lock->n_amendments + 1;
    ctx->call->later = true;
    job_start_hashing(&ctx->shell->loop, &j->job, NULL);
    return 0;
}

int answer_amend(struct answer_context *ctx, const cJSON *params, cJSON **result, struct err *err)
{
    struct hosted *h = NULL;
    int rc = answer_find_named(ctx->shell, params, &h, err);
    if (rc != 0) {
        return rc;
    }
    return json_member(params, "commit") != NULL ? amend_commit(ctx, h, params, result, err)
                                                 : start_prepare(ctx, h, params, err);
}
