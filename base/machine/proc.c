/*
 * Runs one child without a shell: spawn, read both of its pipes with limits until it ends or its
 * time is up, kill what remains of its group, reap it.
 */
#include "base/machine/proc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/xalloc.h"

#define STDERR_KEPT_BYTES ((size_t)4096)
#define STOP_LOOK_MS      100
#define TAKE_ROUNDS       128 /* of 16 KiB: a pipe holds 1 MiB at most */

extern char **environ;

struct proc_child {
    pid_t pid;
    int pid_fd;
    int out_fd;
    int err_fd;
};

void proc_mend_inherited(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        /* the lowest number that is free is taken: all below are there */
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) != fd) {
            abort();
        }
    }
    (void)signal(SIGCHLD, SIG_DFL);
}

void proc_hold_signals(sigset_t *held, sigset_t *before)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    (void)sigemptyset(held);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) != 0 || now.sa_handler != SIG_IGN) {
            (void)sigaddset(held, signals[i]);
        }
    }
    (void)sigprocmask(SIG_BLOCK, held, before);
}

bool proc_signal_waits(const sigset_t *held)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           ((sigismember(held, SIGINT) == 1 && sigismember(&pending, SIGINT) == 1) ||
            (sigismember(held, SIGTERM) == 1 && sigismember(&pending, SIGTERM) == 1) ||
            (sigismember(held, SIGHUP) == 1 && sigismember(&pending, SIGHUP) == 1));
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static int spawn_child(const struct proc_spec *spec, const int out[2], const int errs[2],
                       pid_t *pid)
{
    static const int group_flags[] = {[PROC_OWN_GROUP] = POSIX_SPAWN_SETPGROUP,
                                      [PROC_NO_TERMINAL] = POSIX_SPAWN_SETSID,
                                      [PROC_TERMINAL] = 0};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    sigset_t ignored_here; /* the daemon's, or inherited: a child expects neither */
    (void)sigemptyset(&none);
    (void)sigemptyset(&ignored_here);
    (void)sigaddset(&ignored_here, SIGPIPE);
    (void)sigaddset(&ignored_here, SIGCHLD);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attr);
    if (spec->in_fd > 0) {
        (void)posix_spawn_file_actions_adddup2(&actions, spec->in_fd, 0);
    } else {
        (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    }
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    (void)posix_spawn_file_actions_adddup2(&actions, errs[1], 2);
    if (spec->fd3 > 0) { /* last: the pipes' own ends may have had that number */
        (void)posix_spawn_file_actions_adddup2(&actions, spec->fd3, 3);
    }
    if (spec->cwd != NULL) {
        (void)posix_spawn_file_actions_addchdir_np(&actions, spec->cwd);
    }
    (void)posix_spawnattr_setpgroup(&attr, 0);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &ignored_here);
    (void)posix_spawnattr_setflags(
        &attr, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group_flags[spec->place]));
    /* posix_spawn's prototype lacks const; it changes neither array (POSIX.1-2017, RATIONALE of
     * exec). */
    union {
        const char *const *in;
        char **out;
    } argv = {.in = spec->argv}, env = {.in = spec->env};
    int rc = posix_spawnp(pid, spec->exec != NULL ? spec->exec : spec->argv[0], &actions, &attr,
                          argv.out, spec->env == NULL ? environ : env.out);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    return rc;
}

static int child_start(const struct proc_spec *spec, struct proc_child *c, struct err *err)
{
    int out[2] = {-1, -1};
    int errs[2] = {-1, -1};
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(errs, O_CLOEXEC) != 0) {
        int why = errno;
        close_fd(&out[0]);
        close_fd(&out[1]);
        return err_set_errno(err, why, "pipe");
    }
    int why = spawn_child(spec, out, errs, &c->pid);
    close_fd(&out[1]);
    close_fd(&errs[1]);
    if (why != 0) {
        close_fd(&out[0]);
        close_fd(&errs[0]);
        return err_set_errno(err, why, "start %s", spec->argv[0]);
    }
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(errs[0], F_SETFL, O_NONBLOCK);
    c->out_fd = out[0];
    c->err_fd = errs[0];
    return 0;
}

/* Keeps the tail of stderr: drops from the front when it grows over twice what is kept. */
static void keep_tail(struct strbuf *sb)
{
    if (sb->len > 2 * STDERR_KEPT_BYTES) {
        memmove(sb->buf, sb->buf + (sb->len - STDERR_KEPT_BYTES), STDERR_KEPT_BYTES);
        sb->len = STDERR_KEPT_BYTES;
        sb->buf[sb->len] = '\0';
    }
}

/* Takes what is there; closes at the end of the stream. True when there may be more at once. */
static bool take(int *fd, struct strbuf *into)
{
    char chunk[16384];
    ssize_t n = *fd < 0 ? -1 : read(*fd, chunk, sizeof(chunk));
    if (n > 0) {
        strbuf_add(into, chunk, (size_t)n);
        return true;
    }
    if (*fd >= 0 && (n == 0 || (errno != EINTR && errno != EAGAIN))) {
        close_fd(fd);
    }
    return false;
}

/* What the child has written so far: a bounded number of rounds, more than a pipe can hold, so that
 * one who never stops writing does not keep us from looking at the clock. */
static int take_both(const struct proc_spec *spec, struct proc_child *c, struct proc_result *r,
                     struct err *err)
{
    bool more = true;
    for (int round = 0; more && round < TAKE_ROUNDS; round++) {
        more = take(&c->out_fd, &r->out);
        if (r->out.len > spec->max_out_bytes) {
            return err_set(err, ERR_RANGE, "%s printed more than %zu bytes", spec->argv[0],
                           spec->max_out_bytes);
        }
        more = take(&c->err_fd, &r->err) || more;
        keep_tail(&r->err);
    }
    return 0;
}

/* Reads both pipes until the child has ended, the time is up or stdout is too long. It is the
 * child's end that counts: it may close its pipes long before, or leave them open to others. */
static int child_drain(const struct proc_spec *spec, struct proc_child *c, struct proc_result *r,
                       struct err *err)
{
    struct mono_time start = clock_mono();
    bool ended = false;
    while (!ended) {
        struct pollfd fds[3] = {{.fd = c->pid_fd, .events = POLLIN},
                                {.fd = c->out_fd, .events = POLLIN},
                                {.fd = c->err_fd, .events = POLLIN}};
        int64_t left =
            spec->timeout_ms == 0 ? 1000 : spec->timeout_ms - (clock_mono().ms - start.ms);
        if (left <= 0) {
            const bool whole = spec->timeout_ms % 1000 == 0;
            return err_set(err, ERR_TIMEOUT, "%s did not end within %lld %s", spec->argv[0],
                           (long long)(whole ? spec->timeout_ms / 1000 : spec->timeout_ms),
                           whole ? "s" : "ms");
        }
        if (spec->stops != NULL && proc_signal_waits(spec->stops)) {
            return err_set(err, ERR_REFUSED, "%s was stopped by a signal to us", spec->argv[0]);
        }
        int most = spec->stops != NULL ? STOP_LOOK_MS : 1000;
        if (poll(fds, 3, left > most ? most : (int)left) < 0 && errno != EINTR) {
            return err_set_errno(err, errno, "poll");
        }
        ended = fds[0].revents != 0;
        int rc = take_both(spec, c, r, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/* Whatever became of it, nothing of its group stays behind. While it is ours to wait for, its
 * number belongs to no other process; where the kernel has reaped it (SIGCHLD is ignored), nothing
 * may be sent there, and how it ended is not known: that must never look like 0. */
static int child_end(const struct proc_spec *spec, const struct proc_child *c,
                     struct proc_result *r, int rc, struct err *err)
{
    siginfo_t info;
    int status = 0;
    if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        (void)kill(spec->place == PROC_TERMINAL ? c->pid : -c->pid, SIGKILL);
    }
    pid_t got;
    while ((got = waitpid(c->pid, &status, 0)) < 0 && errno == EINTR) {
    }
    if (got != c->pid) {
        return rc != 0 ? rc : err_set_errno(err, errno, "the end of %s", spec->argv[0]);
    }
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return rc;
}

int proc_run(const struct proc_spec *spec, struct proc_result *r, struct err *err)
{
    struct proc_child c = {.pid = -1, .pid_fd = -1, .out_fd = -1, .err_fd = -1};
    assert(spec->in_fd == 0 || spec->in_fd > 2);
    assert(spec->fd3 == 0 || spec->fd3 > 2);
    *r = (struct proc_result){.code = -1, .out = STRBUF_INIT, .err = STRBUF_INIT};
    int rc = child_start(spec, &c, err);
    if (rc != 0) {
        return rc;
    }
    c.pid_fd = pidfd_open(c.pid, 0);
    rc = c.pid_fd < 0 ? err_set_errno(err, errno, "watch %s", spec->argv[0])
                      : child_drain(spec, &c, r, err);
    rc = child_end(spec, &c, r, rc, err);
    close_fd(&c.pid_fd);
    close_fd(&c.out_fd);
    close_fd(&c.err_fd);
    return rc;
}

void proc_result_release(struct proc_result *r)
{
    strbuf_release(&r->out);
    strbuf_release(&r->err);
}

/* ---- finding ---- */

bool is_program(const char *path)
{
    return file_kind_at(path) == FILE_REGULAR && access(path, X_OK) == 0;
}

char *find_program(const char *name)
{
    const char *list = getenv("PATH");
    while (list != NULL && *list != '\0') {
        size_t n = strcspn(list, ":");
        char *folder = xstrndup(list, n);
        char *path = folder[0] == '/' ? path_join(folder, name) : NULL;
        free(folder);
        if (path != NULL && is_program(path)) {
            return path;
        }
        free(path);
        list += list[n] == ':' ? n + 1 : n;
    }
    return NULL;
}
