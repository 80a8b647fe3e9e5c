/* Computes instruments.json again from records and items, in a child process with a time limit: the
 * items are a stranger's. The plan is that of the file's own head, as prereg-report had it. What
 * this machine cannot compute is reported as not shown, and is not a fault of the receipt. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/plan.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/amend/amendment.h"
#include "truthtable/instruments/instruments.h"

/* The items of a task, for an instrument that asks. */
static int find_items(const void *ctx, size_t cell, size_t stage, char **path, struct digest *said,
                      struct err *err)
{
    const struct verifying *v = ctx;
    const size_t task = cell * v->program->n_stages + stage;
    char hex[DIGEST_HEX_SIZE];
    if (!v->items.named[task]) {
        return err_set(err, ERR_NOT_FOUND, "the result names no items");
    }
    *said = v->items.said[task];
    digest_hex(said, hex);
    *path = xasprintf("%s/" RECEIPT_ITEMS "/%s.jsonl", v->files.folder, hex);
    return 0;
}

/* What the file should be; NULL with v->items.not_computed set where it cannot be computed. */
static cJSON *compute(struct verifying *v, const struct lock *lock, struct plan_program *program,
                      const cJSON *verdict)
{
    const struct instruments_items items = {.find = find_items, .ctx = v};
    const struct instruments_input in = {.folder = v->files.folder,
                                         .program = program,
                                         .lock = lock,
                                         .verdict = verdict,
                                         .provenance = v->provenance,
                                         .amendments = lock->amendments,
                                         .items = &items};
    struct evidence e = v->evidence; /* of the same cells, stages and measures */
    e.program = program;
    cJSON *computed = instruments_compute_apart(&in, &e);
    const cJSON *why = json_member(computed, "why");
    if (cJSON_IsString(why)) {
        v->items.not_computed = arena_strdup(&v->arena, why->valuestring);
        cJSON_Delete(computed);
        return NULL;
    }
    return computed;
}

/* Byte for byte, except figures beyond the twelfth digit. */
static int compare(struct verifying *v, const cJSON *computed)
{
    struct strbuf expected = STRBUF_INIT;
    struct strbuf found = STRBUF_INIT;
    size_t n_near = 0;
    int rc = json_pretty(computed, &expected, v->err) != 0
                 ? mismatch_code(v->err)
                 : files_read(&v->files, RECEIPT_INSTRUMENTS, &found, v->err);
    strbuf_addc(&expected, '\n');
    if (rc == 0 && (rc = mismatch_texts_near(v->err, &expected, &found, &n_near)) != 0) {
        verifying_versions(v);
    }
    strbuf_release(&expected);
    strbuf_release(&found);
    return rc;
}

/* Under the lock and the plan of that head; the receipt's own are those of the last. */
static int check_at(struct verifying *v, const char *head)
{
    struct lock *then = NULL;
    struct plan_program *program = NULL;
    cJSON *verdict = NULL;
    cJSON *computed = NULL;
    int rc = plan_at_head(&v->files, v->lock, head, &program, v->err);
    if (rc == 0 && program != NULL && lock_at_head(v->lock, head, &then, v->err) != 0) {
        rc = mismatch_code(v->err);
    }
    if (rc == 0) {
        rc = files_read_json(&v->files, RECEIPT_VERDICT, &verdict, v->err);
    }
    if (rc == 0) {
        computed = compute(v, then != NULL ? then : v->lock, program != NULL ? program : v->program,
                           verdict);
    }
    if (computed != NULL && (rc = compare(v, computed)) == 0) {
        v->items.same_instruments = true;
        verifying_says(v, RECEIPT_INSTRUMENTS " was computed again from records and items, and is "
                                              "the same");
    }
    cJSON_Delete(computed);
    cJSON_Delete(verdict);
    program_free(program);
    lock_free(then);
    return rc;
}

int verify_instruments(struct verifying *v)
{
    cJSON *found = NULL;
    if (!v->items.present || !files_have(&v->files, RECEIPT_INSTRUMENTS)) {
        v->items.not_computed = "the receipt has none";
        return 0;
    }
    int rc = files_read_json(&v->files, RECEIPT_INSTRUMENTS, &found, v->err);
    if (rc == 0 && cJSON_IsString(json_member(found, "why"))) {
        v->items.not_computed = "its maker could not compute them";
    } else if (rc == 0) {
        rc = check_at(v, json_member(found, "head")->valuestring); /* check_instruments() read it */
    }
    cJSON_Delete(found);
    return rc;
}
