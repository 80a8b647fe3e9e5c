/*
 * The socket's server. A connection has one request at a time and is advanced by conn_advance():
 * reading, answering, writing, and reading again; a later line waits in `in`. Every state has a
 * limit in bytes and in time, except answering and subscriptions, which the daemon itself ends.
 *
 * An answer that comes later finds its connection by number, so a connection may be gone by then.
 * Readers come through a socket of their own (readers.h); what they may ask for the handler
 * decides.
 */
#include "daemon/rpc/server.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/rpc/listener.h"
#include "daemon/rpc/schema.h"

#define READ_CHUNK     ((size_t)65536)
#define QUIET_MS       ((uint64_t)10 * 60 * 1000) /* until a silent connection is closed */
#define EVENT_EVERY_MS 250

enum conn_state { CONN_READING, CONN_ANSWERING, CONN_WRITING, CONN_SUBSCRIBED, CONN_CLOSING };

struct conn {
    struct server *server;
    struct conn *next;
    uint64_t id;
    bool reader; /* it came through the readers' socket */
    enum conn_state state;
    uv_pipe_t pipe;
    uv_timer_t limit;
    unsigned n_open; /* handles */
    struct strbuf in;
    struct strbuf out; /* being written */
    uv_write_t write;
    bool writing;
    bool close_after; /* once `out` is written */
    int64_t request;  /* its id */
    uint32_t program; /* CONN_SUBSCRIBED */
    uint64_t seen;    /* version of the program last sent */
};

struct server {
    struct server_handler handler;
    uv_loop_t *loop;
    struct listener own; /* in the state folder, whose lock is ours */
    struct listener readers;
    struct rpc_readers groups; /* who may come through `readers`; borrowed texts */
    uv_timer_t events;
    struct conn *conns;
    size_t n_conns;
    size_t n_readers; /* of them */
    uint64_t last_id;
    uint64_t idle_ms;
    bool closed;
    bool changed;
};

static void conn_advance(struct conn *c);

/* ---- closing ---- */

static void on_conn_closed(uv_handle_t *handle)
{
    struct conn *c = handle->data;
    struct server *s = c->server;
    if (--c->n_open > 0) {
        return;
    }
    struct conn **at = &s->conns;
    while (*at != c) {
        at = &(*at)->next;
    }
    *at = c->next;
    s->n_conns--;
    s->n_readers -= c->reader;
    strbuf_release(&c->in);
    strbuf_release(&c->out);
    free(c);
}

/* May be called in any state; the memory goes when both handles are closed. */
static void conn_close(struct conn *c)
{
    if (c->state != CONN_CLOSING) {
        c->state = CONN_CLOSING;
        uv_close((uv_handle_t *)&c->pipe, on_conn_closed);
        uv_close((uv_handle_t *)&c->limit, on_conn_closed);
    }
}

static void on_limit(uv_timer_t *timer)
{
    struct conn *c = timer->data;
    log_debug("connection %llu took too long", (unsigned long long)c->id);
    conn_close(c);
}

/* A half-sent request or an unread answer has idle_ms; a silent connection QUIET_MS. */
static void set_limit(struct conn *c)
{
    uint64_t ms = QUIET_MS;
    if (c->writing || (c->state == CONN_READING && c->in.len > 0)) {
        ms = c->server->idle_ms;
    } else if (c->state == CONN_SUBSCRIBED || c->state == CONN_ANSWERING) {
        (void)uv_timer_stop(&c->limit);
        return;
    }
    (void)uv_timer_start(&c->limit, on_limit, ms, 0);
}

/* ---- writing ---- */

static void on_written(uv_write_t *write, int status)
{
    struct conn *c = write->data;
    c->writing = false;
    if (c->state == CONN_CLOSING) {
        return;
    }
    if (status != 0 || c->close_after) {
        conn_close(c);
        return;
    }
    strbuf_clear(&c->out);
    if (c->state == CONN_WRITING) {
        c->state = CONN_READING;
    }
    set_limit(c);
    conn_advance(c);
}

static void send_out(struct conn *c)
{
    uv_buf_t buf = uv_buf_init(c->out.buf, (unsigned)c->out.len);
    assert(!c->writing && c->state != CONN_CLOSING);
    c->write.data = c;
    c->writing = true;
    if (uv_write(&c->write, (uv_stream_t *)&c->pipe, &buf, 1, on_written) != 0) {
        c->writing = false;
        conn_close(c);
        return;
    }
    set_limit(c);
}

static void send_result(struct conn *c, const cJSON *result, const struct err *why)
{
    if (c->state == CONN_CLOSING) {
        return;
    }
    if (result != NULL) {
        rpc_write_result(&c->out, c->request, result);
    } else {
        rpc_write_error(&c->out, c->request, why);
    }
    c->state = CONN_WRITING;
    if (!c->writing) {
        send_out(c);
    }
}

static void answer_deferred(void *ctx, uint64_t connection, const cJSON *result,
                            const struct err *why)
{
    const struct server *s = ctx;
    for (struct conn *c = s->conns; c != NULL; c = c->next) {
        if (c->id == connection) {
            send_result(c, result, why);
            return;
        }
    }
}

/* ---- requests ---- */

/* Calls the handler. The answer is sent now, later by answer_deferred(), or as a subscription. */
static void answer_line(struct conn *c, const char *line, size_t len)
{
    cJSON *message = NULL;
    cJSON *result = NULL;
    struct rpc_request request;
    struct err err;
    c->state = CONN_ANSWERING;
    set_limit(c); /* reading set one, and an answer may take long: a submit hashes */
    int rc = rpc_request_parse(line, len, &message, &request, &err);
    c->request = request.id;
    if (rc != 0) {
        send_result(c, NULL, &err);
        return;
    }
    const struct server_handler *handler = &c->server->handler;
    struct server_call call = {.connection = c->id, .reader = c->reader};
    rc = handler->request(handler->ctx, &call, &request, &result, &err);
    cJSON_Delete(message);
    if (rc != 0) {
        send_result(c, NULL, &err);
    } else if (call.subscribed != 0) {
        c->state = CONN_SUBSCRIBED;
        c->program = call.subscribed;
        c->seen = UINT64_MAX;
        server_note_change(c->server);
    } else if (!call.later) {
        send_result(c, result, NULL);
    }
    cJSON_Delete(result);
    if (call.stop) {
        c->close_after = true;
        handler->stop(handler->ctx);
    }
}

static void refuse_and_close(struct conn *c, int code, const char *text)
{
    struct err err;
    (void)err_set(&err, code, "%s", text);
    c->close_after = true;
    c->request = 0;
    send_result(c, NULL, &err);
}

/* Answers the next whole line, unless a request is under way. */
static void conn_advance(struct conn *c)
{
    if (c->state != CONN_READING || c->writing) {
        return;
    }
    const char *nl = memchr(c->in.buf, '\n', c->in.len);
    if (nl == NULL || (size_t)(nl - c->in.buf) >= RPC_REQUEST_MAX) {
        if (c->in.len >= RPC_REQUEST_MAX) {
            refuse_and_close(c, ERR_RANGE, "the request is too large");
        }
        return;
    }
    size_t len = (size_t)(nl - c->in.buf);
    char *line = xstrndup(c->in.buf, len);
    memmove(c->in.buf, c->in.buf + len + 1, c->in.len - len - 1);
    c->in.len -= len + 1;
    c->in.buf[c->in.len] = '\0';
    answer_line(c, line, len);
    free(line);
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct conn *c = handle->data;
    (void)suggested;
    strbuf_reserve(&c->in, READ_CHUNK);
    *buf = uv_buf_init(c->in.buf + c->in.len, (unsigned)READ_CHUNK);
}

/* A client may send its next request early; twice the largest request is the limit of what is
 * kept. */
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct conn *c = stream->data;
    (void)buf;
    if (n < 0) {
        conn_close(c);
        return;
    }
    c->in.len += (size_t)n;
    c->in.buf[c->in.len] = '\0';
    if (c->in.len > 2 * RPC_REQUEST_MAX) {
        conn_close(c); /* it keeps sending without reading its answer */
        return;
    }
    set_limit(c);
    conn_advance(c);
}

/* The socket's mode keeps other users out; this check does not depend on it. */
static bool is_admitted(struct conn *c)
{
    uv_os_fd_t fd = -1;
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (uv_fileno((uv_handle_t *)&c->pipe, &fd) != 0) {
        return false;
    }
    if (c->reader) {
        return rpc_readers_admit(&c->server->groups, fd);
    }
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

/* Readers are counted apart, so that they cannot keep the owner out. */
static bool is_full(const struct conn *c)
{
    const struct server *s = c->server;
    return c->reader ? s->n_readers > RPC_READERS_MAX : s->n_conns - s->n_readers > RPC_CLIENTS_MAX;
}

/* A refused connection still gets one line that says why. */
static void on_connection(uv_stream_t *listener, int status)
{
    const struct listener *l = listener->data;
    struct server *s = l->ctx;
    if (status != 0) {
        log_warn("socket: %s", uv_strerror(status));
        return;
    }
    struct conn *c = xcalloc(1, sizeof(*c));
    c->server = s;
    c->reader = l == &s->readers;
    c->id = ++s->last_id;
    strbuf_init(&c->in);
    strbuf_init(&c->out);
    (void)uv_pipe_init(s->loop, &c->pipe, 0);
    (void)uv_timer_init(s->loop, &c->limit);
    c->pipe.data = c->limit.data = c;
    c->n_open = 2;
    c->next = s->conns;
    s->conns = c;
    s->n_conns++;
    s->n_readers += c->reader;
    if (uv_accept(listener, (uv_stream_t *)&c->pipe) != 0) {
        conn_close(c);
    } else if (!is_admitted(c)) {
        refuse_and_close(c, ERR_REFUSED,
                         c->reader
                             ? "this daemon serves its own user and members of the groups that "
                               "its serve.toml names"
                             : "this daemon serves its own user only");
    } else if (is_full(c)) {
        refuse_and_close(c, ERR_BUSY, "too many connections");
    } else {
        (void)uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
        set_limit(c);
    }
}

/* ---- subscribers ---- */

/* Sends what changed in its program; the result ends the subscription. */
static void send_news(struct conn *c)
{
    const struct server_handler *handler = &c->server->handler;
    struct server_news news = {.event = NULL};
    if (c->state != CONN_SUBSCRIBED || c->writing) {
        return;
    }
    handler->news(handler->ctx, c->program, &c->seen, &news);
    if (news.event != NULL) {
        rpc_write_event(&c->out, c->request, news.event);
    }
    if (news.failed || news.result != NULL) {
        send_result(c, news.result, &news.why);
    } else if (news.event != NULL) {
        send_out(c);
    }
    cJSON_Delete(news.event);
    cJSON_Delete(news.result);
}

/* One timer for all subscribers: many commits in a quarter of a second cause one event. */
static void on_events(uv_timer_t *timer)
{
    struct server *s = timer->data;
    s->changed = false;
    for (struct conn *c = s->conns, *next; c != NULL; c = next) {
        next = c->next;
        send_news(c);
        s->changed |= c->state == CONN_SUBSCRIBED && c->writing;
    }
    if (s->changed) {
        (void)uv_timer_start(&s->events, on_events, EVENT_EVERY_MS, 0);
    }
}

static void note_change(void *ctx)
{
    server_note_change(ctx);
}

struct server_replies server_replies(struct server *s)
{
    return (struct server_replies){.ctx = s, .answer = answer_deferred, .note_change = note_change};
}

void server_note_change(struct server *s)
{
    if (!s->closed && !s->changed) {
        s->changed = true;
        (void)uv_timer_start(&s->events, on_events, EVENT_EVERY_MS, 0);
    }
}

/* ---- the listeners ---- */

void server_set_idle(struct server *s, uint64_t ms)
{
    s->idle_ms = ms;
}

int server_open(uv_loop_t *loop, const char *state, const struct server_handler *handler,
                struct server **out, struct err *err)
{
    struct server *s = xcalloc(1, sizeof(*s));
    s->handler = *handler;
    s->loop = loop;
    s->idle_ms = RPC_IDLE_MS;
    (void)uv_timer_init(loop, &s->events);
    s->events.data = s;
    s->own = (struct listener){
        .loop = loop, .on_connection = on_connection, .ctx = s, .mode = 0600, .group = (gid_t)-1};
    *out = s;
    return listener_open(&s->own, state, err);
}

int server_open_readers(struct server *s, const struct rpc_readers *readers, struct err *err)
{
    s->groups = *readers;
    s->readers = (struct listener){.loop = s->loop, .on_connection = on_connection, .ctx = s};
    int rc = rpc_readers_prepare(readers, &s->readers.mode, &s->readers.group, err);
    return rc == 0 ? listener_open(&s->readers, readers->folder, err) : rc;
}

void server_check_socket(struct server *s)
{
    listener_check(&s->own);
    listener_check(&s->readers);
}

/* Answers that are being written get another second; a client that does not read them loses them.
 */
void server_close(struct server *s)
{
    if (s->closed) {
        return;
    }
    s->closed = true;
    listener_close(&s->own);
    listener_close(&s->readers);
    uv_close((uv_handle_t *)&s->events, NULL);
    for (struct conn *c = s->conns, *next; c != NULL; c = next) {
        next = c->next;
        if (c->state == CONN_WRITING) {
            c->close_after = true;
            (void)uv_timer_start(&c->limit, on_limit, 1000, 0);
        } else {
            conn_close(c);
        }
    }
}

void server_free(struct server *s)
{
    if (s != NULL) {
        assert(s->conns == NULL);
        listener_release(&s->own);
        listener_release(&s->readers);
        free(s);
    }
}
