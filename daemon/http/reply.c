/*
 * Answers: JSON, files and refusals, all with the headers that keep a browser from doing more with
 * them than the page wants. A reply is made whole before anything of it is sent.
 */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/http/internal.h"

static const char policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; "
                             "connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
                             "form-action 'none'; frame-ancestors 'none'";

void reply_init(struct reply *r)
{
    *r = (struct reply){.status = MHD_HTTP_OK, .type = "application/json", .fd = -1};
    strbuf_init(&r->body);
}

void reply_release(struct reply *r)
{
    strbuf_release(&r->body);
    if (r->fd >= 0) {
        (void)close(r->fd);
        r->fd = -1;
    }
}

void reply_json(struct reply *r, const cJSON *value)
{
    struct err err;
    r->status = MHD_HTTP_OK;
    r->type = "application/json";
    strbuf_clear(&r->body);
    if (json_line(value, &r->body, &err) != 0) {
        reply_error(r, &err);
        return;
    }
    strbuf_addc(&r->body, '\n');
}

static unsigned status_of(int code)
{
    switch (code) {
    case ERR_NOT_FOUND: return MHD_HTTP_NOT_FOUND;
    case ERR_USAGE:
    case ERR_SYNTAX:
    case ERR_RANGE: return MHD_HTTP_BAD_REQUEST;
    case ERR_REFUSED:
    case ERR_EXISTS:
    case ERR_LOCK: /* these: a program that is damaged */
    case ERR_INVALID:
    case ERR_CORRUPT:
    case ERR_VERSION: return MHD_HTTP_CONFLICT;
    case ERR_BUSY:
    case ERR_NO_DAEMON: return MHD_HTTP_SERVICE_UNAVAILABLE;
    default: return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

void reply_error(struct reply *r, const struct err *why)
{
    reply_refuse(r, status_of(why->code), rpc_error_name(why->code), why->msg);
}

void reply_refuse(struct reply *r, unsigned status, const char *name, const char *text)
{
    struct err ignored;
    cJSON *o = json_object();
    cJSON *e = json_object();
    json_put_string(e, "code", name);
    json_put_string(e, "message", text);
    json_put(o, "error", e);
    r->status = status;
    r->type = "application/json";
    strbuf_clear(&r->body);
    if (json_line(o, &r->body, &ignored) != 0) {
        strbuf_clear(&r->body);
        strbuf_adds(&r->body, "{\"error\":{\"code\":\"other\",\"message\":\"?\"}}");
    }
    strbuf_addc(&r->body, '\n');
    cJSON_Delete(o);
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        reply_add(r, MHD_HTTP_HEADER_RETRY_AFTER, "2");
    } else if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        reply_add(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    } else if (status == MHD_HTTP_UNAUTHORIZED) {
        reply_add(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"preregd\"");
    }
}

void reply_add(struct reply *r, const char *name, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    for (size_t i = 0; i < HTTP_HEADERS_ADDED; i++) {
        if (r->added[i].name == NULL) {
            r->added[i].name = name;
            (void)vsnprintf(r->added[i].value, sizeof(r->added[i].value), fmt, args);
            break;
        }
    }
    va_end(args);
}

void reply_put_headers(const struct page_request *r, struct MHD_Response *response)
{
    const struct reply *p = &r->reply;
    const struct {
        const char *name;
        const char *value;
    } rows[] = {
        {MHD_HTTP_HEADER_CONTENT_TYPE, p->type},
        {"Content-Security-Policy", p->policy != NULL ? p->policy : policy},
        {"X-Frame-Options", "DENY"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {MHD_HTTP_HEADER_CACHE_CONTROL, p->may_be_kept ? "no-cache" : "no-store"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        (void)MHD_add_response_header(response, rows[i].name, rows[i].value);
    }
    for (size_t i = 0; i < HTTP_HEADERS_ADDED && p->added[i].name != NULL; i++) {
        (void)MHD_add_response_header(response, p->added[i].name, p->added[i].value);
    }
}

static struct MHD_Response *make_response(struct reply *p)
{
    if (p->fd >= 0) {
        struct MHD_Response *response = MHD_create_response_from_fd64((uint64_t)p->fd_bytes, p->fd);
        p->fd = response != NULL ? -1 : p->fd; /* it closes it */
        return response;
    }
    const size_t len = p->body.len;
    char *bytes = strbuf_detach(&p->body);
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(len, bytes, free);
    if (response == NULL) {
        free(bytes);
    }
    return response;
}

enum MHD_Result reply_queue(struct page_request *r)
{
    struct MHD_Response *response = make_response(&r->reply);
    if (response == NULL) {
        return MHD_NO;
    }
    reply_put_headers(r, response);
    const enum MHD_Result result = MHD_queue_response(r->connection, r->reply.status, response);
    MHD_destroy_response(response);
    return result;
}
