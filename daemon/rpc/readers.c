/* The folder of the readers' socket, and who may come through it. */
#include "daemon/rpc/readers.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"

#define GROUPS_AT_ONCE 256   /* of a peer; more are asked for again with more room */
#define GROUPS_MAX     65536 /* NGROUPS_MAX of the kernel */

static bool is_of(const struct rpc_readers *r, gid_t group)
{
    for (size_t i = 0; i < r->n_groups; i++) {
        if (r->groups[i] == group) {
            return true;
        }
    }
    return false;
}

/* The groups of a peer that may be in many; false where the kernel does not say. */
static bool is_supplementary(const struct rpc_readers *r, int fd)
{
    socklen_t size = GROUPS_AT_ONCE * sizeof(gid_t);
    gid_t *list = xcalloc(1, size);
    bool is = false;
    int rc = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &size);
    if (rc != 0 && errno == ERANGE && size <= GROUPS_MAX * sizeof(gid_t)) {
        free(list);
        list = xcalloc(1, size);
        rc = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &size);
    }
    for (size_t i = 0; rc == 0 && i < size / sizeof(gid_t); i++) {
        is = is || is_of(r, list[i]);
    }
    free(list);
    return is;
}

bool rpc_readers_admit(const struct rpc_readers *r, int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        return false;
    }
    return peer.uid == geteuid() || is_of(r, peer.gid) || is_supplementary(r, fd);
}

int rpc_readers_prepare(const struct rpc_readers *r, mode_t *socket_mode, gid_t *group,
                        struct err *err)
{
    char *parent = path_folder(r->folder);
    int rc = dir_check_keeps(parent, err);
    if (rc == 0 && mkdir(r->folder, 0700) != 0 && errno != EEXIST) {
        rc = err_set_errno(err, errno, "%s", r->folder);
    }
    if (rc == 0) {
        rc = dir_check_own(r->folder, err);
    }
    free(parent);
    if (rc != 0) {
        return err_wrap(err, "the folder for readers");
    }
    const bool one = r->n_groups == 1 && chown(r->folder, (uid_t)-1, r->groups[0]) == 0;
    *group = one ? r->groups[0] : (gid_t)-1;
    *socket_mode = one ? 0660 : 0666;
    return chmod(r->folder, one ? 0710 : 0711) == 0 ? 0
                                                    : err_set_errno(err, errno, "%s", r->folder);
}
