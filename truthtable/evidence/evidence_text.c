/*
 * Reads records.json with a pull parser, record by record: a file of hundreds of megabytes holds
 * the text and one record in memory, not a tree. Members may come in any order; if schema and
 * program come before the records, they are checked first, and otherwise at the end. Messages name
 * the record and its line and column.
 */
#include <string.h>

#include "base/files/file.h"
#include "base/json/json_arena.h"
#include "base/json/json_pull.h"
#include "truthtable/evidence/evidence.h"

struct reading_text {
    struct evidence *e;
    struct json_pull pull;
    struct arena head_arena;
    struct arena arena; /* of one record */
    cJSON *head;        /* the members beside "records" */
    bool has_records;
};

/* One element of "records". Its tree is dropped before the next. */
static int read_record(struct reading_text *r, enum json_token token, size_t index, struct err *err)
{
    const size_t at = r->pull.at;
    cJSON *record = NULL;
    arena_clear(&r->arena);
    int rc = json_pull_value(&r->pull, token, &r->arena, &record, err);
    if (rc != 0) {
        return rc;
    }
    rc = evidence_add_record(r->e, record, err);
    if (rc != 0) {
        (void)err_wrap(err, "record %zu", index);
        (void)json_pull_wrap(&r->pull, at, err);
    }
    return rc;
}

/* The array of records. */
static int read_list(struct reading_text *r, enum json_token token, struct err *err)
{
    const char *label = NULL;
    int rc = 0;
    r->has_records = true;
    if (token != JSON_ARRAY) {
        return err_set(err, ERR_SYNTAX, "\"records\" is not an array");
    }
    /* Records of another program fail here, with one message instead of one for the first record.
     */
    if (json_member(r->head, "schema") != NULL && json_member(r->head, "program") != NULL) {
        rc = evidence_check_head(r->e, r->head, &label, err);
    }
    for (size_t i = 0; rc == 0; i++) {
        rc = json_pull_next(&r->pull, &token, err);
        if (rc != 0 || token == JSON_ARRAY_END) {
            return rc;
        }
        rc = read_record(r, token, i, err);
    }
    return rc;
}

/* One member of the whole: the records, one of the head's, or an unknown one, which is skipped. */
static int read_member(struct reading_text *r, struct err *err)
{
    enum json_token token;
    cJSON *value = NULL;
    const char *key = arena_strdup(&r->head_arena, r->pull.string.buf);
    int rc = json_pull_next(&r->pull, &token, err);
    if (rc != 0) {
        return rc;
    }
    if (strcmp(key, "records") == 0) {
        return read_list(r, token, err);
    }
    if (strcmp(key, "schema") != 0 && strcmp(key, "program") != 0 && strcmp(key, "label") != 0) {
        return json_pull_skip(&r->pull, token, err);
    }
    rc = json_pull_value(&r->pull, token, &r->head_arena, &value, err);
    if (rc == 0) {
        json_arena_add(r->head, key, value);
    }
    return rc;
}

/* The outermost object; nothing may follow it. */
static int read_members(struct reading_text *r, struct err *err)
{
    enum json_token token;
    int rc = json_pull_next(&r->pull, &token, err);
    if (rc == 0 && token != JSON_OBJECT) {
        return err_set(err, ERR_SYNTAX, "records are an object with \"schema\"");
    }
    while (rc == 0) {
        rc = json_pull_next(&r->pull, &token, err);
        if (rc != 0 || token == JSON_OBJECT_END) {
            break;
        }
        rc = read_member(r, err);
    }
    return rc == 0 ? json_pull_next(&r->pull, &token, err) : rc; /* nothing may follow */
}

/* `label` is set last: it also marks the evidence as imported. */
int evidence_read_text(struct evidence *e, const char *text, size_t len, struct err *err)
{
    struct reading_text r = {.e = e};
    const char *label = NULL;
    arena_init(&r.head_arena);
    arena_init(&r.arena);
    json_pull_init(&r.pull, text, len, true);
    r.head = json_arena_new(&r.head_arena, cJSON_Object);
    int rc = read_members(&r, err);
    if (rc != 0 || (rc = evidence_check_head(e, r.head, &label, err)) != 0) {
        goto out;
    }
    if (!r.has_records) {
        rc = err_set(err, ERR_SYNTAX, "\"records\" is missing");
        goto out;
    }
    e->label = arena_strdup(&e->arena, label);
out:
    json_pull_release(&r.pull);
    arena_release(&r.arena);
    arena_release(&r.head_arena);
    return rc;
}

int evidence_read_file(struct evidence *e, const char *path, size_t max_bytes, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_read(path, max_bytes, &text, err);
    if (rc == 0 && evidence_read_text(e, text.buf, text.len, err) != 0) {
        rc = err_wrap(err, "%s", path);
    }
    strbuf_release(&text);
    return rc;
}
