/* Binds a socket file and watches that it stays the one that clients find. The holder of the state
 * folder's lock is the only one who listens there, so an older file of that name may be removed. */
#include "daemon/rpc/listener.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"

#define BACKLOG 64

/* Made with mode 0600 by the umask; opened further only once its group is right. */
static int bind_path(struct listener *l, struct err *err)
{
    struct sockaddr_un addr;
    if (strlen(l->path) >= sizeof(addr.sun_path)) {
        return err_set(err, ERR_RANGE, "the folder's path is too long for a socket: %s", l->path);
    }
    (void)unlink(l->path);
    mode_t before = umask(0177);
    int rc = uv_pipe_bind(&l->pipe, l->path);
    (void)umask(before);
    if (rc == 0 && l->group != (gid_t)-1 && lchown(l->path, (uid_t)-1, l->group) != 0) {
        return err_set_errno(err, errno, "give %s to its group", l->path);
    }
    if (rc == 0 && l->mode != 0600 && chmod(l->path, l->mode) != 0) {
        return err_set_errno(err, errno, "open %s to its group", l->path);
    }
    if (rc == 0) {
        rc = uv_listen((uv_stream_t *)&l->pipe, BACKLOG, l->on_connection);
    }
    if (rc == 0 && lstat(l->path, &l->bound) != 0) {
        l->bound = (struct stat){0}; /* gone again: noticed at the next check */
    }
    return rc == 0 ? 0 : err_set(err, ERR_IO, "listen at %s: %s", l->path, uv_strerror(rc));
}

int listener_open(struct listener *l, const char *folder, struct err *err)
{
    l->folder_path = xstrdup(folder);
    l->path = path_join(folder, l->name == NULL ? LAYOUT_SOCKET : l->name);
    (void)uv_pipe_init(l->loop, &l->pipe, 0);
    l->pipe.data = l;
    l->open = true;
    if (stat(folder, &l->folder) != 0) {
        return err_set_errno(err, errno, "%s", folder);
    }
    return bind_path(l, err);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Binds again, unless it was closed meanwhile. A failure is logged once and retried at the next
 * check. */
static void on_handle_closed(uv_handle_t *handle)
{
    struct listener *l = handle->data;
    struct err err;
    l->reopening = false;
    l->open = false;
    if (l->closed) {
        return;
    }
    (void)uv_pipe_init(l->loop, &l->pipe, 0);
    l->pipe.data = l;
    l->open = true;
    if (bind_path(l, &err) != 0) {
        if (!l->lost) {
            log_error("%s", err.msg);
        }
        l->lost = true;
    } else {
        l->lost = false;
        log_warn("%s had been deleted or replaced: it is recreated", l->path);
    }
}

/* If the folder was replaced or removed, the folder of that name is not ours: nothing is touched.
 */
void listener_check(struct listener *l)
{
    struct stat st;
    if (l->path == NULL || l->closed || l->reopening || stat(l->folder_path, &st) != 0 ||
        !is_same_file(&st, &l->folder)) {
        return;
    }
    int rc = lstat(l->path, &st);
    if (rc != 0 ? errno == ENOENT : l->lost || !is_same_file(&st, &l->bound)) {
        l->reopening = true;
        uv_close((uv_handle_t *)&l->pipe, on_handle_closed);
    }
}

void listener_close(struct listener *l)
{
    if (l->closed) {
        return;
    }
    l->closed = true;
    if (l->path != NULL) {
        (void)unlink(l->path);
    }
    if (l->open && !l->reopening) {
        uv_close((uv_handle_t *)&l->pipe, NULL);
    }
}

void listener_release(struct listener *l)
{
    free(l->path);
    free(l->folder_path);
    l->path = NULL;
    l->folder_path = NULL;
}
