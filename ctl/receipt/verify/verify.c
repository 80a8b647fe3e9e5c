/*
 * The frame of a verification: the list of steps, which stops at the first fault, and the answer.
 * Each step may rely on what those before it established, which is why their order is part of the
 * contract (verify.h). The steps fill struct verifying; what they establish in words is collected
 * on the way and is reported only when every step succeeded.
 */
#include "ctl/receipt/verify/verify.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/verify/verify_parts.h"

static const char *const LEVELS[LEVEL_NR] = {[LEVEL_NONE] = "nothing",
                                             [LEVEL_CONSISTENT] = "self-consistent",
                                             [LEVEL_SIGNED] = "signed",
                                             [LEVEL_STAMPED] = "time-stamped"};

static const char *const BASES[BASIS_NR] = {
    [BASIS_RECORDS] = "records", [BASIS_ITEMS_IN_PART] = "items in part", [BASIS_ITEMS] = "items"};

const char *verify_level_name(enum verify_level level)
{
    return LEVELS[level];
}

/* ---- files ---- */

static bool has_file(void *ctx, const char *name)
{
    return files_have(ctx, name);
}

/* Decides whether the receipt is of an executed or an imported program, and checks that it has
 * the files of that kind and no other. */
static int check_kind(struct verifying *v)
{
    v->imported = files_have(&v->files, RECEIPT_IMPORTED);
    const char *missing = layout_missing(v->imported, has_file, &v->files);
    if (missing != NULL) {
        err_at(v->err, missing, 0);
        return err_set(v->err, ERR_LOCK, "is missing");
    }
    for (size_t i = 0; i < v->files.n; i++) {
        if (layout_is_of_other_kind(v->imported, v->files.items[i].name)) {
            err_at(v->err, v->files.items[i].name, 0);
            return err_set(v->err, ERR_LOCK,
                           "an imported program has no such file, or an executed one has "
                           "no " RECEIPT_IMPORTED ": a receipt is one or the other");
        }
    }
    return 0;
}

/* The last commit that verifies receipts of schema 1, whose version number is today's. */
#define SCHEMA_1_LAST "457e0a7"

/* Checks the schema before anything else is parsed. A verdict is computed again and compared
 * byte for byte, so one of another schema cannot be judged by this code. The statement's sum was
 * checked before. */
static int check_version(struct verifying *v)
{
    cJSON *o = NULL;
    int64_t schema = 0;
    int rc = files_read_json(&v->files, RECEIPT_STATEMENT, &o, v->err);
    if (rc != 0) {
        return rc;
    }
    const cJSON *predicate = json_member(o, "predicate");
    const cJSON *tool = json_member(predicate, "tool");
    const char *version = NULL;
    if (json_get_int(predicate, "schema", 0, INT32_MAX, &schema, v->err) != 0 ||
        json_get_string(tool, "version", &version, v->err) != 0) {
        rc = mismatch_code(v->err);
    } else if (schema < 1 || strlen(version) >= sizeof(v->tool)) {
        rc = err_set(v->err, ERR_LOCK, "is of no version that there was");
    } else if (schema != RECEIPT_SCHEMA) {
        (void)err_set(v->err, ERR_LOCK,
                      "the receipt has schema %lld; this version (%s) verifies schema %d: verify "
                      "it with the version that wrote it%s",
                      (long long)schema, PREREGD_VERSION, RECEIPT_SCHEMA,
                      schema == 1 ? ", or any up to commit " SCHEMA_1_LAST : "");
        rc = v->err->code = ERR_VERSION;
    } else {
        (void)snprintf(v->tool, sizeof(v->tool), "%s", version);
    }
    cJSON_Delete(o);
    return rc;
}

/* Listing, kind, sums, version: the sums come before any file is parsed. */
static int check_files(struct verifying *v)
{
    int rc = files_open(&v->files, v->spec->folder, v->err);
    if (rc != 0 || (rc = check_kind(v)) != 0 || (rc = sums_check(&v->files, v->err)) != 0) {
        return rc;
    }
    return check_version(v);
}

/* ---- the steps that need no file of their own ---- */

/* The journal, and its rows about amendments; an imported program has none. */
static int check_journal(struct verifying *v)
{
    if (v->imported) {
        return 0;
    }
    int rc = history_read(&v->history, v->program, v->lock, &v->files, v->err);
    return rc == 0 ? verify_amended(v) : rc;
}

/* The statement must be exactly what the receipt's own parts give. */
static int check_statement(struct verifying *v)
{
    struct strbuf expected = STRBUF_INIT;
    struct strbuf found = STRBUF_INIT;
    const struct receipt r = verifying_receipt(v);
    err_at(v->err, RECEIPT_STATEMENT, 0);
    int rc = parts_statement(&r, &v->files, v->tool, &expected, v->err) != 0
                 ? mismatch_code(v->err)
                 : files_read(&v->files, RECEIPT_STATEMENT, &found, v->err);
    if (rc == 0) {
        rc = mismatch_texts(v->err, &expected, &found);
    }
    strbuf_release(&expected);
    strbuf_release(&found);
    return rc;
}

typedef int step_fn(struct verifying *v);

/* Runs the steps until one fails. A tar that could not be extracted is the fault itself. */
static int run_steps(struct verifying *v)
{
    static step_fn *const steps[] = {check_files,     verify_lock,       verify_works,
                                     verify_reuse,    check_journal,     verify_records,
                                     verify_verdict,  verify_provenance, verify_reruns,
                                     check_statement, verify_signatures, verify_timestamp};
    if (v->spec->taken != NULL && v->spec->taken->code != 0) {
        *v->err = *v->spec->taken;
        return v->err->code;
    }
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int rc = steps[i](v);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- the answer ---- */

/* The fault as a member of the answer; "" becomes null. */
static cJSON *fault_json(const struct err *err)
{
    cJSON *o = json_object();
    json_put_string(o, "file", err->file[0] == '\0' ? NULL : err->file);
    if (err->line > 0) {
        json_put_int(o, "line", (int64_t)err->line);
    } else {
        json_put_null(o, "line");
    }
    json_put_string(o, "what", err->msg);
    json_put_string(o, "expected", err->expected[0] == '\0' ? NULL : err->expected);
    json_put_string(o, "found", err->found[0] == '\0' ? NULL : err->found);
    return o;
}

/* Sizes, as far as the steps came before a fault. */
static cJSON *counts_json(const struct verifying *v)
{
    cJSON *o = json_object();
    json_put_int(o, "files", (int64_t)v->files.n);
    json_put_int(o, "bytes", v->files.bytes);
    if (v->program != NULL) {
        json_put_int(o, "tasks", (int64_t)program_n_tasks(v->program));
    }
    json_put_int(o, "journal_rows", (int64_t)v->history.n_rows);
    json_put_int(o, "attempts", (int64_t)v->history.n_attempts);
    json_put_int(o, "amendments", v->lock == NULL ? 0 : (int64_t)v->lock->n_amendments);
    return o;
}

/* The level: a signed lock alone shows who planned; without a signature of SHA256SUMS the
 * records beside it could be replaced. */
static enum verify_level level_of(const struct verifying *v)
{
    return !v->is_signed || !v->is_vouched ? LEVEL_CONSISTENT
           : !v->is_stamped                ? LEVEL_SIGNED
                                           : LEVEL_STAMPED;
}

/* Fills the members of the answer; without a fault also level, outcome and records. */
static void answer(struct verifying *v, int rc)
{
    struct verify_answer *out = v->out;
    cJSON *tool = json_object();
    out->level = rc == 0 ? level_of(v) : LEVEL_NONE;
    out->basis = rc == 0 ? verify_items_basis(v) : BASIS_RECORDS;
    json_put_string(out->json, "receipt", v->spec->folder);
    json_put_bool(out->json, "holds", rc == 0);
    json_put(out->json, "fault", rc == 0 ? cJSON_CreateNull() : fault_json(v->err));
    json_put_string(out->json, "level", rc == 0 ? verify_level_name(out->level) : NULL);
    json_put_string(out->json, "program", v->program == NULL ? NULL : v->program->name);
    json_put_string(out->json, "root", v->lock == NULL ? NULL : v->lock->root);
    json_put_string(out->json, "head", v->lock == NULL ? NULL : v->lock->head);
    json_put_string(out->json, "records",
                    rc != 0       ? NULL
                    : v->imported ? v->evidence.label
                                  : "executed");
    json_put_string(out->json, "outcome", rc != 0 ? NULL : verdict_word(&v->verdict, v->program));
    json_put_string(tool, "made", v->tool[0] == '\0' ? NULL : v->tool);
    json_put_string(tool, "verified", PREREGD_VERSION);
    json_put(out->json, "tool", tool);
    json_put(out->json, "counts", counts_json(v));
    json_put(out->json, "reruns", json_copy(v->reruns));
    json_put_string(out->json, "rests_on", rc != 0 ? NULL : BASES[out->basis]);
    json_put(out->json, "signatures", rc == 0 ? json_copy(v->signatures) : json_array());
    json_put(out->json, "release", rc == 0 ? verify_release(v) : cJSON_CreateNull());
    json_put(out->json, "reused", rc == 0 ? verify_reused_json(v) : cJSON_CreateNull());
    json_put(out->json, "items", rc == 0 ? verify_items_json(v) : cJSON_CreateNull());
    verify_words(v, rc == 0);
}

/* The answer is filled in any case; what it rests on is released here. */
int receipt_verify(const struct verify_spec *spec, struct verify_answer *out)
{
    struct verifying v = {.spec = spec,
                          .out = out,
                          .err = &out->fault,
                          .files = {.fd = -1},
                          .reused = {.temp = {.fd = -1}, .verify = receipt_verify}};
    *out = (struct verify_answer){.json = json_object()};
    v.established = json_array();
    v.reruns = json_array();
    v.claimed = json_array();
    v.signatures = json_array();
    arena_init(&v.arena);
    int rc = run_steps(&v);
    if (rc == 0) {
        /* steps set the place of a fault before there is one */
        err_clear(&out->fault);
    }
    answer(&v, rc);
    if (v.verdict.file != NULL) {
        verdict_release(&v.verdict);
    }
    if (v.has_evidence) {
        evidence_release(&v.evidence);
    }
    cJSON_Delete(v.established);
    cJSON_Delete(v.reruns);
    cJSON_Delete(v.claimed);
    cJSON_Delete(v.signatures);
    history_release(&v.history);
    verify_inputs_release(&v);
    verify_items_release(&v);
    verify_same_work_release(&v);
    verify_reuse_release(&v);
    free(v.places);
    lock_free(v.lock);
    program_free(v.judged);
    program_free(v.program);
    files_release(&v.files);
    arena_release(&v.arena);
    return rc;
}

void verify_answer_release(struct verify_answer *out)
{
    cJSON_Delete(out->json);
    *out = (struct verify_answer){0};
}
