/*
 * Checks what is reused from an earlier receipt. That receipt is inside of this one (reuse.tar): it
 * is extracted and verified like any other, and what the lock pins of it is computed again from
 * both plans. Each reused result is then compared with what follows from the earlier one's text.
 */
#include <stdlib.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/receipt/tar.h"
#include "ctl/receipt/verify/verify_parts.h"

#define DEPTH_MAX 8 /* receipts inside of each other */

void verify_reuse_release(struct verifying *v)
{
    struct err ignored;
    reuse_close(&v->reused.source);
    free(v->reused.pins);
    if (v->reused.temp.path != NULL) {
        (void)!temp_folder_remove(&v->reused.temp, &ignored);
    }
    v->reused = (struct reused_results){.temp = {.fd = -1}};
}

/* The earlier receipt by itself. What is wrong with it is a fault of this one. */
static int verify_earlier(struct verifying *v)
{
    const struct verify_spec spec = {.folder = v->reused.temp.path, .depth = v->spec->depth + 1};
    struct verify_answer answer;
    if (spec.depth > DEPTH_MAX) {
        return err_set(v->err, ERR_LOCK, "more than %d receipts are inside of each other",
                       DEPTH_MAX);
    }
    int rc = v->reused.verify(&spec, &answer);
    if (rc != 0) {
        const struct err *f = &answer.fault;
        rc = err_set(v->err, rc, "the receipt in it does not follow: %.80s%s%.150s", f->file,
                     f->file[0] == '\0' ? "" : ": ", f->msg);
    }
    cJSON_Delete(answer.json);
    return rc;
}

/* What the lock says of the receipt is named first where it differs. */
static int check_pins(struct verifying *v)
{
    static const char *const keys[] = {"root", "receipt", "program"};
    struct diag diag;
    cJSON *pins = NULL;
    diag_init(&diag, RECEIPT_GRID);
    int rc = reuse_match(v->program, v->lock, &v->reused.source, &diag, &pins, v->err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(keys); i++) {
        const cJSON *locked = json_member(v->lock->reuse, keys[i]);
        const cJSON *found = json_member(pins, keys[i]);
        if (!json_equal(locked, found)) {
            char *what = xasprintf("the lock's reuse.%s is not that of the receipt in it", keys[i]);
            rc = err_differs(v->err, what, cJSON_IsString(locked) ? locked->valuestring : NULL,
                             cJSON_IsString(found) ? found->valuestring : NULL);
            free(what);
        }
    }
    if (rc == 0) {
        rc = mismatch_trees(v->err, "reuse", pins, v->lock->reuse);
    }
    cJSON_Delete(pins);
    diag_release(&diag);
    return rc == 0 ? 0 : mismatch_code(v->err);
}

static int open_earlier(struct verifying *v)
{
    char *tar = files_path(&v->files, RECEIPT_REUSE);
    int rc = temp_folder_make("reuse", &v->reused.temp, v->err);
    rc = rc == 0 ? tar_read(tar, v->reused.temp.path, v->err) : rc;
    free(tar);
    if (rc == 0 && (rc = verify_earlier(v)) == 0 &&
        reuse_open(&v->reused.source, v->reused.temp.path, v->err) != 0) {
        rc = mismatch_code(v->err);
    }
    return rc;
}

int verify_reuse(struct verifying *v)
{
    const bool there = files_have(&v->files, RECEIPT_REUSE);
    err_at(v->err, RECEIPT_LOCK, 0);
    if (reuse_pins(v->program, v->lock, &v->reused.pins, v->err) != 0) {
        return mismatch_code(v->err);
    }
    err_at(v->err, RECEIPT_REUSE, 0);
    if (v->reused.pins == NULL || !there) {
        return v->reused.pins == NULL && !there ? 0
               : there ? err_set(v->err, ERR_LOCK, "the lock reuses nothing from a receipt")
                       : err_set(v->err, ERR_LOCK, "is missing: the lock reuses results from it");
    }
    int rc = open_earlier(v);
    err_at(v->err, RECEIPT_REUSE, 0);
    if (rc != 0 || (rc = check_pins(v)) != 0) {
        return rc;
    }
    const struct reuse_counts n = reuse_count(v->program, v->reused.pins);
    verifying_says(
        v,
        "%zu of %zu cells are reused from the receipt of %.64s (root %.16s), which is "
        "in " RECEIPT_REUSE " and follows: their work is the same, and %zu %s known before "
        "this lock",
        n.cells, v->program->n_cells, v->reused.source.program->name, v->reused.source.lock->root,
        n.tasks, text_plural((int64_t)n.tasks, "result was", "results were"));
    return 0;
}

int verify_reused_result(struct verifying *v, size_t task, cJSON **out)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    if (v->reused.pins == NULL || v->reused.pins[task].of == NULL) {
        return 0;
    }
    const size_t then = reuse_find_task(v->reused.source.program, v->reused.pins[task].of);
    int rc = then == INDEX_NONE ? err_set(v->err, ERR_LOCK, "the earlier receipt has no such task")
                                : reuse_text(&v->reused.source, then, &text, NULL, NULL, v->err);
    rc = rc == 0 ? json_parse_lax(text.buf, text.len, out, v->err) : rc;
    strbuf_release(&text);
    return rc;
}

cJSON *verify_reused_json(const struct verifying *v)
{
    if (v->reused.pins == NULL) {
        return cJSON_CreateNull();
    }
    const struct reuse_counts n = reuse_count(v->program, v->reused.pins);
    cJSON *o = json_object();
    json_put_string(o, "program", v->reused.source.program->name);
    json_put_string(o, "root", v->reused.source.lock->root);
    json_put(o, "receipt", json_copy(json_member(v->lock->reuse, "receipt")));
    json_put_int(o, "cells", (int64_t)n.cells);
    json_put_int(o, "tasks", (int64_t)n.tasks);
    return o;
}
