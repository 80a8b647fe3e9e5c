/*
 * Submitting an amended program again. Its text is recognised by the plan alone: it is either the
 * present one or the one that was locked.
 *
 * The present text is adopted as it was submitted. For the locked text, the present text is taken
 * and given the [run] of the submitted one, then parsed again to prove that the result is the same
 * plan with the same [run].
 */
#include "daemon/answers/resubmit.h"

#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "prereg/amend/amendment.h"
#include "prereg/program/run_change.h"

/* Whether the text's plan is the one the lock describes. */
static bool same_plan(const struct plan_program *p, const struct lock *lock, struct err *err)
{
    return lock_verify(p, lock, LOCK_PLAN, NULL, NULL, err) == 0;
}

/* The present text, with the [run] of the submitted one where that differs. */
static int make_text(struct again *a, const struct plan_program *submitted, struct err *err)
{
    struct strbuf present = STRBUF_INIT;
    struct strbuf from = STRBUF_INIT;
    char *path = path_join(a->folder, LAYOUT_GRID);
    int rc = file_read(path, LAYOUT_GRID_MAX, &present, err);
    if (rc != 0 || (rc = bundle_parse_text(&present, a->path, &a->bundle, err)) != 0) {
        goto out;
    }
    if (program_same_run(a->bundle->program, submitted)) {
        strbuf_add(&a->text, present.buf, present.len);
        goto out;
    }
    bundle_unref(a->bundle);
    a->bundle = NULL;
    rc = file_read(a->path, LAYOUT_GRID_MAX, &from, err);
    if (rc == 0) {
        run_text_replace(present.buf, from.buf, &a->text);
        rc = bundle_parse_text(&a->text, a->path, &a->bundle, err);
    }
    if (rc == 0 && !program_same_run(a->bundle->program, submitted)) {
        rc = err_set(err, ERR_REFUSED, "it is not what was submitted");
    }
    if (rc != 0) {
        (void)err_wrap(err,
                       "the [run] of %s cannot be put into the amended program: change it in a "
                       "copy of %s and submit that",
                       a->path, path);
    }
out:
    free(path);
    strbuf_release(&present);
    strbuf_release(&from);
    return rc;
}

static int take_text(struct again *a, const struct plan_program *submitted, struct err *err)
{
    if (a->as_locked) {
        return make_text(a, submitted, err);
    }
    int rc = file_read(a->path, LAYOUT_GRID_MAX, &a->text, err);
    return rc != 0 ? rc : bundle_parse_text(&a->text, a->path, &a->bundle, err);
}

/* On success a->bundle owns the lock, amended to the head the loop knows. */
int again_read(struct again *a, const struct plan_program *submitted, const struct lock *lock,
               struct err *err)
{
    struct lock *now = NULL;
    struct err ignored;
    strbuf_init(&a->text);
    int rc = lock_read_amended(a->folder, &now, err);
    if (rc != 0) {
        goto out;
    }
    if (strcmp(now->head, a->head) != 0) {
        rc = err_set(err, ERR_REFUSED, "it was amended meanwhile: submit it again");
        goto out;
    }
    if (!same_plan(submitted, now, err)) {
        a->as_locked = same_plan(submitted, lock, &ignored);
        if (!a->as_locked) {
            rc = err_wrap(err, "it is neither what was locked nor what it was amended to "
                               "(`preregctl diff`, `preregctl amend`)");
            goto out;
        }
    }
    if ((rc = take_text(a, submitted, err)) != 0) {
        goto out;
    }
    a->bundle->lock = now; /* the bundle's from here on */
    return same_plan(a->bundle->program, now, err) ? 0 : err->code;
out:
    lock_free(now);
    return rc;
}

void again_release(struct again *a)
{
    bundle_unref(a->bundle);
    strbuf_release(&a->text);
}
