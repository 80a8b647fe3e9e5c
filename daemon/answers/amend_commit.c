/*
 * Signature, files, the journal's row, grid.toml, in that order. ssh-keygen
 * verifies a signature off the loop; everything else is done on it in one turn, after checking once
 * more that nothing the amendment rests on has changed.
 */
#include "daemon/answers/answer.h"

#include <string.h>

#include "base/json/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/amended.h"
#include "daemon/program/apparatus.h"
#include "prereg/amend/amend_sign.h"
#include "prereg/amend/amendment.h"

struct commit_job {
    struct job job;
    struct shell *shell;
    uint64_t connection;
    uint32_t program;
    struct bundle *now;
    cJSON *amendment; /* with its signature: a copy */
    struct signature_check signer;
    char *allowed; /* the file of allowed signers; or NULL */
    int rc;
    struct err err;
};

/* ---- premises ---- */

/* Whether the prepared amendment is still the one that the client names, and still follows from the
 * present program, its [run] and the checks' results. */
static int check_prepared(const struct hosted *h, const char *head, struct err *err)
{
    const char *prepared = NULL;
    const char *previous = NULL;
    if (h->amending != NULL) {
        return err_set(err, ERR_REFUSED, "another amendment is being written: amend again");
    }
    if (h->amend == NULL || json_get_string(h->amend->amendment, "head", &prepared, err) != 0 ||
        strcmp(prepared, head) != 0) {
        return err_set(err, ERR_REFUSED,
                       "no amendment %.16s is prepared, or another was prepared since: amend again",
                       head);
    }
    if (json_get_string(h->amend->amendment, "previous", &previous, err) != 0 ||
        strcmp(previous, h->bundle->lock->head) != 0) {
        return err_set(err, ERR_REFUSED,
                       "it was amended by another meanwhile (head %.16s, not %.16s): amend again",
                       h->bundle->lock->head, previous == NULL ? "none" : previous);
    }
    if (h->settings != NULL || !program_same_run(h->amend->bundle->program, h->bundle->program)) {
        return err_set(err, ERR_REFUSED, "its [run] was changed meanwhile: amend again");
    }
    cJSON *results = apparatus_all_results(h, h->bundle->lock);
    bool same = cJSON_GetArraySize(results) == h->amend->n_results;
    cJSON_Delete(results);
    return same ? 0
                : err_set(err, ERR_REFUSED,
                          "an apparatus check came to a result meanwhile: amend again");
}

/* Asks the core for the row; once that is committed the program is the amended one
 * (amended_take_effect). */
static int ask_core(struct shell *sh, struct hosted *h, struct err *err)
{
    struct amend_prepared *p = h->amending;
    const cJSON *reason = json_member(p->amendment, "reason");
    struct core_event ev = {.kind = CORE_AMEND, .program = h->no, .text = reason->valuestring};
    struct core_plan plan;
    plan_init(&plan, p->bundle->program, h);
    const struct core_apparatus *as_they_are = plan.apparatus;
    plan.apparatus = p->checks;
    plan.n_apparatus = p->n_checks;
    ev.amendment = p->core;
    ev.amendment.plan = &plan;
    int rc = pump_request(sh->pump, &ev, err);
    plan.apparatus = as_they_are;
    plan_release(&plan);
    return rc;
}

/* The chain as read back must end with the amendment just written: a file added behind it by hand
 * would change the head. */
static int check_chain(const struct amend_prepared *p, struct err *err)
{
    char head[DIGEST_HEX_SIZE];
    digest_hex(&p->core.head, head);
    if (strcmp(head, p->bundle->lock->head) != 0) {
        return err_set(err, ERR_LOCK,
                       "amendments/ holds what never took effect: its head is %.16s, not %.16s",
                       p->bundle->lock->head, head);
    }
    return lock_verify(p->bundle->program, p->bundle->lock, LOCK_PLAN, NULL, NULL, err);
}

/* The files, then the proof that they read back as a chain with the expected head. */
static int write_files(struct hosted *h, struct err *err)
{
    struct amend_prepared *p = h->amend;
    int rc = amended_catch_up(h, err);
    if (rc != 0) {
        return rc;
    }
    h->amend_writes++; /* jobs that read them now may see files that are refused and removed later
                        */
    rc =
        apparatus_amended(h, p->bundle->program, &p->core.params_of, &p->checks, &p->n_checks, err);
    if (rc != 0 || (rc = amended_write(h->folder, p, err)) != 0 ||
        (rc = lock_read_amended(h->folder, &p->bundle->lock, err)) != 0) {
        return rc;
    }
    return check_chain(p, err);
}

/* Whatever happens, the prepared amendment is used up. */
static int take_effect(struct shell *sh, struct hosted *h, struct err *err)
{
    uint32_t number = h->amend->core.number;
    int rc = pump_is_well(sh->pump, err) ? write_files(h, err) : err->code;
    if (rc == 0) {
        h->amending = h->amend;
        h->amend = NULL;
        rc = ask_core(sh, h, err);
        if (rc != 0 && rc != ERR_REFUSED && !shell_is_damaged(sh, h)) {
            /* The pump retries the row: the files must stay, and it takes effect then. */
            return err_wrap(err, "amendment %u takes effect when the state can be written again",
                            number);
        }
    }
    if (rc != 0) {
        amended_take_back(h->folder, number);
        amend_prepared_free(h->amending != NULL ? h->amending : h->amend);
        h->amending = h->amend = NULL;
    }
    return rc;
}

static cJSON *answer_of(const struct hosted *h, const struct signature_check *signer,
                        const char *allowed)
{
    cJSON *o = json_object();
    char *listed = allowed == NULL ? NULL : xasprintf("allowed by the daemon's %s", allowed);
    json_put_string(o, "program", h->id);
    json_put_string(o, "head", h->bundle->lock->head);
    json_put_int(o, "number", (int64_t)h->bundle->lock->n_amendments);
    json_put_bool(o, "amended", true);
    json_put_string(o, "signed_by", signer->fingerprint);
    json_put_string(o, "principal", signer->principal);
    json_put_string(o, "note",
                    listed != NULL  ? listed
                    : signer->valid ? "no file of allowed signers says whose key that is"
                                    : NULL);
    free(listed);
    return o;
}

/* ---- signed ---- */

static void on_sign_work(struct job *job)
{
    struct commit_job *j = (struct commit_job *)job;
    j->rc = signature_allowed_signers(NULL, &j->allowed, &j->err);
    if (j->rc == 0) {
        j->rc = amendment_check_signer(j->now->program, j->now->lock, j->amendment, j->allowed,
                                       &j->signer, &j->err);
    }
}

/* Adds the verified signature to the prepared amendment and lets it take effect. */
static int commit_signed(struct commit_job *j, cJSON **answer)
{
    struct hosted *h = shell_program(j->shell, j->program);
    const char *head = json_member(j->amendment, "head")->valuestring;
    int rc = check_prepared(h, head, &j->err);
    if (rc == 0) {
        cJSON_Delete(h->amend->amendment);
        h->amend->amendment = j->amendment;
        j->amendment = NULL;
        rc = take_effect(j->shell, h, &j->err);
    }
    if (rc == 0) {
        *answer = answer_of(h, &j->signer, j->allowed);
    }
    return rc;
}

static void on_signed(struct job *job)
{
    struct commit_job *j = (struct commit_job *)job;
    cJSON *answer = NULL;
    if (!j->shell->stopping) {
        j->rc = j->rc == 0 ? commit_signed(j, &answer) : j->rc;
        if (j->rc != 0) {
            log_warn("amend: %s", j->err.msg);
        }
        answer_later(j->shell, j->connection, answer, j->rc == 0 ? NULL : &j->err);
    }
    cJSON_Delete(answer);
    cJSON_Delete(j->amendment);
    signature_check_release(&j->signer);
    free(j->allowed);
    bundle_unref(j->now);
    free(j);
}

static void start_signed(struct answer_context *ctx, const struct hosted *h, const cJSON *signature)
{
    struct commit_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_sign_work;
    j->job.done = on_signed;
    j->shell = ctx->shell;
    j->connection = ctx->call->connection;
    j->program = h->no;
    j->now = bundle_ref(h->bundle);
    j->amendment = json_copy(h->amend->amendment);
    cJSON_DeleteItemFromObjectCaseSensitive(j->amendment, "signature");
    json_put(j->amendment, "signature", json_copy(signature));
    ctx->call->later = true;
    job_start(&ctx->shell->loop, &j->job);
}

int amend_commit(struct answer_context *ctx, struct hosted *h, const cJSON *params, cJSON **result,
                 struct err *err)
{
    const cJSON *signature = json_member(params, "signature");
    const char *head = NULL;
    struct signature_check unsigned_check = {0};
    int rc = json_get_string(params, "commit", &head, err);
    if (rc != 0 || (rc = check_prepared(h, head, err)) != 0) {
        return rc;
    }
    if (signature != NULL && !cJSON_IsNull(signature)) {
        start_signed(ctx, h, signature);
        return 0;
    }
    /* whether it may be unsigned; runs no program */
    rc = amendment_check_signer(h->bundle->program, h->bundle->lock, h->amend->amendment, NULL,
                                &unsigned_check, err);
    signature_check_release(&unsigned_check);
    if (rc != 0 || (rc = take_effect(ctx->shell, h, err)) != 0) {
        return rc;
    }
    *result = answer_of(h, &unsigned_check, NULL);
    return 0;
}
