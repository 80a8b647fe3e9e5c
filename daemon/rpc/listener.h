/*
 * One socket file that is listened at. It is bound with its final mode, so it is never open to
 * others, not even briefly; and it is recreated when it was deleted or replaced, but only while its
 * folder is still the one that it was opened in.
 */
#ifndef DAEMON_RPC_LISTENER_H
#define DAEMON_RPC_LISTENER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <uv.h>

#include "base/err.h"

struct listener {
    uv_loop_t *loop;
    uv_pipe_t pipe;
    uv_connection_cb on_connection; /* its stream's data is this listener */
    void *ctx;
    char *folder_path;
    char *path;
    const char *name;   /* of the socket file; NULL: preregd.sock */
    mode_t mode;        /* of the socket */
    gid_t group;        /* of the socket; (gid_t)-1: the process's own */
    struct stat folder; /* as it was opened */
    struct stat bound;  /* the socket that was made last */
    bool open;          /* `pipe` is a handle of the loop */
    bool closed;
    bool lost;      /* it could not be recreated, which was logged */
    bool reopening; /* the handle is being closed, to be recreated */
};

/* Listens at folder/name. Requires loop, on_connection, ctx, mode and group. After an error
 * it is to be closed and released as well. */
int listener_open(struct listener *l, const char *folder, struct err *err) MUST_CHECK;
/* Recreates a socket file that was deleted or replaced. */
void listener_check(struct listener *l);
void listener_close(struct listener *l);   /* idempotent; also of one that was never opened */
void listener_release(struct listener *l); /* after the loop has run dry */

#endif
