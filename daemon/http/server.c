/*
 * libmicrohttpd on the daemon's loop: its epoll descriptor is watched, and its callbacks keep the
 * list of requests. It never closes a connection early of itself, so a sweep once a second shuts
 * those down whose time is over: a socket that is shut down looks to libmicrohttpd like one whose
 * peer has left.
 */
#include "daemon/http/internal.h"

#include <assert.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/http/streams.h"

#define SWEEP_MS   1000
#define POOL_BYTES ((size_t)64 * 1024) /* of one connection */

/* ---- the loop ---- */

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    http_turn(poll->data);
}

/* A suspended link is not watched by libmicrohttpd: whether its peer has left is seen here. */
static bool has_left(const struct link *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void on_sweep(uv_timer_t *timer)
{
    struct http *h = timer->data;
    const int64_t now = clock_mono().ms;
    for (struct link *l = h->links; l != NULL; l = l->next) {
        if (!l->shut && !l->streaming && now >= l->deadline) {
            link_shut(l);
        }
    }
    for (struct page_request *r = h->requests, *next; r != NULL; r = next) {
        next = r->next;
        if (r->subscriber != NULL && r->link != NULL && has_left(r->link)) {
            streams_drop(r->subscriber);
        }
    }
    listener_check(&h->local);
    http_turn(h);
}

/* ---- requests ---- */

/* The first line was read: here it is as it came. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
    struct http *h = cls;
    struct page_request *r = xcalloc(1, sizeof(*r));
    r->http = h;
    r->connection = connection;
    r->id = HTTP_ID_BASE | ++h->last_id;
    r->uri = xstrndup(uri, GUARD_URI_MAX + 1);
    reply_init(&r->reply);
    r->next = h->requests;
    if (r->next != NULL) {
        r->next->previous = r;
    }
    h->requests = r;
    return r;
}

static void on_request_end(void *cls, struct MHD_Connection *connection, void **context,
                           enum MHD_RequestTerminationCode code)
{
    struct http *h = cls;
    struct page_request *r = *context;
    (void)connection;
    (void)code;
    *context = NULL;
    if (r == NULL) {
        return;
    }
    if (r->subscriber != NULL) {
        streams_remove(r->subscriber);
    }
    if (r->link != NULL) {
        r->link->in_request = false;
        r->link->streaming = false;
        r->link->waits_since = clock_mono().ms;
        link_expect(r->link, HTTP_IDLE_MS);
    }
    *(r->previous != NULL ? &r->previous->next : &h->requests) = r->next;
    if (r->next != NULL) {
        r->next->previous = r->previous;
    }
    reply_release(&r->reply);
    free(r->uri);
    free(r);
}

struct body_lengths {
    unsigned n;
    bool any; /* is not 0 */
};

static enum MHD_Result on_length(void *cls, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    struct body_lengths *l = cls;
    (void)kind;
    if (strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        l->n++;
        l->any = l->any || value == NULL || strcmp(value, "0") != 0;
    }
    return MHD_YES;
}

/* The header block is whole. One with a body is refused before the body is read, which ends the
 * connection. */
static enum MHD_Result begin(struct page_request *r, const char *method)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    r->began = true;
    r->link = info->socket_context;
    r->link->in_request = true;
    link_expect(r->link, HTTP_ANSWER_MS);
    info = MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (info->header_size > HTTP_HEADER_MAX) {
        reply_refuse(&r->reply, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, "range",
                     "the header block is larger than 16 KiB");
        return reply_queue(r);
    }
    struct body_lengths lengths = {0};
    (void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, on_length, &lengths);
    if (lengths.n > 1 || lengths.any ||
        MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND,
                                    MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL) {
        const bool reads =
            strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
        reply_refuse(&r->reply, reads ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_METHOD_NOT_ALLOWED, "usage",
                     "a request with a body: the page is read-only");
        return reply_queue(r);
    }
    return MHD_YES;
}

/* What MHD_AccessHandlerCallback is called with; the list is libmicrohttpd's. */
#define ACCESS_PARAMETERS                                                                          \
    void *cls, struct MHD_Connection *connection, const char *url, const char *method,             \
        const char *version, const char *upload, size_t *upload_size, void **context

static enum MHD_Result on_request(ACCESS_PARAMETERS)
{
    struct http *h = cls;
    struct page_request *r = *context;
    (void)connection;
    (void)url;
    (void)version;
    (void)upload;
    if (h->closed || r == NULL) {
        return MHD_NO;
    }
    if (!r->began) {
        return begin(r, method);
    }
    if (*upload_size > 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    if (!r->decided) {
        r->decided = true;
        routes_decide(r, method);
    }
    if (r->subscriber != NULL) {
        r->link->streaming = true;
        return streams_queue(r->subscriber);
    }
    if (r->ready) {
        return reply_queue(r);
    }
    assert(r->waiting);
    MHD_suspend_connection(connection);
    return MHD_YES;
}

/* ---- what was deferred ---- */

void http_answer(struct http *h, uint64_t id, const cJSON *result, const struct err *why)
{
    struct page_request *r = h == NULL || h->closed ? NULL : http_find(h, id);
    if (r == NULL || !r->waiting) {
        return;
    }
    if (why != NULL) {
        reply_error(&r->reply, why);
    } else {
        reply_json(&r->reply, result);
    }
    r->ready = true;
    http_resume(r);
}

int http_renew_token(struct http *h, struct err *err)
{
    int rc = http_session_read(h, true, err);
    if (rc == 0) {
        streams_drop_all(h->streams);
        http_turn(h);
        log_info("the page has another token: every session has ended");
    }
    return rc;
}

/* ---- start and stop ---- */

__attribute__((format(printf, 2, 0))) static void on_mhd_log(void *cls, const char *format,
                                                             va_list args)
{
    char text[200];
    (void)cls;
    (void)vsnprintf(text, sizeof(text), format, args);
    log_debug("page: %.*s", (int)strcspn(text, "\n"), text);
}

static int start_mhd(struct http *h, struct err *err)
{
    const unsigned flags =
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    h->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, on_mhd_log, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(2 * HTTP_LINKS_MAX), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(HTTP_IDLE_MS / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h,
        MHD_OPTION_NOTIFY_COMPLETED, on_request_end, h, MHD_OPTION_NOTIFY_CONNECTION, link_notify,
        h, MHD_OPTION_END);
    return h->mhd != NULL ? 0 : err_set(err, ERR_IO, "the page's HTTP server does not start");
}

static void open_handles(struct http *h)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    uv_loop_t *loop = &h->shell->loop;
    (void)uv_poll_init(loop, &h->poll, info->epoll_fd);
    (void)uv_timer_init(loop, &h->timer);
    (void)uv_timer_init(loop, &h->sweep);
    h->poll.data = h->timer.data = h->sweep.data = h;
    h->handles_open = true;
    (void)uv_poll_start(&h->poll, UV_READABLE, on_readable);
    (void)uv_timer_start(&h->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

int http_open(struct shell *sh, const struct server_handler *handler,
              const struct loopback_address *at, struct http **out, struct err *err)
{
    struct http *h = xcalloc(1, sizeof(*h));
    assert(!http_is_open(*out));
    h->older = *out;
    h->shell = sh;
    h->handler = *handler;
    *out = h;
    int rc = http_session_read(h, false, err);
    if (rc != 0 || (rc = start_mhd(h, err)) != 0) {
        return err_wrap(err, "the page");
    }
    open_handles(h);
    h->streams = streams_create(h);
    if ((rc = http_listen(h, at, err)) != 0) {
        return err_wrap(err, "the page");
    }
    http_note_port(h);
    log_info("the page is at http://%s%s%s:%d/ (`preregctl open`)",
             strchr(h->address.host, ':') != NULL ? "[" : "", h->address.host,
             strchr(h->address.host, ':') != NULL ? "]" : "", h->address.port);
    return 0;
}

bool http_is_open(const struct http *h)
{
    return h != NULL && !h->closed;
}

void http_note_change(struct http *h)
{
    if (http_is_open(h)) {
        streams_note_change(h->streams);
    }
}

/* libmicrohttpd must not be stopped with suspended connections: they are resumed, and their
 * callbacks end them because `closed` is set. */
void http_close(struct http *h)
{
    if (h == NULL || h->closed) {
        return;
    }
    h->closed = true;
    atomic_store(&h->stopping, true);
    http_unlisten(h);
    for (struct page_request *r = h->requests; r != NULL; r = r->next) {
        if (r->subscriber != NULL) {
            streams_drop(r->subscriber);
        } else if (r->waiting) {
            r->waiting = false;
            MHD_resume_connection(r->connection);
        }
    }
    if (h->handles_open) {
        uv_close((uv_handle_t *)&h->poll, NULL);
        uv_close((uv_handle_t *)&h->timer, NULL);
        uv_close((uv_handle_t *)&h->sweep, NULL);
    }
    if (h->streams != NULL) {
        streams_close(h->streams);
    }
    if (h->mhd != NULL) {
        (void)MHD_run(h->mhd);
        MHD_stop_daemon(h->mhd);
        h->mhd = NULL;
    }
}

void http_free(struct http *h)
{
    if (h != NULL) {
        assert(h->links == NULL && h->requests == NULL);
        streams_free(h->streams);
        kept_release(&h->kept);
        listener_release(&h->local);
        http_free(h->older);
        free(h);
    }
}
