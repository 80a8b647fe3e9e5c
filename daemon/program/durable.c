/* Puts a valid result on the disk, called by the verify job before the finding is posted, and so
 * before `done` is journalled. What a sync costs decides the way: nothing but writing the bytes out
 * where the journal's own sync commits the rest, one syncfs() for many results, and fsync() of each
 * file and folder otherwise. */
#include "daemon/program/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/program/result.h"

#define MANY_RESULTS 8 /* at once: one syncfs for all of them */
#define MANY_PATHS   64

enum rides { RIDES_UNKNOWN, RIDES_YES, RIDES_NO };

struct sync_group {
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    unsigned n_inside;  /* results being made durable */
    unsigned n_started; /* of whole syncs */
    unsigned n_ended;
    bool busy;
    enum rides rides;
    unsigned failed_round; /* the last one that failed; 0: none did */
    int failed;            /* its errno */
};

struct sync_group *sync_group_new(void)
{
    struct sync_group *g = xcalloc(1, sizeof(*g));
    (void)pthread_mutex_init(&g->mutex, NULL);
    (void)pthread_cond_init(&g->ended, NULL);
    return g;
}

void sync_group_free(struct sync_group *g)
{
    if (g != NULL) {
        (void)pthread_mutex_destroy(&g->mutex);
        (void)pthread_cond_destroy(&g->ended);
        free(g);
    }
}

unsigned sync_group_rounds(struct sync_group *g)
{
    (void)pthread_mutex_lock(&g->mutex);
    unsigned n = g->n_ended;
    (void)pthread_mutex_unlock(&g->mutex);
    return n;
}

void sync_group_stand_alone(struct sync_group *g)
{
    g->rides = RIDES_NO;
}

/* ---- collecting paths ---- */

static void add(struct name_list *list, char *path)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->names[i], path) == 0) {
            free(path);
            return;
        }
    }
    ARRAY_GROW(list->names, list->n, list->cap);
    list->names[list->n++] = path;
}

/* A file of the attempt; its folders below the attempt's own go to `folders`, the deepest first. */
static void add_file(struct name_list *files, struct name_list *folders, const char *folder,
                     const char *name)
{
    char *path = path_join(folder, name);
    char *parent = path_folder(path);
    while (strlen(parent) > strlen(folder)) {
        char *next = path_folder(parent);
        add(folders, parent);
        parent = next;
    }
    free(parent);
    ARRAY_GROW(files->names, files->n, files->cap);
    files->names[files->n++] = path;
}

/* Everything the result states: artifacts, items, result.json itself; and exit.json, which has the
 * task that was given (its shim leaves it alone from then on). */
static void collect(struct name_list *files, struct name_list *folders, const char *folder,
                    const cJSON *result)
{
    const cJSON *items = json_member(result, "items");
    const cJSON *a = NULL;
    cJSON_ArrayForEach(a, json_member(result, "artifacts"))
    {
        const cJSON *path = json_member(a, "path");
        if (cJSON_IsString(path)) {
            add_file(files, folders, folder, path->valuestring);
        }
    }
    if (cJSON_IsString(items)) {
        add_file(files, folders, folder, items->valuestring);
    }
    add_file(files, folders, folder, LAYOUT_RESULT);
    char *exit = path_join(folder, LAYOUT_EXIT);
    if (file_kind_at(exit) == FILE_REGULAR) {
        add_file(files, folders, folder, LAYOUT_EXIT);
    }
    free(exit);
}

/* The attempt's folder, then those above it: a name is synced after what it names. */
static void collect_above(struct name_list *folders, const char *folder, const char *top)
{
    char *at = xstrdup(folder);
    size_t stop = strlen(top);
    while (strlen(at) >= stop && strncmp(at, top, stop) == 0) {
        char *next = path_folder(at);
        add(folders, at);
        at = next;
    }
    free(at);
}

/* ---- syncing ---- */

/* Some file systems cannot sync a folder and return EINVAL or EROFS: that is not an error. */
static int sync_path(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return err_set_errno(err, errno, "open %s", path);
    }
    int rc = fsync(fd) != 0 && errno != EINVAL && errno != EROFS
                 ? err_set_errno(err, errno, "sync %s", path)
                 : 0;
    (void)close(fd);
    return rc;
}

static int sync_list(const struct name_list *list, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        rc = sync_path(list->names[i], err);
    }
    return rc;
}

/* /proc/fs/jbd2/<device>-<inode of the log>: there is one for every mounted ext4 that has a log. */
static bool has_log(dev_t device)
{
    struct strbuf text = STRBUF_INIT;
    struct name_list names = {0};
    struct err ignored;
    bool found = false;
    char *path = xasprintf("/sys/dev/block/%u:%u/uevent", major(device), minor(device));
    const char *at =
        file_read(path, 4096, &text, &ignored) == 0 ? strstr(text.buf, "DEVNAME=") : NULL;
    if (at != NULL && dir_list("/proc/fs/jbd2", &names, &ignored) == 0) {
        const char *name = at + strlen("DEVNAME=");
        size_t len = strcspn(name, "\n");
        for (size_t i = 0; i < names.n; i++) {
            const char *its = names.names[i];
            found = found || (strncmp(its, name, len) == 0 && its[len] == '-' &&
                              strchr(its + len + 1, '-') == NULL);
        }
    }
    name_list_release(&names);
    strbuf_release(&text);
    free(path);
    return found;
}

/* Whether the sync of the journal's own line, which follows, commits what was done here before it.
 *
 * It does on one ext4 with a log: a transaction commits together with everything before it, and its
 * commit flushes the disk's cache. The bytes only have to be written and allocated before. This
 * saves one flush of the disk for every task. */
static bool rides_along(const char *folder, const char *top)
{
    struct statfs fs;
    struct stat here;
    struct stat journal;
    return statfs(folder, &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC && stat(folder, &here) == 0 &&
           stat(top, &journal) == 0 && here.st_dev == journal.st_dev && has_log(here.st_dev);
}

/* Writes a file's dirty pages and waits for them, without flushing the disk's cache. */
static int write_out(const char *path, struct err *err)
{
    const unsigned how =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return err_set_errno(err, errno, "open %s", path);
    }
    int rc =
        sync_file_range(fd, 0, 0, how) != 0 ? err_set_errno(err, errno, "write out %s", path) : 0;
    (void)close(fd);
    return rc;
}

static int write_out_list(const struct name_list *list, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        rc = write_out(list->names[i], err);
    }
    return rc;
}

static int sync_whole(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    int failed = fd < 0 || syncfs(fd) != 0 ? errno : 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return failed;
}

/* Group commit: one syncfs() that begins from now on serves all threads that wait by then. Returns
 * 0 or the errno of a round that covers this call. */
static int sync_together(struct sync_group *g, const char *folder)
{
    (void)pthread_mutex_lock(&g->mutex);
    const unsigned wanted = g->n_started + 1;
    while (g->busy && g->n_ended < wanted) {
        (void)pthread_cond_wait(&g->ended, &g->mutex);
    }
    if (g->n_ended < wanted) {
        g->busy = true;
        g->n_started++;
        (void)pthread_mutex_unlock(&g->mutex);
        int failed = sync_whole(folder);
        (void)pthread_mutex_lock(&g->mutex);
        g->busy = false;
        if (failed != 0) {
            g->failed = failed;
            g->failed_round = g->n_started;
        }
        g->n_ended = g->n_started;
        (void)pthread_cond_broadcast(&g->ended);
    }
    int failed = g->failed_round >= wanted ? g->failed : 0;
    (void)pthread_mutex_unlock(&g->mutex);
    return failed;
}

/* Whether this result is one of many at once, or has many files. */
static bool enter(struct sync_group *g, size_t n_paths)
{
    (void)pthread_mutex_lock(&g->mutex);
    bool many = ++g->n_inside >= MANY_RESULTS || n_paths >= MANY_PATHS;
    (void)pthread_mutex_unlock(&g->mutex);
    return many;
}

static void leave(struct sync_group *g)
{
    (void)pthread_mutex_lock(&g->mutex);
    g->n_inside--;
    (void)pthread_mutex_unlock(&g->mutex);
}

static bool group_rides_along(struct sync_group *g, const char *folder, const char *top)
{
    (void)pthread_mutex_lock(&g->mutex);
    if (g->rides == RIDES_UNKNOWN) {
        g->rides = rides_along(folder, top) ? RIDES_YES : RIDES_NO;
    }
    bool yes = g->rides == RIDES_YES;
    (void)pthread_mutex_unlock(&g->mutex);
    return yes;
}

/* On ext4 and XFS the sync of a new file also commits its names and folders: they were made before
 * it, in the same log, or the file system syncs new parents itself where it has none. Syncing each
 * folder would cost one flush of the disk for each. */
static bool names_come_along(const char *folder)
{
    struct statfs fs;
    return statfs(folder, &fs) == 0 &&
           (fs.f_type == EXT4_SUPER_MAGIC || (unsigned long)fs.f_type == XFS_SUPER_MAGIC);
}

/* When syncing the whole file system fails, each file is synced by itself, so that the error names
 * one. */
static int sync_all(struct sync_group *g, const char *folder, const struct name_list *files,
                    const struct name_list *folders, struct err *err)
{
    bool many = enter(g, files->n);
    int rc = 0;
    if (!many || sync_together(g, folder) != 0) {
        rc = sync_list(files, err);
        if (rc == 0 && !names_come_along(folder)) {
            rc = sync_list(folders, err);
        }
    }
    leave(g);
    return rc;
}

int durable_result(struct sync_group *g, const char *folder, const char *top, const cJSON *result,
                   struct err *err)
{
    struct name_list files = {0};
    struct name_list folders = {0};
    collect(&files, &folders, folder, result);
    collect_above(&folders, folder, top);
    int rc = group_rides_along(g, folder, top) ? write_out_list(&files, err)
                                               : sync_all(g, folder, &files, &folders, err);
    name_list_release(&files);
    name_list_release(&folders);
    return rc;
}
