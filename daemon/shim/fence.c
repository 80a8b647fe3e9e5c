/* Fences an attempt off and ends the processes that outlived its shim. Run by the daemon, off its
 * loop, for attempts whose shim is dead. Cgroups are ended first; then every process in /proc is
 * tested for the attempt's marks, because no single mark survives all that a worker may do
 * (mark.h). */
#include "daemon/shim/fence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/shim/files.h"
#include "daemon/shim/group.h"
#include "daemon/shim/mark.h"
#include "daemon/shim/pid.h"

#define ENVIRON_MAX ((size_t)4 * 1024 * 1024)

bool fence_is_set(const char *folder)
{
    char *path = path_join(folder, FENCE_FILE);
    bool set = file_kind_at(path) != FILE_ABSENT;
    free(path);
    return set;
}

int fence_mark(const char *folder, struct err *err)
{
    char *path = path_join(folder, FENCE_FILE);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int rc = fd < 0 ? err_set_errno(err, errno, "create %s", path) : 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    free(path);
    return rc;
}

/* The lock is held while the mark is left: a shim that waits for it sees the mark once it has
 * it. */
int fence_set(const char *folder, bool *fenced, struct err *err)
{
    char *path = shim_lock_path(folder);
    struct stat st;
    int fd = -1;
    *fenced = false;
    int rc = lock_try(path, false, &fd, err);
    if (rc == 0 && fd >= 0) {
        rc = fence_mark(folder, err);
        *fenced = rc == 0;
        bool is_start = strcmp(path_name(path), LAYOUT_START) == 0; /* older shims' locks stay */
        if (rc == 0 && is_start && fstat(fd, &st) == 0 && st.st_size == 0) {
            (void)unlink(path); /* nothing was started: a shim that recreates it sees the mark */
        }
        (void)close(fd);
    }
    free(path);
    return rc;
}

struct belonging {
    char *memory; /* how /proc names the attempt's file in memory */
    char *marker; /* "PREREG_TASK=<folder>/task.json" */
    dev_t dev;    /* tree.lock of an older shim */
    ino_t ino;
    bool has_lock;
    unsigned long limit;    /* mark.h */
    unsigned long own_mark; /* of this process, when it was started from inside a worker */
    int own_oom;
};

/* An open file of a process: `dir` is its /proc/PID/fd. */
static bool is_ours(int dir, const char *name, const struct belonging *b)
{
    char target[128];
    struct stat st;
    ssize_t n = readlinkat(dir, name, target, sizeof(target));
    if (n == (ssize_t)strlen(b->memory) && memcmp(target, b->memory, (size_t)n) == 0) {
        return true;
    }
    return b->has_lock && fstatat(dir, name, &st, 0) == 0 && st.st_dev == b->dev &&
           st.st_ino == b->ino;
}

/* Has the attempt's file in memory, or an older shim's tree.lock, open. */
static bool holds_file(pid_t pid, const struct belonging *b)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return false;
    }
    bool found = false;
    const struct dirent *e;
    while (!found && (e = readdir(dir)) != NULL) {
        found = e->d_name[0] != '.' && is_ours(dirfd(dir), e->d_name, b);
    }
    (void)closedir(dir);
    return found;
}

/* Its environment, as it was at its execve(), has PREREG_TASK of this attempt. */
static bool names_attempt(pid_t pid, const struct belonging *b)
{
    char path[64];
    struct strbuf text = STRBUF_INIT;
    struct err err;
    bool found = false;
    (void)snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
    if (file_read(path, ENVIRON_MAX, &text, &err) == 0) {
        for (size_t at = 0; at < text.len && !found; at += strlen(text.buf + at) + 1) {
            found = strcmp(text.buf + at, b->marker) == 0;
        }
    }
    strbuf_release(&text);
    return found;
}

/* A child that this process did not start: the kernel gave it to the next reaper when a shim died.
 * Workers and all that they start carry a limit and an adjustment that our own children lack. A
 * daemon inside a worker hands that worker's limit on to all its children, so that it says nothing
 * about them; the adjustment is always more, unless this process has the highest there is. */
static bool is_orphan(const struct pid_stat *s, const struct belonging *b)
{
    if (s->parent != getpid()) {
        return false;
    }
    unsigned long mark = mark_read(s->pid);
    return (mark != 0 && mark != b->own_mark) ||
           (mark_oom_adjustment(b->own_oom) > b->own_oom &&
            mark_oom_read(s->pid) >= mark_oom_adjustment(b->own_oom));
}

/* True when it belonged to the attempt and was sent SIGKILL. The pidfd is opened before the process
 * is examined, so that the signal can hit no other. */
static bool end_one(pid_t pid, const struct belonging *b)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        return false;
    }
    struct err err;
    struct pid_stat s;
    bool there = pid_stat_read(pid, &s);
    bool gone = !there || s.state == 'Z' || s.state == 'X';
    bool orphan = there && is_orphan(&s, b);
    if (orphan && gone) {
        (void)waitpid(pid, NULL, WNOHANG);
    }
    bool ours = !gone && (orphan || mark_read(pid) == b->limit || holds_file(pid, b) ||
                          names_attempt(pid, b));
    if (ours) {
        (void)pid_signal(fd, SIGKILL, &err);
    }
    (void)close(fd);
    return ours;
}

/* *n_alive grows by the processes that were sent SIGKILL. */
static int end_marked(const struct belonging *b, size_t *n_alive, struct err *err)
{
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return err_set_errno(err, errno, "open /proc");
    }
    const struct dirent *e;
    while ((e = readdir(proc)) != NULL) {
        int64_t pid = 0;
        struct err ignored;
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
            text_to_int(e->d_name, 1, INT32_MAX, &pid, &ignored) == 0 && pid != getpid() &&
            end_one((pid_t)pid, b)) {
            (*n_alive)++;
        }
    }
    (void)closedir(proc);
    return 0;
}

/* Where its group is: as start.json says, which a daemon in another cgroup may have had written,
 * or by its name below this daemon's. */
static void end_groups(const struct fence *f, size_t *n_alive)
{
    struct shim_start start;
    struct err ignored;
    bool named = shim_start_read(f->folder, f->attempt, &start, &ignored) == 0 &&
                 group_is_of(start.cgroup, f->attempt);
    char *paths[2] = {named ? xstrdup(start.cgroup) : NULL,
                      f->groups == NULL ? NULL : group_path(f->groups, f->attempt)};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        if (paths[i] != NULL && !group_remove(paths[i])) {
            group_kill(paths[i]);
            *n_alive += group_remove(paths[i]) ? 0 : 1;
        }
        free(paths[i]);
    }
}

int fence_clear_tree(const struct fence *f, size_t *n_alive, struct err *err)
{
    struct belonging b = {.limit = mark_limit(f->attempt),
                          .own_mark = mark_read(getpid()),
                          .own_oom = mark_oom_read(0)};
    struct stat st;
    *n_alive = 0;
    char *lock = path_join(f->folder, SHIM_OLD_TREE);
    if (stat(lock, &st) == 0) {
        b.dev = st.st_dev;
        b.ino = st.st_ino;
        b.has_lock = true;
    }
    b.memory = xasprintf("/memfd:" SHIM_MARK "%s (deleted)", f->attempt);
    b.marker = xasprintf("PREREG_TASK=%s/" LAYOUT_TASK, f->folder);
    end_groups(f, n_alive);
    int rc = end_marked(&b, n_alive, err);
    free(b.marker);
    free(b.memory);
    free(lock);
    return rc;
}
