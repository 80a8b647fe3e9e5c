/* Rebuilds program after program into a database beside the old one: lock and program are read, the
 * journal is replayed, the cells' files are compared with it. A journal that does not hold makes
 * the history unverified and is begun again from the files. publish.c puts the result in place. */
#include "state/rebuild/rebuild.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "prereg/amend/amendment.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/imported.h"
#include "state/rebuild/internal.h"
#include "state/store/apparatus.h"
#include "state/store/submission.h"
#include "state/tenure/record.h"

static void release(struct rebuilding *r)
{
    program_free(r->program);
    lock_free(r->lock);
    strbuf_release(&r->note);
    free(r->tasks);
    for (size_t i = 0; i < r->n_checks; i++) {
        free(r->checks[i].name);
    }
    free(r->checks);
    free(r->folder);
    free(r->id);
}

/* Relative paths of the program were taken from where it was submitted; the copy beside the cells
 * says where. */
static char *origin_of(const struct rebuilding *r, const char *program_path)
{
    cJSON *origin = NULL;
    const char *path = NULL;
    struct err ignored = {0};
    char *file = path_join(r->folder, LAYOUT_ORIGIN);
    char *out = NULL;
    if (json_read_file(file, LAYOUT_ORIGIN_MAX, &origin, &ignored) == 0 &&
        json_get_string(origin, "path", &path, &ignored) == 0) {
        out = xstrdup(path);
    }
    cJSON_Delete(origin);
    free(file);
    return out != NULL ? out : xstrdup(program_path);
}

static int load_program(struct rebuilding *r, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct diag diag;
    char *path = path_join(r->folder, LAYOUT_GRID);
    char *origin = origin_of(r, path);
    diag_init(&diag, path);
    int rc = file_read(path, LAYOUT_GRID_MAX, &text, err);
    if (rc != 0 || (rc = program_parse(text.buf, text.len, origin, &r->program, &diag, err)) != 0 ||
        (rc = lock_read_amended(r->folder, &r->lock, err)) != 0 ||
        (rc = lock_verify(r->program, r->lock, LOCK_PLAN, NULL, NULL, err)) != 0) {
        goto out;
    }
    char *id = lock_program_id(r->lock);
    if (strcmp(id, r->id) != 0) {
        rc = err_set(err, ERR_LOCK, "its lock is that of %s", id);
    }
    free(id);
out:
    diag_release(&diag);
    strbuf_release(&text);
    free(origin);
    free(path);
    return rc;
}

/* The time of the journal's first row orders programs as they were submitted; 0 when there is none.
 */
static struct wall_time first_time(const char *folder)
{
    struct wall_time t = {0};
    struct journal_cursor cursor;
    struct err ignored;
    const char *text = NULL;
    size_t len = 0;
    char *path = path_join(folder, LAYOUT_JOURNAL);
    if (journal_cursor_open(&cursor, path, &ignored) == 0) {
        if (journal_cursor_next(&cursor, &text, &len, &ignored) == 0 && text != NULL) {
            t = line_time(text, len);
        }
        journal_cursor_release(&cursor);
    }
    free(path);
    return t;
}

static int create(struct rebuilding *r, struct err *err)
{
    struct store_program sp = {
        .id = r->id,
        .name = r->program->name,
        .submitted = r->submitted,
        .n_cells = (uint32_t)r->program->n_cells,
        .n_stages = (uint32_t)r->program->n_stages,
        .unverified_history = r->unverified,
    };
    int rc = digest_from_hex(r->lock->root, &sp.root, err);
    /* A replayed journal comes to its head by its own rows. */
    if (rc == 0) {
        rc = digest_from_hex(r->store->replaying ? r->lock->root : r->lock->head, &sp.head, err);
    }
    if (rc == 0) {
        rc = create_tables(r->store, r->program, &sp, &r->no, err);
    }
    /* A replayed journal brings its own first row. */
    return rc == 0 && !r->store->replaying ? create_first_row(r->store, r->program, &sp, r->no, err)
                                           : rc;
}

/* Row 1 must be of this program: a journal from elsewhere has a sound chain, too. */
static int check_first(const struct rebuilding *r, const cJSON *line, struct err *err)
{
    const cJSON *program = NULL;
    const char *root = NULL;
    if (json_get_object(line, "program", &program, err) != 0 ||
        json_get_string(program, "root", &root, err) != 0) {
        return err->code;
    }
    return strcmp(root, r->lock->root) == 0
               ? 0
               : err_set(err, ERR_CORRUPT, "it is the journal of another program");
}

static int replay_row(void *ctx, const struct journal_row *row, struct err *err)
{
    static const char MARK[] = "\"detail\":\"" REBUILD_UNVERIFIED;
    struct rebuilding *r = ctx;
    int rc = row->seq == 1 ? check_first(r, row->line.json, err) : 0;
    if (rc != 0 || (rc = apply_line(r->store, r->no, row, err)) != 0) {
        return rc;
    }
    if (memmem(row->line.text, row->line.len, MARK, sizeof(MARK) - 1) != NULL) {
        rebuild_note(r, "it was rebuilt from files before");
    }
    return 0;
}

static int replay_lines(struct rebuilding *r, const struct strbuf *text, struct err *err)
{
    struct journal_chain chain = {0};
    struct journal_cursor cursor;
    journal_cursor_init(&cursor, text->buf, text->len);
    int rc = journal_replay(&cursor, &chain, replay_row, r, err);
    r->n_bytes = cursor.n_bytes;
    journal_cursor_release(&cursor);
    return rc;
}

/* The amendments that the journal knows are those that are there. */
static int check_head(struct rebuilding *r, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool found = false;
    int rc = sql_prepare(r->store->db, "SELECT head FROM programs WHERE no=?1", &stmt, err);
    if (rc == 0) {
        sql_bind_int(stmt, 1, r->no);
        rc = sql_step(stmt, &found, err);
    }
    if (rc == 0 && strcmp(sql_col_text(stmt, 0), r->lock->head) != 0) {
        rc = err_set(err, ERR_CORRUPT, "its last amendment is %.16s, that of the files %.16s",
                     sql_col_text(stmt, 0), r->lock->head);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* Whether the new database failed (a full disk, an I/O error), not what was put into it. */
static bool database_failed(struct store *store)
{
    switch (sqlite3_errcode(store->db) & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
    case SQLITE_CONSTRAINT: return false;
    default: return true;
    }
}

/* The whole journal in one transaction; a torn last line never took effect and is left out. *own:
 * the error is not the journal's. */
static int replay(struct rebuilding *r, const struct strbuf *text, bool *own, struct err *err)
{
    int rc = store_begin(r->store, err);
    if (rc != 0) {
        *own = true;
        return rc;
    }
    r->store->replaying = true;
    if ((rc = create(r, err)) != 0 || (rc = replay_lines(r, text, err)) != 0 ||
        (rc = check_head(r, err)) != 0 || (rc = apply_settle(r->store, r->no, err)) != 0 ||
        (rc = store_apparatus_sync(r->store, r->no, r->program, err)) != 0) {
        *own = database_failed(r->store);
        store_rollback(r->store);
        goto out;
    }
    rc = store_commit(r->store, err);
    *own = rc != 0;
out:
    r->store->replaying = false;
    return rc;
}

static int begin_anew(struct rebuilding *r, const char *why, struct err *err)
{
    rebuild_note(r, "%s", why);
    r->journal_is_new = true;
    int rc = store_begin(r->store, err);
    if (rc != 0) {
        return rc;
    }
    rc = create(r, err);
    if (rc != 0) {
        store_rollback(r->store);
        return rc;
    }
    return store_commit(r->store, err);
}

/* A journal that cannot be read now is not a broken one: nothing is concluded from it. */
static int rebuild_journal(struct rebuilding *r, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct err why = {0};
    bool own = false;
    char *path = path_join(r->folder, LAYOUT_JOURNAL);
    enum file_kind kind = FILE_ABSENT;
    int rc = shared_look(path, &kind, err);
    if (rc == 0 && kind == FILE_REGULAR) {
        rc = shared_read(path, LAYOUT_JOURNAL_MAX, &text, err);
    }
    if (rc != 0) {
        rc = err_wrap(err, "nothing was changed");
    } else if (kind == FILE_ABSENT) {
        rc = begin_anew(r, "its journal is missing", err);
    } else if (memchr(text.buf, '\n', text.len) == NULL) {
        rc = begin_anew(r, "its journal is empty", err);
    } else if (replay(r, &text, &own, &why) != 0) {
        if (own) {
            *err = why;
            rc = err_wrap(err, "write the new database; nothing was changed");
        } else {
            r->tampered = true;
            rc = begin_anew(r, why.msg, err);
        }
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

static int mark_unverified(struct rebuilding *r, struct err *err)
{
    char sql[80];
    (void)snprintf(sql, sizeof(sql), "UPDATE programs SET unverified=1 WHERE no=%u", r->no);
    return r->unverified ? sql_exec(r->store->db, sql, err) : 0;
}

static int tell(struct rebuilding *r, rebuild_fn *fn, void *ctx, struct err *err)
{
    struct rebuilt_program out = {.id = r->id,
                                  .unverified = r->unverified,
                                  .tampered = r->tampered,
                                  .note = r->note.len > 0 ? r->note.buf : NULL,
                                  .n_records = r->n_records};
    struct digest head;
    int rc = store_journal_head(r->store, r->no, &head, &out.n_rows, err);
    for (size_t i = 0; i < program_n_tasks(r->program); i++) {
        out.n_by_state[r->tasks[i].state]++;
    }
    if (rc == 0 && fn != NULL) {
        fn(ctx, &out);
    }
    return rc;
}

static int rebuild_one(struct rebuilding *r, struct err *err)
{
    if (imported_is_folder(r->folder)) {
        return err_set(err, ERR_REFUSED,
                       "it is an imported program and was never executed: its folder does not "
                       "belong here");
    }
    rebuild_heal_amendments(r);
    int rc = load_program(r, err);
    if (rc != 0 || (rc = rebuild_journal(r, err)) != 0 || (rc = rebuild_from_files(r, err)) != 0 ||
        (rc = rebuild_check_noted(r, err)) != 0 || (rc = mark_unverified(r, err)) != 0) {
        return rc;
    }
    return rebuild_write_journal(r, err);
}

/* ---- the folder ---- */

static int older_first(const void *a, const void *b)
{
    const struct rebuilding *x = a;
    const struct rebuilding *y = b;
    if (x->submitted.ms != y->submitted.ms) {
        return x->submitted.ms < y->submitted.ms ? -1 : 1;
    }
    return strcmp(x->id, y->id);
}

static int find_programs(struct store *store, struct rebuilding **out, size_t *n, struct err *err)
{
    struct name_list names = {0};
    char *programs = path_join(store->dir, LAYOUT_PROGRAMS);
    int rc = file_kind_at(programs) == FILE_FOLDER ? dir_list(programs, &names, err) : 0;
    struct rebuilding *all = xcalloc(names.n + 1, sizeof(*all));
    for (size_t i = 0; i < names.n; i++) {
        char *folder = path_join(programs, names.names[i]);
        if (submission_standing(folder) <= FOLDER_UNFINISHED) {
            free(folder); /* not a program: the next daemon removes it */
            continue;
        }
        struct rebuilding *r = &all[(*n)++];
        r->id = xstrdup(names.names[i]);
        r->folder = folder;
        r->store = store;
        strbuf_init(&r->note);
        r->submitted = first_time(folder);
    }
    if (*n > 0) {
        qsort(all, *n, sizeof(*all), older_first);
    }
    *out = all;
    name_list_release(&names);
    free(programs);
    return rc;
}

static int rebuild_all(struct rebuilding *all, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = rebuild_one(&all[i], err);
        if (rc != 0) {
            return err_wrap(err, "program %s", all[i].id);
        }
    }
    return 0;
}

/* Of a shared state folder: only the daemon's own host knows whether it has stopped. */
static int check_tenure(const char *dir, struct err *err)
{
    struct tenure own;
    struct tenure last;
    bool found = false;
    int rc = tenure_read(dir, &last, &found, err);
    tenure_init(&own);
    if (rc == 0 && found && !last.released && !tenure_is_same_host(&last, &own)) {
        rc = err_set(err, ERR_BUSY,
                     "the preregd of host %.80s has not said that it stopped: `preregd serve "
                     "--database FOLDER` takes the folder over and rebuilds what it needs",
                     last.host);
    }
    return rc;
}

static int lock_and_clear(const char *dir, struct err *err)
{
    int fd = -1;
    char *path = path_join(dir, LAYOUT_STATE_LOCK);
    int rc = lock_try(path, false, &fd, err);
    if (rc == 0 && fd < 0) {
        rc = err_set(err, ERR_BUSY, "a preregd serves the state folder %s: stop it first", dir);
    }
    if (rc == 0) {
        rc = rebuild_remove_new(dir, err);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    free(path);
    return rc;
}

/* A history that was found unverified before is not reported again. */
static int refuse_new_rows(const struct rebuilding *all, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (all[i].journal_is_new || all[i].adds_rows) {
            return err_set(
                err, ERR_CORRUPT,
                "program %.80s: %.120s; nothing was changed: `preregctl rebuild` decides",
                all[i].id, all[i].note.len > 0 ? all[i].note.buf : "its journal lacks rows");
        }
    }
    return 0;
}

/* Fills the new database from journals and files; `whole` refuses what would add rows. */
static int rebuild_tables(struct store *store, bool whole, struct rebuilding **all, size_t *n,
                          struct err *err)
{
    int rc = find_programs(store, all, n, err);
    if (rc != 0 || (rc = rebuild_all(*all, *n, err)) != 0) {
        return rc;
    }
    if (whole && (rc = refuse_new_rows(*all, *n, err)) != 0) {
        return rc;
    }
    return sql_exec(store->db, "PRAGMA wal_checkpoint(TRUNCATE)", err);
}

static int rebuild_state(const char *state_dir, bool whole, rebuild_fn *fn, void *ctx,
                         struct err *err)
{
    assert(state_dir != NULL);
    struct store *store = NULL;
    if (file_kind_at(state_dir) != FILE_FOLDER) {
        return err_set(err, ERR_NOT_FOUND, "there is no state folder %s", state_dir);
    }
    struct rebuilding *all = NULL;
    size_t n = 0;
    char *local = tenure_local_folder(state_dir);
    int rc = check_tenure(state_dir, err);
    if (rc != 0 || (rc = lock_and_clear(local, err)) != 0 ||
        (rc = rebuild_check_space(state_dir, local, err)) != 0) {
        free(local);
        return rc;
    }
    rc = store_connect(state_dir, REBUILD_DATABASE, STORE_OWNER, &store, err);
    if (rc != 0) {
        if (rc != ERR_BUSY) {
            rebuild_discard(local, NULL, 0);
        }
        free(local);
        return rc;
    }
    store->detached = true;
    rc = rebuild_tables(store, whole, &all, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = tell(&all[i], fn, ctx, err);
    }
    int lock_fd = store->lock_fd; /* kept until the new one is in place */
    store->lock_fd = -1;
    store_close(store);
    if (rc == 0) {
        rc = rebuild_publish(local, all, n, err);
    }
    if (rc != 0) {
        rebuild_discard(local, all, n);
    }
    free(local);
    (void)close(lock_fd);
    for (size_t i = 0; i < n; i++) {
        release(&all[i]);
    }
    free(all);
    return rc == 0 ? 0 : err_wrap(err, "rebuild");
}

int store_rebuild(const char *state_dir, rebuild_fn *fn, void *ctx, struct err *err)
{
    assert(state_dir != NULL);
    return rebuild_state(state_dir, false, fn, ctx, err);
}

int store_rebuild_whole(const char *state_dir, struct err *err)
{
    assert(state_dir != NULL);
    return rebuild_state(state_dir, true, NULL, NULL, err);
}
