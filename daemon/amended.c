#include "daemon/amended.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/apparatus.h"
#include "prereg/amendment.h"
#include "state/apparatus.h"

void amend_prepared_free(struct amend_prepared *p)
{
    if (p != NULL) {
        cJSON_Delete(p->amendment);
        strbuf_release(&p->text);
        bundle_unref(p->bundle);
        free(p->checks);
        free(p);
    }
}

/* ---- writing ---- */

int amended_write(const char *folder, const struct amend_prepared *p, struct err *err)
{
    char *amendments = path_join(folder, AMENDMENT_FOLDER);
    char *program = path_join(folder, HOSTED_PROGRAM_FILE);
    char *first = amendment_file(amendments, 0, "toml");
    char *toml = amendment_file(amendments, p->core.number, "toml");
    char *json = amendment_file(amendments, p->core.number, "json");
    int rc = dir_make(amendments, 0700, err);
    if (rc == 0 && file_kind_at(first) == FILE_ABSENT) {
        rc = file_copy(program, first, 0600, err);
    }
    if (rc == 0) {
        rc = file_write_atomic(toml, p->text.buf, p->text.len, 0600, err);
    }
    if (rc == 0) {
        rc = json_write_file(json, p->amendment, 0600, err);
    }
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
    char *amendments = path_join(folder, AMENDMENT_FOLDER);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        char *path = amendment_file(amendments, number, kinds[i]);
        (void)unlink(path);
        free(path);
    }
    free(amendments);
}

int amended_put_in_place(const char *folder, uint32_t number, struct err *err)
{
    char *amendments = path_join(folder, AMENDMENT_FOLDER);
    char *from = amendment_file(amendments, number, "toml");
    char *to = path_join(folder, HOSTED_PROGRAM_FILE);
    int rc = file_copy(from, to, 0600, err);
    free(to);
    free(from);
    free(amendments);
    return rc;
}

/* ---- the row ---- */

int amended_commit(struct store *store, const struct hosted *h, struct err *err)
{
    return store_apparatus_sync(store, h->no, h->amending->bundle->program, err);
}

void amended_take_effect(struct hosted *h)
{
    struct amend_prepared *p = h->amending;
    struct err why;
    if (amended_put_in_place(h->folder, p->core.number, &why) != 0) {
        log_error("%s: %s: it is put in place when the daemon starts again", h->id, why.msg);
    }
    apparatus_follow(h, p->checks, p->n_checks);
    bundle_unref(h->bundle);
    h->bundle = bundle_ref(p->bundle);
    h->version++;
    h->amending = NULL;
    amend_prepared_free(p);
}

/* ---- after a crash ---- */

static int put_aside(const char *amendments, size_t number, struct err *err)
{
    static const char *const kinds[] = {"json", "toml"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(kinds); i++) {
        char *path = amendment_file(amendments, number, kinds[i]);
        char *aside = xasprintf("%s.aside", path);
        if (rename(path, aside) == 0) {
            log_warn("%s never took effect: it is put aside", path);
        } else if (file_kind_at(path) != FILE_ABSENT) {
            rc = err_set_errno(err, errno, "put %s aside", path);
        }
        free(aside);
        free(path);
    }
    return rc;
}

/* Whether the text of a file is a program of that plan. */
static bool is_of_plan(const char *path, const cJSON *locked, const char *origin)
{
    struct bundle *b = NULL;
    struct err ignored;
    bool same = bundle_parse(path, origin, &b, &ignored) == 0;
    if (same) {
        cJSON *plan = program_covered(b->program);
        cJSON *changes = amendment_changes(json_member(locked, "plan"), plan);
        same = changes->child == NULL;
        cJSON_Delete(changes);
        cJSON_Delete(plan);
    }
    bundle_unref(b);
    return same;
}

/* Applies what took effect; `before` is then the chain without its last. */
static int read_taken(const char *amendments, const struct lock *lock, const char *head,
                      struct amendment_chain *chain, cJSON **before)
{
    struct err ignored;
    int rc = 0;
    amendments_begin(lock, chain);
    while (rc == 0 && strcmp(chain->head, head) != 0) {
        cJSON *amendment = NULL;
        char *path = amendment_file(amendments, chain->n + 1, "json");
        rc = json_read_file(path, AMENDMENT_BYTES_MAX, &amendment, &ignored);
        free(path);
        cJSON_Delete(*before);
        *before = json_copy(chain->locked);
        if (rc == 0 && (rc = amendments_append(chain, lock->root, amendment, &ignored)) != 0) {
            cJSON_Delete(amendment);
        }
    }
    return rc;
}

static int heal(const char *folder, const struct lock *lock, const char *head, struct err *err)
{
    struct amendment_chain chain = {0};
    cJSON *before = NULL;
    char *amendments = path_join(folder, AMENDMENT_FOLDER);
    char *program = path_join(folder, HOSTED_PROGRAM_FILE);
    int rc = read_taken(amendments, lock, head, &chain, &before);
    if (rc != 0) { /* the reader names what does not follow; if all does, the last ones are gone */
        amendments_release(&chain);
        rc = amendments_read(amendments, lock, &chain, err);
        rc = rc != 0 ? rc
                     : err_set(err, ERR_LOCK, "%s: the amendment whose head is %.16s is missing",
                               amendments, head);
    } else {
        rc = put_aside(amendments, chain.n + 1, err);
        if (rc == 0 && before != NULL && is_of_plan(program, before, program)) {
            log_warn("%s: amendment %zu had taken effect: its program is put in place", folder,
                     chain.n);
            rc = amended_put_in_place(folder, (uint32_t)chain.n, err);
        }
    }
    amendments_release(&chain);
    cJSON_Delete(before);
    free(program);
    free(amendments);
    return rc;
}

int amended_heal(const char *folder, const char *head, struct err *err)
{
    struct lock *lock = NULL;
    char *path = path_join(folder, HOSTED_LOCK_FILE);
    int rc = lock_read(path, &lock, err);
    if (rc == 0) {
        rc = heal(folder, lock, head, err);
    }
    lock_free(lock);
    free(path);
    return rc;
}

/* ---- the verdict's head ---- */

static int take_line(void *ctx, int64_t seq, const char *line, struct err *err)
{
    char *head = ctx;
    cJSON *o = NULL;
    const char *event = "";
    const char *found = NULL;
    (void)seq;
    if (strstr(line, "\"amended\"") == NULL && strstr(line, "\"verdict\"") == NULL) {
        return 0;
    }
    int rc = json_parse(line, strlen(line), &o, err);
    if (rc == 0 && json_get_string(o, "event", &event, err) == 0) {
        if (strcmp(event, row_kind_name(ROW_VERDICT)) == 0) {
            rc = 1; /* what comes later changes nothing of it */
        } else if (strcmp(event, row_kind_name(ROW_AMENDED)) == 0 &&
                   json_get_string(json_member(o, "amendment"), "head", &found, err) == 0) {
            (void)snprintf(head, DIGEST_HEX_SIZE, "%s", found);
        }
    }
    cJSON_Delete(o);
    return rc;
}

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
