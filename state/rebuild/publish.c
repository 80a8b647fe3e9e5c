/*
 * The last part of a rebuild: everything has been written elsewhere and synced, and now takes its
 * place. Until the first rename nothing of what was there has changed; no journal is ever lost.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "state/rebuild/internal.h"

#define NEW_JOURNAL LAYOUT_JOURNAL ".rebuild"
#define ASIDE_MAX   1000
#define SPARE_BYTES ((int64_t)4 << 20)

static const char *const SUFFIXES[] = {"", "-wal", "-shm"};

int rebuild_remove_new(const char *dir, struct err *err)
{
    assert(dir != NULL);
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(SUFFIXES); i++) {
        char *path = xasprintf("%s/" REBUILD_DATABASE "%s", dir, SUFFIXES[i]);
        if (unlink(path) != 0 && errno != ENOENT) {
            rc = err_set_errno(err, errno, "remove %s", path);
        }
        free(path);
    }
    return rc;
}

/* The old one is moved away first, with its log: a log must never meet another database.
 * Without a database, one that an earlier rebuild put aside is kept. */
static int put_aside(const char *dir, struct err *err)
{
    char *database = path_join(dir, LAYOUT_DATABASE);
    bool there = file_kind_at(database) != FILE_ABSENT;
    int rc = 0;
    for (size_t i = ARRAY_LEN(SUFFIXES); rc == 0 && i-- > 0;) {
        char *from = xasprintf("%s%s", database, SUFFIXES[i]);
        char *to = xasprintf("%s.old%s", database, SUFFIXES[i]);
        if (there) {
            (void)unlink(to);
        }
        if ((there ? rename(from, to) : unlink(from)) != 0 && errno != ENOENT) {
            rc = err_set_errno(err, errno, "put %s aside", from);
        }
        free(from);
        free(to);
    }
    free(database);
    return rc;
}

static int swap_database(const char *dir, struct err *err)
{
    int rc = put_aside(dir, err);
    if (rc == 0) {
        char *from = path_join(dir, REBUILD_DATABASE);
        char *to = path_join(dir, LAYOUT_DATABASE);
        rc = rename(from, to) == 0 ? dir_sync(dir, err)
                                   : err_set_errno(err, errno, "put %s in place", to);
        free(from);
        free(to);
    }
    return rc;
}

static int64_t size_at(const char *folder, const char *name)
{
    struct stat st;
    char *path = path_join(folder, name);
    int64_t size = stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
    free(path);
    return size;
}

static int64_t journal_bytes(const char *dir)
{
    struct name_list names = {0};
    struct err ignored;
    int64_t sum = 0;
    char *programs = path_join(dir, LAYOUT_PROGRAMS);
    if (dir_list(programs, &names, &ignored) == 0) {
        for (size_t i = 0; i < names.n; i++) {
            char *folder = path_join(programs, names.names[i]);
            sum += size_at(folder, LAYOUT_JOURNAL);
            free(folder);
        }
    }
    name_list_release(&names);
    free(programs);
    return sum;
}

/* The database holds the journals' lines and about as much again beside them; its log grows to the
 * same size while it is written; a journal may have to be written again. */
int rebuild_check_space(const char *dir, const char *local, struct err *err)
{
    assert(dir != NULL && local != NULL);
    int64_t journals = journal_bytes(dir);
    int64_t database = size_at(local, LAYOUT_DATABASE);
    int64_t expected = database > 2 * journals ? database : 2 * journals;
    int64_t need = 2 * expected + journals + SPARE_BYTES;
    int64_t free_bytes = disk_free_bytes(local);
    if (free_bytes < 0 || free_bytes >= need) {
        return 0;
    }
    return err_set(
        err, ERR_NO_SPACE,
        "rebuild needs about %lld MiB of free disk in %s, %lld MiB are free: nothing was changed; "
        "make room and try again",
        (long long)(need >> 20) + 1, local, (long long)(free_bytes >> 20));
}

static int write_line(void *ctx, int64_t seq, const char *line, struct err *err)
{
    struct file_writer *w = ctx;
    (void)seq;
    strbuf_adds(&w->pending, line);
    strbuf_addc(&w->pending, '\n');
    return file_writer_add(w, NULL, 0, err);
}

int rebuild_write_journal(struct rebuilding *r, struct err *err)
{
    assert(r != NULL && r->store->detached); /* nothing has been appended to the old journal */
    struct journal_file *f = NULL;
    struct file_writer w;
    int rc = journal_file_get(r->store, r->no, &f, err);
    if (rc != 0 || (!r->journal_is_new && f->bytes == r->n_bytes)) {
        return rc;
    }
    r->adds_rows = f->bytes > r->n_bytes;
    char *path = path_join(r->folder, NEW_JOURNAL);
    if ((rc = file_writer_open(&w, path, 0600, err)) != 0 ||
        (rc = store_journal(r->store, r->no, 1, write_line, &w, err)) != 0) {
        goto out;
    }
    rc = file_writer_publish(&w, err);
out:
    file_writer_release(&w);
    free(path);
    return rc;
}

/* A second name for the old journal, before another takes the first one from it. */
static int keep_aside(const char *path, struct err *err)
{
    for (unsigned i = 1; i <= ASIDE_MAX; i++) {
        char *aside = i == 1 ? xasprintf("%s.broken", path) : xasprintf("%s.broken.%u", path, i);
        int failed = link(path, aside);
        int number = errno;
        free(aside);
        if (failed == 0 || number == ENOENT) {
            return 0;
        }
        if (number != EEXIST) {
            return err_set_errno(err, number, "keep %s aside", path);
        }
    }
    return err_set(err, ERR_EXISTS, "%s.broken and %d more are in the way: move them elsewhere",
                   path, ASIDE_MAX);
}

static int publish_journal(const struct rebuilding *r, struct err *err)
{
    char *made = path_join(r->folder, NEW_JOURNAL);
    char *path = path_join(r->folder, LAYOUT_JOURNAL);
    int rc = 0;
    if (file_kind_at(made) == FILE_REGULAR) {
        rc = r->journal_is_new ? keep_aside(path, err) : 0;
        if (rc == 0 && rename(made, path) != 0) {
            rc = err_set_errno(err, errno, "put %s in place", path);
        }
        if (rc == 0) {
            rc = dir_sync(r->folder, err);
        }
    }
    free(path);
    free(made);
    return rc;
}

int rebuild_publish(const char *dir, const struct rebuilding *all, size_t n, struct err *err)
{
    assert(dir != NULL);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = publish_journal(&all[i], err);
    }
    return rc == 0 ? swap_database(dir, err) : rc;
}

void rebuild_discard(const char *dir, const struct rebuilding *all, size_t n)
{
    assert(dir != NULL);
    struct err ignored;
    for (size_t i = 0; i < n; i++) {
        char *made = path_join(all[i].folder, NEW_JOURNAL);
        (void)unlink(made);
        free(made);
    }
    if (rebuild_remove_new(dir, &ignored) != 0) {
        log_warn("rebuild: %s", ignored.msg);
    }
}
