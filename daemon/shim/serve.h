/* The spawner's side of spawn.h. */
#ifndef DAEMON_SHIM_SERVE_H
#define DAEMON_SHIM_SERVE_H

/* Serves the socket `fd` until the other end closes it. Each shim is a fork that calls `run` with
 * the spec as its standard input and exits with what that returns. Returns the exit code of the
 * spawner. */
int serve_spawns(int fd, int (*run)(const char *folder, const char *groups));

#endif
