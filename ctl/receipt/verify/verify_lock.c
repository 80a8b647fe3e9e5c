/* Reads lock, amendments and plan from the receipt, checks that each follows from the one
 * before, and compares the amendments with the journal's rows. The readers are those of prereg/,
 * on bytes of the listing. The journal is needed to see that no amendment is missing at the end. */
#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/plan.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/amend/amendment.h"
#include "prereg/lock/imported.h"

#define AMENDMENTS LAYOUT_AMENDMENTS "/"

/* A lock made for an import pins nothing, so no executed receipt can have it. */
static int check_kind(struct verifying *v)
{
    err_at(v->err, RECEIPT_LOCK, 0);
    if (imported_lock(v->lock) && !v->imported) {
        return err_set(v->err, ERR_LOCK,
                       "the lock was made for imported records: nothing ran under it, and no "
                       "receipt of an executed program goes with it");
    }
    return 0;
}

/* The text of the last amendment must be grid.toml itself. */
static int check_last_text(struct verifying *v)
{
    struct strbuf present = STRBUF_INIT;
    struct strbuf last = STRBUF_INIT;
    if (v->lock->n_amendments == 0) {
        return 0;
    }
    char *name = amendment_file(LAYOUT_AMENDMENTS, v->lock->n_amendments, "toml");
    int rc = files_read(&v->files, RECEIPT_GRID, &present, v->err);
    if (rc == 0) {
        rc = files_read(&v->files, name, &last, v->err);
    }
    if (rc == 0 && (last.len != present.len || memcmp(last.buf, present.buf, last.len) != 0)) {
        rc = err_set(v->err, ERR_LOCK, "is not grid.toml, though it is the last amendment's text");
    }
    strbuf_release(&present);
    strbuf_release(&last);
    free(name);
    return rc;
}

/* A file of amendments/ after the end of the chain belongs to nothing. */
static int check_nothing_beyond(struct verifying *v)
{
    for (size_t i = 0; i < v->files.n; i++) {
        const char *name = v->files.items[i].name;
        const char *number =
            strncmp(name, AMENDMENTS, strlen(AMENDMENTS)) == 0 ? name + strlen(AMENDMENTS) : "0000";
        if (strtoul(number, NULL, 10) > v->lock->n_amendments) {
            err_at(v->err, name, 0);
            return err_set(v->err, ERR_LOCK,
                           "the chain of amendments ends before it, at number %zu",
                           v->lock->n_amendments);
        }
    }
    return 0;
}

/* Turns a lock's error into a fault, without the file's name that the message begins with. */
static int bad_lock(struct err *err)
{
    static const char prefix[] = RECEIPT_LOCK ": ";
    const size_t n = sizeof(prefix) - 1;
    if (strncmp(err->msg, prefix, n) == 0) {
        memmove(err->msg, err->msg + n, strlen(err->msg + n) + 1);
    }
    return mismatch_code(err);
}

/* Reads and parses the lock, with the usual limit on values. */
static int read_lock(struct verifying *v)
{
    struct strbuf text = STRBUF_INIT;
    int rc = files_read(&v->files, RECEIPT_LOCK, &text, v->err);
    if (rc == 0 && nodes_check(text.buf, text.len, v->err) != 0) {
        rc = mismatch_code(v->err);
    } else if (rc == 0 && lock_parse(text.buf, text.len, RECEIPT_LOCK, &v->lock, v->err) != 0) {
        rc = bad_lock(v->err);
    }
    strbuf_release(&text);
    return rc;
}

/* The highest number that a file of amendments/ has. */
static size_t last_amendment(const struct verifying *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->files.n; i++) {
        const char *name = v->files.items[i].name;
        const size_t len = strlen(name);
        if (strncmp(name, AMENDMENTS, strlen(AMENDMENTS)) == 0 &&
            strcmp(name + len - 5, ".json") == 0) {
            n = strtoul(name + strlen(AMENDMENTS), NULL, 10); /* they are in order */
        }
    }
    return n;
}

/* Reads the next amendment and appends it to the chain, which checks it. */
static int read_amendment(struct verifying *v, struct amendment_chain *chain)
{
    cJSON *amendment = NULL;
    char *name = amendment_file(LAYOUT_AMENDMENTS, chain->n + 1, "json");
    int rc = files_read_json(&v->files, name, &amendment, v->err);
    if (rc == 0 && amendments_append(chain, v->lock->root, amendment, v->err) != 0) {
        cJSON_Delete(amendment);
        rc = mismatch_code(v->err);
    }
    free(name);
    return rc;
}

/* Reads as many amendments as there are files; a gap among them is a fault of the missing file. */
static int read_amendments(struct verifying *v)
{
    struct amendment_chain chain;
    const size_t n = last_amendment(v);
    int rc = 0;
    amendments_begin(v->lock, &chain);
    while (rc == 0 && chain.n < n) {
        rc = read_amendment(v, &chain);
    }
    if (rc == 0) {
        lock_take_amendments(v->lock, &chain);
    }
    amendments_release(&chain);
    return rc;
}

/* Plan, lock, amendments, then whether they fit: a fault names the file that is nearest to the
 * cause. */
int verify_lock(struct verifying *v)
{
    int rc = plan_read(&v->files, RECEIPT_GRID, &v->program, v->err);
    if (rc != 0 || (rc = read_lock(v)) != 0 || (rc = read_amendments(v)) != 0 ||
        (rc = check_kind(v)) != 0 || (rc = check_nothing_beyond(v)) != 0) {
        return rc;
    }
    err_at(v->err, RECEIPT_GRID, 0);
    if (lock_verify(v->program, v->lock, LOCK_PLAN, NULL, NULL, v->err) != 0) {
        return mismatch_code(v->err);
    }
    return check_last_text(v);
}

/* Each row `amended` of the journal must match a file, and each file a row. */
int verify_amended(struct verifying *v)
{
    const cJSON *row = v->history.amended->child;
    const cJSON *file = v->lock->amendments == NULL ? NULL : v->lock->amendments->child;
    static const char *const keys[] = {"number", "head", "level"};
    int rc = 0;
    for (size_t n = 1; rc == 0 && (row != NULL || file != NULL); n++) {
        char name[40];
        (void)snprintf(name, sizeof(name), LAYOUT_AMENDMENTS "/%04zu.json", n);
        err_at(v->err, file != NULL ? name : RECEIPT_JOURNAL, 0);
        if (row == NULL || file == NULL) {
            return file == NULL
                       ? err_set(v->err, ERR_LOCK, "tells of amendment %zu, which is not here", n)
                       : err_set(v->err, ERR_LOCK, "the journal tells of no such amendment");
        }
        for (size_t k = 0; rc == 0 && k < ARRAY_LEN(keys); k++) {
            const cJSON *said = json_member(row, keys[k]);
            const cJSON *is = json_member(file, keys[k]);
            rc = said == NULL || is == NULL
                     ? err_set(v->err, ERR_LOCK, "has no \"%s\" there or in the journal", keys[k])
                     : mismatch_trees(v->err, keys[k], said, is);
        }
        row = row->next;
        file = file->next;
    }
    return rc;
}
