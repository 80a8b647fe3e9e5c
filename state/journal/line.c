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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"

#define INT_MIN_JSON (-JSON_INT_MAX)

/* Members of which one writer and one reader take care: a whole number of a row, by its place. */
struct field {
    const char *name;
    size_t offset;
    size_t size; /* 4 or 8 bytes; 4 is unsigned */
};

#define FIELD(s, name, member)                                                                     \
    {                                                                                              \
        name, offsetof(struct s, member), sizeof(((struct s *)0)->member)                          \
    }

static const struct field TASK_FIELDS[] = {
    FIELD(task_row, "attempts", n_attempts),
    FIELD(task_row, "spent", spent),
    FIELD(task_row, "crashes", crashes),
    FIELD(task_row, "idle", idle),
    FIELD(task_row, "no_space", no_space),
    FIELD(task_row, "best_done", best_done),
    FIELD(task_row, "best_checkpoint", best_checkpoint),
    FIELD(task_row, "not_before_ms", not_before.ms),
};

static const struct field ATTEMPT_FIELDS[] = {
    FIELD(attempt_row, "done", done),
    FIELD(attempt_row, "total", total),
    FIELD(attempt_row, "checkpoint", checkpoint),
    FIELD(attempt_row, "resumed_from", resumed_from),
    FIELD(attempt_row, "malformed", malformed),
    FIELD(attempt_row, "offset", offset),
    FIELD(attempt_row, "user_ms", user_ms),
    FIELD(attempt_row, "system_ms", system_ms),
    FIELD(attempt_row, "max_rss_bytes", max_rss_bytes),
};

static int64_t clamp_json(int64_t v)
{
    return v > JSON_INT_MAX ? JSON_INT_MAX : v < INT_MIN_JSON ? INT_MIN_JSON : v;
}

static void put_fields(cJSON *obj, const struct field *fields, size_t n, const void *from)
{
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)from + fields[i].offset;
        int64_t v = 0;
        uint32_t u = 0;
        if (fields[i].size == sizeof(u)) {
            memcpy(&u, at, sizeof(u));
            v = u;
        } else {
            memcpy(&v, at, sizeof(v));
        }
        json_put_int(obj, fields[i].name, clamp_json(v));
    }
}

static int get_fields(const cJSON *obj, const struct field *fields, size_t n, void *to,
                      struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        char *at = (char *)to + fields[i].offset;
        bool is_u32 = fields[i].size == sizeof(uint32_t);
        int64_t v = 0;
        int rc = json_get_int(obj, fields[i].name, is_u32 ? 0 : INT_MIN_JSON,
                              is_u32 ? UINT32_MAX : JSON_INT_MAX, &v, err);
        if (rc != 0) {
            return rc;
        }
        uint32_t u = (uint32_t)v;
        memcpy(at, is_u32 ? (const void *)&u : (const void *)&v, fields[i].size);
    }
    return 0;
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
    put_time(line, "time", time);
    if (behind_ms > 0) {
        put_time(line, "clock", (struct wall_time){time.ms - behind_ms});
    }
}

struct wall_time line_time(const char *text, size_t len)
{
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
    json_put_string(obj, "state", task_state_name(row->after.state));
    json_put_string(obj, "cause", cause_name(row->after.cause));
    json_put_string(obj, "ending", cause_name(row->after.ending));
    put_fields(obj, TASK_FIELDS, ARRAY_LEN(TASK_FIELDS), &row->after);
    return obj;
}

static cJSON *attempt_part(const struct attempt_row *a)
{
    cJSON *obj = json_object();
    json_put_int(obj, "no", a->no);
    json_put_string(obj, "id", a->id);
    json_put_string(obj, "state", attempt_state_name(a->state));
    put_time(obj, "started", a->started);
    if (a->state != ATTEMPT_ENDED) {
        return obj;
    }
    put_time(obj, "ended", a->ended);
    json_put_string(obj, "cause", cause_name(a->cause));
    json_put_string(obj, "reason", end_reason_name(a->reason));
    json_put_int(obj, "code", a->code);
    json_put_int(obj, "signal", a->signal);
    json_put_string(obj, "section", section_name(a->section));
    put_fields(obj, ATTEMPT_FIELDS, ARRAY_LEN(ATTEMPT_FIELDS), a);
    if (a->ran_ms >= 0) {
        json_put_int(obj, "ran_ms", clamp_json(a->ran_ms));
    }
    return obj;
}

static cJSON *status_part(const struct program_row *p)
{
    cJSON *obj = json_object();
    json_put_int(obj, "paused", p->paused);
    json_put_bool(obj, "unsealed", p->unsealed);
    json_put_bool(obj, "unblinded", p->unblinded);
    json_put_bool(obj, "verdict", p->verdict);
    json_put_bool(obj, "reported", p->reported);
    if (p->failures_accepted) {
        json_put_bool(obj, "failures_accepted", true);
    }
    if (p->verdict) {
        json_put_string(obj, "outcome", p->outcome);
        put_digest(obj, "verdict_digest", &p->verdict_digest);
    }
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

/* For people, and from anywhere: a text that is no text must not keep the row it explains from
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
    cJSON *obj = json_object();
    json_put_string(obj, "event", row_kind_name(row->kind));
    line_put_time(obj, row->time, row->behind_ms);
    if (row_kind_is_of_task(row->kind)) {
        json_put(obj, "task", task_part(row, cell, stage));
        if (row->attempt.no > 0) {
            json_put(obj, "attempt", attempt_part(&row->attempt));
        }
    } else {
        json_put(obj, "status", status_part(&row->status));
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

static int bad_name(const char *key, const char *name, struct err *err)
{
    return err_set(err, ERR_CORRUPT, "%s: \"%s\" is not a name of this version", key, name);
}

static int task_of_line(const cJSON *obj, struct state_row *row, struct err *err)
{
    const char *from = NULL;
    const char *state = NULL;
    const char *cause = NULL;
    const char *ending = NULL;
    int64_t index = 0;
    if (json_get_int(obj, "index", 0, UINT32_MAX - 1, &index, err) != 0 ||
        json_get_string(obj, "from", &from, err) != 0 ||
        json_get_string(obj, "state", &state, err) != 0 ||
        json_get_string(obj, "cause", &cause, err) != 0 ||
        json_get_string(obj, "ending", &ending, err) != 0 ||
        json_opt_string(obj, "apparatus", &row->apparatus, err) != 0 ||
        json_opt_string(obj, "stage", &row->stage, err) != 0) {
        return err->code;
    }
    row->task = (uint32_t)index;
    row->from = task_state_from_name(from);
    row->after.state = task_state_from_name(state);
    row->after.cause = cause_from_name(cause);
    row->after.ending = cause_from_name(ending);
    if (row->from == TASK_STATE_NR || row->after.state == TASK_STATE_NR) {
        return bad_name("state", state, err);
    }
    if (row->after.cause == CAUSE_NR || row->after.ending == CAUSE_NR) {
        return bad_name("cause", cause, err);
    }
    return get_fields(obj, TASK_FIELDS, ARRAY_LEN(TASK_FIELDS), &row->after, err);
}

static int end_of_line(const cJSON *obj, struct attempt_row *a, struct err *err)
{
    const char *cause = NULL;
    const char *reason = NULL;
    const char *section = NULL;
    int64_t code = 0;
    int64_t signal = 0;
    if (json_get_string(obj, "cause", &cause, err) != 0 ||
        json_get_string(obj, "reason", &reason, err) != 0 ||
        json_get_string(obj, "section", &section, err) != 0 ||
        json_get_int(obj, "code", -1, 255, &code, err) != 0 ||
        json_get_int(obj, "signal", 0, 255, &signal, err) != 0 ||
        json_opt_int(obj, "ran_ms", 0, JSON_INT_MAX, &a->ran_ms, err) != 0 ||
        get_time(obj, "ended", &a->ended, err) != 0) {
        return err->code;
    }
    a->code = (int)code;
    a->signal = (int)signal;
    a->cause = cause_from_name(cause);
    a->reason = end_reason_from_name(reason);
    a->section = section_from_name(section);
    if (a->cause == CAUSE_NR || a->reason == END_REASON_NR) {
        return bad_name("attempt", cause, err);
    }
    return get_fields(obj, ATTEMPT_FIELDS, ARRAY_LEN(ATTEMPT_FIELDS), a, err);
}

static int attempt_of_line(const cJSON *obj, struct attempt_row *a, struct err *err)
{
    const char *id = NULL;
    const char *state = NULL;
    int64_t no = 0;
    if (json_get_int(obj, "no", 1, UINT32_MAX, &no, err) != 0 ||
        json_get_string(obj, "id", &id, err) != 0 ||
        json_get_string(obj, "state", &state, err) != 0 ||
        get_time(obj, "started", &a->started, err) != 0) {
        return err->code;
    }
    a->no = (uint32_t)no;
    a->state = attempt_state_from_name(state);
    if (!uuid_is_valid(id) || a->state == ATTEMPT_STATE_NR) {
        return bad_name("attempt", id, err);
    }
    memcpy(a->id, id, sizeof(a->id));
    return a->state == ATTEMPT_ENDED ? end_of_line(obj, a, err) : 0;
}

static int status_of_line(const cJSON *obj, struct program_row *p, struct err *err)
{
    int64_t paused = 0;
    if (json_get_int(obj, "paused", 0, (1 << PAUSE_NR) - 1, &paused, err) != 0 ||
        json_opt_bool(obj, "unsealed", &p->unsealed, err) != 0 ||
        json_opt_bool(obj, "unblinded", &p->unblinded, err) != 0 ||
        json_opt_bool(obj, "verdict", &p->verdict, err) != 0 ||
        json_opt_bool(obj, "reported", &p->reported, err) != 0 ||
        json_opt_bool(obj, "failures_accepted", &p->failures_accepted, err) != 0) {
        return err->code;
    }
    p->paused = (unsigned)paused;
    if (!p->verdict) {
        return 0;
    }
    const char *outcome = NULL;
    if (json_get_string(obj, "outcome", &outcome, err) != 0) {
        return err->code;
    }
    (void)snprintf(p->outcome, sizeof(p->outcome), "%s", outcome);
    return get_digest(obj, "verdict_digest", &p->verdict_digest, err);
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
        rc = status_of_line(part, &row->status, err);
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
    struct err ignored;
    struct digest found;
    cJSON *line = NULL;
    if (json_parse(text, len, &line, &ignored) == 0 &&
        get_digest(json_member(line, "amendment"), "head", &found, &ignored) == 0) {
        digest_hex(&found, head);
    }
    cJSON_Delete(line);
}
