/*
 * The error of a contrast from its items. For every pair of cells that is left, both items.jsonl
 * are read and their values subtracted item by item; the mean over items then has a standard error,
 * alone and in clusters. A file is used only if its digest is the one that the result names,
 * because the verdict rests on that result. The trainings are taken as given: this error says
 * nothing about replicates.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "truthtable/condition/equal_pairs.h"
#include "truthtable/instruments/instrument_work.h"
#include "truthtable/instruments/items_error.h"
#include "truthtable/instruments/items_table.h"

struct items {
    struct instrument_entry *t;
    const struct work *w;
    size_t contrast;
    const char *cluster; /* field, or NULL */
    enum truth any, all; /* intervals that leave 0 out */
    struct spread mean, size, se;
    const char **shown;
    size_t n_shown;
    size_t n_open;
    size_t n;
    const char *why;
};

/* Messages name no path: the location of the program's folder does not belong in a report, and a
 * long one would leave no room for the reason. */
static int read_result(const char *path, cJSON **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_kind_at(path) == FILE_REGULAR
                 ? file_read(path, LAYOUT_RESULT_MAX, &text, err)
                 : err_set(err, ERR_NOT_FOUND, "there is no result.json");
    if (rc == 0 && json_parse_lax(text.buf, text.len, out, err) != 0) {
        rc = err_wrap(err, LAYOUT_RESULT);
    } else if (rc != 0 && rc != ERR_NOT_FOUND) {
        rc = err_set(err, rc, "result.json cannot be read");
    }
    strbuf_release(&text);
    return rc;
}

/* What a result says of its items: the file beside the result itself, and its digest. */
static int items_named(const char *task_folder, char **path, struct digest *digest, struct err *err)
{
    char *link = path_join(task_folder, LAYOUT_RESULT);
    /* Items are beside the result in the attempt's folder, to which the link points. */
    char *real = realpath(link, NULL);
    cJSON *result = NULL;
    const char *name = NULL;
    int rc = read_result(link, &result, err);
    if (rc != 0 || (rc = items_of_result(result, &name, digest, err)) != 0) {
        goto out;
    }
    if (real == NULL) {
        rc = err_set(err, ERR_NOT_FOUND, "the result names no items");
        goto out;
    }
    char *folder = path_folder(real);
    *path = path_join(folder, name);
    free(folder);
out:
    cJSON_Delete(result);
    free(real);
    free(link);
    return rc;
}

/* A reason is shown to strangers: no path of this machine stays in it. */
static void cut_folder(struct err *err, const char *path)
{
    char *folder = path == NULL ? NULL : path_folder(path);
    char *at = folder == NULL ? NULL : strstr(err->msg, folder);
    if (at != NULL) {
        const char *rest = at + strlen(folder);
        rest += *rest == '/' ? 1 : 0;
        memmove(at, rest, strlen(rest) + 1);
    }
    free(folder);
}

/* Reads one cell's items into the table, and compares the digest afterwards: the bytes hashed are
 * the bytes read. */
static int read_cell(const struct items *it, const struct plan_measure *m, size_t cell,
                     struct items_table *table, struct err *err)
{
    const struct plan_program *p = it->w->p;
    char *folder = layout_task(it->w->in->folder, p->cells[cell].folder, p->stages[m->stage].name);
    char *path = NULL;
    struct digest said = {0};
    struct digest found = {0};
    struct items_stream s;
    items_stream_init(&s, m->metric, it->cluster, items_table_take, table);
    const struct instruments_items *elsewhere = it->w->in->items;
    int rc = elsewhere != NULL ? elsewhere->find(elsewhere->ctx, cell, m->stage, &path, &said, err)
                               : items_named(folder, &path, &said, err);
    if (rc == 0 && (rc = items_file_read(&s, path, &found, err)) == 0 &&
        !digest_equal(&said, &found)) {
        rc = err_set(err, ERR_CORRUPT, "items.jsonl is not the one the result is of");
    }
    if (rc != 0) {
        char *result = path_join(folder, LAYOUT_RESULT);
        cut_folder(err, path);
        cut_folder(err, result);
        free(result);
    }
    items_stream_release(&s);
    free(path);
    free(folder);
    return rc;
}

/* Every pair of cells that is left, both sides; how many there are. Why not, or NULL. */
static const char *read_pairs(const struct items *it, size_t m, struct items_table *table,
                              size_t *n_pairs)
{
    const struct layout *l = &it->w->ev->rules->layout;
    const struct plan_program *p = it->w->p;
    *n_pairs = 0;
    if (contrast_is_equal(p, l, it->contrast, m)) {
        return EQUAL_WHY;
    }
    for (size_t i = 0; i < l->contrasts[it->contrast].n_settings * l->n_replicates; i++) {
        size_t s = i / l->n_replicates;
        size_t r = i % l->n_replicates;
        const size_t cells[2] = {layout_pair_a(l, it->contrast, s, r),
                                 layout_pair_b(l, it->contrast, s, r)};
        if (work_score(it->w, m, cells[0])->excluded || work_score(it->w, m, cells[1])->excluded) {
            continue;
        }
        for (size_t side = 0; side < 2; side++) {
            struct err err = {0};
            const char *why = point_why(&work_score(it->w, m, cells[side])->value);
            /* Arm a adds, arm b subtracts. */
            items_table_begin(table, side == 0 ? 1 : -1);
            /* A cell without a score is not read: its items could not be those of a score. */
            if (why == NULL && read_cell(it, &p->measures[m], cells[side], table, &err) != 0) {
                why = err.msg;
            }
            if (why != NULL) {
                return arena_printf(it->w->arena, "%s: %s", p->cells[cells[side]].name, why);
            }
        }
        ++*n_pairs;
    }
    return *n_pairs > 0 ? NULL : "no pair of cells is left";
}

/* The members of "paired" and "clustered". */
static cJSON *error_json(const struct item_error *e, bool clustered)
{
    bool ok = e->why == NULL;
    cJSON *o = json_object();
    json_put_number(o, "mean", ok ? e->mean : (double)NAN);
    json_put_number(o, "se", ok ? e->se : (double)NAN);
    json_put_number(o, "ci_low", ok ? e->t_low : (double)NAN);
    json_put_number(o, "ci_high", ok ? e->t_high : (double)NAN);
    json_put_number(o, "df", ok ? e->df : (double)NAN);
    if (clustered) {
        json_put_int(o, "n_clusters", (int64_t)e->n_clusters);
    }
    json_put_string(o, "why", e->why);
    return o;
}

/* Adds a measure to the fields: by clusters where they are declared, else by single items. */
static void add_up(struct items *it, const char *measure, const struct item_error *e)
{
    bool ok = e->why == NULL;
    enum truth out = ok ? truth_of(e->t_low > 0 || e->t_high < 0) : TRUTH_UNKNOWN;
    it->any = truth_or(it->any, out);
    it->all = truth_and(it->all, out);
    spread_add(&it->mean, ok ? e->mean : (double)NAN, e->why);
    spread_add(&it->size, ok ? fabs(e->mean) : (double)NAN, e->why);
    spread_add(&it->se, ok ? e->se : (double)NAN, e->why);
    it->why = it->why != NULL ? it->why : e->why;
    it->n_open += ok ? 0 : 1;
    if (out == TRUTH_TRUE) {
        it->shown[it->n_shown++] = measure;
    }
    it->n++;
}

/* Items without a value in every file are left out and counted. */
static void put_errors(struct items *it, cJSON *o, const struct items_table *table, size_t n_pairs)
{
    double *diff = xcalloc(table->n + 1, sizeof(*diff));
    size_t *cluster = xcalloc(table->n + 1, sizeof(*cluster));
    size_t n = items_table_collect(table, (double)n_pairs, diff, cluster);
    struct item_error paired = {0};
    struct item_error clustered = {0};
    items_paired(diff, n, &paired);
    json_put_int(o, "n_items", (int64_t)n);
    json_put_int(o, "n_pairs", (int64_t)n_pairs);
    json_put_int(o, "left_out", (int64_t)(table->n - n));
    json_put(o, "paired", error_json(&paired, false));
    if (it->cluster == NULL) {
        json_put_null(o, "clustered");
    } else {
        items_clustered(diff, cluster, n, table->n_clusters, &clustered);
        /* One item outside of every cluster makes all clustered errors doubtful. */
        if (table->unclustered >= 0) {
            clustered.why = arena_printf(it->w->arena, "item %lld names no \"%s\", or two",
                                         (long long)table->unclustered, it->cluster);
        }
        json_put(o, "clustered", error_json(&clustered, true));
    }
    add_up(it, json_member(o, "measure")->valuestring, it->cluster == NULL ? &paired : &clustered);
    json_put_string(o, "why", NULL);
    free(cluster);
    free(diff);
}

/* One measure: its errors, or why there are none. */
static cJSON *measure_json(struct items *it, size_t m)
{
    const struct plan_measure *measure = &it->w->p->measures[m];
    struct items_table table;
    size_t n_pairs = 0;
    cJSON *o = json_object();
    items_table_init(&table);
    json_put_string(o, "measure", measure->name);
    json_put_string(o, "metric", measure->metric_text);
    const char *why = read_pairs(it, m, &table, &n_pairs);
    if (why == NULL) {
        put_errors(it, o, &table, n_pairs);
    } else {
        static const char *const nulls[] = {"n_items", "n_pairs", "left_out", "paired",
                                            "clustered"};
        for (size_t i = 0; i < ARRAY_LEN(nulls); i++) {
            json_put_null(o, nulls[i]);
        }
        json_put_string(o, "why", why);
        add_up(it, measure->name, &(struct item_error){.why = why});
    }
    items_table_release(&table);
    return o;
}

/* The fields that forecasts may read. */
static void answer(struct items *it)
{
    struct instrument_entry *t = it->t;
    entry_truth(t, "any_excludes_zero", it->any, it->why);
    entry_truth(t, "all_exclude_zero", it->all, it->why);
    entry_number(t, "min_mean", spread_low(&it->mean), spread_why(&it->mean));
    entry_number(t, "max_mean", spread_high(&it->mean), spread_why(&it->mean));
    entry_number(t, "max_abs", spread_high(&it->size), spread_why(&it->size));
    entry_number(t, "max_se", spread_high(&it->se), spread_why(&it->se));
}

/* Measures are processed one after another, so memory holds one table at a time. */
void instrument_items(struct instrument_entry *t)
{
    const struct work *w = t->w;
    const cJSON *cluster = json_member(t->spec->spec, "cluster");
    struct items it = {.t = t, .w = w, .any = TRUTH_FALSE, .all = TRUTH_TRUE};
    it.contrast = program_find_contrast(w->p, json_member(t->spec->spec, "contrast")->valuestring);
    it.cluster = cluster == NULL ? NULL : cluster->valuestring;
    struct measure_list measures = work_measures(w, t->spec->spec, "measures");
    it.shown = arena_array(w->arena, measures.n, sizeof(*it.shown));
    const struct plan_contrast *k = &w->p->contrasts[it.contrast];
    json_put_string(t->json, "contrast", k->name);
    json_put_string(t->json, "a", w->p->factors[k->factor].levels[k->level_a].text);
    json_put_string(t->json, "b", w->p->factors[k->factor].levels[k->level_b].text);
    json_put_string(t->json, "cluster", it.cluster);
    cJSON *list = json_array();
    for (size_t i = 0; i < measures.n; i++) {
        json_push(list, measure_json(&it, measures.items[i]));
    }
    json_put(t->json, "measures", list);
    answer(&it);
    entry_words(t->json,
                "The error of the arms' difference that comes from sampling items, paired item by "
                "item, the trainings taken as they are.",
                arena_printf(w->arena, "%zu of %zu intervals leave 0 out%s%s%s.", it.n_shown, it.n,
                             it.n_shown == 0 ? "" : ": ",
                             it.n_shown == 0 ? "" : work_join(w->arena, it.shown, it.n_shown),
                             it.n_open == 0
                                 ? ""
                                 : arena_printf(w->arena, "; %zu %s undetermined", it.n_open,
                                                it.n_open == 1 ? "is" : "are")));
}
