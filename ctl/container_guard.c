/*
 * The guard waits at a socket: a byte says that nothing is left to do, and its end that podman
 * has to remove the container. podman's monitor soon leaves podman's process tree, so this process
 * becomes its reaper, and learns from it what the container took.
 */
#include "ctl/container_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "prereg/lock/image.h"

#define REAP_MS 10000
#define LOOK_MS 10

/* Never returns. In a session of its own: a terminal's signals are for what it guards. */
static void wait_and_remove(int fd, const char *podman, char *const *env, const char *name)
{
    union {
        const char *in[7];
        char *out[7];
    } argv = {.in = {"podman", "rm", "--force", "--ignore", "--time=0", name, NULL}};
    char byte;
    ssize_t n;
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)setsid();
    for (int i = 0; i < 3; i++) { /* whoever reads the output of this command must not wait */
        (void)dup2(null, i);
    }
    while ((n = read(fd, &byte, 1)) < 0 && errno == EINTR) {
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (n == 0) {
        (void)execve(podman, argv.out, env);
    }
    _exit(0);
}

int container_guard_open(struct container_guard *g, const char *name, struct err *err)
{
    int fds[2];
    char *podman = NULL;
    *g = (struct container_guard){.fd = -1};
    int rc = name == NULL ? 0 : image_runtime(&podman, err);
    if (rc != 0 || name == NULL) {
        return rc;
    }
    char **env = image_runtime_variables();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        rc = err_set_errno(err, errno, "socketpair");
        goto out;
    }
    g->pid = fork();
    if (g->pid == 0) {
        (void)close(fds[1]);
        wait_and_remove(fds[0], podman, env, name);
    }
    (void)close(fds[0]);
    g->fd = fds[1];
    if (g->pid < 0) {
        rc = err_set_errno(err, errno, "fork");
        (void)close(g->fd);
        g->fd = -1;
    } else {
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
out:
    xfree_list(env);
    free(podman);
    return rc;
}

double container_guard_close(struct container_guard *g, bool by_itself)
{
    double peak = 0;
    if (g->fd < 0) {
        return 0;
    }
    if (by_itself) {
        (void)send(g->fd, "", 1, MSG_NOSIGNAL);
    }
    (void)close(g->fd);
    /* the guard, which may wait for podman for long, and the monitor, which ends after its
     * container */
    const int64_t end = clock_mono().ms + REAP_MS;
    struct rusage usage;
    pid_t pid;
    while ((pid = wait4(-1, NULL, WNOHANG, &usage)) >= 0 && clock_mono().ms < end) {
        if (pid == 0) {
            clock_sleep_ms(LOOK_MS);
        } else if (pid != g->pid && (double)usage.ru_maxrss * 1024 > peak) {
            peak = (double)usage.ru_maxrss * 1024;
        }
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
    *g = (struct container_guard){.fd = -1};
    return peak;
}
