/*
 * The page's two sockets: TCP on a loopback address, and http.sock beside the RPC's. libuv accepts;
 * what is accepted is duplicated, so that libmicrohttpd owns a descriptor that no handle of the
 * loop knows. Beyond the limit the connection gets one line and is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/http/internal.h"

#define BACKLOG 1024

union accepted_handle {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

static void on_accepted_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* The socket's mode keeps other users out; this check does not depend on it. */
static bool is_own(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

static void take(struct http *h, int fd, bool local)
{
    static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n"
                               "Content-Length: 0\r\nConnection: close\r\n\r\n";
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer);
    if ((local && !is_own(fd)) || getpeername(fd, (struct sockaddr *)&peer, &len) != 0) {
        (void)close(fd);
        return;
    }
    if (!http_make_room(h)) {
        (void)send(fd, busy, sizeof(busy) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)close(fd);
        return;
    }
    /* it closes the descriptor also when it fails */
    if (MHD_add_connection(h->mhd, fd, (const struct sockaddr *)&peer, len) != MHD_YES) {
        log_debug("page: a connection was not taken: %s", strerror(errno));
    }
    http_turn(h);
}

static void accept_one(struct http *h, uv_stream_t *listener, bool local)
{
    union accepted_handle *a = xcalloc(1, sizeof(*a));
    uv_os_fd_t fd = -1;
    int own = -1;
    if (local) {
        (void)uv_pipe_init(&h->shell->loop, &a->pipe, 0);
    } else {
        (void)uv_tcp_init(&h->shell->loop, &a->tcp);
    }
    a->handle.data = a;
    if (uv_accept(listener, &a->stream) == 0 && uv_fileno(&a->handle, &fd) == 0) {
        own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    }
    uv_close(&a->handle, on_accepted_closed);
    if (own >= 0) {
        take(h, own, local);
    }
}

static void on_tcp(uv_stream_t *listener, int status)
{
    struct http *h = listener->data;
    if (status == 0 && !h->closed) {
        accept_one(h, listener, false);
    }
}

static void on_local(uv_stream_t *listener, int status)
{
    const struct listener *l = listener->data;
    struct http *h = l->ctx;
    if (status == 0 && !h->closed) {
        accept_one(h, listener, true);
    }
}

/* A socket that listens there, or a negative number of errno. A handle of libuv whose attempt
 * failed could not be used again before it is closed, so a plain socket tries, and is kept. */
static int listening_socket(const char *host, int port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } addr = {0};
    const bool is_v6 = strchr(host, ':') != NULL;
    const socklen_t len = is_v6 ? sizeof(addr.v6) : sizeof(addr.v4);
    const int one = 1;
    const int rc = is_v6 ? uv_ip6_addr(host, port, &addr.v6) : uv_ip4_addr(host, port, &addr.v4);
    const int fd = rc == 0 ? socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0) {
        return rc != 0 ? rc : -errno;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
        bind(fd, &addr.any, len) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    const int why = -errno;
    (void)close(fd);
    return why;
}

static int open_tcp(struct http *h, int fd)
{
    int rc = uv_tcp_init(&h->shell->loop, &h->tcp);
    if (rc != 0) {
        (void)close(fd);
        return rc;
    }
    h->tcp.data = h;
    h->tcp_open = true;
    rc = uv_tcp_open(&h->tcp, fd);
    if (rc != 0) {
        (void)close(fd);
        return rc;
    }
    rc = uv_listen((uv_stream_t *)&h->tcp, BACKLOG, on_tcp);
    /* else libuv sleeps after each accept, and a client that connects would hold up the loop */
    return rc == 0 ? uv_tcp_simultaneous_accepts(&h->tcp, 1) : rc;
}

static int read_port(struct http *h)
{
    struct sockaddr_storage addr;
    int len = (int)sizeof(addr);
    if (uv_tcp_getsockname(&h->tcp, (struct sockaddr *)&addr, &len) != 0) {
        return 0;
    }
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memcpy(&v4, &addr, sizeof(v4));
    memcpy(&v6, &addr, sizeof(v6));
    return ntohs(addr.ss_family == AF_INET6 ? v6.sin6_port : v4.sin_port);
}

/* With port 0 the one of the last time first, so that bookmarks and open tabs go on working. */
int http_listen(struct http *h, const struct loopback_address *at, struct err *err)
{
    const int last = at->port == 0 ? http_last_port(h) : 0;
    h->address = *at;
    h->local = (struct listener){.loop = &h->shell->loop,
                                 .on_connection = on_local,
                                 .ctx = h,
                                 .name = HTTP_SOCKET,
                                 .mode = 0600,
                                 .group = (gid_t)-1};
    int fd = last != 0 ? listening_socket(at->host, last) : -1;
    fd = fd < 0 ? listening_socket(at->host, at->port) : fd;
    const int rc = fd < 0 ? fd : open_tcp(h, fd);
    if (rc != 0) {
        return err_set(err, ERR_IO, "listen at %s, port %d: %s", at->host, at->port,
                       uv_strerror(rc));
    }
    h->address.port = read_port(h);
    return listener_open(&h->local, h->shell->local, err);
}

void http_unlisten(struct http *h)
{
    if (h->tcp_open) {
        uv_close((uv_handle_t *)&h->tcp, NULL);
        h->tcp_open = false;
    }
    listener_close(&h->local);
}
