/* Starts shims, by the spawner where that works and by posix_spawn() otherwise. A spawner that
 * fails is ended and another is tried after a minute, so a lasting fault costs one wait a minute;
 * its shims live on, since they do not depend on it. */
#include "daemon/executor/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/executor/inherited.h"
#include "daemon/shim/spawn.h"

#define ANSWER_S    5
#define AGAIN_MS    (60 * 1000) /* after a spawner has failed */
#define SPARE_TRIES 50          /* a millisecond each: a process that has nothing to do but end */

extern char **environ;

struct launch {
    char *shim_path;
    int words_fd; /* -1: none */
    pid_t spawner;
    int socket;                 /* to the spawner; -1: there is none */
    int64_t not_before;         /* monotonic: when another is tried, ms */
    struct inherited inherited; /* by the spawner, when it was started */
};

struct launch *launch_new(const char *shim_path, const char *words_path)
{
    struct launch *l = xcalloc(1, sizeof(*l));
    l->shim_path = xstrdup(shim_path);
    l->socket = -1;
    l->words_fd =
        open(words_path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return l;
}

void launch_words(const struct launch *l, off_t words_at, char *out, size_t size)
{
    out[0] = '\0';
    if (l->words_fd >= 0 && words_at >= 0) {
        text_last_line(l->words_fd, words_at, out, size);
    }
}

/* ---- executing it ---- */

/* Runs prereg-shim in a session of its own, with default signals and in_fd as standard input. */
static int execute(const struct launch *l, char *const *argv, int in_fd, pid_t *pid,
                   struct err *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_RDWR, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, in_fd, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, l->words_fd >= 0 ? l->words_fd : 1, 2);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    int why = posix_spawn(pid, l->shim_path, &actions, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    return why == 0 ? 0 : err_set_errno(err, why, "start %s", l->shim_path);
}

static int execute_shim(const struct launch *l, const char *folder, const char *groups, int spec_fd,
                        struct launched *out, struct err *err)
{
    char *words[] = {xstrdup(l->shim_path), xstrdup(folder),
                     groups == NULL ? NULL : xstrdup(groups), NULL};
    int rc = execute(l, words, spec_fd, &out->pid, err);
    if (rc == 0) {
        out->is_child = true;
        out->pidfd = (int)syscall(SYS_pidfd_open, out->pid, 0); /* not waited for: its own number */
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        free(words[i]);
    }
    return rc;
}

/* ---- the spawner ---- */

/* Its shims get another parent and live on. Its spare ends without it, and is then a child of the
 * daemon, which is a subreaper. */
static void end_spawner(struct launch *l)
{
    if (l->socket >= 0) {
        (void)close(l->socket);
        l->socket = -1;
        (void)kill(l->spawner, SIGKILL);
        while (waitpid(l->spawner, NULL, 0) < 0 && errno == EINTR) {
        }
        for (int i = 0; i < SPARE_TRIES && waitpid(-l->spawner, NULL, WNOHANG) == 0; i++) {
            clock_sleep_ms(1);
        }
    }
}

void launch_free(struct launch *l)
{
    if (l == NULL) {
        return;
    }
    end_spawner(l);
    if (l->words_fd >= 0) {
        (void)close(l->words_fd);
    }
    free(l->shim_path);
    free(l);
}

/* A shim has the limits, processors and priority of the daemon as they are now: a spawner that was
 * started with others is replaced. */
static void end_outdated(struct launch *l)
{
    struct inherited now;
    inherited_read(&now);
    if (l->socket >= 0 && !inherited_equal(&now, &l->inherited)) {
        end_spawner(l);
    }
    l->inherited = now;
}

/* Does nothing while one is connected. Both directions have a time limit, since the loop waits
 * here. */
static int start_spawner(struct launch *l, struct err *err)
{
    char verb[] = SPAWN_VERB;
    const struct timeval limit = {.tv_sec = ANSWER_S};
    int ends[2];
    end_outdated(l);
    if (l->socket >= 0) {
        return 0;
    }
    if (clock_mono().ms < l->not_before) {
        return err_set(err, ERR_BUSY, "the last spawner of shims failed a moment ago");
    }
    l->not_before = clock_mono().ms + AGAIN_MS;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return err_set_errno(err, errno, "make a pair of sockets");
    }
    char *words[] = {xstrdup(l->shim_path), verb, NULL};
    int rc = execute(l, words, ends[1], &l->spawner, err);
    free(words[0]);
    (void)close(ends[1]);
    if (rc != 0) {
        (void)close(ends[0]);
        return rc;
    }
    (void)setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    l->socket = ends[0];
    return 0;
}

struct question {
    struct spawn_request request;
    size_t len; /* of the request, as it is sent */
    int passed; /* -1: no descriptor */
};

/* One request and its reply. A failure ends the spawner. One that has answered before and is then
 * killed (by the OOM killer, say) is replaced at once. */
static int ask(struct launch *l, const struct question *q, struct spawn_reply *reply, int *got,
               struct err *err)
{
    int rc = 0;
    *got = -1;
    errno = 0;
    if (spawn_send(l->socket, &q->request, q->len, q->passed) != (ssize_t)q->len ||
        spawn_receive(l->socket, reply, sizeof(*reply), got) != (ssize_t)sizeof(*reply)) {
        rc = err_set_errno(err, errno != 0 ? errno : EPIPE, "ask the spawner of shims");
        if (*got >= 0) {
            (void)close(*got);
            *got = -1;
        }
        end_spawner(l);
    } else {
        l->not_before = 0;
    }
    return rc;
}

/* Asks the spawner for a shim. Its pidfd arrives with the reply. */
static int spawn(struct launch *l, const char *folder, const char *groups, int spec_fd,
                 struct launched *out, struct err *err)
{
    struct question q = {.request = {.kind = SPAWN_START}, .passed = spec_fd};
    struct spawn_reply reply = {0};
    const char *below = groups == NULL ? "" : groups;
    const size_t n = strlen(folder) + 1;
    const size_t m = strlen(below) + 1;
    if (n + m > sizeof(q.request.text)) {
        return err_set(err, ERR_RANGE, "%s is too long for the spawner", folder);
    }
    memcpy(q.request.text, folder, n);
    memcpy(q.request.text + n, below, m);
    q.len = offsetof(struct spawn_request, text) + n + m;
    int rc = start_spawner(l, err);
    if (rc == 0) {
        rc = ask(l, &q, &reply, &out->pidfd, err);
    }
    if (rc == 0 && reply.why != 0) {
        rc = err_set_errno(err, reply.why, "fork in the spawner of shims");
    }
    out->pid = (pid_t)reply.pid;
    out->is_child = false;
    return rc;
}

bool launch_how(struct launch *l, pid_t pid, int *status)
{
    const struct question q = {.request = {.kind = SPAWN_HOW, .pid = (int32_t)pid},
                               .len = offsetof(struct spawn_request, text),
                               .passed = -1};
    struct spawn_reply reply = {0};
    struct err ignored;
    int none = -1;
    if (l->socket < 0 || ask(l, &q, &reply, &none, &ignored) != 0) {
        return false;
    }
    *status = reply.status;
    return reply.why == 0;
}

/* ---- either ---- */

/* The length of the shims' words is taken before the start, so that launch_words() finds this
 * shim's. */
int launch_shim(struct launch *l, const char *folder, const char *groups, int spec_fd,
                struct launched *out, struct err *err)
{
    struct err why;
    *out = (struct launched){.pidfd = -1};
    const off_t words_at = l->words_fd < 0 ? -1 : lseek(l->words_fd, 0, SEEK_END);
    int rc = spawn(l, folder, groups, spec_fd, out, &why);
    if (rc != 0) {
        log_debug("%s; the shim is executed", why.msg);
        *out = (struct launched){.pidfd = -1};
        rc = execute_shim(l, folder, groups, spec_fd, out, err);
    }
    out->words_at = words_at;
    return rc;
}
