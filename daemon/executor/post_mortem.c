/*
 * Determines from an attempt's folder whether it lives or how it ended, and buries what has died.
 *
 * The order is what makes it safe. exit.json is believed first; then the lock is tried; only when
 * it is free, and no shim of ours is alive, is the attempt fenced off and its tree killed. About a
 * shim on another host the lock says nothing: its heartbeat is compared by the caller. A folder
 * that is missing is proof only while the folder of the cells is known to be there: a disk may not
 * be mounted.
 */
#include "daemon/executor/post_mortem.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/text.h"
#include "base/xalloc.h"

#define CLEAR_TRIES    200
#define CLEAR_PAUSE_MS 10

static enum end_reason end_of(enum shim_reason r)
{
    switch (r) {
    case SHIM_EXITED: return END_EXITED;
    case SHIM_SIGNALLED: return END_SIGNALLED;
    case SHIM_SPAWN_FAILED: return END_SPAWN_FAILED;
    case SHIM_MEMORY: return END_MEMORY;
    case SHIM_DISK: return END_DISK;
    case SHIM_MOVED: return END_HOST_LOST;
    case SHIM_REASON_NR: break;
    }
    return END_LOST;
}

static void unclear(struct examination *out, const struct err *why)
{
    out->finding = FOUND_UNCLEAR;
    (void)snprintf(out->why, sizeof(out->why), "%s", why->msg);
}

/* True when exit.json is there and whole. */
static bool found_exit(const char *folder, const char *id, struct examination *out)
{
    struct shim_exit x;
    struct err err;
    if (shim_exit_read(folder, id, &x, &err) != 0) {
        return false;
    }
    out->finding = FOUND_ENDED;
    out->end = (struct attempt_end){.reason = end_of(x.reason),
                                    .code = x.reason == SHIM_EXITED ? x.code : -1,
                                    .signal = x.reason == SHIM_SIGNALLED ? x.signal : 0,
                                    .ran_ms = x.ran_ms,
                                    .user_ms = x.user_ms,
                                    .system_ms = x.system_ms,
                                    .max_rss_bytes = x.max_rss_bytes};
    (void)snprintf(out->end.detail, sizeof(out->end.detail), "%s", x.detail);
    return true;
}

bool examine_exit(const char *folder, const char *id, struct attempt_end *end)
{
    struct examination x = {.finding = FOUND_UNCLEAR};
    bool found = found_exit(folder, id, &x);
    *end = x.end;
    return found;
}

/* No exit.json and no process holds the lock: how it was lost. *booted: the machine was restarted
 * since, by start.json's boot id, so that none of its processes can be alive. */
static enum end_reason lost_how(const struct fence *f, bool *booted)
{
    struct shim_start start;
    struct err err;
    char boot[40];
    int rc = shim_start_read(f->folder, f->attempt, &start, &err);
    *booted = false;
    if (rc == ERR_NOT_FOUND) {
        return END_NEVER_LAUNCHED;
    }
    clock_boot_id(boot);
    *booted = rc == 0 && strcmp(boot, start.boot_id) != 0;
    /* It is written in one go: a torn one was left by a loss of power, or overwritten by its
     * worker. */
    return *booted || rc == ERR_CORRUPT ? END_HOST_LOST : END_LOST;
}

/* Kills the attempt's processes until none is left. *any: there were some. */
static int clear_tree(const struct fence *f, bool *any, struct err *err)
{
    size_t n = 1;
    *any = false;
    for (int i = 0; i < CLEAR_TRIES && n > 0; i++) {
        int rc = fence_clear_tree(f, &n, err);
        if (rc != 0) {
            return rc;
        }
        *any = *any || n > 0;
        if (n > 0) {
            clock_sleep_ms(CLEAR_PAUSE_MS);
        }
    }
    return n == 0 ? 0
                  : err_set(err, ERR_BUSY, "%zu of its processes %s not end", n,
                            text_plural((int64_t)n, "does", "do"));
}

static bool is_of_the_disk(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lost+found") == 0;
}

static int look_into(const char *cells, bool used, struct err *err)
{
    DIR *dir = opendir(cells);
    if (dir == NULL) {
        return err_set_errno(err, errno, "open the folder of its cells");
    }
    const struct dirent *e;
    while ((e = readdir(dir)) != NULL && is_of_the_disk(e->d_name)) {
    }
    (void)closedir(dir);
    return e != NULL || !used ? 0
                              : err_set(err, ERR_NOT_FOUND,
                                        "the folder of its cells is empty: is its disk mounted?");
}

/* <program>/cells, of which the attempt's folder is cells/<cell>/<stage>/<attempt>: it may be on a
 * file system of its own, or be a mount point, and while that is not mounted its contents are
 * unknown. */
static int check_cells(const char *folder, bool used, struct err *err)
{
    char *stage = path_folder(folder);
    char *cell = path_folder(stage);
    char *cells = path_folder(cell);
    int rc = look_into(cells, used, err);
    free(stage);
    free(cell);
    free(cells);
    return rc;
}

/* No process holds its lock, and none will. Its remaining processes are ended before its end is
 * reported. */
static void bury_fenced(const struct fence *f, struct examination *out)
{
    bool booted = false;
    bool any = false;
    struct err err;
    enum end_reason how = lost_how(f, &booted);
    if (!booted && clear_tree(f, &any, &err) != 0) {
        unclear(out, &err);
        return;
    }
    if (any && how == END_HOST_LOST) {
        how = END_LOST; /* not the host: some of its processes were alive */
    }
    if (!found_exit(f->folder, f->attempt, out)) { /* it may have been written before the lock was
                                                      let go */
        out->finding = FOUND_ENDED;
        out->end = (struct attempt_end){.reason = how};
    }
}

/* No exit.json, no lock, no live shim of ours: fences the attempt off, unless its disk may be
 * away. */
static void bury(const struct fence *f, bool used, struct examination *out)
{
    bool fenced = false;
    bool any = false;
    enum file_kind kind = FILE_ABSENT;
    struct err err;
    if (check_cells(f->folder, used, &err) != 0 || file_look(f->folder, &kind, &err) != 0) {
        unclear(out, &err);
    } else if (kind == FILE_ABSENT) {
        if (clear_tree(f, &any, &err) != 0) { /* its folder was removed while it ran */
            unclear(out, &err);
            return;
        }
        out->finding = FOUND_ENDED;
        out->end = (struct attempt_end){.reason = END_NEVER_LAUNCHED};
    } else if (fence_set(f->folder, &fenced, &err) != 0) {
        unclear(out, &err);
    } else if (fenced) {
        bury_fenced(f, out);
    } else { /* a shim took the lock just now */
        out->finding = FOUND_ALIVE;
    }
}

/* Another host's, by start.json; or, where that is not seen, perhaps one that a daemon of another
 * host has started. One that cannot be read is examined again. */
static bool is_elsewhere(const struct fence *f, struct examination *out)
{
    struct err err;
    struct heartbeat own;
    if (!f->shared) {
        return false;
    }
    int rc = shim_start_read(f->folder, f->attempt, &out->start, &err);
    out->has_start = rc == 0;
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        return f->moved;
    }
    heartbeat_init(&own, NULL);
    return rc == 0 ? strcmp(out->start.host, own.host) != 0 : f->moved;
}

/* Its heartbeat has not moved for so long that it counts as lost with its host. If it goes on after
 * all, the mark, or current-attempt, stops it before it publishes anything. */
static void give_up(const struct fence *f, bool used, struct examination *out)
{
    enum file_kind kind = FILE_ABSENT;
    struct err err;
    if (check_cells(f->folder, used, &err) != 0 || shared_look(f->folder, &kind, &err) != 0 ||
        (kind != FILE_ABSENT && fence_mark(f->folder, &err) != 0)) {
        unclear(out, &err);
    } else if (!found_exit(f->folder, f->attempt, out)) {
        out->finding = FOUND_ENDED;
        out->end =
            (struct attempt_end){.reason = out->has_start ? END_HOST_LOST : END_NEVER_LAUNCHED};
    }
}

static void examine_elsewhere(const struct fence *f, bool used, struct examination *out)
{
    struct err ignored;
    out->finding = FOUND_ELSEWHERE;
    out->has_beat = heartbeat_read(f->folder, &out->beat, &ignored) == 0;
    if (f->give_up) {
        give_up(f, used, out);
    }
}

static void examine_here(const struct fence *f, bool shim_lives, bool used, struct examination *out)
{
    bool held = false;
    struct err err;
    char *lock = shim_lock_path(f->folder);
    int rc = lock_is_held(lock, &held, &err);
    free(lock);
    if (rc != 0) {
        unclear(out, &err);
    } else if (held) {
        out->finding = FOUND_ALIVE;
    } else if (shim_lives) {
        out->finding = FOUND_YOUNG;
    } else {
        bury(f, used, out);
    }
    if (out->finding == FOUND_ALIVE) {
        out->has_start = shim_start_read(f->folder, f->attempt, &out->start, &err) == 0;
    }
}

/* At the end: reasons without an exit.json have no exit code and no usage. */
void examine_attempt(const struct fence *f, bool shim_lives, bool used, struct examination *out)
{
    *out = (struct examination){.finding = FOUND_UNCLEAR};
    if (found_exit(f->folder, f->attempt, out)) {
        return;
    }
    if (!shim_lives && is_elsewhere(f, out)) {
        examine_elsewhere(f, used, out);
    } else {
        examine_here(f, shim_lives, used, out);
    }
    if (out->finding == FOUND_ENDED && out->end.reason != END_EXITED) {
        out->end.code = -1;
    }
    if (out->finding == FOUND_ENDED && out->end.reason >= END_LOST) {
        out->end.ran_ms = -1;
        out->end.user_ms = out->end.system_ms = out->end.max_rss_bytes = -1;
    }
}
