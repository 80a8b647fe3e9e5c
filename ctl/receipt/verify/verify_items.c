/* Counts the scores of each result again from its items, where the receipt has them. A receipt with
 * one items file has those of every result that names some, and no other, so that nothing can be
 * left out. The files are read by descriptor, and recount_items() takes only the bytes that the
 * result names. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "truthtable/instruments/items_file.h"

/* On the first result: whether there are items at all, which the listing says. */
static void begin(struct verifying *v)
{
    struct receipt_items *it = &v->items;
    if (it->said != NULL) {
        return;
    }
    it->said = xcalloc(v->history.n_tasks, sizeof(*it->said));
    it->named = xcalloc(v->history.n_tasks, sizeof(*it->named));
    it->used = xcalloc(v->files.n + 1, sizeof(*it->used));
    recount_init(&it->count);
    for (size_t i = 0; i < v->files.n; i++) {
        it->present |= layout_is_items(v->files.items[i].name);
    }
}

void verify_items_release(struct verifying *v)
{
    if (v->items.said != NULL) {
        recount_release(&v->items.count);
    }
    free(v->items.said);
    free(v->items.named);
    free(v->items.used);
    v->items = (struct receipt_items){0};
}

/* Whether some metric of a result has a number. */
static bool has_scores(const cJSON *result)
{
    const cJSON *m = NULL;
    cJSON_ArrayForEach(m, json_member(result, "metrics"))
    {
        if (cJSON_IsNumber(m) || cJSON_IsNumber(json_member(m, "value"))) {
            return true;
        }
    }
    return false;
}

/* Reads the file of those bytes and counts. */
static int count(struct verifying *v, const char *name, const struct digest *said,
                 const cJSON *result)
{
    const struct receipt_file *file = files_find(&v->files, name);
    if (file == NULL) {
        return err_set(v->err, ERR_LOCK,
                       "is missing: a receipt has the items of all results, or none");
    }
    v->items.used[file - v->files.items] = true;
    const int fd = files_open_one(&v->files, name);
    if (fd < 0) {
        return err_set(v->err, ERR_LOCK, "was changed while the receipt was read");
    }
    char *path = xasprintf("/proc/self/fd/%d", fd);
    int rc = recount_items(path, said, json_member(result, "metrics"), &v->items.count, v->err);
    free(path);
    (void)close(fd);
    return rc == 0 ? 0 : mismatch_code(v->err);
}

int verify_items(struct verifying *v, size_t task, const cJSON *result)
{
    struct receipt_items *it = &v->items;
    const struct err at = *v->err; /* the record's place */
    const char *ignored = NULL;
    char hex[DIGEST_HEX_SIZE];
    char name[sizeof(RECEIPT_ITEMS) + DIGEST_HEX_SIZE + 8];
    const cJSON *names = json_member(result, "items");
    begin(v);
    if (names == NULL || cJSON_IsNull(names)) {
        it->n_without += has_scores(result) ? 1 : 0;
        return 0;
    }
    struct err other = {0};
    if (items_of_result(result, &ignored, &it->said[task], &other) != 0) {
        return it->present ? err_set(v->err, ERR_LOCK, "%.200s", other.msg) : 0;
    }
    it->named[task] = true;
    if (!it->present) {
        return 0;
    }
    digest_hex(&it->said[task], hex);
    (void)snprintf(name, sizeof(name), RECEIPT_ITEMS "/%s.jsonl", hex);
    err_at(v->err, name, 0);
    int rc = count(v, name, &it->said[task], result);
    if (rc == 0) {
        it->n_results++;
        *v->err = at;
    }
    return rc;
}

/* What the items could establish, in a sentence. */
static void say(struct verifying *v)
{
    const struct receipt_items *it = &v->items;
    char others[200] = "";
    if (it->count.n_others > 0) {
        (void)snprintf(others, sizeof(others),
                       "; of %zu more the items do not say how they are made of them (the first: "
                       "%.80s)",
                       it->count.n_others, it->count.other.buf);
    }
    verifying_says(v, "%zu %s counted again from the items of %zu %s, and %s the same%s",
                   it->count.n_scores,
                   text_plural((int64_t)it->count.n_scores, "score was", "scores were"),
                   it->n_results, text_plural((int64_t)it->n_results, "result", "results"),
                   text_plural((int64_t)it->count.n_scores, "is", "are"), others);
}

int verify_items_end(struct verifying *v)
{
    const struct receipt_items *it = &v->items;
    if (it->said == NULL || !it->present) {
        return 0;
    }
    for (size_t i = 0; i < v->files.n; i++) {
        if (layout_is_items(v->files.items[i].name) && !it->used[i]) {
            err_at(v->err, v->files.items[i].name, 0);
            return err_set(v->err, ERR_LOCK, "no accepted result names these items");
        }
    }
    say(v);
    return 0;
}

cJSON *verify_items_json(const struct verifying *v)
{
    const struct receipt_items *it = &v->items;
    if (!it->present) {
        return cJSON_CreateNull();
    }
    cJSON *o = json_object();
    json_put_int(o, "results", (int64_t)it->n_results);
    json_put_int(o, "scores", (int64_t)it->count.n_scores);
    json_put_int(o, "others", (int64_t)it->count.n_others);
    json_put_string(o, "other", it->count.n_others == 0 ? NULL : it->count.other.buf);
    json_put_int(o, "without", (int64_t)it->n_without);
    json_put_bool(o, "instruments", it->same_instruments);
    json_put_string(o, "why", it->not_computed);
    return o;
}
