/*
 * A child in its own process group, watched through a pidfd beside a signalfd for our own signals,
 * so that one poll waits for both and no handler is needed. Whatever the worker leaves in its group
 * is killed before it is reaped, while its number cannot be reused.
 */
#include "ctl/rerun_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "ctl/container_guard.h"

#define GRACE_MS         10000
#define EXEC_FAILED_CODE 127
#define WORDS_BYTES      160

/* ---- signals to us ---- */

/* Adds the signal unless it is ignored: signalfd would deliver an ignored one, and nohup must
 * work. */
static void hold_unless_ignored(sigset_t *held, int sig)
{
    struct sigaction now;
    if (sigaction(sig, NULL, &now) != 0 || now.sa_handler != SIG_IGN) {
        (void)sigaddset(held, sig);
    }
}

int rerun_guard_open(struct rerun_guard *g, struct err *err)
{
    sigset_t held;
    (void)sigemptyset(&held);
    hold_unless_ignored(&held, SIGINT);
    hold_unless_ignored(&held, SIGTERM);
    hold_unless_ignored(&held, SIGHUP);
    g->fd = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
    if (g->fd < 0) {
        return err_set_errno(err, errno, "signalfd");
    }
    (void)sigprocmask(SIG_BLOCK, &held, &g->before);
    return 0;
}

/* The next signal that was held; 0 when there is none. */
static int take_signal(const struct rerun_guard *g)
{
    struct signalfd_siginfo info;
    return read(g->fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

void rerun_guard_close(struct rerun_guard *g)
{
    if (g->fd < 0) {
        return;
    }
    /* drop what is held: it must not take effect when the mask is restored */
    while (take_signal(g) != 0) {
    }
    (void)sigprocmask(SIG_SETMASK, &g->before, NULL);
    (void)close(g->fd);
    g->fd = -1;
}

/* The error for a signal to us. */
static int stopped(int sig, struct err *err)
{
    return err_set(err, ERR_REFUSED, "stopped by signal %d (%s); nothing of it is kept", sig,
                   strsignal(sig));
}

int rerun_guard_check(const struct rerun_guard *g, struct err *err)
{
    int sig = take_signal(g);
    return sig == 0 ? 0 : stopped(sig, err);
}

/* ---- the worker ---- */

/* Opens a file as descriptor `as` in the child, or ends it. */
static void child_open(const char *name, int flags, int as)
{
    int fd = open(name, flags, 0600);
    if (fd < 0 || dup2(fd, as) < 0) {
        _exit(EXEC_FAILED_CODE);
    }
    if (fd != as) {
        (void)close(fd);
    }
}

/* The child between fork and exec. Never returns. */
static void child_run(const struct rerun_worker *w, pid_t parent)
{
    const struct rlimit none = {0, 0};
    sigset_t mask;
    /* Both steps, in this order: a parent that died before prctl is noticed by its number. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || chdir(w->folder) != 0) {
        _exit(EXEC_FAILED_CODE);
    }
    (void)setpgid(0, 0);
    child_open("/dev/null", O_RDONLY, STDIN_FILENO);
    child_open(LAYOUT_STDOUT, O_WRONLY | O_CREAT | O_APPEND, STDOUT_FILENO);
    child_open(LAYOUT_STDERR, O_WRONLY | O_CREAT | O_APPEND, STDERR_FILENO);
    /* a core file would be left in the folder, with scores in it */
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGPIPE, SIG_DFL); /* as the shim gives it */
    /* the guard's mask was inherited: a worker must get its signals */
    (void)sigemptyset(&mask);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    (void)execve(w->exec, w->argv, w->env);
    const char *why = strerror(errno);
    ssize_t ignored = write(STDERR_FILENO, why, strlen(why));
    (void)ignored;
    _exit(EXEC_FAILED_CODE);
}

/* Waits until the worker has ended, and passes our signals on: the first as SIGTERM, the next,
 * or the end of the grace time, as SIGKILL. Returns the first signal, or 0. */
static int watch(const struct rerun_guard *g, pid_t pid, int pid_fd)
{
    int first = 0;
    int64_t kill_at = 0;
    for (;;) {
        struct pollfd fds[2] = {{.fd = pid_fd, .events = POLLIN}, {.fd = g->fd, .events = POLLIN}};
        /* no time limit until the first signal */
        int64_t left = first == 0 ? -1 : kill_at - clock_mono().ms;
        (void)poll(fds, 2, first == 0 ? -1 : left < 0 ? 0 : (int)left);
        if (fds[0].revents != 0) {
            return first;
        }
        int sig = take_signal(g);
        if (sig != 0 && first == 0) {
            first = sig;
            kill_at = clock_mono().ms + GRACE_MS;
            (void)kill(-pid, SIGTERM);
        } else if (sig != 0 || (first != 0 && clock_mono().ms >= kill_at)) {
            (void)kill(-pid, SIGKILL);
            kill_at = clock_mono().ms + GRACE_MS;
        }
    }
}

/* The last line that it wrote to standard error, at most WORDS_BYTES of it. */
static void last_words(const char *folder, char out[WORDS_BYTES + 1])
{
    char text[WORDS_BYTES + 1] = "";
    char *path = path_join(folder, LAYOUT_STDERR);
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) { /* the worker may replace it */
        (void)close(fd);
        fd = -1;
    }
    off_t size = fd < 0 ? 0 : st.st_size;
    off_t from = size > WORDS_BYTES ? size - WORDS_BYTES : 0;
    ssize_t n = fd < 0 ? 0 : pread(fd, text, WORDS_BYTES, from);
    text[n < 0 ? 0 : n] = '\0';
    for (size_t len = strlen(text); len > 0 && text[len - 1] == '\n';) {
        text[--len] = '\0';
    }
    const char *line = strrchr(text, '\n');
    (void)snprintf(out, WORDS_BYTES + 1, "%s", line == NULL ? text : line + 1);
    text_make_utf8(out);
    if (fd >= 0) {
        (void)close(fd);
    }
    free(path);
}

/* Turns the worker's end into a result; its last words are shown for an exit code only. */
static int judge(const struct rerun_worker *w, int status, struct err *err)
{
    char words[WORDS_BYTES + 1];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return 0;
    }
    if (!WIFEXITED(status)) { /* its last line was not meant to be its last: it may be a score */
        return err_set(err, ERR_OTHER, "%s was ended by signal %d", w->name, WTERMSIG(status));
    }
    last_words(w->folder, words);
    return err_set(err, ERR_OTHER, "%s ended with code %d: %s", w->name, WEXITSTATUS(status),
                   words[0] == '\0' ? "it says nothing" : words);
}

int rerun_worker_run(const struct rerun_guard *g, const struct rerun_worker *w, struct err *err)
{
    /* the child compares it with its parent, to notice our death */
    const pid_t self = getpid();
    const int64_t begin = clock_mono().ms;
    struct container_guard guard;
    int rc = container_guard_open(&guard, w->container, err);
    if (rc != 0) {
        return rc;
    }
    const pid_t pid = fork();
    if (pid < 0) {
        rc = err_set_errno(err, errno, "fork");
        (void)container_guard_close(&guard, true);
        return rc;
    }
    if (pid == 0) {
        child_run(w, self);
    }
    (void)setpgid(pid, pid); /* in parent and child: either may run first */
    int pid_fd = pidfd_open(pid, 0);
    /* ESRCH: it has ended and the kernel has reaped it, as with an ignored SIGCHLD. */
    rc = pid_fd >= 0      ? 0
         : errno == ESRCH ? err_set_errno(err, errno, "the end of %s", w->name)
                          : err_set_errno(err, errno, "watch %s", w->name);
    int sig = pid_fd < 0 ? 0 : watch(g, pid, pid_fd);
    (void)kill(-pid, SIGKILL); /* what it left behind; the number is ours until waitpid() */
    int status = 0;
    pid_t got;
    struct rusage usage = {0};
    while ((got = wait4(pid, &status, 0, &usage)) < 0 && errno == EINTR) {
    }
    const double seconds = (double)(clock_mono().ms - begin) / 1000;
    const double contained =
        container_guard_close(&guard, got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (w->ended != NULL) {
        *w->ended = (struct rerun_ended){
            .code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .seconds = seconds,
            .peak_bytes = w->container != NULL ? contained : (double)usage.ru_maxrss * 1024};
    }
    if (rc == 0 && got != pid) { /* how it ended is not known: that must never look like 0 */
        rc = err_set_errno(err, errno, "the end of %s", w->name);
    }
    if (pid_fd >= 0) {
        (void)close(pid_fd);
    }
    if (rc != 0) {
        return rc;
    }
    return sig != 0 ? stopped(sig, err) : judge(w, status, err);
}

int rerun_worker_prepare(const char *folder, const cJSON *task, struct err *err)
{
    char *task_path = path_join(folder, LAYOUT_TASK);
    char *events_path = path_join(folder, LAYOUT_EVENTS);
    int rc = json_write_file(task_path, task, 0600, err);
    if (rc == 0) {
        rc = file_write_atomic(events_path, "", 0, 0600, err);
    }
    free(events_path);
    free(task_path);
    return rc;
}
