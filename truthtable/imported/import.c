/*
 * Turns the files of a map into records. Each source is one results file for one cell; its tasks
 * become records of the stages that name them. Every file gets a receipt with its digest and what
 * was checked. Contradictions are errors: two files for one task, one file for two cells, samples
 * that do not give the results. What merely differs becomes a warning. Nothing is executed and
 * nothing is written here.
 */
#include "truthtable/imported/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "truthtable/evaluate/verdict.h"
#include "truthtable/evidence/evidence.h"

/* ---- one task ---- */

/* Records which file speaks for a task; a second file for it is an error. */
static int claim(struct import *im, size_t cell, size_t stage, const char *path, struct err *err)
{
    const char **owner = &im->owners[cell * im->program->n_stages + stage];
    if (*owner != NULL) {
        return err_set(err, ERR_REFUSED, "two files for %.60s %.40s: %s and %s",
                       im->program->cells[cell].name, im->program->stages[stage].name, *owner,
                       path);
    }
    *owner = path;
    return 0;
}

/* By `limit`, or by the count of a drawn subset, which prereg-eval's files give as their limit. */
static double planned_limit(const struct import *im, const struct import_task *t)
{
    cJSON *params = program_task_params(im->program, t->stage, t->cell);
    const cJSON *limit = json_member(params, "limit");
    if (limit == NULL) {
        limit = json_member(json_member(params, "items"), "count");
    }
    const double planned = cJSON_IsNumber(limit) ? limit->valuedouble : (double)NAN;
    cJSON_Delete(params);
    return planned;
}

/* Whether items were left out; `unsaid` is the answer where n-samples do not give the number. */
static bool left_out(const struct import_task *t, bool unsaid)
{
    const cJSON *counts = json_member(t->results->json, "n-samples");
    bool out = false;
    for (size_t i = 0; i < t->n_leaves; i++) {
        const cJSON *original = json_member(json_member(counts, t->leaves[i]->task), "original");
        const bool said = cJSON_IsNumber(original) && t->leaves[i]->has_n;
        out = out || (said ? original->valuedouble != (double)t->leaves[i]->n : unsaid);
    }
    return out;
}

/* A limited run is accepted only if the plan states the number of items. Without it a score on
 * twenty items would pass for one on all. */
static int check_limit(struct import *im, const struct import_task *t, struct err *err)
{
    const struct plan_program *p = im->program;
    const struct imported_results *r = t->results;
    if (!left_out(t, r->has_limit) || (r->has_limit && r->limit == planned_limit(im, t))) {
        return 0; /* a limit that left nothing out is not a limit */
    }
    if (!r->has_limit) {
        import_warn(im, "%s %s: items were left out, and no limit is given: %lld were scored",
                    p->cells[t->cell].name, p->stages[t->stage].name, (long long)t->entry->n);
        return 0;
    }
    if (!t->entry->has_n) {
        return err_set(err, ERR_REFUSED,
                       "%s: a limited run (limit %g), and no n-samples say how many items of %.60s "
                       "were scored",
                       r->path, r->limit, t->entry->task);
    }
    for (size_t i = 0; i < p->n_measures; i++) {
        if (p->measures[i].stage == t->stage && !p->measures[i].has_items) {
            return err_set(err, ERR_REFUSED,
                           "%s: a limited run (limit %g, %lld items), and measure %s says no "
                           "`items` to hold it against",
                           r->path, r->limit, (long long)t->entry->n, p->measures[i].name);
        }
    }
    import_warn(im, "limited run: %s was scored on %lld items only (limit %g)",
                p->stages[t->stage].name, (long long)t->entry->n, r->limit);
    return 0;
}

/* A measure without its metric is undetermined; a warning says so in advance. */
static void warn_metrics(struct import *im, const struct import_task *t, const cJSON *record)
{
    const struct plan_program *p = im->program;
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        if (m->stage == t->stage &&
            json_member(json_member(record, "metrics"), m->metric) == NULL) {
            import_warn(im, "measure %s reads %s, which task %.60s does not have", m->name,
                        m->metric_text, t->entry->task);
        }
    }
}

/* Reads one task of one results file: its samples, its limit, its settings, and then its record. */
static int take_task(struct import *im, const struct map_source *source, struct import_task *t,
                     struct err *err)
{
    cJSON *record = json_object();
    int rc = claim(im, t->cell, t->stage, source->results, err);
    if (rc != 0 ||
        (rc = results_leaves(t->results, t->entry, &t->leaves, &t->n_leaves, err)) != 0 ||
        (rc = sampled_check(im, t, source, err)) != 0 /* may say how many items there were */ ||
        (rc = check_limit(im, t, err)) != 0) {
        goto out;
    }
    settings_note(im, t);
    json_put_string(record, "cell", im->program->cells[t->cell].name);
    json_put_string(record, "stage", im->program->stages[t->stage].name);
    json_put_string(record, "end", "done");
    import_put_path(im, record, "from", source->results);
    if ((rc = metrics_put(im, t, record, err)) != 0) {
        goto out;
    }
    warn_metrics(im, t, record);
    json_push(im->list, record);
    record = NULL; /* the list's from here on */
out:
    cJSON_Delete(record);
    return rc;
}

/* ---- one results file ---- */

/* Names the tasks that the file does have. */
static int no_such_task(const struct imported_results *r, const char *task, const char *stage,
                        struct err *err)
{
    struct strbuf names = STRBUF_INIT;
    for (size_t i = 0; i < r->n_entries && names.len < 80; i++) {
        strbuf_addf(&names, "%s%.40s", i == 0 ? "" : ", ", r->entries[i].task);
    }
    int rc = err_set(err, ERR_NOT_FOUND,
                     "%s holds no task \"%.60s\" for stage %s, only: %s (\"tasks\" of the map says "
                     "which is meant)",
                     r->path, task, stage, names.buf);
    strbuf_release(&names);
    return rc;
}

/* What the file says of its origin; null where it says nothing. */
static void put_origin(cJSON *receipt, const struct imported_results *r)
{
    static const char *const keys[] = {"date", "lm_eval_version", "git_hash"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const cJSON *v = json_member(r->json, keys[i]);
        json_put(receipt, keys[i],
                 cJSON_IsNumber(v) || cJSON_IsString(v) ? json_copy(v) : cJSON_CreateNull());
    }
    if (r->has_limit) {
        json_put_number(receipt, "limit", r->limit);
    }
    if (r->shape.format != NULL) {
        json_put_string(receipt, "format", r->shape.format);
        json_put_string(receipt, "checked", r->shape.checked.buf);
    }
}

/* Recomputes every group of the file and notes in the receipt how its figures were confirmed. */
static int check_groups(struct imported_results *r, cJSON *receipt, struct err *err)
{
    cJSON *groups = json_object();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->n_entries; i++) {
        const char *how = "";
        if (r->entries[i].n_members > 0) {
            rc = results_check_group(r, &r->entries[i], &how, err);
            if (rc == ERR_REFUSED) {
                rc = 0; /* its tasks are not all here: said where it is asked for */
            }
            json_put_string(groups, r->entries[i].task, how[0] == '\0' ? "not recomputed" : how);
        }
    }
    if (groups->child != NULL) {
        json_put(receipt, "groups", groups);
    } else {
        cJSON_Delete(groups);
    }
    return rc;
}

/* The stages whose task the file holds. A map that names the stage makes a missing task an
 * error. */
static int take_stages(struct import *im, const struct map_source *source,
                       struct imported_results *r, cJSON *receipt, struct err *err)
{
    const struct plan_program *p = im->program;
    cJSON *stages = json_array();
    json_put(receipt, "stages", stages);
    int rc = 0;
    for (size_t s = 0; rc == 0 && s < p->n_stages; s++) {
        if (source->stage != INDEX_NONE && source->stage != s) {
            continue;
        }
        const char *task = map_task(im->map, s, source->cell);
        struct import_task t = {.cell = source->cell, .stage = s, .results = r};
        t.entry = results_find(r, task);
        /* The map names this stage, so its task must be there. */
        if (t.entry == NULL && source->stage == s) {
            return no_such_task(r, task, p->stages[s].name, err);
        }
        if (t.entry != NULL) {
            json_push_string(stages, p->stages[s].name);
            rc = take_task(im, source, &t, err);
        }
    }
    if (rc == 0 && stages->child == NULL) {
        return no_such_task(r, "of the program", "any", err);
    }
    return rc;
}

/* The same file under two names cannot be two cells, either. Bytes alone: a results file holds its
 * time and its model. */
static int check_copy(const struct import *im, const struct map_source *source,
                      const struct imported_results *r, struct err *err)
{
    const char *cell = im->program->cells[source->cell].name;
    const cJSON *v = NULL;
    char hex[DIGEST_HEX_SIZE];
    digest_hex(&r->digest, hex);
    cJSON_ArrayForEach(v, im->receipts)
    {
        if (strcmp(json_member(v, "kind")->valuestring, "results") == 0 &&
            strcmp(json_member(v, "sha256")->valuestring, hex) == 0 &&
            strcmp(json_member(v, "cell")->valuestring, cell) != 0) {
            return err_set(err, ERR_REFUSED, "%s, for %.60s, is byte for byte the file of %.60s",
                           source->results, cell, json_member(v, "cell")->valuestring);
        }
    }
    return 0;
}

/* One results file. Its receipt exists before anything is checked. */
static int take_source(struct import *im, const struct map_source *source, struct err *err)
{
    struct imported_results r;
    int rc = results_read(&r, source->results, err);
    if (rc != 0 || (rc = check_copy(im, source, &r, err)) != 0) {
        goto out;
    }
    cJSON *receipt = import_receipt(im, "results", source->results, &r.digest, r.n_bytes);
    json_put_string(receipt, "cell", im->program->cells[source->cell].name);
    put_origin(receipt, &r);
    if (r.shape.format != NULL && !r.shape.recomputed) {
        import_warn(im, "%s: %s", r.shape.format, r.shape.checked.buf);
    }
    if ((rc = take_stages(im, source, &r, receipt, err)) == 0) {
        rc = check_groups(&r, receipt, err);
    }
out:
    results_release(&r);
    return rc;
}

/* Sources of the same path become adjacent. */
static int by_results(const void *a, const void *b)
{
    const struct map_source *const *x = a;
    const struct map_source *const *y = b;
    return strcmp((*x)->results, (*y)->results);
}

/* The same results file cannot be two cells. */
static int check_twice(const struct map *map, struct err *err)
{
    const struct map_source **sorted = xcalloc(map->n_sources + 1, sizeof(*sorted));
    int rc = 0;
    for (size_t i = 0; i < map->n_sources; i++) {
        sorted[i] = &map->sources[i];
    }
    if (map->n_sources > 1) {
        qsort(sorted, map->n_sources, sizeof(*sorted), by_results);
    }
    for (size_t i = 1; rc == 0 && i < map->n_sources; i++) {
        const struct map_source *s = sorted[i - 1];
        if (s->cell != sorted[i]->cell && strcmp(s->results, sorted[i]->results) == 0) {
            rc = err_set(err, ERR_REFUSED, "%s is given for %.60s and for %.60s", s->results,
                         map->program->cells[s->cell].name,
                         map->program->cells[sorted[i]->cell].name);
        }
    }
    free(sorted);
    return rc;
}

/* ---- records as they are ---- */

/* A record from a records file, copied with its origin. */
static int take_record(struct import *im, const cJSON *record, const char *path, struct err *err)
{
    const char *cell = NULL;
    const char *stage = NULL;
    int rc = json_get_string(record, "cell", &cell, err);
    if (rc != 0 || (rc = json_get_string(record, "stage", &stage, err)) != 0) {
        return rc;
    }
    const size_t of_cell = program_find_cell(im->program, cell);
    const size_t of_stage = program_find_stage(im->program, stage);
    if (of_cell == INDEX_NONE || of_stage == INDEX_NONE) {
        return err_set(err, ERR_INVALID, "%.80s/%.80s is not a task of %s", cell, stage,
                       im->program->name);
    }
    /* Twice in one file: undetermined, as in a verdict that is only printed. */
    if (im->owners[of_cell * im->program->n_stages + of_stage] != path &&
        (rc = claim(im, of_cell, of_stage, path, err)) != 0) {
        return rc;
    }
    cJSON *copy = json_copy(record);
    cJSON_DeleteItemFromObjectCaseSensitive(copy, "from");
    import_put_path(im, copy, "from", path);
    json_push(im->list, copy);
    return 0;
}

/* A file of replay's schema, read once: its digest, the proof that it is whole and of this program
 * (reading it as evidence) and its records are of the same bytes. */
static int take_records(struct import *im, const char *path, struct err *err)
{
    struct evidence e;
    struct strbuf text = STRBUF_INIT;
    cJSON *file = NULL;
    evidence_init(&e, im->program);
    int rc = file_read(path, LAYOUT_RECORDS_MAX, &text, err);
    if (rc != 0) {
        goto out;
    }
    if (evidence_read_text(&e, text.buf, text.len, err) != 0 ||
        json_parse_lax(text.buf, text.len, &file, err) != 0) {
        rc = err_wrap(err, "%s", path);
        goto out;
    }
    const struct digest digest = digest_bytes(text.buf, text.len);
    cJSON *receipt = import_receipt(im, "records", path, &digest, (int64_t)text.len);
    json_put_string(receipt, "label", e.label);
    if (im->map->label_of_records) {
        cJSON_DeleteItemFromObjectCaseSensitive(im->records, "label");
        json_put_string(im->records, "label", e.label);
    }
    const cJSON *list = json_member(file, "records");
    for (const cJSON *v = list->child; rc == 0 && v != NULL; v = v->next) {
        rc = take_record(im, v, path, err);
    }
out:
    cJSON_Delete(file);
    strbuf_release(&text);
    evidence_release(&e);
    return rc;
}

/* ---- all ---- */

/* The empty import; the label says where the records come from. */
static void start(struct import *im, const struct plan_program *p, struct map *map)
{
    *im = (struct import){.program = p, .map = map};
    im->owners = xcalloc(program_n_tasks(p) + 1, sizeof(*im->owners));
    im->receipts = json_array();
    im->warnings = json_array();
    im->settings = json_object();
    im->models = json_object();
    im->records = json_object();
    im->list = json_array();
    char *label = map->label == NULL ? xstrdup("imported") : xasprintf("imported: %s", map->label);
    json_put_int(im->records, "schema", 1);
    json_put_string(im->records, "program", p->name);
    json_put_string(im->records, "label", label);
    json_put(im->records, "records", im->list);
    free(label);
}

/* Patterns without a file, and the number of tasks without a record. */
static void warn_missing(struct import *im)
{
    size_t n = 0;
    const size_t n_tasks = program_n_tasks(im->program);
    const cJSON *v = NULL;
    cJSON_ArrayForEach(v, im->map->unmatched)
    {
        import_warn(im, "%s", v->valuestring);
    }
    for (size_t i = 0; i < n_tasks; i++) {
        n += im->owners[i] == NULL ? 1 : 0;
    }
    if (n > 0) {
        import_warn(im, "%zu of %zu planned %s no record: what depends on %s is undetermined", n,
                    n_tasks,
                    n_tasks == 1 ? "task has"
                    : n == 1     ? "tasks has"
                                 : "tasks have",
                    text_plural((int64_t)n, "it", "them"));
    }
}

/* Sources in the order of the map, then files of records; settings are compared once all are
 * known. */
int import_run(struct import *im, const struct plan_program *p, struct map *map, struct err *err)
{
    start(im, p, map);
    int rc = check_twice(map, err);
    for (size_t i = 0; rc == 0 && i < map->n_sources; i++) {
        rc = take_source(im, &map->sources[i], err);
    }
    for (size_t i = 0; rc == 0 && i < map->n_records; i++) {
        rc = take_records(im, map->records[i], err);
    }
    if (rc == 0 && im->list->child == NULL && map->n_records == 0) {
        rc = err_set(err, ERR_REFUSED, "no file was found for any cell of %s", p->name);
    }
    if (rc == 0) {
        settings_compare(im);
        warn_missing(im);
    }
    return rc;
}

/* Valid after any failure of import_run(). */
void import_release(struct import *im)
{
    cJSON_Delete(im->records);
    cJSON_Delete(im->receipts);
    cJSON_Delete(im->warnings);
    cJSON_Delete(im->settings);
    cJSON_Delete(im->models);
    free(im->owners);
    *im = (struct import){0};
}
