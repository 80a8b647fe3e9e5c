/*
 * The spawner: a prereg-shim that the daemon keeps beside it and asks for shims. A shim is then a
 * fork of a small process that is already loaded, at a fifth of the cost of executing one.
 *
 *   daemon --SPAWN_START, the spec's descriptor--> spawner --the same--> shim, forked before
 *          <--number, pidfd, or why there is none--
 *   daemon --SPAWN_HOW, number--> spawner                 (how a shim without exit.json ended)
 *          <--wait status--
 *
 * One message of a SOCK_SEQPACKET socket is one request or one reply, and the daemon waits for each
 * reply. The socket is the spawner's standard input: it ends with the daemon, and its shims live
 * on, as those do that the daemon starts itself. A shim that was made for an attempt whose reply
 * got lost does no harm: a second one finds the attempt claimed (shim_main.c).
 */
#ifndef DAEMON_SHIM_SPAWN_H
#define DAEMON_SHIM_SPAWN_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#define SPAWN_VERB     "--spawner"
#define SPAWN_TEXT_MAX ((size_t)2 * PATH_MAX)

enum spawn_kind { SPAWN_START = 1, SPAWN_HOW };

struct spawn_request {
    uint32_t kind;
    int32_t pid;               /* SPAWN_HOW */
    char text[SPAWN_TEXT_MAX]; /* SPAWN_START: the attempt's folder, NUL, the cgroup below which it
                                  gets one or nothing, NUL; the message ends there */
};

struct spawn_reply {
    int32_t why; /* errno; 0: the rest holds */
    int32_t pid;
    int32_t status; /* for SPAWN_HOW, as wait(2) reports it */
};

/* One message with at most one descriptor; -1: none. They return what sendmsg(2) and recvmsg(2) do;
 * *passed is the receiver's, closed on exec. */
ssize_t spawn_send(int fd, const void *data, size_t len, int passed);
ssize_t spawn_receive(int fd, void *data, size_t size, int *passed);

/* The spawner's side (serve.c): serves the socket `fd` until the other end closes it. Each shim is
 * a fork that calls `run` with the spec as its standard input and exits with what that returns.
 * Returns the exit code of the spawner. */
int serve_spawns(int fd, int (*run)(const char *folder, const char *groups));

#endif
