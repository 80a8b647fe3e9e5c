/*
 * A plan is parsed by the same reader as a user's grid.toml, from bytes of the listing. No file
 * that a plan names is opened: paths in it are the maker's.
 */
#include "ctl/receipt/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/layout/layout.h"
#include "prereg/amend/amendment.h"
#include "prereg/load/program_load.h"

/* Turns the plan's first error, with its line, into the fault. */
static int bad_plan(const char *name, const struct diag *diag, struct err *err)
{
    for (size_t i = 0; i < diag->n_items; i++) {
        if (diag->items[i].level == DIAG_ERROR) {
            err_at(err, name, diag->items[i].line);
            return err_set(err, ERR_LOCK, "%s", diag->items[i].msg);
        }
    }
    return mismatch_code(err);
}

/* The path is for messages only: the text comes from the listing. */
int plan_read(const struct receipt_files *files, const char *name, struct plan_program **out,
              struct err *err)
{
    struct diag diag;
    struct strbuf text = STRBUF_INIT;
    char *path = files_path(files, name);
    diag_init(&diag, name);
    int rc = files_read(files, name, &text, err);
    if (rc == 0 && program_parse(text.buf, text.len, path, out, &diag, err) != 0) {
        rc = bad_plan(name, &diag, err);
    }
    diag_release(&diag);
    strbuf_release(&text);
    free(path);
    return rc;
}

/* The text of the last amendment up to that head, compared with the lock as it was amended then. */
int plan_at_head(const struct receipt_files *files, const struct lock *lock, const char *head,
                 struct plan_program **out, struct err *err)
{
    struct lock *then = NULL;
    *out = NULL;
    if (strcmp(lock->head, head) == 0) {
        return 0;
    }
    err_at(err, RECEIPT_LOCK, 0);
    if (lock_at_head(lock, head, &then, err) != 0) {
        return mismatch_code(err);
    }
    char *name = amendment_file(LAYOUT_AMENDMENTS, then->n_amendments, "toml");
    int rc = plan_read(files, name, out, err);
    if (rc == 0) {
        err_at(err, name, 0);
        rc = lock_verify(*out, then, LOCK_PLAN, NULL, NULL, err) == 0 ? 0 : mismatch_code(err);
    }
    free(name);
    lock_free(then);
    return rc;
}
