/* Messages between the daemon and its spawner: sendmsg() and recvmsg() with at most one descriptor
 * in SCM_RIGHTS. Used on both sides; the socket keeps the boundaries of messages. */
#include "daemon/shim/spawn.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union passing {
    struct cmsghdr head; /* for its alignment */
    char room[CMSG_SPACE(sizeof(int))];
};

ssize_t spawn_send(int fd, const void *data, size_t len, int passed)
{
    union passing control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;
    if (passed >= 0) {
        m.msg_control = control.room;
        m.msg_controllen = sizeof(control.room);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &passed, sizeof(passed));
    }
    while ((n = sendmsg(fd, &m, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
    }
    return n;
}

ssize_t spawn_receive(int fd, void *data, size_t size, int *passed)
{
    union passing control = {0};
    struct iovec part = {.iov_base = data, .iov_len = size};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof(control.room)};
    ssize_t n;
    *passed = -1;
    while ((n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
    }
    const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
        memcpy(passed, CMSG_DATA(c), sizeof(*passed));
    }
    return n;
}
