#include "daemon/examine.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "daemon/shim/fence.h"

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

/* exit.json, when it is there and whole. */
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

/* No exit.json and nobody holds the lock: how it was lost. */
static enum end_reason lost_how(const char *folder, const char *id)
{
    struct shim_start start;
    struct err err;
    char boot[40];
    int rc = shim_start_read(folder, id, &start, &err);
    if (rc == ERR_NOT_FOUND) {
        return END_NEVER_LAUNCHED;
    }
    clock_boot_id(boot);
    /* It appears whole or not at all, in this boot: torn, it is what a loss of power left of it. */
    return rc == ERR_CORRUPT || (rc == 0 && strcmp(boot, start.boot_id) != 0) ? END_HOST_LOST
                                                                              : END_LOST;
}

static int clear_tree(const char *folder, struct err *err)
{
    size_t n = 1;
    for (int i = 0; i < CLEAR_TRIES && n > 0; i++) {
        int rc = fence_clear_tree(folder, &n, err);
        if (rc != 0) {
            return rc;
        }
        if (n > 0) {
            clock_sleep_ms(CLEAR_PAUSE_MS);
        }
    }
    return n == 0 ? 0 : err_set(err, ERR_BUSY, "%zu of its processes do not end", n);
}

/* <program>/cells, of which the attempt's folder is cells/<cell>/<stage>/<attempt>: it may lie on a
 * file system of its own, and while that is not there nothing can be said about what is on it. */
static bool cells_are_there(const char *folder)
{
    char *stage = path_folder(folder);
    char *cell = path_folder(stage);
    char *cells = path_folder(cell);
    bool there = file_kind_at(cells) == FILE_FOLDER;
    free(stage);
    free(cell);
    free(cells);
    return there;
}

static void bury(const char *folder, const char *id, struct examination *out)
{
    bool fenced = false;
    struct err err;
    if (!cells_are_there(folder)) {
        (void)err_set(&err, ERR_NOT_FOUND, "the folder of its cells is not there");
        unclear(out, &err);
        return;
    }
    if (file_kind_at(folder) == FILE_ABSENT) {
        if (clear_tree(folder, &err) != 0) { /* its folder was taken from under it */
            unclear(out, &err);
            return;
        }
        out->finding = FOUND_ENDED;
        out->end = (struct attempt_end){.reason = END_NEVER_LAUNCHED};
        return;
    }
    if (fence_set(folder, &fenced, &err) != 0) {
        unclear(out, &err);
        return;
    }
    if (!fenced) { /* a shim took the lock just now */
        out->finding = FOUND_ALIVE;
        return;
    }
    enum end_reason how = lost_how(folder, id);
    if (how != END_HOST_LOST && clear_tree(folder, &err) != 0) {
        unclear(out, &err);
        return;
    }
    if (!found_exit(folder, id, out)) { /* it may have been written before the lock was let go */
        out->finding = FOUND_ENDED;
        out->end = (struct attempt_end){.reason = how};
    }
}

void examine_attempt(const char *folder, const char *id, bool shim_lives, struct examination *out)
{
    bool held = false;
    struct err err;
    *out = (struct examination){.finding = FOUND_UNCLEAR};
    if (found_exit(folder, id, out)) {
        return;
    }
    char *lock = path_join(folder, SHIM_LOCK_FILE);
    int rc = lock_is_held(lock, &held, &err);
    free(lock);
    if (rc != 0) {
        unclear(out, &err);
    } else if (held) {
        out->finding = FOUND_ALIVE;
    } else if (shim_lives) {
        out->finding = FOUND_YOUNG;
    } else {
        bury(folder, id, out);
    }
    if (out->finding == FOUND_ALIVE) {
        out->has_start = shim_start_read(folder, id, &out->start, &err) == 0;
    }
    if (out->finding == FOUND_ENDED && out->end.reason != END_EXITED) {
        out->end.code = -1;
    }
    if (out->finding == FOUND_ENDED && out->end.reason >= END_LOST) {
        out->end.user_ms = out->end.system_ms = out->end.max_rss_bytes = -1;
    }
}
