/*
 * The result that is accepted for a reused task, made of the receipt's text by rule alone, so that
 * every holder of the receipt gets the same bytes. Artifacts that are not here (weights) move to
 * "reused", where what was read of them is looked up; scores, facts and what was read stay as they
 * were.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/reuse/reuse_source.h"

#define ITEMS_FOLDER   "items"        /* of a receipt */
#define ACCEPTING_ADDS ((size_t)1024) /* bytes that accepting adds to a result */

/* The receipt's file of a result's items; NULL when it has none. */
static char *find_items(const struct reuse_source *src, const cJSON *record)
{
    const cJSON *sha256 = json_member(json_member(record, "items"), "sha256");
    struct digest d;
    struct err ignored;
    if (!cJSON_IsString(sha256) || digest_from_hex(sha256->valuestring, &d, &ignored) != 0) {
        return NULL;
    }
    char *path = xasprintf("%s/" ITEMS_FOLDER "/%s.jsonl", src->folder, sha256->valuestring);
    if (file_kind_at(path) != FILE_REGULAR) {
        free(path);
        return NULL;
    }
    return path;
}

/* The artifacts that stay: the items, if they are here. */
static cJSON *kept_artifacts(const cJSON *result, bool has_items)
{
    const cJSON *items = json_member(result, "items");
    const cJSON *a = NULL;
    cJSON *list = json_array();
    cJSON_ArrayForEach(a, json_member(result, "artifacts"))
    {
        if (has_items && json_equal(json_member(a, "path"), items)) {
            json_push(list, json_copy(a));
            break;
        }
    }
    return list;
}

/* Where the result is from, with what it states of files that are not here. */
static cJSON *reused_of(const struct reuse_source *src, size_t task, const cJSON *result)
{
    const struct plan_program *p = src->program;
    const cJSON *artifacts = json_member(result, "artifacts");
    char hex[DIGEST_HEX_SIZE];
    char *name =
        xasprintf("%s/%s", p->cells[task / p->n_stages].name, p->stages[task % p->n_stages].name);
    cJSON *o = json_object();
    json_put_string(o, "root", src->lock->root);
    json_put_string(o, "task", name);
    digest_hex(&src->records[task].text, hex);
    json_put_string(o, "sha256", hex);
    json_put(o, "artifacts", artifacts == NULL ? json_array() : json_copy(artifacts));
    free(name);
    return o;
}

/* The members in their order, then "reused". */
static cJSON *build(const struct reuse_source *src, size_t task, const cJSON *result,
                    bool has_items)
{
    cJSON *o = json_object();
    const cJSON *m = NULL;
    cJSON_ArrayForEach(m, result)
    {
        if (strcmp(m->string, "artifacts") == 0) {
            json_put(o, m->string, kept_artifacts(result, has_items));
        } else if (strcmp(m->string, "reused") != 0 &&
                   (has_items || strcmp(m->string, "items") != 0)) {
            json_put(o, m->string, json_copy(m));
        }
    }
    json_put(o, "reused", reused_of(src, task, result));
    return o;
}

int reuse_text(const struct reuse_source *src, size_t task, struct strbuf *out, char **items,
               char **name, struct err *err)
{
    const struct reuse_record *r = &src->records[task];
    cJSON *record = NULL;
    cJSON *result = NULL;
    const char *text = NULL;
    char *file = NULL;
    int rc = json_parse(r->line, strlen(r->line), &record, err);
    if (rc != 0 || (rc = json_get_string(record, "result", &text, err)) != 0) {
        goto out;
    }
    const struct digest found = digest_bytes(text, strlen(text));
    if (!digest_equal(&found, &r->text)) {
        rc = err_set(err, ERR_LOCK, "a result in " REUSE_RECORDS " is not what its digest says");
        goto out;
    }
    if ((rc = json_parse_lax(text, strlen(text), &result, err)) != 0) {
        goto out;
    }
    file = find_items(src, record);
    cJSON *made = build(src, task, result, file != NULL);
    rc = json_line(made, out, err);
    strbuf_addc(out, '\n');
    if (rc == 0 && out->len + ACCEPTING_ADDS > LAYOUT_RESULT_MAX) {
        rc = err_set(err, ERR_INVALID,
                     "a result of %.100s is too large to be accepted again (%zu bytes): list the "
                     "cells without it",
                     src->program->cells[task / src->program->n_stages].name, out->len);
    }
    if (rc == 0 && file != NULL && items != NULL) {
        const cJSON *path = json_member(result, "items");
        *items = file;
        *name = xstrdup(cJSON_IsString(path) ? path->valuestring : "");
        file = NULL;
    }
    cJSON_Delete(made);
out:
    free(file);
    cJSON_Delete(result);
    cJSON_Delete(record);
    return rc;
}
