/* Reads and writes the envelope of the RPC, the same code for daemon and client. Methods and errors
 * are tables: in the envelope a new method needs one line in the enum and one here
 * (docs/contributing.md has the rest). What is written is always a valid line: a message that
 * cannot be written becomes an error response. */
#include "daemon/rpc/schema.h"

#include <string.h>

#include "base/json/json.h"

static const char *const method_names[RPC_METHOD_NR] = {
    [RPC_PING] = "ping",     [RPC_SUBMIT] = "submit",       [RPC_STATUS] = "status",
    [RPC_CELLS] = "cells",   [RPC_EXPLAIN] = "explain",     [RPC_LOGS] = "logs",
    [RPC_RETRY] = "retry",   [RPC_CANCEL] = "cancel",       [RPC_PAUSE] = "pause",
    [RPC_RESUME] = "resume", [RPC_UNBLIND] = "unblind",     [RPC_VERDICT] = "verdict",
    [RPC_REPORT] = "report", [RPC_SUBSCRIBE] = "subscribe", [RPC_STOP] = "stop",
    [RPC_AMEND] = "amend",   [RPC_LOST] = "lost",           [RPC_PROGRAMS] = "programs",
    [RPC_DISK] = "disk",     [RPC_REMOVE] = "remove",       [RPC_PAGE] = "page",
};

static const struct {
    int code;
    const char *name;
} error_names[] = {
    {ERR_USAGE, "usage"},         {ERR_LOCK, "lock"},       {ERR_INVALID, "invalid"},
    {ERR_NO_DAEMON, "no_daemon"}, {ERR_IO, "io"},           {ERR_NO_SPACE, "no_space"},
    {ERR_NOT_FOUND, "not_found"}, {ERR_EXISTS, "exists"},   {ERR_SYNTAX, "syntax"},
    {ERR_RANGE, "range"},         {ERR_BUSY, "busy"},       {ERR_TIMEOUT, "timeout"},
    {ERR_PROTOCOL, "protocol"},   {ERR_REFUSED, "refused"}, {ERR_CORRUPT, "corrupt"},
    {ERR_VERSION, "version"},     {ERR_OTHER, "other"},
};

const char *rpc_method_name(enum rpc_method m)
{
    return m < RPC_METHOD_NR ? method_names[m] : "?";
}

bool rpc_method_is_for_readers(enum rpc_method m)
{
    static const bool allowed[RPC_METHOD_NR] = {
        [RPC_PING] = true,    [RPC_STATUS] = true,   [RPC_CELLS] = true,  [RPC_EXPLAIN] = true,
        [RPC_VERDICT] = true, [RPC_PROGRAMS] = true, [RPC_REPORT] = true,
    };
    return m < RPC_METHOD_NR && allowed[m];
}

enum rpc_method rpc_method_from_name(const char *name)
{
    enum rpc_method m = RPC_PING;
    while (m < RPC_METHOD_NR && strcmp(name, method_names[m]) != 0) {
        m++;
    }
    return m;
}

/* The id is read first, so that every later error can be answered under it. */
static int request_fields(const cJSON *o, struct rpc_request *out, struct err *err)
{
    int64_t schema = 0;
    const char *method = NULL;
    if (!cJSON_IsObject(o)) {
        return err_set(err, ERR_SYNTAX, "a request is a JSON object");
    }
    if (json_opt_int(o, "id", 0, JSON_INT_MAX, &out->id, err) != 0) {
        return err->code;
    }
    if (json_get_int(o, "schema", 0, JSON_INT_MAX, &schema, err) != 0) {
        return err->code;
    }
    if (schema != RPC_SCHEMA) {
        return err_set(err, ERR_VERSION, "this daemon speaks schema %d, not %lld", RPC_SCHEMA,
                       (long long)schema);
    }
    if (json_get_string(o, "method", &method, err) != 0) {
        return err->code;
    }
    out->method = rpc_method_from_name(method);
    if (out->method == RPC_METHOD_NR) {
        return err_set(err, ERR_USAGE, "no method is called \"%.40s\"", method);
    }
    out->params = json_member(o, "params");
    if (out->params != NULL && !cJSON_IsObject(out->params)) {
        return err_set(err, ERR_USAGE, "\"params\" is not an object");
    }
    return 0;
}

/* Parses the line, then reads the envelope. On error the message is freed, and only out->id is
 * kept. */
int rpc_request_parse(const char *line, size_t len, cJSON **message, struct rpc_request *out,
                      struct err *err)
{
    *out = (struct rpc_request){.method = RPC_METHOD_NR};
    *message = NULL;
    int rc = json_parse(line, len, message, err);
    if (rc == 0) {
        rc = request_fields(*message, out, err);
    }
    if (rc != 0) {
        cJSON_Delete(*message);
        *message = NULL;
        out->params = NULL;
    }
    return rc;
}

/* The members that every message has. */
static cJSON *envelope(int64_t id)
{
    cJSON *o = json_object();
    json_put_int(o, "schema", RPC_SCHEMA);
    json_put_int(o, "id", id);
    return o;
}

/* Appends the message as one line and frees it. */
static int add_line(struct strbuf *out, cJSON *message, struct err *err)
{
    int rc = json_line(message, out, err);
    strbuf_addc(out, '\n');
    cJSON_Delete(message);
    return rc;
}

void rpc_write_request(struct strbuf *out, int64_t id, const char *method, const cJSON *params)
{
    struct err err;
    cJSON *o = envelope(id);
    json_put_string(o, "method", method);
    json_put(o, "params", params == NULL ? json_object() : json_copy(params));
    if (add_line(out, o, &err) != 0) {
        strbuf_clear(out); /* a NaN among the parameters: an empty line is refused by the peer */
        strbuf_addc(out, '\n');
    }
}

/* A message that is too large or not valid JSON (a NaN) is replaced by an error response. */
static void write_or_say(struct strbuf *out, int64_t id, cJSON *message)
{
    size_t before = out->len;
    struct err err;
    int rc = add_line(out, message, &err);
    if (rc == 0 && out->len - before > RPC_RESPONSE_MAX) {
        rc = err_set(&err, ERR_RANGE, "the response would be larger than %zu bytes: ask for less",
                     RPC_RESPONSE_MAX);
    }
    if (rc != 0) {
        out->len = before;
        out->buf[before] = '\0';
        rpc_write_error(out, id, &err);
    }
}

void rpc_write_result(struct strbuf *out, int64_t id, const cJSON *result)
{
    cJSON *o = envelope(id);
    json_put_bool(o, "ok", true);
    json_put(o, "result", json_copy(result));
    write_or_say(out, id, o);
}

void rpc_write_event(struct strbuf *out, int64_t id, const cJSON *event)
{
    cJSON *o = envelope(id);
    json_put(o, "event", json_copy(event));
    write_or_say(out, id, o);
}

/* Codes without a name of their own are "other". */
const char *rpc_error_name(int code)
{
    for (size_t i = 0; i < sizeof(error_names) / sizeof(error_names[0]); i++) {
        if (error_names[i].code == code) {
            return error_names[i].name;
        }
    }
    return "other";
}

void rpc_write_error(struct strbuf *out, int64_t id, const struct err *why)
{
    struct err err;
    cJSON *o = envelope(id);
    cJSON *e = json_object();
    json_put_bool(o, "ok", false);
    json_put_int(e, "code", why->code);
    json_put_string(e, "name", rpc_error_name(why->code));
    json_put_string(e, "message", why->msg);
    json_put(o, "error", e);
    if (add_line(out, o, &err) != 0) {
        abort(); /* integers and text only: cannot be refused */
    }
}
