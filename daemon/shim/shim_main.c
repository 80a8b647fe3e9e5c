/*
 * prereg-shim ATTEMPT_FOLDER [CGROUP]: the one process between the daemon and a worker. One per
 * attempt; it outlives the daemon, and the worker does not outlive it. docs/daemon.md tells the
 * protocol.
 *
 *   shim.lock held -> (fenced? already started? -> leave) -> worker forked, held at a pipe
 *   -> start.json is there -> worker let go -> its tree has ended -> exit.json -> locks free
 *
 * Exit code: 0 when exit.json was written, 1 when this process had no business here or failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/shim/fence.h"
#include "daemon/shim/files.h"
#include "daemon/shim/group.h"
#include "daemon/shim/pid.h"
#include "daemon/shim/watch.h"
#include "daemon/shim/worker.h"

#define LOCK_TRIES          200 /* somebody probing the lock holds it for microseconds */
#define LOCK_PAUSE_MS       5
#define GROUP_TRIES         200
#define EXIT_WRITE_TRIES    60
#define EXIT_WRITE_PAUSE_MS 1000

struct shim {
    const char *folder; /* as the daemon named it, absolute */
    struct shim_spec spec;
    struct shim_exit exit;
    sigset_t signals;
    int lock_fd;
    int tree_fd;
    const char *groups; /* the cgroup below which one is made for the worker; NULL: none */
    char *group;        /* that one; NULL: none */
    int group_fd;
};

static int take_lock(const char *name, bool inherit, int *fd, struct err *err)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        int rc = lock_try(name, inherit, fd, err);
        if (rc != 0 || *fd >= 0) {
            return rc;
        }
        clock_sleep_ms(LOCK_PAUSE_MS);
    }
    return err_set(err, ERR_BUSY, "%s is held by another", name);
}

/* The right to run this attempt: the lock is ours, nobody ran it before, it was not given up. */
static int claim(struct shim *s, struct err *err)
{
    int rc = take_lock(SHIM_LOCK_FILE, false, &s->lock_fd, err);
    if (rc != 0) {
        return rc;
    }
    if (fence_is_set(".")) {
        return err_set(err, ERR_REFUSED, "this attempt was given up");
    }
    if (file_kind_at(SHIM_START_FILE) != FILE_ABSENT ||
        file_kind_at(SHIM_EXIT_FILE) != FILE_ABSENT) {
        return err_set(err, ERR_REFUSED, "this attempt was run before");
    }
    rc = take_lock(SHIM_TREE_FILE, true, &s->tree_fd, err);
    return rc != 0 ? rc : shim_exit_reserve(".", err);
}

static int write_start(const struct shim *s, pid_t worker, struct err *err)
{
    struct shim_start start = {.shim_pid = getpid(), .worker_pid = worker};
    struct pid_stat own;
    struct pid_stat its;
    if (!pid_stat_read(getpid(), &own) || !pid_stat_read(worker, &its)) {
        return err_set(err, ERR_IO, "read start times from /proc");
    }
    start.shim_start = own.start;
    start.worker_start = its.start;
    start.threads = s->spec.threads;
    machine_kernel(start.kernel, sizeof(start.kernel));
    machine_cpu(start.cpu, sizeof(start.cpu));
    memcpy(start.worker, s->spec.worker, sizeof(start.worker));
    if (s->group != NULL) {
        (void)snprintf(start.cgroup, sizeof(start.cgroup), "%s", s->group);
    }
    memcpy(start.attempt, s->spec.attempt, sizeof(start.attempt));
    clock_boot_id(start.boot_id);
    if (gethostname(start.host, sizeof(start.host) - 1) != 0) {
        (void)snprintf(start.host, sizeof(start.host), "unknown");
    }
    return shim_start_write(".", &start, err);
}

static void spawn_failed(struct shim *s, const struct err *why)
{
    s->exit.reason = why->code == ERR_NO_SPACE ? SHIM_DISK : SHIM_SPAWN_FAILED;
    s->exit.code = -1;
    s->exit.signal = 0;
    (void)snprintf(s->exit.detail, sizeof(s->exit.detail), "%.*s", (int)sizeof(s->exit.detail) - 1,
                   why->msg);
    text_make_utf8(s->exit.detail); /* the cut may have gone through a character */
}

/* The folder by the name that it was given is not the one that this process is in. */
static bool was_moved(const char *folder)
{
    struct stat named;
    struct stat own;
    return stat(".", &own) != 0 || stat(folder, &named) != 0 || named.st_dev != own.st_dev ||
           named.st_ino != own.st_ino;
}

/* It is one safety more: an attempt runs without one, too. */
static void open_group(struct shim *s)
{
    struct err ignored;
    if (s->groups != NULL) {
        s->group = group_path(s->groups, s->spec.attempt);
        (void)(group_make(s->group, &s->group_fd, &ignored) == 0);
    }
}

/* Empty: whoever was in it was waited for. */
static void close_group(struct shim *s)
{
    if (s->group_fd >= 0) {
        (void)close(s->group_fd);
        s->group_fd = -1;
    }
    for (int i = 0; s->group != NULL && !group_remove(s->group) && i < GROUP_TRIES; i++) {
        group_kill(s->group);
        clock_sleep_ms(LOCK_PAUSE_MS);
    }
    free(s->group);
    s->group = NULL;
}

/* Fork, start.json, go, to the end of the tree. What goes wrong on the way is an exit, too. */
static int run_worker(struct shim *s, struct err *err)
{
    struct err why;
    struct worker w;
    err_clear(&why);
    open_group(s);
    if (worker_fork(&s->spec, s->tree_fd, &s->group_fd, &w, &why) != 0) {
        close_group(s);
        spawn_failed(s, &why);
        return 0;
    }
    if (s->group_fd < 0) {
        close_group(s); /* it was born outside */
    }
    bool started = write_start(s, w.pid, &why) == 0;
    if (!started) {
        (void)close(w.go_fd); /* it ends by itself */
        (void)close(w.failed_fd);
    }
    bool executed = started && worker_release(&w, s->spec.exec, &why) == 0;
    struct watch_limits limits = {
        .memory_bytes = s->spec.memory_bytes, .grace_ms = s->spec.grace_ms, .group = s->group};
    int rc = watch_run(w.pid, &s->signals, &limits, &s->exit, err);
    close_group(s);
    if (rc == 0 && !executed) {
        spawn_failed(s, &why);
    }
    if (rc == 0 && s->exit.code != 0 && was_moved(s->folder)) {
        s->exit.reason = SHIM_MOVED; /* it looked for its files where they no longer are */
        (void)snprintf(s->exit.detail, sizeof(s->exit.detail),
                       "the attempt's folder was moved or removed while it ran");
    }
    return rc;
}

/* The room is reserved, so this fails only when the disk itself does; then it is tried for a
 * minute: an end that nobody learns of costs a whole attempt. */
static int publish(const struct shim *s, struct err *err)
{
    int rc = shim_exit_write(".", &s->exit, err);
    for (int i = 1; rc != 0 && i < EXIT_WRITE_TRIES; i++) {
        clock_sleep_ms(EXIT_WRITE_PAUSE_MS);
        rc = shim_exit_write(".", &s->exit, err);
    }
    return rc;
}

/* Once exit.json is there nothing reads these any more, and with a million tasks they are most of
 * the inodes. The lock of this process last: another shim that takes a new one sees exit.json. */
static void tidy(void)
{
    static const char *const logs[] = {SHIM_STDOUT_FILE, SHIM_STDERR_FILE};
    for (size_t i = 0; i < ARRAY_LEN(logs); i++) {
        struct stat st;
        if (lstat(logs[i], &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0) {
            (void)unlink(logs[i]);
        }
    }
    (void)unlink(SHIM_SPEC_FILE);
    (void)unlink(SHIM_TREE_FILE);
    (void)unlink(SHIM_LOCK_FILE);
}

static int shim_run(struct shim *s, struct err *err)
{
    int rc = shim_spec_read(".", &s->spec, err);
    if (rc != 0) {
        return rc;
    }
    memcpy(s->exit.attempt, s->spec.attempt, sizeof(s->exit.attempt));
    if ((rc = claim(s, err)) != 0 || (rc = watch_block_signals(&s->signals, err)) != 0) {
        return rc;
    }
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return err_set_errno(err, errno, "become the reaper");
    }
    rc = run_worker(s, err);
    rc = rc != 0 ? rc : publish(s, err);
    if (rc == 0) {
        tidy();
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct shim s = {.folder = argv[1], .lock_fd = -1, .tree_fd = -1, .group_fd = -1};
    struct err err;
    if (argc < 2 || argc > 3 || argv[1][0] == '-') {
        (void)fprintf(stderr, "usage: prereg-shim ATTEMPT_FOLDER [CGROUP]   (run by preregd)\n");
        return EXIT_USAGE;
    }
    s.groups = argc == 3 ? argv[2] : NULL;
    if (chdir(argv[1]) != 0) {
        (void)fprintf(stderr, "prereg-shim: %s: %s\n", argv[1], strerror(errno));
        return EXIT_ANY;
    }
    int rc = shim_run(&s, &err);
    shim_spec_release(&s.spec);
    if (rc != 0) {
        struct err ignored;
        if (log_open(SHIM_OWN_LOG, &ignored) == 0) {
            log_error("%s", err.msg);
        }
        return EXIT_ANY;
    }
    return EXIT_OK;
}
