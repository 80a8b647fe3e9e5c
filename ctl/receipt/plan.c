/*
 * A plan is parsed by the same reader as a user's grid.toml, from bytes of the listing. No file
 * that a plan names is opened: paths in it are the maker's.
 */
#include "ctl/receipt/plan.h"

#include <stdlib.h>
#include <string.h>

#include "prereg/amend/amendment.h"

/* Turns the plan's first error, with its line, into the fault. */
static int bad_plan(const char *name, const struct diag *diag, const struct err *err,
                    struct fault *f)
{
    for (size_t i = 0; i < diag->n_items; i++) {
        if (diag->items[i].level == DIAG_ERROR) {
            fault_at(f, name, diag->items[i].line);
            return fault_says(f, "%s", diag->items[i].msg);
        }
    }
    return fault_from(f, err);
}

/* The path is for messages only: the text comes from the listing. */
int plan_read(const struct receipt_files *files, const char *name, struct program **out,
              struct fault *f)
{
    struct diag diag;
    struct err err;
    struct strbuf text = STRBUF_INIT;
    char *path = files_path(files, name);
    diag_init(&diag, name);
    int rc = files_read(files, name, &text, f);
    if (rc == 0 && program_parse(text.buf, text.len, path, out, &diag, &err) != 0) {
        rc = bad_plan(name, &diag, &err, f);
    }
    diag_release(&diag);
    strbuf_release(&text);
    free(path);
    return rc;
}

/* The text of the last amendment up to that head, compared with the lock as it was amended then. */
int plan_at_head(const struct receipt_files *files, const struct lock *lock, const char *head,
                 struct program **out, struct fault *f)
{
    struct lock *then = NULL;
    struct err err;
    *out = NULL;
    if (strcmp(lock->head, head) == 0) {
        return 0;
    }
    fault_at(f, RECEIPT_LOCK, 0);
    if (lock_at_head(lock, head, &then, &err) != 0) {
        return fault_from(f, &err);
    }
    char *name = amendment_file(AMENDMENT_FOLDER, then->n_amendments, "toml");
    int rc = plan_read(files, name, out, f);
    if (rc == 0) {
        fault_at(f, name, 0);
        rc = lock_verify(*out, then, LOCK_PLAN, NULL, NULL, &err) == 0 ? 0 : fault_from(f, &err);
    }
    free(name);
    lock_free(then);
    return rc;
}
