/*
 * Who may read: members of groups, through a socket of their own in a folder of their own. What
 * they may ask for is rpc_method_is_for_readers(). The state folder stays closed to them.
 */
#ifndef DAEMON_RPC_READERS_H
#define DAEMON_RPC_READERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define RPC_READER_GROUPS_MAX 16

struct rpc_readers {
    char *folder; /* absolute; NULL: only the owner may read */
    gid_t groups[RPC_READER_GROUPS_MAX];
    size_t n_groups;
};

/* Whether the process at the other end of the socket is the owner's, or of one of the groups: by
 * its primary group (SO_PEERCRED) or a supplementary one (SO_PEERGROUPS), as the kernel noted them
 * when it connected. No name is looked up, which could block on a directory service. */
bool rpc_readers_admit(const struct rpc_readers *r, int fd);

/* Makes the folder, or checks that it is the daemon's own, and gives it the mode that is needed.
 * With one group, which the daemon may give it to: 0710 and *socket_mode 0660; else 0711 and 0666,
 * and only the check of the peer decides. *group: of folder and socket, or (gid_t)-1. */
int rpc_readers_prepare(const struct rpc_readers *r, mode_t *socket_mode, gid_t *group,
                        struct err *err) MUST_CHECK;

#endif
