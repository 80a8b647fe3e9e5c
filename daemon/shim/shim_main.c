/*
 * prereg-shim ATTEMPT_FOLDER [CGROUP]: the one process between the daemon and a worker. One per
 * attempt; it outlives the daemon, and the worker does not outlive it. docs/daemon.md has the
 * protocol. With --spawner it forks such processes on the daemon's request (spawn.h); with --slurm
 * it is what a cluster's job runs (cluster.h); with --accept it is what runs in a worker's place
 * where a task is another name of a work (accept.h).
 *
 *   start.json made and locked -> (fenced? already started? -> leave) -> worker's process, which
 *   writes start.json and executes the worker -> its tree has ended -> exit.json -> lock free
 *
 * Exit code: 0 when exit.json was written, 1 when the attempt was not its to run, or it failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/machine/machine.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/shim/accept.h"
#include "daemon/shim/cluster.h"
#include "daemon/shim/fence.h"
#include "daemon/shim/files.h"
#include "daemon/shim/group.h"
#include "daemon/shim/job_gpus.h"
#include "daemon/shim/mark.h"
#include "daemon/shim/pid.h"
#include "daemon/shim/spawn.h"
#include "daemon/shim/unfit.h"
#include "daemon/shim/watch.h"
#include "daemon/shim/worker.h"

#define LOCK_TRIES          200 /* a probe holds the lock for microseconds only */
#define LOCK_PAUSE_MS       5
#define GROUP_TRIES         200
#define EXIT_WRITE_TRIES    60
#define EXIT_WRITE_PAUSE_MS 1000

struct shim {
    const char *folder; /* as the daemon named it, absolute */
    struct shim_spec spec;
    struct shim_start start; /* all zero until it is written */
    struct shim_exit exit;
    sigset_t signals;
    int start_fd; /* start.json, locked */
    bool reserved;
    int tree_fd;        /* the spec's file in memory, which the worker's tree inherits */
    const char *groups; /* the cgroup below which one is made for the worker; NULL: none */
    char *group;        /* that one; NULL: none */
    int group_fd;
    struct cluster_job *cluster; /* of a cluster's job, or a shared state folder; else NULL */
    bool is_job;
    struct cluster_job own; /* what `cluster` points to */
};

/* The machine, as start.json states it. The spawner reads it once for all its shims. */
static struct {
    char kernel[sizeof(((struct shim_start *)0)->kernel)];
    char cpu[sizeof(((struct shim_start *)0)->cpu)];
    char boot_id[sizeof(((struct shim_start *)0)->boot_id)];
    char host[sizeof(((struct shim_start *)0)->host)];
    int oom; /* of the spawner, or the shim: inherited */
} machine;

/* Its first use of the clock's text makes the C library read its time zone, for all forks. */
static void look_at_machine(void)
{
    char time[WALL_TEXT_SIZE];
    clock_wall_text(clock_wall(), time);
    machine_kernel(machine.kernel, sizeof(machine.kernel));
    machine_cpu(machine.cpu, sizeof(machine.cpu));
    clock_boot_id(machine.boot_id);
    machine.oom = mark_oom_read(0);
    if (gethostname(machine.host, sizeof(machine.host) - 1) != 0) {
        (void)snprintf(machine.host, sizeof(machine.host), "unknown");
    }
}

static int take_lock(const char *name, int *fd, struct err *err)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        int rc = lock_try(name, false, fd, err);
        if (rc != 0 || *fd >= 0) {
            return rc;
        }
        clock_sleep_ms(LOCK_PAUSE_MS);
    }
    return err_set(err, ERR_BUSY, "%s is held by another", name);
}

/* Whether the file that is locked is still the one by that name: another shim may have ended. */
static bool is_in_place(int fd)
{
    struct stat ours;
    struct stat there;
    return fstat(fd, &ours) == 0 && stat(LAYOUT_START, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* The right to run this attempt: it holds the lock, was not run before, and was not given up. The
 * first test avoids waiting for the lock; the second one is made under it. */
static int claim(struct shim *s, struct err *err)
{
    int rc = shim_was_started(".") ? err_set(err, ERR_REFUSED, "this attempt was run before")
                                   : take_lock(LAYOUT_START, &s->start_fd, err);
    if (rc != 0) {
        return rc;
    }
    if (shim_was_started(".") || !is_in_place(s->start_fd)) {
        return err_set(err, ERR_REFUSED, "this attempt was run before");
    }
    if (fence_is_set(".")) {
        (void)unlink(LAYOUT_START); /* ours, and empty */
        return err_set(err, ERR_REFUSED, "this attempt was given up");
    }
    return shim_exit_reserve(s->start_fd, &s->reserved, err);
}

/* What start.json says, but for the worker. */
static int describe_start(struct shim *s, struct shim_start *start, struct err *err)
{
    struct pid_stat own;
    *start = (struct shim_start){
        .shim_pid = getpid(), .threads = s->spec.threads, .gpus = &s->spec.gpus};
    if (!pid_stat_read(getpid(), &own)) {
        return err_set(err, ERR_IO, "read start times from /proc");
    }
    start->shim_start = own.start;
    memcpy(start->kernel, machine.kernel, sizeof(start->kernel));
    memcpy(start->cpu, machine.cpu, sizeof(start->cpu));
    memcpy(start->boot_id, machine.boot_id, sizeof(start->boot_id));
    memcpy(start->host, machine.host, sizeof(start->host));
    memcpy(start->worker, s->spec.worker, sizeof(start->worker));
    if (s->group_fd >= 0) {
        (void)snprintf(start->cgroup, sizeof(start->cgroup), "%s", s->group);
    }
    memcpy(start->attempt, s->spec.attempt, sizeof(start->attempt));
    clock_wall_text(clock_wall(), start->time);
    return 0;
}

/* Starts the worker, by which start.json is written. *w has the process, if there is one. */
static int start_worker(struct shim *s, struct worker *w, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct shim_start start;
    const struct worker_plan plan = {.spec = &s->spec,
                                     .tree_fd = s->tree_fd,
                                     .group_fd = s->group_fd,
                                     .start_fd = s->start_fd,
                                     .reserved = s->reserved,
                                     .start_text = &text,
                                     .oom_adjustment = mark_oom_adjustment(machine.oom)};
    *w = (struct worker){0};
    int rc = describe_start(s, &start, err);
    if (rc == 0) {
        rc = shim_start_prepare(&start, s->reserved, &text, err);
    }
    if (rc == 0) {
        rc = worker_start(&plan, w, err);
    }
    (void)close(s->tree_fd); /* held by the worker's tree alone from here on */
    strbuf_release(&text);
    if (w->announced) {
        s->start = start;
        s->start.worker_pid = w->own.pid;
        s->start.worker_start = w->own.start;
    }
    return rc;
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

/* Whether the folder's name now leads to another place than this process's working directory. */
static bool was_moved(const char *folder)
{
    struct stat named;
    struct stat own;
    return stat(".", &own) != 0 || stat(folder, &named) != 0 || named.st_dev != own.st_dev ||
           named.st_ino != own.st_ino;
}

/* An additional safety: an attempt also runs without one. */
static void open_group(struct shim *s)
{
    struct err ignored;
    if (s->groups != NULL) {
        s->group = group_path(s->groups, s->spec.attempt);
        (void)(group_make(s->group, &s->group_fd, &ignored) == 0);
    }
}

/* Every process of it has been waited for. Removal is retried, with another kill each time, because
 * rmdir() can still find it busy. */
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

/* Starts the worker and watches it to the end of its tree. A failure on the way is recorded as an
 * exit, too. */
static int run_worker(struct shim *s, struct err *err)
{
    struct err why;
    struct worker w;
    err_clear(&why);
    open_group(s);
    const bool executed = start_worker(s, &w, &why) == 0;
    if (!w.in_group) {
        close_group(s);
    }
    struct watch_limits limits = {.memory_bytes = s->spec.memory_bytes,
                                  .grace_ms = s->spec.grace_ms,
                                  .group = s->group,
                                  .tick = s->cluster == NULL ? NULL : cluster_tick,
                                  .ctx = s->cluster};
    int rc = w.own.pid == 0 ? 0 : watch_run(w.own.pid, &s->signals, &limits, &s->exit, err);
    close_group(s);
    if (rc == 0 && !executed) {
        spawn_failed(s, &why);
    }
    if (rc == 0 && w.own.pid != 0 && s->exit.code != 0 && was_moved(s->folder)) {
        s->exit.reason = SHIM_MOVED; /* it used paths that no longer exist */
        (void)snprintf(s->exit.detail, sizeof(s->exit.detail),
                       "the attempt's folder was moved or removed while it ran");
    }
    return rc;
}

/* The room is reserved, so this fails only when the disk itself does; then it is retried for
 * a minute, because a lost end costs a whole attempt. */
static int publish(const struct shim *s, struct err *err)
{
    int rc = s->cluster == NULL ? 0 : cluster_may_publish(s->cluster, err);
    if (rc != 0) {
        return rc;
    }
    rc = shim_exit_write(".", s->start_fd, &s->start, &s->exit, err);
    for (int i = 1; rc != 0 && i < EXIT_WRITE_TRIES; i++) {
        clock_sleep_ms(EXIT_WRITE_PAUSE_MS);
        rc = shim_exit_write(".", s->start_fd, &s->start, &s->exit, err);
    }
    return rc;
}

/* Removes what the worker left empty: with a million tasks it would use many inodes. Readers take
 * an absent file for an empty one. */
static void tidy(void)
{
    static const char *const names[] = {LAYOUT_STDOUT, LAYOUT_STDERR, LAYOUT_EVENTS};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct stat st;
        if (lstat(names[i], &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0) {
            (void)unlink(names[i]);
        }
    }
}

/* Standard input is what to run. It is kept under another number, for the worker's tree. */
static int take_spec(struct shim *s, struct err *err)
{
    int rc = shim_spec_read(STDIN_FILENO, &s->spec, err);
    if (rc != 0) {
        return rc;
    }
    if (s->is_job) {
        cluster_environment(&s->spec, environ);
    }
    s->tree_fd = fcntl(STDIN_FILENO, F_DUPFD, STDERR_FILENO + 1);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->tree_fd < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0) {
        return err_set_errno(err, errno, "put standard input aside");
    }
    (void)close(null);
    return 0;
}

/* What cannot be known is left in the shim's log. A node that is not what the program pins is noted
 * for the daemon. */
static int find_gpus(struct shim *s, struct err *err)
{
    struct strbuf notes = STRBUF_INIT;
    struct err ignored;
    int rc = s->is_job ? job_gpus_find(&s->spec, &notes, err) : 0;
    if (rc != 0) {
        struct unfit unfit;
        unfit_fill(&unfit, notes.buf);
        if (unfit_write(".", &unfit, &ignored) != 0) {
            (void)err_wrap(err, "(%s)", ignored.msg);
        }
    } else if (notes.len > 0 && log_open(LAYOUT_SHIM_LOG, &ignored) == 0) {
        log_warn("%s", notes.buf);
    }
    strbuf_release(&notes);
    return rc;
}

static int shim_run(struct shim *s, struct err *err)
{
    int rc = take_spec(s, err);
    rc = rc == 0 ? find_gpus(s, err) : rc;
    if (rc != 0) {
        return rc;
    }
    if (s->is_job) {
        (void)cluster_tick(s->cluster); /* from here on it has begun */
    }
    memcpy(s->exit.attempt, s->spec.attempt, sizeof(s->exit.attempt));
    if (s->spec.shared && !s->is_job) {
        s->cluster = &s->own;
        rc = cluster_share(&s->own, s->folder, err);
    }
    if (rc != 0) {
        return rc;
    }
    if ((rc = claim(s, err)) != 0 || (rc = watch_block_signals(&s->signals, err)) != 0) {
        return rc;
    }
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return err_set_errno(err, errno, "become the reaper");
    }
    if ((rc = run_worker(s, err)) != 0 || (rc = publish(s, err)) != 0) {
        return rc;
    }
    tidy();
    return 0;
}

static int enter(const char *folder)
{
    if (chdir(folder) != 0) {
        (void)fprintf(stderr, "prereg-shim: %s: %s\n", folder, strerror(errno));
        return EXIT_ANY;
    }
    return EXIT_OK;
}

/* Logs a failure into the attempt's folder. */
static int finish(int rc, const struct err *err)
{
    struct err ignored;
    if (rc != 0 && log_open(LAYOUT_SHIM_LOG, &ignored) == 0) {
        log_error("%s", err->msg);
    }
    return rc == 0 ? EXIT_OK : EXIT_ANY;
}

static int run(const char *folder, const char *groups)
{
    struct shim s = {
        .folder = folder, .start_fd = -1, .tree_fd = -1, .groups = groups, .group_fd = -1};
    struct err err;
    if (enter(folder) != EXIT_OK) {
        return EXIT_ANY;
    }
    int rc = shim_run(&s, &err);
    shim_spec_release(&s.spec);
    return finish(rc, &err);
}

/* The script redirects standard output and error into the attempt's folder. */
static int run_job(const char *folder)
{
    struct shim s = {
        .folder = folder, .start_fd = -1, .tree_fd = -1, .group_fd = -1, .is_job = true};
    struct err err;
    int fd = -1;
    if (enter(folder) != EXIT_OK) {
        return EXIT_ANY;
    }
    s.cluster = &s.own;
    int rc = cluster_open(&s.own, folder, &fd, &err);
    if (rc == 0 && dup2(fd, STDIN_FILENO) < 0) {
        rc = err_set_errno(&err, errno, "take the spec as standard input");
    }
    if (rc == 0) {
        (void)close(fd);
        rc = shim_run(&s, &err);
    }
    shim_spec_release(&s.spec);
    return finish(rc, &err);
}

/* In the place of a worker; its standard error is the attempt's. */
static int run_accept(void)
{
    struct err err;
    int rc = accept_run(&err);
    if (rc != 0) {
        (void)fprintf(stderr, "prereg-shim: %s\n", err.msg);
    }
    return rc == 0 ? EXIT_OK : EXIT_ANY;
}

int main(int argc, char **argv)
{
    look_at_machine();
    if (argc == 2 && strcmp(argv[1], SPAWN_VERB) == 0) {
        return serve_spawns(STDIN_FILENO, run);
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)printf("prereg-shim %s\n", PREREGD_VERSION);
        return fflush(stdout) == 0 ? EXIT_OK : EXIT_ANY;
    }
    if (argc == 2 && strcmp(argv[1], ACCEPT_VERB) == 0) {
        return run_accept();
    }
    if (argc == 3 && strcmp(argv[1], CLUSTER_VERB) == 0 && argv[2][0] == '/') {
        return run_job(argv[2]);
    }
    if (argc < 2 || argc > 3 || argv[1][0] == '-') {
        (void)fprintf(stderr,
                      "usage: prereg-shim ATTEMPT_FOLDER [CGROUP] < WHAT   (run by preregd)\n"
                      "       prereg-shim " SPAWN_VERB " < SOCKET                  (likewise)\n"
                      "       prereg-shim " CLUSTER_VERB " ATTEMPT_FOLDER            (by a job)\n"
                      "       prereg-shim " ACCEPT_VERB "                            (by a shim)\n"
                      "       prereg-shim --version\n");
        return EXIT_USAGE;
    }
    return run(argv[1], argc == 3 ? argv[2] : NULL);
}
