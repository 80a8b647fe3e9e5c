/*
 * The blocking client: connects, sends one request line, and reads lines until the response.
 *
 * The socket is non-blocking by flag (MSG_DONTWAIT) and waited for with poll(), so that every wait
 * has a limit. The peer's user is checked before a byte is sent. Silence and a missing daemon are
 * explained by owner.c.
 */
#include "daemon/rpc/client.h"

#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/rpc/owner.h"
#include "daemon/rpc/schema.h"
#include "state/tenure/record.h"

#define DEFAULT_TIMEOUT_MS 60000

struct rpc_client {
    int fd;
    char *folder; /* for messages */
    bool foreign; /* another user's daemon, to which we are a reader */
    int64_t timeout_ms;
    int64_t last_id;
    struct strbuf in;
};

/* The path must be UTF-8, since every answer of the daemon is JSON and may name it. */
int rpc_state_folder(char **out, struct err *err)
{
    const char *own = getenv("PREREGD_STATE");
    const char *xdg = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    if (own != NULL && own[0] == '\0') {
        *out = NULL;
        return err_set(err, ERR_USAGE,
                       "PREREGD_STATE is set to nothing: name a folder in it, or unset it for the "
                       "default (~/.local/state/preregd)");
    }
    if (own != NULL) {
        *out = path_absolute(NULL, own);
    } else if (xdg != NULL && xdg[0] == '/') {
        *out = path_join(xdg, "preregd");
    } else if (home != NULL && home[0] == '/') {
        *out = path_join(home, ".local/state/preregd");
    } else {
        *out = NULL;
        return err_set(err, ERR_USAGE, "set PREREGD_STATE or HOME: nowhere to keep state");
    }
    if (!text_is_utf8(*out, strlen(*out))) {
        free(*out);
        *out = NULL;
        return err_set(
            err, ERR_USAGE,
            "the path of the state folder is not UTF-8, and no answer could name it: set "
            "PREREGD_STATE to another");
    }
    return 0;
}

/* sun_path holds about a hundred bytes: a deeper state folder is refused with a reason. */
static int socket_address(const char *folder, struct sockaddr_un *addr, struct err *err)
{
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/%s", folder, LAYOUT_SOCKET);
    if (n < 0 || (size_t)n >= sizeof(addr->sun_path)) {
        return err_set(err, ERR_RANGE,
                       "the state folder's path is too long for a socket (%zu bytes at most): %s",
                       sizeof(addr->sun_path) - sizeof(LAYOUT_SOCKET) - 1, folder);
    }
    return 0;
}

/* Whether the folder belongs to the daemon's user, and no other may put a socket there. */
static bool is_folder_of(const char *folder, uid_t uid)
{
    struct stat st;
    return stat(folder, &st) == 0 && st.st_uid == uid && (st.st_mode & 022) == 0;
}

/* Refuses to talk to a process of another user, unless it is the daemon that the folder's owner
 * offers to readers. The kernel names the peer, so no message can forge it. */
static int check_owner(const char *folder, int fd, bool *foreign, struct err *err)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        return err_set_errno(err, errno, "read the daemon's credentials");
    }
    *foreign = peer.uid != geteuid();
    if (*foreign && !is_folder_of(folder, peer.uid)) {
        return err_set(err, ERR_REFUSED, "the daemon belongs to another user (uid %lu)",
                       (unsigned long)peer.uid);
    }
    return 0;
}

/* ERR_NO_DAEMON when the socket is absent or no process listens on it; any other failure keeps its
 * errno. */
static int connect_to(const char *folder, int *fd, bool *foreign, struct err *err)
{
    struct sockaddr_un addr;
    char *local = tenure_local_folder(folder);
    int rc = socket_address(local, &addr, err);
    free(local);
    if (rc != 0) {
        return rc;
    }
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0) {
        return err_set_errno(err, errno, "socket");
    }
    if (connect(s, (const struct sockaddr *)&addr, sizeof(addr)) != 0) {
        int why = errno;
        rc = why == ENOENT || why == ECONNREFUSED || why == ENOTDIR
                 ? err_set(err, ERR_NO_DAEMON, "no daemon answers at %s", addr.sun_path)
                 : err_set_errno(err, why, "connect to %s", addr.sun_path);
    } else {
        rc = check_owner(folder, s, foreign, err);
    }
    if (rc != 0) {
        (void)close(s);
        return rc;
    }
    *fd = s;
    return 0;
}

int rpc_try_open(const char *folder, struct rpc_client **out, struct err *err)
{
    int fd = -1;
    bool foreign = false;
    int rc = connect_to(folder, &fd, &foreign, err);
    *out = NULL;
    if (rc == 0) {
        struct rpc_client *c = xcalloc(1, sizeof(*c));
        c->fd = fd;
        c->foreign = foreign;
        c->folder = xstrdup(folder);
        c->timeout_ms = DEFAULT_TIMEOUT_MS;
        strbuf_init(&c->in);
        *out = c;
    }
    return rc;
}

/* With rpc_owner_unreachable()'s explanation when no daemon listens. */
int rpc_open(const char *state_folder, struct rpc_client **out, struct err *err)
{
    char *own = NULL;
    *out = NULL;
    int rc = state_folder == NULL ? rpc_state_folder(&own, err) : 0;
    const char *folder = own == NULL ? state_folder : own;
    if (rc == 0) {
        rc = rpc_try_open(folder, out, err);
    }
    if (rc == ERR_NO_DAEMON) {
        rc = rpc_owner_unreachable(folder, err);
    }
    free(own);
    return rc;
}

void rpc_close(struct rpc_client *c)
{
    if (c != NULL) {
        (void)close(c->fd);
        strbuf_release(&c->in);
        free(c->folder);
        free(c);
    }
}

void rpc_set_timeout(struct rpc_client *c, int64_t timeout_ms)
{
    c->timeout_ms = timeout_ms;
}

/* Waits until the socket is ready for `what` (POLLIN or POLLOUT). timeout_ms 0 waits for ever, a
 * minute at a time. */
static int wait_for(const struct rpc_client *c, short what, int64_t until, struct err *err)
{
    for (;;) {
        struct pollfd p = {.fd = c->fd, .events = what};
        int64_t left = c->timeout_ms == 0 ? 60000 : until - clock_mono().ms;
        if (left <= 0) {
            return rpc_owner_silent(c->folder, c->timeout_ms, err);
        }
        int n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
        if (n > 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            return err_set_errno(err, errno, "poll");
        }
    }
}

/* EPIPE and ECONNRESET mean that the daemon closed the connection, which is reported as its
 * absence. */
static int send_all(struct rpc_client *c, const struct strbuf *text, struct err *err)
{
    int64_t until = clock_mono().ms + c->timeout_ms;
    size_t at = 0;
    while (at < text->len) {
        ssize_t n = send(c->fd, text->buf + at, text->len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            at += (size_t)n;
        } else if (errno == EAGAIN || errno == EINTR) {
            int rc = wait_for(c, POLLOUT, until, err);
            if (rc != 0) {
                return rc;
            }
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return err_set(err, ERR_NO_DAEMON, "the daemon closed the connection");
        } else {
            return err_set_errno(err, errno, "send");
        }
    }
    return 0;
}

/* Reads until in holds a whole line; *len is its length without the newline. */
static int read_line(struct rpc_client *c, size_t *len, struct err *err)
{
    int64_t until = clock_mono().ms + c->timeout_ms;
    size_t seen = 0;
    for (;;) {
        const char *nl = memchr(c->in.buf + seen, '\n', c->in.len - seen);
        if (nl != NULL) {
            *len = (size_t)(nl - c->in.buf);
            return 0;
        }
        seen = c->in.len;
        if (c->in.len > RPC_RESPONSE_MAX) {
            return err_set(err, ERR_PROTOCOL, "the daemon sent a line over %zu bytes",
                           RPC_RESPONSE_MAX);
        }
        int rc = wait_for(c, POLLIN, until, err);
        if (rc != 0) {
            return rc;
        }
        strbuf_reserve(&c->in, 65536);
        ssize_t n = recv(c->fd, c->in.buf + c->in.len, 65536, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno == ECONNRESET)) {
            return err_set(err, ERR_NO_DAEMON, "the daemon closed the connection");
        }
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return err_set_errno(err, errno, "receive");
        }
        if (n > 0) {
            c->in.len += (size_t)n;
            c->in.buf[c->in.len] = '\0';
        }
    }
}

/* Removes the next line from the buffer and parses it. A line that does not parse is
 * ERR_PROTOCOL. */
static int read_message(struct rpc_client *c, cJSON **out, struct err *err)
{
    size_t len = 0;
    *out = NULL;
    int rc = read_line(c, &len, err);
    if (rc != 0) {
        return rc;
    }
    rc = json_parse(c->in.buf, len, out, err);
    memmove(c->in.buf, c->in.buf + len + 1, c->in.len - len - 1);
    c->in.len -= len + 1;
    c->in.buf[c->in.len] = '\0';
    if (rc != 0) {
        err->code = ERR_PROTOCOL;
        return err_wrap(err, "the daemon's answer");
    }
    return 0;
}

/* The daemon's own code and message, so that a command fails as if it had found the error
 * itself. */
static int error_of(const cJSON *message, struct err *err)
{
    const cJSON *e = NULL;
    const char *text = NULL;
    int64_t code = 0;
    struct err bad;
    if (json_get_object(message, "error", &e, &bad) != 0 ||
        json_get_int(e, "code", ERR_OTHER, -1, &code, &bad) != 0 ||
        json_get_string(e, "message", &text, &bad) != 0) {
        return err_set(err, ERR_PROTOCOL, "the daemon's answer: %.200s", bad.msg);
    }
    return err_set(err, (int)code, "%s", text);
}

/* 1: an event, handed out; 0: the response's result, handed out; negative: error. */
static int take_message(cJSON *message, int64_t id, cJSON **out, struct err *err)
{
    int64_t schema = 0;
    int64_t its_id = -1;
    bool ok = false;
    *out = NULL;
    if (json_get_int(message, "schema", RPC_SCHEMA, RPC_SCHEMA, &schema, err) != 0 ||
        json_get_int(message, "id", 0, JSON_INT_MAX, &its_id, err) != 0 ||
        json_opt_bool(message, "ok", &ok, err) != 0) {
        err->code = ERR_PROTOCOL;
        return err_wrap(err, "the daemon's answer");
    }
    cJSON *event = cJSON_DetachItemFromObjectCaseSensitive(message, "event");
    if (event != NULL) {
        *out = event;
        return 1;
    }
    if (!ok) {
        return error_of(message, err);
    }
    *out = cJSON_DetachItemFromObjectCaseSensitive(message, "result");
    if (its_id != id || *out == NULL) {
        cJSON_Delete(*out);
        *out = NULL;
        return err_set(err, ERR_PROTOCOL, "the daemon answered something else");
    }
    return 0;
}

/* Whether a closed connection still has something to read. */
static bool had_last_word(const struct rpc_client *c)
{
    char byte;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* Sends the request and reads messages until the response. Events before it go to the listener; a
 * NULL listener skips them. */
int rpc_call_stream(struct rpc_client *c, const char *method, const cJSON *params,
                    const struct rpc_listener *listener, cJSON **result, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int64_t id = ++c->last_id;
    *result = NULL;
    if (c->foreign && !rpc_method_is_for_readers(rpc_method_from_name(method))) {
        return err_set(err, ERR_REFUSED,
                       "the daemon at %.120s belongs to another user: you may read there (status, "
                       "cells, explain, programs, report, verdict), not %s",
                       c->folder, method);
    }
    rpc_write_request(&text, id, method, params);
    int rc = text.len > RPC_REQUEST_MAX
                 ? err_set(err, ERR_RANGE, "the request is larger than %zu bytes", RPC_REQUEST_MAX)
                 : send_all(c, &text, err);
    strbuf_release(&text);
    if (rc == ERR_NO_DAEMON && had_last_word(c)) {
        rc = 0; /* a refusal, which was sent before the connection was closed */
    }
    while (rc == 0) {
        cJSON *message = NULL;
        rc = read_message(c, &message, err);
        if (rc != 0) {
            break;
        }
        rc = take_message(message, id, result, err);
        cJSON_Delete(message);
        if (rc != 1) {
            break;
        }
        bool more = listener == NULL || listener->on_event(*result, listener->context);
        cJSON_Delete(*result);
        *result = NULL;
        rc = 0;
        if (!more) {
            break;
        }
    }
    return rc;
}

int rpc_call(struct rpc_client *c, const char *method, const cJSON *params, cJSON **result,
             struct err *err)
{
    return rpc_call_stream(c, method, params, NULL, result, err);
}
