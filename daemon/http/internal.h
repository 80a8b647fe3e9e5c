/*
 * What the files of daemon/http share. Not for use outside.
 *
 * A link is one connection, from its accept to libmicrohttpd's end of it. A request is made when
 * its first line has been read and freed when libmicrohttpd reports its end:
 *
 *   reading ──headers──► deciding ──► answered ──► ended
 *                           ├─job or RPC─► waiting (suspended) ──answer──► answered
 *                           └─stream─► subscribed (suspended between messages) ──► ended
 */
#ifndef DAEMON_HTTP_INTERNAL_H
#define DAEMON_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <stdatomic.h>
#include <uv.h>

#include "daemon/http/guard.h"
#include "daemon/http/http.h"
#include "daemon/http/kept.h"
#include "daemon/rpc/listener.h"

#define HTTP_LINKS_MAX     128
#define HTTP_STREAMS_MAX   64
#define HTTP_JOBS_MAX      4 /* of the page, which read files */
#define HTTP_HEADER_MAX    ((size_t)16 * 1024)
#define HTTP_HEADER_MS     10000
#define HTTP_IDLE_MS       60000
#define HTTP_ANSWER_MS     300000 /* a whole answer, but for streams */
#define HTTP_SESSION_FILE  "http.token"
#define HTTP_PORT_FILE     "http.port"
#define HTTP_SOCKET        "http.sock"
#define HTTP_HEADERS_ADDED 2

struct subscriber;
struct streams;

struct link {
    struct http *http;
    struct link *next;
    struct link *previous;
    int fd;              /* libmicrohttpd's; here only to be shut down */
    int64_t waits_since; /* mono ms: without a request */
    int64_t deadline;    /* mono ms */
    bool in_request;
    bool streaming;
    bool shut;
};

/* What is sent. With fd >= 0 the body is that file, else `body`. */
struct reply {
    unsigned status;
    const char *type; /* static text */
    struct strbuf body;
    int fd;
    int64_t fd_bytes;
    const char *policy; /* another Content-Security-Policy; NULL: the page's */
    struct {
        const char *name; /* static text; NULL: none */
        char value[160];
    } added[HTTP_HEADERS_ADDED];
    bool may_be_kept; /* no-cache with an ETag instead of no-store */
};

struct page_request {
    struct http *http;
    struct page_request *next;
    struct page_request *previous;
    struct link *link; /* NULL until its headers were read */
    struct MHD_Connection *connection;
    uint64_t id;
    char *uri;
    bool began;
    bool decided;
    bool waiting; /* suspended until its answer is there */
    bool ready;   /* `reply` is whole */
    struct reply reply;
    struct subscriber *subscriber; /* of a stream */
};

struct http {
    struct http *older; /* closed; freed with this one */
    struct shell *shell;
    struct server_handler handler;
    struct MHD_Daemon *mhd;
    uv_poll_t poll;   /* of libmicrohttpd's epoll descriptor */
    uv_timer_t timer; /* libmicrohttpd's next timeout */
    uv_timer_t sweep; /* deadlines, dead peers, the socket's file */
    uv_tcp_t tcp;
    struct listener local;
    bool handles_open;
    bool tcp_open;
    bool running; /* within MHD_run */
    bool closed;
    atomic_bool stopping; /* `closed`, as jobs on other threads read it */
    struct loopback_address address;
    char token[GUARD_TOKEN_SIZE];
    char cookie_name[24];
    char cookie_value[GUARD_COOKIE_MAX + 1];
    struct link *links;
    size_t n_links;
    struct page_request *requests;
    uint64_t last_id;
    unsigned n_jobs;
    struct streams *streams;
    struct kept kept; /* answers of curves.c */
    uint64_t n_shed;
};

/* ---- turn.c ---- */
/* Lets libmicrohttpd work, and sets its timer; also after anything was resumed. */
void http_turn(struct http *h);
/* The request's reply is whole: it goes on. */
void http_resume(struct page_request *r);
/* Shuts down the link that has been silent for the longest when there are too many. False: all of
 * them are being answered. */
bool http_make_room(struct http *h);
struct page_request *http_find(const struct http *h, uint64_t id); /* NULL: it is gone */
void link_expect(struct link *l, int64_t within_ms);
void link_shut(struct link *l);
/* libmicrohttpd's callback at a connection's begin and end. */
void link_notify(void *cls, struct MHD_Connection *connection, void **context,
                 enum MHD_ConnectionNotificationCode code);

/* ---- listen.c ---- */
int http_listen(struct http *h, const struct loopback_address *at, struct err *err) MUST_CHECK;
void http_unlisten(struct http *h);

/* ---- session.c ---- */
int http_session_read(struct http *h, bool renew, struct err *err) MUST_CHECK;
int http_last_port(const struct http *h); /* 0: none */
void http_note_port(const struct http *h);

/* ---- reply.c ---- */
void reply_init(struct reply *r);
void reply_release(struct reply *r);
void reply_json(struct reply *r, const cJSON *value); /* status 200, or 500 where it is not JSON */
void reply_error(struct reply *r, const struct err *why);
void reply_refuse(struct reply *r, unsigned status, const char *name, const char *text);
void reply_add(struct reply *r, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
enum MHD_Result reply_queue(struct page_request *r);
void reply_put_headers(const struct page_request *r, struct MHD_Response *response);

/* ---- routes.c ---- */
/* Makes r->reply, or starts what will: then r->waiting or r->subscriber is set. */
void routes_decide(struct page_request *r, const char *method);

/* ---- files of the page: page_files.c.in ---- */
struct page_file {
    const char *path; /* as asked for: "/page.css" */
    const char *type;
    const char *etag; /* with its quotes */
    const unsigned char *bytes;
    size_t len;
};
extern const struct page_file page_files[]; /* ends with a path of NULL */

#endif
