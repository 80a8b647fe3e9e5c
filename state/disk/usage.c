/*
 * Walks a program's folder and sums its files by kind. The kinds of an attempt's files follow from
 * their names and from the link to the accepted result, so nothing is asked of the database: a
 * program that is damaged is counted, too.
 */
#include "state/disk/usage.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "state/disk/checkpoints.h"

#define DEPTH_MAX    64
#define BLOCK_BYTES  ((int64_t)512) /* of st_blocks, whatever the file system's are */
#define JOURNAL_NAME LAYOUT_JOURNAL /* and what rebuild put beside it */

static const char *const NAMES[USAGE_KIND_NR] = {
    [USAGE_CHECKPOINTS_RUNNING] = "checkpoints_running",
    [USAGE_CHECKPOINTS_OPEN] = "checkpoints_open",
    [USAGE_CHECKPOINTS_DONE] = "checkpoints_done",
    [USAGE_ARTIFACTS] = "artifacts",
    [USAGE_DEAD] = "dead",
    [USAGE_ITEMS] = "items",
    [USAGE_LOGS] = "logs",
    [USAGE_EVENTS] = "events",
    [USAGE_RECORDS] = "records",
    [USAGE_JOURNAL] = "journal",
    [USAGE_PLAN] = "plan",
    [USAGE_REPORT] = "report",
    [USAGE_RERUNS] = "reruns",
};

const char *usage_kind_name(enum usage_kind k)
{
    return k < USAGE_KIND_NR ? NAMES[k] : "?";
}

struct sum {
    int64_t bytes;
    int64_t n_files;
    bool partial;
};

static void sum_tree(int parent, const char *name, int depth, struct sum *out)
{
    struct stat st;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        out->partial = out->partial || errno != ENOENT;
        return;
    }
    out->bytes += (int64_t)st.st_blocks * BLOCK_BYTES;
    out->n_files++;
    if (!S_ISDIR(st.st_mode)) {
        return;
    }
    const int fd = depth < DEPTH_MAX
                       ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                       : -1;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        out->partial = true;
        if (fd >= 0) {
            (void)close(fd);
        }
        return;
    }
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            sum_tree(fd, e->d_name, depth + 1, out);
        }
    }
    (void)closedir(dir);
}

int64_t usage_of_path(const char *path)
{
    assert(path != NULL);
    struct sum s = {0};
    sum_tree(AT_FDCWD, path, 0, &s);
    return s.bytes;
}

static void add_tree(struct usage *u, enum usage_kind kind, const char *path)
{
    struct sum s = {0};
    sum_tree(AT_FDCWD, path, 0, &s);
    u->bytes[kind] += s.bytes;
    u->n_files += s.n_files;
    u->partial = u->partial || s.partial;
}

/* Calls `fn` with the path of each entry; the folder's own blocks are records. */
typedef void entry_fn(struct usage *u, const char *path, const char *name, void *ctx);
static void each_entry(struct usage *u, const char *folder, entry_fn *fn, void *ctx)
{
    struct name_list names = {0};
    struct err ignored;
    struct stat st;
    if (lstat(folder, &st) == 0) {
        u->bytes[USAGE_RECORDS] += (int64_t)st.st_blocks * BLOCK_BYTES;
        u->n_files++;
    }
    if (dir_list(folder, &names, &ignored) != 0) {
        u->partial = true;
    }
    for (size_t i = 0; i < names.n; i++) {
        char *path = path_join(folder, names.names[i]);
        fn(u, path, names.names[i], ctx);
        free(path);
    }
    name_list_release(&names);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

struct attempt {
    bool done; /* its task is */
    bool accepted;
    bool ended;
    const struct name_list *superseded; /* of its task, when it is done */
};

static bool is_listed(const struct name_list *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->names[i], path) == 0) {
            return true;
        }
    }
    return false;
}

/* One entry of checkpoint/. What is not superseded in a done task is an artifact. */
static void add_checkpoint(struct usage *u, const char *path, const char *name, void *ctx)
{
    const struct attempt *a = ctx;
    (void)name;
    add_tree(u,
             !a->ended                        ? USAGE_CHECKPOINTS_RUNNING
             : !a->done                       ? USAGE_CHECKPOINTS_OPEN
             : is_listed(a->superseded, path) ? USAGE_CHECKPOINTS_DONE
             : a->accepted                    ? USAGE_ARTIFACTS
                                              : USAGE_DEAD,
             path);
}

static enum usage_kind kind_of(const char *name, const struct attempt *a)
{
    static const struct {
        const char *name;
        enum usage_kind kind;
    } rows[] = {
        {LAYOUT_ITEMS, USAGE_ITEMS},   {LAYOUT_STDOUT, USAGE_LOGS},    {LAYOUT_STDERR, USAGE_LOGS},
        {LAYOUT_SHIM_LOG, USAGE_LOGS}, {LAYOUT_EVENTS, USAGE_EVENTS},  {LAYOUT_TASK, USAGE_RECORDS},
        {LAYOUT_START, USAGE_RECORDS}, {LAYOUT_RESULT, USAGE_RECORDS}, {LAYOUT_EXIT, USAGE_RECORDS},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].kind;
        }
    }
    return a->accepted || !a->ended ? USAGE_ARTIFACTS : USAGE_DEAD;
}

static void add_attempt_file(struct usage *u, const char *path, const char *name, void *ctx)
{
    struct attempt *a = ctx;
    if (strcmp(name, LAYOUT_CHECKPOINT) == 0 && is_folder(path)) {
        each_entry(u, path, add_checkpoint, a);
    } else {
        add_tree(u, kind_of(name, a), path);
    }
}

struct task {
    char accepted[NAME_MAX + 1]; /* the folder's name; "": not done */
    struct name_list superseded;
};

static void add_task_entry(struct usage *u, const char *path, const char *name, void *ctx)
{
    const struct task *t = ctx;
    struct attempt_name parsed;
    if (!attempt_name_parse(name, &parsed) || !is_folder(path)) {
        add_tree(u, USAGE_RECORDS, path);
        return;
    }
    char *end = path_join(path, LAYOUT_EXIT);
    struct attempt a = {.done = t->accepted[0] != '\0',
                        .accepted = strcmp(t->accepted, name) == 0,
                        .ended = file_kind_at(end) != FILE_ABSENT,
                        .superseded = &t->superseded};
    a.ended = a.ended || a.done; /* no attempt of a done task runs */
    free(end);
    each_entry(u, path, add_attempt_file, &a);
}

static int64_t sum_listed(const struct name_list *list)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < list->n; i++) {
        bytes += usage_of_path(list->names[i]);
    }
    return bytes;
}

/* CELL/STAGE, or apparatus/NAME. */
static void add_task(struct usage *u, const char *path, const char *name, void *ctx)
{
    struct task t = {0};
    struct name_list last = {0};
    struct err ignored;
    (void)name;
    (void)ctx;
    if (!is_folder(path)) {
        add_tree(u, USAGE_RECORDS, path);
        return;
    }
    char *link = path_join(path, LAYOUT_RESULT);
    const ssize_t len = readlink(link, t.accepted, sizeof(t.accepted) - 1);
    t.accepted[len > 0 ? len : 0] = '\0';
    t.accepted[strcspn(t.accepted, "/")] = '\0';
    free(link);
    if (checkpoints_superseded(path, false, &t.superseded, &ignored) != 0 ||
        checkpoints_superseded(path, true, &last, &ignored) != 0) {
        u->partial = true;
    }
    u->superseded_none += sum_listed(&t.superseded);
    u->superseded_last += sum_listed(&last);
    each_entry(u, path, add_task_entry, &t);
    name_list_release(&last);
    name_list_release(&t.superseded);
}

static void add_cell(struct usage *u, const char *path, const char *name, void *ctx)
{
    (void)name;
    if (is_folder(path)) {
        each_entry(u, path, add_task, ctx);
    } else {
        add_tree(u, USAGE_RECORDS, path);
    }
}

/* cells/ may be a link to where [run] work has them. */
static void add_cells(struct usage *u, const char *path, bool whole)
{
    char *real = realpath(path, NULL);
    if (real == NULL) {
        u->cells_missing = true;
    } else if (whole) {
        each_entry(u, real, add_cell, NULL);
    } else {
        add_tree(u, USAGE_RECORDS, real);
    }
    free(real);
}

static void add_top(struct usage *u, const char *path, const char *name, void *ctx)
{
    const bool *whole = ctx;
    const bool is_journal = strncmp(name, JOURNAL_NAME, sizeof(JOURNAL_NAME) - 1) == 0;
    if (strcmp(name, LAYOUT_CELLS) == 0) {
        return; /* usage_of_program() does */
    }
    if (strcmp(name, LAYOUT_APPARATUS) == 0 && is_folder(path) && *whole) {
        each_entry(u, path, add_task, NULL);
        return;
    }
    add_tree(u,
             is_journal                             ? USAGE_JOURNAL
             : strcmp(name, LAYOUT_REPORT) == 0     ? USAGE_REPORT
             : strcmp(name, LAYOUT_REPORT_LOG) == 0 ? USAGE_REPORT
             : strcmp(name, LAYOUT_RERUNS) == 0     ? USAGE_RERUNS
             : strcmp(name, LAYOUT_APPARATUS) == 0  ? USAGE_RECORDS
                                                    : USAGE_PLAN,
             path);
}

void usage_of_program(const char *folder, bool whole, struct usage *out)
{
    assert(folder != NULL && out != NULL);
    *out = (struct usage){0};
    if (!is_folder(folder)) {
        out->cells_missing = true;
        out->partial = true;
        return;
    }
    char *cells = path_join(folder, LAYOUT_CELLS);
    each_entry(out, folder, add_top, &whole);
    add_cells(out, cells, whole);
    free(cells);
}

int64_t usage_cells(const struct usage *u)
{
    assert(u != NULL);
    int64_t bytes = 0;
    for (int k = 0; k < USAGE_JOURNAL; k++) {
        bytes += u->bytes[k];
    }
    return bytes;
}
