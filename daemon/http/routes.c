/*
 * Decides about a request: first who asks (in the order of docs/page.md, "Who may look"), then what
 * for. What the RPC knows is asked of the RPC's handler; the rest is in data.c and jobs.c.
 */
#include <string.h>
#include <strings.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/http/data.h"
#include "daemon/http/internal.h"
#include "daemon/http/metrics.h"
#include "daemon/http/streams.h"

static const char *header_of(const struct page_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

static void refuse(struct page_request *r, unsigned status, const char *name, const char *text)
{
    reply_refuse(&r->reply, status, name, text);
    r->ready = true;
}

/* ---- who asks ---- */

struct header_count {
    const char *name;
    unsigned n;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    struct header_count *c = cls;
    (void)kind;
    (void)value;
    c->n += strcasecmp(key, c->name) == 0;
    return MHD_YES;
}

/* Two of a header that decides who asks: neither is believed. */
static bool is_doubled(const struct page_request *r, const char *name)
{
    struct header_count c = {.name = name};
    (void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, on_header, &c);
    return c.n > 1;
}

/* Host and Origin keep pages of other sites out, whatever name they have for this machine. */
static bool is_from_here(struct page_request *r)
{
    const char *host = header_of(r, MHD_HTTP_HEADER_HOST);
    const char *origin = header_of(r, MHD_HTTP_HEADER_ORIGIN);
    if (host == NULL || is_doubled(r, MHD_HTTP_HEADER_HOST) ||
        is_doubled(r, MHD_HTTP_HEADER_ORIGIN) || is_doubled(r, MHD_HTTP_HEADER_AUTHORIZATION)) {
        refuse(r, MHD_HTTP_BAD_REQUEST, "usage",
               host == NULL ? "the Host header is missing" : "a header is given twice");
        return false;
    }
    if (!guard_host_is_local(host)) {
        refuse(r, MHD_HTTP_FORBIDDEN, "refused",
               "the Host header must name this machine: localhost, a name below it, 127.0.0.1 or "
               "[::1]");
        return false;
    }
    if (origin != NULL && !guard_origin_is_local(origin)) {
        refuse(r, MHD_HTTP_FORBIDDEN, "refused", "a page of another site may not ask this one");
        return false;
    }
    return true;
}

static bool has_token(const struct page_request *r)
{
    const struct http *h = r->http;
    const char *bearer = header_of(r, MHD_HTTP_HEADER_AUTHORIZATION);
    const char *cookie = header_of(r, MHD_HTTP_HEADER_COOKIE);
    return (bearer != NULL && guard_is_bearer(bearer, h->token)) ||
           (cookie != NULL && guard_has_cookie(cookie, h->cookie_name, h->cookie_value));
}

/* A browser says where a request comes from. A link to a report may be followed from anywhere. */
static bool is_cross_site(const struct page_request *r)
{
    const char *site = header_of(r, "Sec-Fetch-Site");
    return site != NULL && strcmp(site, "cross-site") == 0;
}

/* ---- the page's own files ---- */

static void serve_page(struct page_request *r, const char *path)
{
    const char *asked = strcmp(path, "/") == 0 ? "/index.html" : path;
    for (const struct page_file *f = page_files; f->path != NULL; f++) {
        if (strcmp(f->path, asked) == 0) {
            const char *known = header_of(r, MHD_HTTP_HEADER_IF_NONE_MATCH);
            r->reply.type = f->type;
            r->reply.may_be_kept = true;
            reply_add(&r->reply, MHD_HTTP_HEADER_ETAG, "%s", f->etag);
            if (known != NULL && strcmp(known, f->etag) == 0) {
                r->reply.status = MHD_HTTP_NOT_MODIFIED;
            } else {
                strbuf_add(&r->reply.body, f->bytes, f->len);
            }
            r->ready = true;
            return;
        }
    }
    refuse(r, MHD_HTTP_NOT_FOUND, "not_found", "there is no such page");
}

/* ---- what the RPC answers ---- */

static enum rpc_method method_of(enum route route)
{
    switch ((int)route) {
    case ROUTE_STATUS: return RPC_STATUS;
    case ROUTE_CELLS: return RPC_CELLS;
    case ROUTE_EXPLAIN: return RPC_EXPLAIN;
    case ROUTE_LOGS: return RPC_LOGS;
    case ROUTE_VERDICT: return RPC_VERDICT;
    case ROUTE_DISK: return RPC_DISK;
    default: return RPC_METHOD_NR;
    }
}

/* As a reader asks it wherever a reader may: then what a sealed stage's worker said is left out. */
static void ask(struct page_request *r, enum rpc_method method, const cJSON *params)
{
    struct http *h = r->http;
    struct rpc_request request = {.method = method, .params = params};
    struct server_call call = {.connection = r->id, .reader = rpc_method_is_for_readers(method)};
    struct err err;
    cJSON *result = NULL;
    if (h->handler.request(h->handler.ctx, &call, &request, &result, &err) != 0) {
        reply_error(&r->reply, &err);
        r->ready = true;
    } else if (call.later) {
        r->waiting = true;
    } else {
        reply_json(&r->reply, result);
        r->ready = true;
    }
    cJSON_Delete(result);
}

static void serve_session(struct page_request *r)
{
    const struct http *h = r->http;
    reply_add(&r->reply, MHD_HTTP_HEADER_SET_COOKIE, "%s=%s; HttpOnly; SameSite=Strict; Path=/",
              h->cookie_name, h->cookie_value);
    strbuf_adds(&r->reply.body, "{\"ok\":true}\n");
    r->ready = true;
}

/* ---- what for ---- */

static void serve(struct page_request *r, const struct guard_target *t)
{
    const enum rpc_method method = method_of(t->route);
    if (method != RPC_METHOD_NR) {
        ask(r, method, t->params);
        return;
    }
    switch ((int)t->route) {
    case ROUTE_SESSION: serve_session(r); break;
    case ROUTE_STREAM: streams_add(r, t->params); break;
    case ROUTE_METRICS: metrics_serve(r); break;
    default: data_serve(r, t); break;
    }
}

static void decide(struct page_request *r, const char *method, struct guard_target *t)
{
    struct err err;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        refuse(r, MHD_HTTP_METHOD_NOT_ALLOWED, "refused", "the page is read-only: GET and HEAD");
        return;
    }
    if (!is_from_here(r)) {
        return;
    }
    const int rc = guard_target_parse(r->uri, t, &err);
    if (rc == 0 && t->route == ROUTE_HEALTH) {
        r->reply.type = "text/plain; charset=utf-8";
        strbuf_adds(&r->reply.body, "ok\n");
        r->ready = true;
    } else if (rc == 0 && t->route == ROUTE_PAGE) {
        serve_page(r, t->path);
    } else if (!has_token(r)) {
        refuse(r, MHD_HTTP_UNAUTHORIZED, "refused",
               "a token is needed: open the address that `preregctl open` prints, or send "
               "Authorization: Bearer TOKEN");
    } else if (is_cross_site(r) && t->route != ROUTE_REPORT) {
        refuse(r, MHD_HTTP_FORBIDDEN, "refused", "a page of another site may not ask this one");
    } else if (rc != 0) {
        reply_error(&r->reply, &err);
        r->ready = true;
    } else {
        serve(r, t);
    }
}

void routes_decide(struct page_request *r, const char *method)
{
    struct guard_target target = {0};
    decide(r, method, &target);
    guard_target_release(&target);
}
