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
#include "truthtable/evidence/evidence.h"
#include "truthtable/instruments/items_file.h"

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The metrics of counted measures, by their stages and then by name. */
static struct binding_metrics *list_binding(const struct plan_program *p)
{
    struct binding_metrics *list = xcalloc(p->n_stages + 1, sizeof(*list));
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        struct binding_metrics *of = &list[m->stage];
        if (m->counted) {
            of->names = xreallocarray(of->names, of->n + 1, sizeof(*of->names));
            of->names[of->n++] = m->metric;
        }
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        if (list[s].n > 1) {
            qsort(list[s].names, list[s].n, sizeof(*list[s].names), by_text);
        }
    }
    return list;
}

/* Before the first result: whether there are items at all, which the listing says. */
static void begin(struct verifying *v)
{
    struct receipt_items *it = &v->items;
    if (it->said != NULL) {
        return;
    }
    it->said = xcalloc(v->history.n_tasks + 1, sizeof(*it->said));
    it->named = xcalloc(v->history.n_tasks + 1, sizeof(*it->named));
    it->used = xcalloc(v->files.n + 1, sizeof(*it->used));
    it->binding = list_binding(v->program);
    recount_init(&it->count);
    strbuf_init(&it->uncounted);
    for (size_t i = 0; i < v->files.n; i++) {
        it->present |= layout_is_items(v->files.items[i].name);
    }
}

void verify_items_release(struct verifying *v)
{
    struct receipt_items *it = &v->items;
    if (it->said != NULL) {
        recount_release(&it->count);
        strbuf_release(&it->uncounted);
        for (size_t s = 0; s < v->program->n_stages; s++) {
            free(it->binding[s].names);
        }
    }
    free(it->binding);
    free(it->said);
    free(it->named);
    free(it->used);
    *it = (struct receipt_items){0};
}

/* Notes scores of counted measures that were not counted again; `metric` is the first. */
static void add_uncounted(struct verifying *v, size_t task, size_t n, const char *metric)
{
    const struct plan_program *p = v->program;
    struct receipt_items *it = &v->items;
    it->n_uncounted += n;
    if (n > 0 && it->uncounted.len == 0) {
        strbuf_addf(&it->uncounted, "%s/%s.%s", p->cells[task / p->n_stages].name,
                    p->stages[task % p->n_stages].name, metric);
    }
}

/* A result that names no items: whatever it has of counted measures rests on its word. */
static void add_without(struct verifying *v, size_t task, const cJSON *result)
{
    const struct binding_metrics *of = &v->items.binding[task % v->program->n_stages];
    const cJSON *m = NULL;
    cJSON_ArrayForEach(m, json_member(result, "metrics"))
    {
        const char *name = m->string;
        if (of->n > 0 && name != NULL && evidence_value_of(m).state == VALUE_KNOWN &&
            bsearch(&name, of->names, of->n, sizeof(*of->names), by_text) != NULL) {
            add_uncounted(v, task, 1, name);
        }
    }
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
static int count(struct verifying *v, size_t task, const char *name, const cJSON *result)
{
    struct receipt_items *it = &v->items;
    const struct binding_metrics *binding = &it->binding[task % v->program->n_stages];
    const struct recount_result of = {.said = &it->said[task],
                                      .metrics = json_member(result, "metrics"),
                                      .binding = binding->names,
                                      .n_binding = binding->n};
    const size_t n_before = it->count.n_missed;
    const struct receipt_file *file = files_find(&v->files, name);
    if (file == NULL) {
        return err_set(v->err, ERR_LOCK,
                       "is missing: a receipt has the items of all results, or none");
    }
    it->used[file - v->files.items] = true;
    /* results may name one file many times */
    it->bytes += file->bytes;
    if (it->bytes > RECEIPT_COUNTED_MAX) {
        return err_set(v->err, ERR_LOCK,
                       "more than %lld GiB of items would be read, each file once for each result "
                       "that names it: export the program without items",
                       (long long)(RECEIPT_COUNTED_MAX >> 30));
    }
    const int fd = files_open_one(&v->files, name);
    if (fd < 0) {
        return err_set(v->err, ERR_LOCK, "was changed while the receipt was read");
    }
    char *path = xasprintf("/proc/self/fd/%d", fd);
    int rc = recount_items(path, &of, &it->count, v->err);
    free(path);
    (void)close(fd);
    add_uncounted(v, task, it->count.n_missed - n_before, it->count.missed.buf);
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
        if (it->present) {
            add_without(v, task, result);
        }
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
    int rc = count(v, task, name, result);
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
    if (it->count.n_scores == 0) {
        verifying_says(v, "no score could be counted again from the items of %zu %s%s",
                       it->n_results, text_plural((int64_t)it->n_results, "result", "results"),
                       others);
        return;
    }
    verifying_says(v, "%zu %s counted again from the items of %zu %s, and %s the same%s",
                   it->count.n_scores,
                   text_plural((int64_t)it->count.n_scores, "score was", "scores were"),
                   it->n_results, text_plural((int64_t)it->n_results, "result", "results"),
                   text_plural((int64_t)it->count.n_scores, "is", "are"), others);
    if (it->count.n_faulty > 0 || it->count.n_empty > 0) {
        char empty[200] = "";
        if (it->count.n_empty > 0) {
            (void)snprintf(empty, sizeof(empty),
                           "; %zu not at fault %s no value of a score of a counted measure (the "
                           "first: %.80s)",
                           it->count.n_empty,
                           text_plural((int64_t)it->count.n_empty, "has", "have"),
                           it->count.empty.buf);
        }
        verifying_says(v, "of %zu items %zu %s at fault and %s for no score%s", it->count.n_items,
                       it->count.n_faulty, text_plural((int64_t)it->count.n_faulty, "is", "are"),
                       text_plural((int64_t)it->count.n_faulty, "counts", "count"), empty);
    }
}

enum verify_basis verify_items_basis(const struct verifying *v)
{
    const struct receipt_items *it = &v->items;
    if (!it->present || it->count.n_scores == 0) {
        return BASIS_RECORDS;
    }
    return it->n_uncounted == 0 ? BASIS_ITEMS : BASIS_ITEMS_IN_PART;
}

int verify_items_end(struct verifying *v)
{
    const struct receipt_items *it = &v->items;
    begin(v); /* there may be no result at all */
    if (!it->present) {
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
    json_put_int(o, "uncounted", (int64_t)it->n_uncounted);
    json_put_string(o, "first_uncounted", it->n_uncounted == 0 ? NULL : it->uncounted.buf);
    json_put_int(o, "lines", (int64_t)it->count.n_items);
    json_put_int(o, "faulty", (int64_t)it->count.n_faulty);
    json_put_int(o, "empty", (int64_t)it->count.n_empty);
    json_put_string(o, "first_empty", it->count.n_empty == 0 ? NULL : it->count.empty.buf);
    json_put_bool(o, "instruments", it->same_instruments);
    json_put_string(o, "why", it->not_computed);
    return o;
}
