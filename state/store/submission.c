/* Program folders that the database does not know: left by a submission that a crash cut short, or
 * by a database that was lost. */
#include "state/store/submission.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "state/ownership/work_owner.h"
#include "state/store/internal.h"

/* What daemon/answers/answer_submit.c makes before row 1. */
static const char *const SUBMITTED[] = {LAYOUT_GRID, LAYOUT_LOCK, LAYOUT_ORIGIN, LAYOUT_CELLS,
                                        LAYOUT_JOURNAL};

/* Temporary files of file_write_atomic and file_copy begin with a dot and end in ".tmp". */
static bool is_of_submission(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < ARRAY_LEN(SUBMITTED); i++) {
        if (strcmp(name, SUBMITTED[i]) == 0) {
            return true;
        }
    }
    return name[0] == '.' && len > 4 && strcmp(name + len - 4, ".tmp") == 0;
}

/* Whole lines of the journal, up to two; two where it cannot be read: it is taken for one that ran.
 */
static unsigned count_lines(const char *folder)
{
    struct journal_cursor cursor;
    struct err ignored;
    const char *text = NULL;
    size_t len = 0;
    unsigned n = 0;
    char *path = path_join(folder, LAYOUT_JOURNAL);
    int rc = journal_cursor_open(&cursor, path, &ignored);
    bool absent = rc == ERR_NOT_FOUND;
    while (rc == 0 && n < 2) {
        rc = journal_cursor_next(&cursor, &text, &len, &ignored);
        if (rc == 0 && text == NULL) {
            break;
        }
        n++;
    }
    journal_cursor_release(&cursor);
    free(path);
    return rc != 0 && !absent ? 2 : n;
}

/* A link to a disk that is not mounted may hold anything. */
static bool holds_attempts(const char *folder)
{
    struct stat st;
    struct err ignored;
    struct name_list names = {0};
    char *cells = path_join(folder, LAYOUT_CELLS);
    bool there = file_lstat(cells, &st, &ignored) != ERR_NOT_FOUND; /* not read: taken for there */
    bool empty = !there || (dir_list(cells, &names, &ignored) == 0 && names.n == 0);
    name_list_release(&names);
    free(cells);
    return !empty;
}

enum folder_standing submission_standing(const char *folder)
{
    assert(folder != NULL);
    struct name_list names = {0};
    struct err ignored;
    unsigned n_lines = count_lines(folder);
    if (n_lines > 1 || holds_attempts(folder)) {
        return FOLDER_RAN;
    }
    bool own = dir_list(folder, &names, &ignored) == 0;
    for (size_t i = 0; own && i < names.n; i++) {
        own = is_of_submission(names.names[i]);
    }
    bool empty = own && names.n == 0;
    name_list_release(&names);
    if (!own) {
        return n_lines > 0 ? FOLDER_RAN : FOLDER_FOREIGN;
    }
    return n_lines > 0 ? FOLDER_ACCEPTED : empty ? FOLDER_EMPTY : FOLDER_UNFINISHED;
}

/* The folder that [run] work gave it elsewhere is empty, too, and is this state's own: another may
 * have adopted it since. */
static void remove_target(const char *state, const char *folder)
{
    char target[4096];
    struct work_owner own;
    struct err ignored;
    char *cells = path_join(folder, LAYOUT_CELLS);
    ssize_t n = readlink(cells, target, sizeof(target) - 1);
    if (n > 0) {
        target[n] = '\0';
        char *above = path_folder(target);
        if (work_owner_init(&own, state, &ignored) == 0 &&
            work_owner_check(above, &own, false, &ignored) == 0 && rmdir(target) == 0) {
            work_owner_release(above, &own); /* claimed before the link was made */
            (void)rmdir(above);
        }
        free(above);
    }
    free(cells);
}

static int undo(const char *state, const char *folder, struct err *err)
{
    log_warn("state: %s was left by a submission that did not finish: it is removed; submit the "
             "program again",
             folder);
    remove_target(state, folder);
    int rc = dir_remove(folder, err);
    return rc == 0 ? 0 : err_wrap(err, "%s", folder);
}

static int is_known(struct store *store, const char *id, bool *known, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sql_prepare(store->db, "SELECT 1 FROM programs WHERE id=?1", &stmt, err);
    if (rc == 0) {
        sql_bind_text(stmt, 1, id);
        rc = sql_step(stmt, known, err);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int check_folder(struct store *store, const char *id, bool knows_any, struct err *err)
{
    bool known = false;
    char *folder = store_program_path(store, id, "");
    folder[strlen(folder) - 1] = '\0'; /* the slash */
    int rc = is_known(store, id, &known, err);
    if (rc == 0 && !known && file_kind_at(folder) == FILE_FOLDER) {
        enum folder_standing standing = submission_standing(folder);
        if (standing == FOLDER_ACCEPTED && heads_find(&store->heads, id) != NULL) {
            standing = FOLDER_RAN; /* it took effect: the database was lost */
        }
        switch (standing) {
        case FOLDER_EMPTY: break;
        case FOLDER_UNFINISHED:
        case FOLDER_ACCEPTED: rc = undo(store->dir, folder, err); break;
        case FOLDER_RAN:
            if (!knows_any) {
                rc = err_set(err, ERR_CORRUPT,
                             "%s holds programs that have run, but its database knows none: "
                             "`preregctl rebuild` makes the database again from their folders",
                             store->dir);
            } else {
                log_warn("state: the database does not know %s, which has run: `preregctl rebuild` "
                         "takes it in",
                         folder);
            }
            break;
        case FOLDER_FOREIGN: break;
        }
    }
    free(folder);
    return rc;
}

int submission_clear(struct store *store, bool knows_any, struct err *err)
{
    assert(store != NULL);
    char *folder = path_join(store->dir, LAYOUT_PROGRAMS);
    struct name_list names = {0};
    int rc = file_kind_at(folder) == FILE_FOLDER ? dir_list(folder, &names, err) : 0;
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        rc = check_folder(store, names.names[i], knows_any, err);
    }
    name_list_release(&names);
    free(folder);
    return rc;
}
