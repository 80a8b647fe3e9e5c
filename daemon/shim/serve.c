/* The spawner's loop: answers requests one after another and reaps shims that have ended between
 * them. It has one thread and holds no lock when it forks, so a fork may run any code. Wait
 * statuses are kept in a ring: the daemon asks for one only when a shim died without a word, soon
 * after. */
#include "daemon/shim/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/shim/spawn.h"

#define OWN_NAME  "prereg-spawner" /* as `ps -c` shows it; its shims have their own again */
#define SHIM_NAME "prereg-shim"
#define N_ENDED   256u /* whose wait status is kept */

struct spawner {
    int fd;
    int (*run)(const char *folder, const char *groups);
    sigset_t waiting; /* the mask while it waits: SIGCHLD comes through */
    struct {
        pid_t pid;
        int status;
    } ended[N_ENDED]; /* a ring */
    unsigned n_ended;
};

static void on_child(int sig)
{
    (void)sig; /* ends the wait */
}

static void reap(struct spawner *s)
{
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        s->ended[s->n_ended % N_ENDED].pid = pid;
        s->ended[s->n_ended % N_ENDED].status = status;
        s->n_ended++;
    }
}

/* Resets what it inherited from the spawner to what a freshly executed shim would find. */
static _Noreturn void be_shim(const struct spawner *s, int spec_fd, const char *folder,
                              const char *groups)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setsid();
    (void)prctl(PR_SET_NAME, SHIM_NAME);
    if (dup2(spec_fd, s->fd) < 0) { /* closes the socket, too */
        _exit(EXIT_FAILURE);
    }
    (void)close(spec_fd);
    exit(s->run(folder, groups));
}

/* The pidfd is opened before the shim can have been reaped, so it is of this one. */
static int start(const struct spawner *s, const struct spawn_request *q, size_t len, int spec_fd,
                 struct spawn_reply *reply)
{
    const size_t text = len - offsetof(struct spawn_request, text);
    const size_t folder = strnlen(q->text, text);
    if (spec_fd < 0 || folder + 1 >= text || q->text[text - 1] != '\0') {
        reply->why = EINVAL;
        return -1;
    }
    const char *groups = q->text + folder + 1;
    pid_t pid = fork();
    if (pid == 0) {
        be_shim(s, spec_fd, q->text, groups[0] == '\0' ? NULL : groups);
    }
    int pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        reply->why = errno;
        if (pid > 0) {
            (void)kill(pid, SIGKILL); /* not waited for yet: the number is its own */
        }
        return -1;
    }
    reply->pid = (int32_t)pid;
    return pidfd;
}

/* Newest first, since numbers are reused. ESRCH: not ended, or too long ago. */
static void tell_how(const struct spawner *s, pid_t pid, struct spawn_reply *reply)
{
    reply->why = ESRCH;
    for (unsigned i = 0; i < N_ENDED && i < s->n_ended && reply->why != 0; i++) {
        const unsigned at = (s->n_ended - 1 - i) % N_ENDED;
        if (s->ended[at].pid == pid) {
            *reply = (struct spawn_reply){.pid = (int32_t)pid, .status = s->ended[at].status};
        }
    }
}

/* One request, answered. False when the daemon is gone. */
static bool answer_one(struct spawner *s)
{
    struct spawn_request q;
    struct spawn_reply reply = {0};
    int spec_fd = -1;
    ssize_t n = spawn_receive(s->fd, &q, sizeof(q), &spec_fd);
    if (n < (ssize_t)offsetof(struct spawn_request, text)) {
        return false;
    }
    int pidfd = -1;
    reap(s);
    if (q.kind == SPAWN_START) {
        pidfd = start(s, &q, (size_t)n, spec_fd, &reply);
    } else {
        tell_how(s, q.pid, &reply);
    }
    bool sent = spawn_send(s->fd, &reply, sizeof(reply), pidfd) == (ssize_t)sizeof(reply);
    if (pidfd >= 0) {
        (void)close(pidfd);
    }
    if (spec_fd >= 0) {
        (void)close(spec_fd);
    }
    return sent;
}

int serve_spawns(int fd, int (*run)(const char *folder, const char *groups))
{
    struct spawner s = {.fd = fd, .run = run};
    const struct sigaction wake = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
    struct pollfd socket = {.fd = fd, .events = POLLIN};
    sigset_t child;
    (void)prctl(PR_SET_NAME, OWN_NAME);
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    (void)sigemptyset(&s.waiting);
    if (sigprocmask(SIG_BLOCK, &child, NULL) != 0 || sigaction(SIGCHLD, &wake, NULL) != 0) {
        return EXIT_ANY;
    }
    for (;;) {
        int n = ppoll(&socket, 1, NULL, &s.waiting);
        if (n < 0 && errno != EINTR) {
            return EXIT_ANY;
        }
        reap(&s);
        if (n > 0 && !answer_one(&s)) {
            return EXIT_OK;
        }
    }
}
