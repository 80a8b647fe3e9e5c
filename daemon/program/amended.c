/* The files of an amendment, and the moment at which it takes effect. The order of writing is in
 * amended.h; everything here can be interrupted at any point, and prereg/amend/amend_heal.h finds
 * out which program holds. Files without a committed row never took effect and may be overwritten.
 */
#include "daemon/program/amended.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/apparatus.h"
#include "prereg/amend/amend_heal.h"
#include "prereg/amend/amendment.h"
#include "state/journal/line.h"
#include "state/store/apparatus.h"

/* ---- writing ---- */

/* Compares the file with what was written to it: a disk may fail after a write that succeeded. */
static int read_back(const char *path, const struct strbuf *text, struct err *err)
{
    struct strbuf back = STRBUF_INIT;
    int rc = file_read(path, LAYOUT_GRID_MAX, &back, err);
    if (rc == 0 && (back.len != text->len || memcmp(back.buf, text->buf, text->len) != 0)) {
        rc = err_set(err, ERR_IO, "%s does not read back as it was written", path);
    }
    strbuf_release(&back);
    return rc;
}

int amended_catch_up(struct hosted *h, struct err *err)
{
    if (!h->text_lags) {
        return 0;
    }
    int rc = amendments_put_in_place(h->folder, h->bundle->lock->n_amendments, err);
    h->text_lags = rc != 0;
    return rc == 0 ? 0 : err_wrap(err, "grid.toml of the last amendment cannot be written yet");
}

/* 0000.toml keeps the text as submitted; it is copied once, before the first amendment. */
int amended_write(const char *folder, const struct amend_prepared *p, struct err *err)
{
    char *amendments = path_join(folder, LAYOUT_AMENDMENTS);
    char *program = path_join(folder, LAYOUT_GRID);
    char *first = amendment_file(amendments, 0, "toml");
    char *toml = amendment_file(amendments, p->core.number, "toml");
    char *json = amendment_file(amendments, p->core.number, "json");
    int rc = dir_make_below(folder, amendments, true, err);
    if (rc != 0) {
        goto out;
    }
    /* a file that exists already never took effect */
    if (p->core.number == 1 && (rc = file_copy(program, first, 0600, err)) != 0) {
        goto out;
    }
    if ((rc = file_write_atomic(toml, p->text.buf, p->text.len, 0600, err)) != 0 ||
        (rc = read_back(toml, &p->text, err)) != 0) {
        goto out;
    }
    rc = json_write_file(json, p->amendment, 0600, err);
out:
    free(json);
    free(toml);
    free(first);
    free(program);
    free(amendments);
    return rc;
}

void amended_take_back(const char *folder, uint32_t number)
{
    static const char *const kinds[] = {"json", "toml"};
    char *amendments = path_join(folder, LAYOUT_AMENDMENTS);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        char *path = amendment_file(amendments, number, kinds[i]);
        (void)unlink(path);
        free(path);
    }
    free(amendments);
}

/* ---- the row ---- */

int amended_commit(struct store *store, const struct hosted *h, struct err *err)
{
    return store_apparatus_sync(store, h->no, h->amending->bundle->program, err);
}

/* grid.toml may fail to be written: the program is the amended one all the same, and text_lags has
 * it retried. */
void amended_take_effect(struct hosted *h)
{
    struct amend_prepared *p = h->amending;
    struct err why;
    if (amendments_put_in_place(h->folder, p->core.number, &why) != 0) {
        h->text_lags = true;
        log_error("%s: %s: it is put in place as soon as it can be written", h->id, why.msg);
    }
    apparatus_follow(h, p->checks, p->n_checks);
    bundle_unref(h->bundle);
    h->bundle = bundle_ref(p->bundle);
    h->version++;
    h->amending = NULL;
    amend_prepared_free(p);
}

/* ---- the verdict's head ---- */

/* Follows the head through `amended` rows up to the verdict's row. */
static int take_line(void *ctx, int64_t seq, const char *line, struct err *err)
{
    char *head = ctx;
    const size_t len = strlen(line);
    const enum row_kind kind = line_kind(line, len);
    (void)seq;
    (void)err;
    if (kind == ROW_AMENDED) {
        line_amended_head(line, len, head);
    }
    return kind == ROW_VERDICT; /* later amendments do not change it */
}

/* Without a verdict, the present head. With one, the head at the verdict's row, read from the
 * journal. */
int amended_verdict_head(struct store *store, const struct hosted *h, char head[DIGEST_HEX_SIZE],
                         struct err *err)
{
    const struct lock *lock = h->bundle->lock;
    memcpy(head, lock->head, DIGEST_HEX_SIZE);
    if (!h->status.verdict || lock->n_amendments == 0) {
        return 0;
    }
    memcpy(head, lock->root, DIGEST_HEX_SIZE);
    return store_journal(store, h->no, 1, take_line, head, err);
}
