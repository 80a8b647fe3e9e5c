/* The spawner's loop: answers requests one after another and reaps shims that have ended between
 * them. The next shim is forked ahead, as the spare, so that a request is handed on and answered
 * without a fork. It has one thread and holds no lock when it forks, so a fork may run any code.
 * Wait statuses are kept in a ring: the daemon asks for one only when a shim died without a word,
 * soon after. */
#include "daemon/shim/spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/shim/memory.h"

#define OWN_NAME   "prereg-spawner" /* as `ps -c` shows it; its shims have their own again */
#define SHIM_NAME  "prereg-shim"
#define N_ENDED    256u /* whose wait status is kept */
#define N_TRIES    2    /* a spare may have been killed */
#define OOM_AGE_MS 1000 /* half of what a shim accepts (watch.c) */

struct spawner {
    int fd;
    int (*run)(const char *folder, const char *groups);
    sigset_t waiting; /* the mask while it waits: SIGCHLD comes through */
    struct {
        pid_t pid; /* 0: there is none */
        int pidfd;
        int fd; /* to hand it a request; closed without: it ends */
    } spare;
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

/* The spare: resets what it inherited from the spawner to what a freshly executed shim would find,
 * waits for its attempt, and runs it. Only then does it leave the spawner's session: until then the
 * daemon waits for it there when the spawner was killed (launch.c). */
static _Noreturn void be_shim(const struct spawner *s, int own_fd)
{
    struct spawn_request q;
    sigset_t none;
    int spec_fd = -1;
    (void)sigemptyset(&none);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(own_fd, s->fd) < 0) { /* closes the daemon's socket, too */
        _exit(EXIT_FAILURE);
    }
    (void)close(own_fd);
    ssize_t n = spawn_receive(s->fd, &q, sizeof(q), &spec_fd);
    if (n < (ssize_t)offsetof(struct spawn_request, text)) {
        _exit(EXIT_SUCCESS); /* the spawner has ended */
    }
    (void)setsid();
    (void)prctl(PR_SET_NAME, SHIM_NAME);
    if (dup2(spec_fd, s->fd) < 0) {
        _exit(EXIT_FAILURE);
    }
    (void)close(spec_fd);
    const char *groups = q.text + strlen(q.text) + 1;
    /* Not exit(): clean-up by the C library costs a forked process eight page faults. */
    _exit(s->run(q.text, groups[0] == '\0' ? NULL : groups));
}

/* Does nothing while there is one. Returns an errno. The pidfd is opened before the shim can have
 * been reaped, so it is of this one. */
static int make_spare(struct spawner *s)
{
    int ends[2];
    if (s->spare.pid != 0) {
        return 0;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return errno;
    }
    (void)memory_oom_kills_lately(OOM_AGE_MS); /* the shim takes it over, if it is used soon */
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        be_shim(s, ends[1]);
    }
    int pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    int why = pidfd < 0 ? errno : 0;
    (void)close(ends[1]);
    if (why != 0) {
        (void)close(ends[0]); /* it ends, if it was forked */
        return why;
    }
    s->spare.pid = pid;
    s->spare.pidfd = pidfd;
    s->spare.fd = ends[0];
    return 0;
}

/* Hands the request to the spare; false if that was dead. Afterwards the spare is gone, and its
 * pidfd is the caller's. */
static bool use_spare(struct spawner *s, const struct spawn_request *q, size_t len, int spec_fd)
{
    bool sent = spawn_send(s->spare.fd, q, len, spec_fd) == (ssize_t)len;
    (void)close(s->spare.fd);
    s->spare.pid = 0;
    return sent;
}

static int start(struct spawner *s, const struct spawn_request *q, size_t len, int spec_fd,
                 struct spawn_reply *reply)
{
    const size_t text = len - offsetof(struct spawn_request, text);
    const size_t folder = strnlen(q->text, text);
    if (spec_fd < 0 || folder + 1 >= text || q->text[text - 1] != '\0') {
        reply->why = EINVAL;
        return -1;
    }
    for (int i = 0; i < N_TRIES; i++) {
        reply->why = make_spare(s);
        if (reply->why != 0) {
            return -1;
        }
        reply->pid = (int32_t)s->spare.pid;
        if (use_spare(s, q, len, spec_fd)) {
            return s->spare.pidfd;
        }
        (void)close(s->spare.pidfd);
    }
    reply->why = EPIPE;
    return -1;
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
        (void)make_spare(&s); /* the next request tries again, and reports why there is none */
    }
}
