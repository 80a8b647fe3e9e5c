/*
 * A bundle: a program with the lock that holds for it, read together and checked together. It is
 * counted by references, so that a job keeps the one that it began with while an amendment brings
 * the next.
 */
#include "daemon/program/hosted.h"

#include <string.h>

#include "base/diag.h"
#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/amend/amend_sign.h"
#include "prereg/amend/amendment.h"
#include "prereg/load/program_load.h"

/* `origin` is where relative paths in the text start, which need not be where the text was read. */
static int parse_text(const struct strbuf *text, const char *origin, struct plan_program **out,
                      struct err *err)
{
    struct diag diag;
    diag_init(&diag, origin);
    int rc = program_parse(text->buf, text->len, origin, out, &diag, err);
    diag_release(&diag);
    return rc;
}

static int parse_program(const char *program_path, const char *origin, struct plan_program **out,
                         struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_read(program_path, LAYOUT_GRID_MAX, &text, err);
    if (rc == 0) {
        rc = parse_text(&text, origin, out, err);
    }
    strbuf_release(&text);
    return rc;
}

int bundle_parse_text(const struct strbuf *text, const char *origin, struct bundle **out,
                      struct err *err)
{
    struct bundle *b = xcalloc(1, sizeof(*b));
    b->refs = 1;
    b->origin = xstrdup(origin);
    int rc = parse_text(text, origin, &b->program, err);
    if (rc != 0) {
        bundle_unref(b);
        b = NULL;
    }
    *out = b;
    return rc;
}

int bundle_parse(const char *program_path, const char *origin, struct bundle **out, struct err *err)
{
    struct bundle *b = xcalloc(1, sizeof(*b));
    b->refs = 1;
    b->origin = xstrdup(origin);
    int rc = parse_program(program_path, origin, &b->program, err);
    if (rc != 0) {
        bundle_unref(b);
        b = NULL;
    }
    *out = b;
    return rc;
}

/* An amendment's digest does not cover its signature, so a signature could be replaced or removed:
 * it is checked at every load. */
static int check_signers(const struct bundle *b, struct err *err)
{
    char *allowed = NULL;
    if (!amend_sign_matters(b->program, b->lock)) {
        return 0;
    }
    int rc = signature_allowed_signers(NULL, &allowed, err);
    if (rc == 0) {
        rc = amendments_check_signers(b->program, b->lock, allowed, err);
    }
    free(allowed);
    return rc;
}

/* The copy in STATE: text and lock as amended. Only the plan is verified here; data and pins are
 * checked before every spawn. */
int bundle_load_own(const char *folder, const char *origin, struct bundle **out, struct err *err)
{
    struct bundle *b = NULL;
    char *program_path = path_join(folder, LAYOUT_GRID);
    *out = NULL;
    int rc = bundle_parse(program_path, origin, &b, err);
    free(program_path);
    if (rc != 0 || (rc = lock_read_amended(folder, &b->lock, err)) != 0 ||
        (rc = lock_verify(b->program, b->lock, LOCK_PLAN, NULL, NULL, err)) != 0 ||
        (rc = reuse_pins(b->program, b->lock, &b->reuse, err)) != 0 ||
        (rc = check_signers(b, err)) != 0) {
        bundle_unref(b);
        return rc;
    }
    *out = b;
    return 0;
}

/* A submitted program: the lock must be the unamended one of exactly this plan. */
int bundle_load_text(const struct strbuf *text, const char *lock_path, const char *origin,
                     struct bundle **out, struct err *err)
{
    struct bundle *b = NULL;
    int rc = bundle_parse_text(text, origin, &b, err);
    *out = NULL;
    if (rc == 0) {
        rc = lock_read(lock_path, &b->lock, err);
        if (rc == ERR_NOT_FOUND) {
            rc = err_set(err, ERR_LOCK, "%s is not locked: run `preregctl lock` first", origin);
        }
    }
    if (rc == 0) {
        rc = lock_verify(b->program, b->lock, LOCK_PLAN, NULL, NULL, err);
    }
    if (rc == 0) {
        rc = reuse_pins(b->program, b->lock, &b->reuse, err);
    }
    if (rc != 0) {
        bundle_unref(b);
        return rc;
    }
    *out = b;
    return 0;
}

int bundle_load(const char *program_path, const char *lock_path, const char *origin,
                struct bundle **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    int rc = file_read(program_path, LAYOUT_GRID_MAX, &text, err);
    if (rc == 0) {
        rc = bundle_load_text(&text, lock_path, origin, out, err);
    }
    strbuf_release(&text);
    return rc;
}

/* References are counted on the loop's thread only, so the count needs no lock. */
struct bundle *bundle_ref(struct bundle *b)
{
    b->refs++;
    return b;
}

void bundle_unref(struct bundle *b)
{
    if (b == NULL || --b->refs > 0) {
        return;
    }
    program_free(b->program);
    lock_free(b->lock);
    free(b->reuse);
    free(b->origin);
    free(b);
}
