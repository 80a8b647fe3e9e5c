/*
 * Reads the target of a request. Every route has a list of the parameters that it knows, with their
 * kinds and ranges: another name, one that is given twice, a bad escape or a number out of its
 * range is an error that names it. The path is decoded once, and only then compared, so that no
 * second spelling of it means something else.
 */
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/http/guard.h"

#define PARAMETERS_MAX 8
#define VALUE_MAX      ((size_t)1024)

struct parameter {
    const char *name;
    int64_t min; /* of a whole number; both 0: text */
    int64_t max;
};

struct route_row {
    const char *path;
    enum route route;
    struct parameter parameters[PARAMETERS_MAX];
};

#define PROGRAM                                                                                    \
    {                                                                                              \
        .name = "program"                                                                          \
    }
#define TASK                                                                                       \
    {                                                                                              \
        .name = "task"                                                                             \
    }

static const struct route_row rows[] = {
    {"/healthz", ROUTE_HEALTH, {{0}}},
    {"/session", ROUTE_SESSION, {{0}}},
    {"/metrics", ROUTE_METRICS, {{0}}},
    {"/api/stream", ROUTE_STREAM, {PROGRAM, {.name = "last"}}},
    {"/api/status", ROUTE_STATUS, {PROGRAM}},
    {"/api/cells",
     ROUTE_CELLS,
     {PROGRAM, {"offset", 0, 1000000000}, {.name = "limit", .min = 1, .max = 1000}}},
    {"/api/explain", ROUTE_EXPLAIN, {PROGRAM, TASK}},
    {"/api/logs", ROUTE_LOGS, {PROGRAM, TASK}},
    {"/api/verdict", ROUTE_VERDICT, {PROGRAM}},
    {"/api/disk", ROUTE_DISK, {PROGRAM}},
    {"/api/tail",
     ROUTE_TAIL,
     {PROGRAM, TASK, {"attempt", 1, 4294967295}, {.name = "file"}, {"bytes", 1, 262144}}},
    {"/api/files", ROUTE_FILES, {PROGRAM, TASK}},
    {"/api/plan", ROUTE_PLAN, {PROGRAM}},
    {"/api/curves",
     ROUTE_CURVES,
     {PROGRAM, {.name = "stage"}, {.name = "metric"}, {"points", 10, 4000}, {"cells", 0, 1}}},
    {"/api/machine", ROUTE_MACHINE, {{0}}},
};

static const char report_prefix[] = "/report/";

bool guard_route_is_open(enum route r)
{
    return r == ROUTE_PAGE || r == ROUTE_HEALTH;
}

/* ---- escapes ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes text[0..n); NULL: a bad escape, or what is not plain UTF-8 text. In a query '+' is a
 * blank. */
static char *decode(const char *text, size_t n, bool in_query)
{
    char *out = xmalloc(n + 1);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%') {
            const int high = i + 1 < n ? hex_digit(text[i + 1]) : -1;
            const int low = i + 2 < n ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0 || (high == 0 && low == 0)) {
                free(out);
                return NULL;
            }
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && in_query) {
            c = ' ';
        }
        out[len++] = c;
    }
    out[len] = '\0';
    if (!text_is_plain(out)) {
        free(out);
        return NULL;
    }
    return out;
}

/* ---- queries ---- */

static const struct parameter *find_parameter(const struct route_row *row, const char *name)
{
    for (size_t i = 0; i < PARAMETERS_MAX && row->parameters[i].name != NULL; i++) {
        if (strcmp(row->parameters[i].name, name) == 0) {
            return &row->parameters[i];
        }
    }
    return NULL;
}

static int put_value(const struct parameter *p, const char *value, cJSON *params, struct err *err)
{
    int64_t number = 0;
    if (json_member(params, p->name) != NULL) {
        return err_set(err, ERR_USAGE, "\"%s\" is given twice", p->name);
    }
    if (p->max == 0) {
        json_put_string(params, p->name, value);
        return 0;
    }
    struct err ignored;
    if (text_to_int(value, p->min, p->max, &number, &ignored) != 0) {
        return err_set(err, ERR_USAGE, "\"%s\": expected a whole number from %lld to %lld", p->name,
                       (long long)p->min, (long long)p->max);
    }
    json_put_int(params, p->name, number);
    return 0;
}

/* One NAME=VALUE of text[0..n). */
static int take_pair(const struct route_row *row, const char *text, size_t n, cJSON *params,
                     struct err *err)
{
    const char *equals = memchr(text, '=', n);
    const size_t n_name = equals == NULL ? n : (size_t)(equals - text);
    char *name = decode(text, n_name, true);
    char *value = equals == NULL ? NULL : decode(equals + 1, n - n_name - 1, true);
    const struct parameter *p = name == NULL ? NULL : find_parameter(row, name);
    int rc = 0;
    if (p == NULL) {
        rc = err_set(err, ERR_USAGE, "%s has no parameter \"%.40s\"", row->path,
                     name == NULL ? "?" : name);
    } else if (value == NULL || value[0] == '\0' || strlen(value) > VALUE_MAX) {
        rc = err_set(err, ERR_USAGE, "\"%s\": expected %s=TEXT, percent-encoded UTF-8, at most %zu",
                     p->name, p->name, VALUE_MAX);
    } else {
        rc = put_value(p, value, params, err);
    }
    free(name);
    free(value);
    return rc;
}

static int take_query(const struct route_row *row, const char *query, cJSON *params,
                      struct err *err)
{
    int rc = 0;
    for (const char *at = query; rc == 0 && *at != '\0';) {
        const size_t n = strcspn(at, "&");
        rc = n == 0 ? 0 : take_pair(row, at, n, params, err);
        at += n;
        at += *at == '&';
    }
    return rc;
}

/* ---- targets ---- */

/* A path that is of no route is one of the page's files, as far as anyone knows here. */
static const struct route_row *find_row(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].path, path) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

int guard_target_parse(const char *uri, struct guard_target *out, struct err *err)
{
    static const struct route_row bare = {.path = "this address"};
    const size_t n_path = strcspn(uri, "?");
    const char *query = uri[n_path] == '?' ? uri + n_path + 1 : "";
    *out = (struct guard_target){.route = ROUTE_NR, .params = json_object()};
    if (uri[0] != '/' || strlen(uri) > GUARD_URI_MAX) {
        return err_set(err, ERR_USAGE, "expected a path of at most %zu bytes", GUARD_URI_MAX);
    }
    out->path = decode(uri, n_path, false);
    if (out->path == NULL) {
        return err_set(err, ERR_USAGE, "the path is not percent-encoded UTF-8 text");
    }
    const struct route_row *row = find_row(out->path);
    if (row != NULL) {
        out->route = row->route;
    } else if (strncmp(out->path, report_prefix, sizeof(report_prefix) - 1) == 0) {
        out->route = ROUTE_REPORT;
        out->rest = xstrdup(out->path + sizeof(report_prefix) - 1);
    } else if (strncmp(out->path, "/api/", 5) == 0) {
        return err_set(err, ERR_NOT_FOUND, "there is no %.80s", out->path);
    } else {
        out->route = ROUTE_PAGE;
        return 0; /* a browser may add a query to it */
    }
    return take_query(row == NULL ? &bare : row, query, out->params, err);
}

void guard_target_release(struct guard_target *t)
{
    cJSON_Delete(t->params);
    free(t->path);
    free(t->rest);
    *t = (struct guard_target){0};
}
