/*
 * Amending writes three things in this order: amendments/NNNN.json and NNNN.toml, the journal's row
 * `amended` (here it takes effect), then grid.toml. A crash between two of them leaves the files
 * ahead of the journal or grid.toml behind it. Nothing is changed until the whole chain up to the
 * journal's head was read and grid.toml was recognized as the program of that head or of an earlier
 * one.
 */
#include "prereg/amend/amend_heal.h"
#include "prereg/load/program_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "prereg/amend/amendment.h"
#include "prereg/program/program.h"

/* grid.toml is read back only to be compared */

static const char *const KINDS[] = {"json", "toml"};

int amendments_put_in_place(const char *folder, size_t number, struct err *err)
{
    char *amendments = path_join(folder, LAYOUT_AMENDMENTS);
    char *from = amendment_file(amendments, number, "toml");
    char *to = path_join(folder, LAYOUT_GRID);
    int rc = file_copy(from, to, 0600, err);
    free(to);
    free(from);
    free(amendments);
    return rc;
}

/* ---- how far the amendment got ---- */

/* The state of a repair. */
struct healing {
    const char *folder;
    char *amendments;
    struct amendment_chain chain; /* the amendments that took effect */
    cJSON *before;                /* `locked` before the last of them; NULL when n is 0 */
};

/* Whether grid.toml is a program of the plan in `locked`. [run] is not covered by a plan and may
 * differ. A grid.toml that cannot be read or parsed is of no plan. */
static bool is_of_plan(const struct healing *h, const cJSON *locked)
{
    struct strbuf text = STRBUF_INIT;
    struct plan_program *p = NULL;
    struct diag diag;
    struct err ignored;
    bool same = false;
    char *path = path_join(h->folder, LAYOUT_GRID);
    diag_init(&diag, path);
    if (locked != NULL && file_read(path, LAYOUT_GRID_MAX, &text, &ignored) == 0 &&
        program_parse(text.buf, text.len, path, &p, &diag, &ignored) == 0) {
        cJSON *plan = program_covered(p);
        cJSON *changes = amendment_changes(json_member(locked, "plan"), plan);
        same = changes->child == NULL;
        cJSON_Delete(changes);
        cJSON_Delete(plan);
    }
    program_free(p);
    diag_release(&diag);
    strbuf_release(&text);
    free(path);
    return same;
}

/* Applies amendments until the head is reached, and keeps the state before the last one. */
static int read_taken(struct healing *h, const struct lock *lock, const char *head, struct err *err)
{
    int rc = 0;
    amendments_begin(lock, &h->chain);
    while (rc == 0 && strcmp(h->chain.head, head) != 0) {
        cJSON *amendment = NULL;
        char *path = amendment_file(h->amendments, h->chain.n + 1, "json");
        rc = json_read_file(path, LAYOUT_AMENDMENT_MAX, &amendment, err);
        free(path);
        cJSON_Delete(h->before);
        h->before = json_copy(h->chain.locked);
        if (rc == 0 && (rc = amendments_append(&h->chain, lock->root, amendment, err)) != 0) {
            cJSON_Delete(amendment);
        }
    }
    return rc;
}

/* Turns a failed read_taken() into a message. Reading the whole chain names the file that does not
 * follow; when all of them follow, the last ones are missing. */
static int say_broken(const struct healing *h, const struct lock *lock, const char *head,
                      struct err *err)
{
    struct amendment_chain all = {0};
    int rc = amendments_read(h->amendments, lock, &all, err);
    amendments_release(&all);
    return rc != 0 ? rc
                   : err_set(err, ERR_LOCK, "%s: the amendment whose head is %.16s is missing",
                             h->amendments, head);
}

/* ---- repair ---- */

/* Whether there is a file of the number after the last one that took effect. Amendments are made
 * one at a time, so there can be one at most. */
static bool is_any_beyond(const struct healing *h)
{
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        char *path = amendment_file(h->amendments, h->chain.n + 1, KINDS[i]);
        found = found || file_kind_at(path) != FILE_ABSENT;
        free(path);
    }
    return found;
}

/* Renames both files of that amendment to NAME.aside; a repeated repair finds nothing to rename. */
static int put_aside(const struct healing *h, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(KINDS); i++) {
        char *path = amendment_file(h->amendments, h->chain.n + 1, KINDS[i]);
        char *aside = xasprintf("%s.aside", path);
        if (rename(path, aside) == 0) {
            log_warn("%s never took effect: it is put aside", path);
        } else if (errno != ENOENT) {
            rc = err_set_errno(err, errno, "put %s aside", path);
        }
        free(aside);
        free(path);
    }
    return rc;
}

/* Whether grid.toml is the program of any earlier state: it could not be written when the last
 * amendments took effect, so that it is more than one behind. */
static bool is_of_earlier(const struct healing *h, const struct lock *lock)
{
    struct amendment_chain chain;
    struct err ignored;
    bool same = false;
    int rc = 0;
    amendments_begin(lock, &chain);
    while (rc == 0 && !same && chain.n < h->chain.n) {
        cJSON *amendment = NULL;
        char *path = amendment_file(h->amendments, chain.n + 1, "json");
        same = is_of_plan(h, chain.locked);
        rc = json_read_file(path, LAYOUT_AMENDMENT_MAX, &amendment, &ignored);
        free(path);
        if (rc == 0 && (rc = amendments_append(&chain, lock->root, amendment, &ignored)) != 0) {
            cJSON_Delete(amendment);
        }
    }
    amendments_release(&chain);
    return same;
}

/* The repair itself. The check of grid.toml comes first: a grid.toml of no known head was edited
 * by hand, and neither it nor the amendments are touched then. */
static int mend(const struct healing *h, const struct lock *lock, const char *head, struct err *err)
{
    bool beyond = is_any_beyond(h);
    if (h->chain.n == 0 && !beyond) {
        return 0; /* never amended */
    }
    bool is_current = is_of_plan(h, h->chain.locked);
    bool is_before = !is_current && (is_of_plan(h, h->before) || is_of_earlier(h, lock));
    if (!is_before && !is_current) {
        return err_set(err, ERR_LOCK, "%s/" LAYOUT_GRID " is not the program of head %.16s",
                       h->folder, head);
    }
    int rc = beyond ? put_aside(h, err) : 0;
    if (rc == 0 && is_before) {
        log_warn("%s: amendment %zu had taken effect: its program is put in place", h->folder,
                 h->chain.n);
        rc = amendments_put_in_place(h->folder, h->chain.n, err);
    }
    return rc;
}

int amendments_heal(const char *folder, const char *head, struct err *err)
{
    struct healing h = {.folder = folder};
    struct lock *lock = NULL;
    struct err why;
    char *path = path_join(folder, LAYOUT_LOCK);
    h.amendments = path_join(folder, LAYOUT_AMENDMENTS);
    int rc = lock_read(path, &lock, err);
    if (rc == 0) {
        rc = read_taken(&h, lock, head, &why) != 0 ? say_broken(&h, lock, head, err)
                                                   : mend(&h, lock, head, err);
    }
    amendments_release(&h.chain);
    cJSON_Delete(h.before);
    lock_free(lock);
    free(h.amendments);
    free(path);
    return rc;
}
