/*
 * Which process holds a state folder, for messages alone: a client that gets no answer says who
 * ought to give it and what to do. Reads files and /proc; changes nothing.
 */
#ifndef DAEMON_RPC_OWNER_H
#define DAEMON_RPC_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct rpc_owner {
    pid_t pid;       /* 0: its number cannot be found */
    char name[16];   /* "preregd", or "preregctl" of a rebuild */
    bool is_stopped; /* by a signal (SIGSTOP, Ctrl-Z) or a debugger */
};

/* The process of an exclusive flock() on the file of `st`, by a text of /proc/locks, which is cut
 * into its words; 0: none of its lines is of that file. */
struct stat;
pid_t rpc_owner_in_locks(char *locks, const struct stat *st);

/* False when nothing holds the lock of `state_folder` (or a deleted one's). */
bool rpc_owner_find(const char *state_folder, struct rpc_owner *out);

/* ERR_NO_DAEMON in words: of a daemon that holds the folder and does not listen, else how to start
 * one. */
int rpc_owner_unreachable(const char *state_folder, struct err *err);
/* ERR_TIMEOUT likewise. */
int rpc_owner_silent(const char *state_folder, int64_t waited_ms, struct err *err);

#endif
