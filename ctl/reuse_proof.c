/*
 * The receipt is verified before anything of it is matched: a result of a receipt that does not
 * follow is never taken. Digests of the plan's data and workers are those of a lock that is built
 * for this alone.
 */
#include "ctl/reuse_proof.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "ctl/receipt/layout.h"
#include "ctl/receipt/verify/verify.h"
#include "prereg/reuse/reuse.h"

#define TAR_ADDS_BYTES                                                                             \
    ((int64_t)64 << 20) /* headers and padding, of as many files as there can be */

/* The successor's receipt has this one in it, as one file. */
static void check_size(const struct verify_answer *answer, struct diag *diag, struct place at)
{
    int64_t bytes = 0;
    struct err ignored;
    if (json_get_int(json_member(answer->json, "counts"), "bytes", 0, JSON_INT_MAX, &bytes,
                     &ignored) == 0 &&
        bytes > RECEIPT_FILE_BYTES_MAX - TAR_ADDS_BYTES) {
        diag_add(diag, DIAG_ERROR, at.line, at.column,
                 "reuse.receipt: it has %lld bytes, more than a receipt may hold of another: "
                 "export it without --items",
                 (long long)bytes);
    }
}

/* A receipt that is gone or does not follow is an error at [reuse]. */
static int verify_receipt(const struct plan_program *p, struct diag *diag, struct err *err)
{
    const struct place at = p->reuse.place;
    const struct verify_spec spec = {.folder = p->reuse.receipt, .depth = 1}; /* as it will be */
    struct verify_answer answer;
    if (file_kind_at(p->reuse.receipt) != FILE_FOLDER) {
        diag_add(diag, DIAG_ERROR, at.line, at.column,
                 "reuse.receipt: expected the folder of a receipt (of a tar, extract it first), "
                 "and %s is not one",
                 p->reuse.receipt);
        return diag_result(diag, err);
    }
    const int fault = receipt_verify(&spec, &answer);
    if (fault != 0) {
        const struct err *f = &answer.fault;
        diag_add(diag, DIAG_ERROR, at.line, at.column,
                 "reuse.receipt: it does not follow (`preregctl verify`): %s%s%s", f->file,
                 f->file[0] == '\0' ? "" : ": ", f->msg);
    } else {
        check_size(&answer, diag, at);
    }
    verify_answer_release(&answer);
    return diag_result(diag, err);
}

/* Reads the receipt and matches; faults of it are errors at [reuse]. */
static int match(const struct plan_program *p, const struct lock *lock, struct diag *diag,
                 cJSON **pins, struct err *err)
{
    struct reuse_source src;
    int rc = reuse_open(&src, p->reuse.receipt, err);
    if (rc != 0) {
        diag_add(diag, DIAG_ERROR, p->reuse.place.line, p->reuse.place.column, "%s", err->msg);
        rc = diag_result(diag, err);
    } else {
        rc = reuse_match(p, lock, &src, diag, pins, err);
    }
    reuse_close(&src);
    return rc;
}

int reuse_prove(const struct plan_program *p, const cJSON *describe, struct diag *diag,
                cJSON **pins, struct err *err)
{
    struct lock *lock = NULL;
    *pins = NULL;
    if (p->reuse.receipt == NULL) {
        return 0;
    }
    int rc = verify_receipt(p, diag, err);
    if (rc == 0 && (rc = lock_build(p, describe, NULL, &lock, err)) == 0) {
        rc = match(p, lock, diag, pins, err);
    }
    lock_free(lock);
    return rc;
}
