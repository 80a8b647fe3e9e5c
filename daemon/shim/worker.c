/*
 * Forks the worker, holds it at a pipe until start.json is written, and reports whether execve()
 * worked.
 *
 * Between fork and execve the child makes system calls only (and one snprintf), and everything that
 * needs memory is prepared before. The `failed` pipe closes on exec: end of file means success, an
 * errno means failure.
 */
#include "daemon/shim/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/shim/mark.h"

#define EXEC_FAILED_CODE 127

struct child {
    int go;
    int failed;
    unsigned long limit; /* mark.h */
    int oom;
};

static void child_fail(int failed_fd, int why)
{
    ssize_t ignored = write(failed_fd, &why, sizeof(why));
    (void)ignored;
    _exit(EXEC_FAILED_CODE);
}

static void child_open(const char *name, int flags, int as, int failed_fd)
{
    int fd = open(name, flags, 0600);
    if (fd < 0 || dup2(fd, as) < 0) {
        child_fail(failed_fd, errno);
    }
    if (fd != as) {
        (void)close(fd);
    }
}

/* Best effort: it may be refused, and nothing depends on it. */
static void child_prefer_for_oom(int adjustment)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        char text[16];
        int n = snprintf(text, sizeof(text), "%d", adjustment);
        ssize_t ignored = write(fd, text, (size_t)n);
        (void)ignored;
        (void)close(fd);
    }
}

/* The child up to its execve. It leaves silently if the shim is gone or closed the pipe without a
 * word. */
static void child_run(const struct shim_spec *spec, pid_t shim, const struct child *c)
{
    /* Both steps, in this order: a shim that died before prctl is noticed by its number. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != shim) {
        _exit(EXEC_FAILED_CODE);
    }
    mark_set(c->limit);
    char go = 0;
    ssize_t n;
    while ((n = read(c->go, &go, 1)) < 0 && errno == EINTR) {
    }
    if (n != 1) {
        _exit(EXEC_FAILED_CODE);
    }
    (void)setpgid(0, 0);
    child_open("/dev/null", O_RDONLY, STDIN_FILENO, c->failed);
    child_open(SHIM_STDOUT_FILE, O_WRONLY | O_CREAT | O_APPEND, STDOUT_FILENO, c->failed);
    child_open(SHIM_STDERR_FILE, O_WRONLY | O_CREAT | O_APPEND, STDERR_FILENO, c->failed);
    child_prefer_for_oom(c->oom);
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    sigset_t mask;
    (void)sigemptyset(&mask);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    (void)execve(spec->exec, spec->argv, spec->env);
    child_fail(c->failed, errno);
}

/* fork(), into the cgroup if one is open. Without the C library's own steps around a fork: this
 * process has one thread, and the child makes system calls alone. */
static pid_t fork_into(int *group_fd)
{
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (__u64)(unsigned)*group_fd};
    pid_t pid = *group_fd < 0 ? -1 : (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0) {
        if (*group_fd >= 0) {
            (void)close(*group_fd);
            *group_fd = -1;
        }
        pid = fork();
    }
    return pid;
}

int worker_fork(const struct shim_spec *spec, int tree_fd, int *group_fd, struct worker *out,
                struct err *err)
{
    int go[2];
    int failed[2];
    if (pipe2(go, O_CLOEXEC) != 0) {
        return err_set_errno(err, errno, "pipe");
    }
    if (pipe2(failed, O_CLOEXEC) != 0) {
        int why = errno;
        (void)close(go[0]);
        (void)close(go[1]);
        return err_set_errno(err, why, "pipe");
    }
    pid_t shim = getpid();
    struct child child = {.go = go[0],
                          .failed = failed[1],
                          .limit = mark_limit(spec->attempt),
                          .oom = mark_oom_adjustment(mark_oom_read(0))};
    pid_t pid = fork_into(group_fd);
    int why = errno;
    if (pid == 0) {
        (void)close(go[1]);
        (void)close(failed[0]);
        child_run(spec, shim, &child);
    }
    (void)close(go[0]);
    (void)close(failed[1]);
    (void)close(tree_fd); /* held by the worker's tree alone from here on */
    if (pid < 0) {
        (void)close(go[1]);
        (void)close(failed[0]);
        return err_set_errno(err, why, "fork");
    }
    *out = (struct worker){.pid = pid, .go_fd = go[1], .failed_fd = failed[0]};
    return 0;
}

int worker_release(struct worker *w, const char *exec, struct err *err)
{
    int why = 0;
    ssize_t n = write(w->go_fd, "g", 1);
    (void)close(w->go_fd);
    if (n == 1) {
        while ((n = read(w->failed_fd, &why, sizeof(why))) < 0 && errno == EINTR) {
        }
    } else {
        n = 0; /* it was killed while it waited: its wait status says how */
    }
    (void)close(w->failed_fd);
    if (n == (ssize_t)sizeof(why)) {
        return err_set_errno(err, why, "execute %s", exec);
    }
    return 0;
}
