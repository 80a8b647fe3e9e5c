/*
 * A journal row as JSON and back. It carries the whole task row, so that the journal alone brings
 * the store back.
 *
 *   {"seq":7,"hash":HEX,"event":"attempt_ended","time":...,
 *    "task":{"index":5,"cell":...,"stage":...,"from":"running","state":"done",...},
 *    "attempt":{"no":2,"id":...,"cause":...,...},"result":{"digest":HEX,"sealed":true},"detail":...}
 *   {"seq":9,"hash":HEX,"event":"verdict","time":...,"status":{"paused":0,"unsealed":true,...}}
 *
 * "clock" is there where the clock said less than the row before has: its own reading.
 */
#include "state/journal/line.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "state/columns.h"

static int64_t clamp_json(int64_t v)
{
    return v > JSON_INT_MAX ? JSON_INT_MAX : v < -JSON_INT_MAX ? -JSON_INT_MAX : v;
}

static void put_time(cJSON *obj, const char *key, struct wall_time t)
{
    char text[WALL_TEXT_SIZE];
    clock_wall_text(t, text);
    json_put_string(obj, key, text);
}

/* A time outside the years that have a text reads as 0: it is for people only. */
static int get_time(const cJSON *obj, const char *key, struct wall_time *out, struct err *err)
{
    const char *text = NULL;
    int rc = json_get_string(obj, key, &text, err);
    if (rc == 0 && !clock_wall_parse(text, out)) {
        *out = (struct wall_time){0};
    }
    return rc;
}

void line_put_time(cJSON *line, struct wall_time time, int64_t behind_ms)
{
    assert(line != NULL);
    put_time(line, "time", time);
    if (behind_ms > 0) {
        put_time(line, "clock", (struct wall_time){time.ms - behind_ms});
    }
}

struct wall_time line_time(const char *text, size_t len)
{
    assert(text != NULL);
    struct wall_time t = {0};
    struct err ignored;
    cJSON *line = NULL;
    if (json_parse(text, len, &line, &ignored) != 0 || get_time(line, "time", &t, &ignored) != 0) {
        t = (struct wall_time){0};
    }
    cJSON_Delete(line);
    return t;
}

int line_lift_time(cJSON *line, struct wall_time *last, struct err *err)
{
    assert(line != NULL && last != NULL);
    struct wall_time time = {0};
    int rc = get_time(line, "time", &time, err);
    if (rc != 0 || time.ms >= last->ms) {
        last->ms = time.ms > last->ms ? time.ms : last->ms;
        return rc;
    }
    if (json_member(line, "clock") == NULL) {
        json_put(line, "clock", cJSON_DetachItemFromObjectCaseSensitive(line, "time"));
    }
    cJSON_DeleteItemFromObjectCaseSensitive(line, "time");
    put_time(line, "time", *last);
    return 0;
}

static int get_clock(const cJSON *line, struct state_row *row, struct err *err)
{
    struct wall_time clock = {0};
    if (json_member(line, "clock") == NULL) {
        return 0;
    }
    int rc = get_time(line, "clock", &clock, err);
    if (rc == 0 && clock.ms >= row->time.ms) {
        rc = err_set(err, ERR_CORRUPT, "\"clock\" is not before \"time\"");
    }
    row->behind_ms = row->time.ms - clock.ms;
    return rc;
}

static void put_digest(cJSON *obj, const char *key, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];
    digest_hex(d, hex);
    json_put_string(obj, key, hex);
}

static int get_digest(const cJSON *obj, const char *key, struct digest *out, struct err *err)
{
    const char *hex = NULL;
    int rc = json_get_string(obj, key, &hex, err);
    return rc == 0 ? digest_from_hex(hex, out, err) : rc;
}

static void put_column(cJSON *obj, const struct row_column *c, const void *row)
{
    char hex[DIGEST_HEX_SIZE];
    if (c->type == COLUMN_FLAG) {
        json_put_bool(obj, c->json, column_int(c, row) != 0);
    } else if (c->type == COLUMN_TIME) {
        put_time(obj, c->json, (struct wall_time){column_int(c, row)});
    } else if (c->type == COLUMN_DIGEST) {
        put_digest(obj, c->json, (const struct digest *)((const char *)row + c->offset));
    } else if (column_is_int(c)) {
        json_put_int(obj, c->json, clamp_json(column_int(c, row)));
    } else {
        json_put_string(obj, c->json, column_text(c, row, hex));
    }
}

/* Members of which one writer and one reader take care. */
static void put_columns(cJSON *obj, const struct row_columns *columns, const void *row)
{
    for (size_t i = 0; i < columns->n; i++) {
        const struct row_column *c = &columns->items[i];
        if (column_is_written(c, row)) {
            put_column(obj, c, row);
        }
    }
}

static int bad_name(const char *key, const char *name, struct err *err)
{
    return err_set(err, ERR_CORRUPT, "%s: \"%s\" is not a name of this version", key, name);
}

static int get_column(const cJSON *obj, const struct row_column *c, void *row, struct err *err)
{
    const char *text = NULL;
    int64_t value = 0;
    bool flag = false;
    struct wall_time time = {0};
    int rc = 0;
    if (c->type == COLUMN_FLAG) {
        rc = json_opt_bool(obj, c->json, &flag, err);
        value = flag;
    } else if (c->type == COLUMN_TIME) {
        rc = get_time(obj, c->json, &time, err);
        value = time.ms;
    } else if (column_is_int(c)) {
        rc = json_get_int(obj, c->json, c->min, c->max, &value, err);
    } else {
        rc = json_get_string(obj, c->json, &text, err);
        const bool missing = rc == 0 && c->type == COLUMN_DIGEST && text[0] == '\0';
        if (rc == 0 && (missing || !column_set_text(c, row, text))) {
            rc = bad_name(c->json, text, err);
        }
        return rc;
    }
    if (rc == 0) {
        column_set_int(c, row, value);
    }
    return rc;
}

static int get_columns(const cJSON *obj, const struct row_columns *columns, void *row,
                       struct err *err)
{
    for (size_t i = 0; i < columns->n; i++) {
        const struct row_column *c = &columns->items[i];
        const bool optional = (c->flags & COLUMN_OPTIONAL) != 0;
        if (!column_is_in_json(c, row) || (optional && json_member(obj, c->json) == NULL)) {
            continue;
        }
        int rc = get_column(obj, c, row, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static cJSON *task_part(const struct state_row *row, const char *cell, const char *stage)
{
    cJSON *obj = json_object();
    json_put_int(obj, "index", row->task);
    if (row->apparatus != NULL) {
        json_put_string(obj, "apparatus", row->apparatus);
    } else {
        json_put_string(obj, "cell", cell);
    }
    json_put_string(obj, "stage", stage);
    json_put_string(obj, "from", task_state_name(row->from));
    put_columns(obj, &TASK_COLUMNS, &row->after);
    return obj;
}

static cJSON *amendment_part(const struct amendment_row *a)
{
    cJSON *obj = json_object();
    json_put_int(obj, "number", a->number);
    put_digest(obj, "head", &a->head);
    json_put_string(obj, "level", access_level_name(a->level));
    return obj;
}

/* For people, and from anywhere: a text that is not UTF-8 must not keep the row it explains from
 * being written. */
static void put_detail(cJSON *obj, const char *detail)
{
    char *text = xstrdup(detail);
    text_make_utf8(text);
    json_put_string(obj, "detail", text);
    free(text);
}

cJSON *line_from_row(const struct state_row *row, const char *cell, const char *stage)
{
    assert(row != NULL);
    cJSON *obj = json_object();
    json_put_string(obj, "event", row_kind_name(row->kind));
    line_put_time(obj, row->time, row->behind_ms);
    if (row_kind_is_of_task(row->kind)) {
        json_put(obj, "task", task_part(row, cell, stage));
        if (row->attempt.no > 0) {
            cJSON *attempt = json_object();
            put_columns(attempt, &ATTEMPT_COLUMNS, &row->attempt);
            json_put(obj, "attempt", attempt);
        }
    } else {
        cJSON *status = json_object();
        put_columns(status, &PROGRAM_COLUMNS, &row->status);
        json_put(obj, "status", status);
    }
    if (row->kind == ROW_AMENDED) {
        json_put(obj, "amendment", amendment_part(&row->amendment));
    }
    if (row->has_result) {
        cJSON *result = json_object();
        put_digest(result, "digest", &row->result_digest);
        json_put_bool(result, "sealed", row->sealed);
        json_put(obj, "result", result);
    }
    if (row->detail != NULL) {
        put_detail(obj, row->detail);
    }
    return obj;
}

static int task_of_line(const cJSON *obj, struct state_row *row, struct err *err)
{
    const char *from = NULL;
    int64_t index = 0;
    if (json_get_int(obj, "index", 0, UINT32_MAX - 1, &index, err) != 0 ||
        json_get_string(obj, "from", &from, err) != 0 ||
        json_opt_string(obj, "apparatus", &row->apparatus, err) != 0 ||
        json_opt_string(obj, "stage", &row->stage, err) != 0) {
        return err->code;
    }
    row->task = (uint32_t)index;
    row->from = task_state_from_name(from);
    if (row->from == TASK_STATE_NR) {
        return bad_name("from", from, err);
    }
    return get_columns(obj, &TASK_COLUMNS, &row->after, err);
}

static int attempt_of_line(const cJSON *obj, struct attempt_row *a, struct err *err)
{
    int rc = get_columns(obj, &ATTEMPT_COLUMNS, a, err);
    return rc == 0 && !uuid_is_valid(a->id) ? bad_name("id", a->id, err) : rc;
}

static int amendment_of_line(const cJSON *line, struct amendment_row *a, struct err *err)
{
    const cJSON *obj = NULL;
    const char *level = NULL;
    int64_t number = 0;
    if (json_get_object(line, "amendment", &obj, err) != 0 ||
        json_get_int(obj, "number", 1, UINT32_MAX, &number, err) != 0 ||
        get_digest(obj, "head", &a->head, err) != 0 ||
        json_get_string(obj, "level", &level, err) != 0) {
        return err->code;
    }
    a->number = (uint32_t)number;
    a->level = access_level_from_name(level);
    return a->level == ACCESS_NR ? bad_name("level", level, err) : 0;
}

static int program_of_line(const cJSON *line, struct state_row *row, struct err *err)
{
    const cJSON *part = NULL;
    int rc = json_get_object(line, "status", &part, err);
    if (rc == 0) {
        rc = get_columns(part, &PROGRAM_COLUMNS, &row->status, err);
    }
    return rc == 0 && row->kind == ROW_AMENDED ? amendment_of_line(line, &row->amendment, err) : rc;
}

static int parts_of_line(const cJSON *line, struct state_row *row, struct err *err)
{
    const cJSON *attempt = json_member(line, "attempt");
    const cJSON *result = json_member(line, "result");
    const cJSON *part = NULL;
    if (!row_kind_is_of_task(row->kind)) {
        return program_of_line(line, row, err);
    }
    if (json_get_object(line, "task", &part, err) != 0 || task_of_line(part, row, err) != 0) {
        return err->code;
    }
    if (attempt != NULL && attempt_of_line(attempt, &row->attempt, err) != 0) {
        return err->code;
    }
    if (result == NULL) {
        return 0;
    }
    row->has_result = true;
    row->sealed = true;
    if (json_opt_bool(result, "sealed", &row->sealed, err) != 0) {
        return err->code;
    }
    return get_digest(result, "digest", &row->result_digest, err);
}

int line_to_row(const cJSON *line, uint32_t program, struct state_row *row, struct err *err)
{
    assert(line != NULL && row != NULL);
    const char *event = NULL;
    *row = (struct state_row){.program = program};
    attempt_row_init(&row->attempt);
    task_row_init(&row->after, TASK_WAITING);
    if (json_get_string(line, "event", &event, err) != 0 ||
        get_time(line, "time", &row->time, err) != 0 || get_clock(line, row, err) != 0) {
        return err->code;
    }
    row->kind = row_kind_from_name(event);
    if (!row_kind_is_journalled(row->kind)) {
        return bad_name("event", event, err);
    }
    if (row->kind != ROW_SUBMITTED && parts_of_line(line, row, err) != 0) {
        return err_wrap(err, "journal row \"%s\"", event);
    }
    return json_opt_string(line, "detail", &row->detail, err);
}

/* In canonical form the members before "event" are objects without such a member, and "detail",
 * whose quotes are escaped: the first match is the row's own. */
enum row_kind line_kind(const char *text, size_t len)
{
    assert(text != NULL);
    static const char KEY[] = "\"event\":\"";
    char name[32];
    const char *at = memmem(text, len, KEY, sizeof(KEY) - 1);
    if (at == NULL) {
        return ROW_KIND_NR;
    }
    at += sizeof(KEY) - 1;
    const char *end = memchr(at, '"', len - (size_t)(at - text));
    if (end == NULL || (size_t)(end - at) >= sizeof(name)) {
        return ROW_KIND_NR;
    }
    memcpy(name, at, (size_t)(end - at));
    name[end - at] = '\0';
    return row_kind_from_name(name);
}

void line_amended_head(const char *text, size_t len, char head[DIGEST_HEX_SIZE])
{
    assert(text != NULL);
    struct err ignored;
    struct digest found;
    cJSON *line = NULL;
    if (json_parse(text, len, &line, &ignored) == 0 &&
        get_digest(json_member(line, "amendment"), "head", &found, &ignored) == 0) {
        digest_hex(&found, head);
    }
    cJSON_Delete(line);
}
